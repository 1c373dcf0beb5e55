"""What a call's arguments may hold, whatever the tool: JSON of bounded size whose text is Unicode.

Checked before anything else looks at them, so that no schema, tool or sandbox meets what it cannot bear. Half a
character (a lone surrogate) is no text and is refused, not replaced: a command that is run is the one that was sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..sandbox.steward.names import shown

KIB = 1024
TEXT_BYTES = 256 * KIB
"""Any text that has no limit of its own, such as a command or code."""
PATH_BYTES = 4 * KIB
CONTENT_BYTES = 1024 * KIB
"""What goes into a file: `old` and `new` of an edit, the `answer` of a submission."""
CALL_BYTES = 4096 * KIB
"""All of a call's arguments together."""
DEPTH = 32
VALUE_BYTES = 64
"""What each value in a list or an object counts beside its text, so that their number is bounded too."""
INTEGER_BITS = 64
SHOWN_CHARACTERS = 48
"""Of a name that the agent made up."""

_BYTES = {"path": PATH_BYTES, "old": CONTENT_BYTES, "new": CONTENT_BYTES, "answer": CONTENT_BYTES}
_ONE_LINE = {"path", "command", "code"}
"""Those that no program could be given with a NUL in them."""
_SHORTER = {
    "command": "write a long script into a file with several calls, and run that",
    "code": "write a long program into a file with several calls, and run that",
    "path": "no path is longer",
}


def unfit(arguments: object) -> str | None:
    """Why these arguments are refused, and what to do; None for those that a schema may look at."""
    if not isinstance(arguments, Mapping):
        return f"its arguments must be an object of names and values, not {_kind(arguments)}"
    left = CALL_BYTES
    waiting: list[tuple[str, Any, int]] = [("", dict[Any, Any](arguments), 0)]
    while waiting:
        name, value, depth = waiting.pop()
        if isinstance(value, str):
            problem, size = _text(name, value)
            left -= size
        elif isinstance(value, dict | list):
            problem = f"nested more than {DEPTH} deep; make it flatter" if depth >= DEPTH else ""
            left -= len(value) * VALUE_BYTES
            if not problem and left >= 0:
                problem, size, inside = _inside(name, value, depth + 1)
                left -= size
                waiting += inside
        else:
            problem = _plain(value)
        if problem:
            return f"{shortened(name)}: {problem}" if name else problem
        if left < 0:
            return f"its arguments are over {CALL_BYTES // KIB} KiB all together; do it in several calls"
    return None


def shortened(name: str) -> str:
    """A name as it may be told: printable, and its beginning only where it is long."""
    return shown(name, SHOWN_CHARACTERS)


def _inside(name: str, value: dict[Any, Any] | list[Any], depth: int) -> tuple[str, int, list[tuple[str, Any, int]]]:
    """What is wrong with the names in an object, how many bytes they have, and the values that are in it.

    A value is told by the name of its argument, however deep it lies.
    """
    if isinstance(value, list):
        return "", 0, [(name, part, depth) for part in value]
    total = 0
    for key in value:
        problem, size = _text("", key) if isinstance(key, str) else (f"{_kind(key)}; take text", 0)
        if problem:
            return f"one of its names is {problem}", 0, []
        total += size
    return "", total, [(name or key, part, depth) for key, part in value.items()]


def _text(name: str, text: str) -> tuple[str, int]:
    """What is wrong with a text, and how many bytes it has."""
    most = _BYTES.get(name, TEXT_BYTES)
    try:
        size = len(text) if len(text) > most else len(text.encode())
    except UnicodeEncodeError as error:
        half = f"{text[error.start]!r} at character {error.start}"
        return f"{half} is half of a character, which is no text; send the whole character or leave it out", 0
    if size > most:
        more = _SHORTER.get(name, "do it in several calls")
        return f"over {most // KIB} KiB of text, which is the most here; {more}", size
    if name in _ONE_LINE and "\0" in text:
        return f"a NUL at character {text.index(chr(0))}, which nothing could be given; leave it out", size
    return "", size


def _plain(value: object) -> str:
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return f"a number of more than {INTEGER_BITS} bits; take a smaller one" * (value.bit_length() > INTEGER_BITS)
    if isinstance(value, float):
        return "" if math.isfinite(value) else "NaN and infinity are no JSON numbers; send a finite one"
    return f"{_kind(value)} is no JSON; send text, numbers, true, false, null, lists and objects only"


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__[:SHOWN_CHARACTERS]}"
