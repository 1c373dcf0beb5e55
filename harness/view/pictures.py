"""Pictures of a transcript: what is PNG or JPEG by its first bytes, of a size that a browser can hold; nothing else."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

from PIL import Image

_MOST_PIXELS = 64_000_000
_KINDS = {b"\x89PNG\r\n\x1a\n": ("png", "image/png"), b"\xff\xd8\xff": ("jpg", "image/jpeg")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is known of a picture without decoding it."""

    suffix: str
    media: str
    width: int
    height: int


def picture(data: bytes) -> Picture | str:
    """The picture that these bytes are, or why they are none.

    Example:
        >>> picture(b"<svg onload=alert(1)>")
        'no PNG and no JPEG (21 bytes)'
    """
    suffix, media = next((kind for magic, kind in _KINDS.items() if data.startswith(magic)), ("", ""))
    if not suffix:
        return f"no PNG and no JPEG ({len(data)} bytes)"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=["PNG" if suffix == "png" else "JPEG"]) as opened:
                width, height = opened.size
    except Exception as error:  # Pillow raises what its decoders raise, its guard against bombs among it
        return f"no whole {suffix.upper()} ({type(error).__name__}, {len(data)} bytes)"
    if width * height > _MOST_PIXELS:
        return f"{width} x {height} pixels, which is more than is shown"
    return Picture(suffix=suffix, media=media, width=width, height=height)
