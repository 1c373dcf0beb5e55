"""A picture from the sandbox is the agent's until it has been read: one that does not open is told, not passed on."""

from __future__ import annotations

import io
import warnings

from PIL import Image

SIDE_PX = 4096
"""Width and height at most; known from the head of the file, before any of it is unpacked."""


def flaw(png: bytes) -> str:
    """Why these bytes are no PNG that everybody can show; empty for one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(png), formats=["PNG"]) as picture:
                if max(picture.size) > SIDE_PX:
                    width, height = picture.size
                    return f"{width} x {height} pixels, and {SIDE_PX} a side is the most"
                picture.convert("RGB")
    except Exception as error:  # Pillow raises what its decoders raise: OSError, SyntaxError, ValueError, zlib.error…
        return f"no whole PNG ({type(error).__name__})"
    return ""
