"""What can be asked of a sandbox. A request that cannot be sent is refused before a byte of it is, on every backend.

All of a request but its data (stdin, a session's source, a file's bytes, a tar) travels in one control frame of at
most `MAX_PAYLOAD` bytes of JSON, where a character beyond ASCII takes six bytes, or twelve. Its text is what UTF-8 can
say, and the characters that stand for single bytes in Python's file names (`surrogateescape`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metier.envs.core import SandboxError

from .protocol import MAX_PAYLOAD, REQUEST, FrameError, control


class RequestRefused(SandboxError, ValueError):
    """The request is too long, or holds text that is none. Nothing was sent, and the sandbox is as it was."""


def request_frame(op: str, stream: int, fields: Mapping[str, Any], num_data: int = 0) -> bytes:
    """The frame that begins a request of `num_data` bytes of data.

    Raises:
        RequestRefused: it cannot be sent.
    """
    _check_text(op, fields)
    try:
        return control(REQUEST, stream, **{"op": op, "data": num_data, **fields})
    except FrameError:
        raise RequestRefused(
            f"{op}: a request is at most {MAX_PAYLOAD} bytes, its data not counted, and this one is longer; "
            "give a long text as stdin, or write it into a file"
        ) from None


def as_data(op: str, text: str) -> bytes:
    """Text as it is sent outside the control frame. Raises RequestRefused for what is none."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        at = f"{text[error.start]!r} at character {error.start}"
        raise RequestRefused(f"{op}: {at} is half of a character, which no program can be given") from None


def _check_text(op: str, value: Any) -> None:
    if isinstance(value, str):
        as_data(op, value)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            _check_text(op, key)
            _check_text(op, part)
    elif isinstance(value, list | tuple):
        for part in value:
            _check_text(op, part)
