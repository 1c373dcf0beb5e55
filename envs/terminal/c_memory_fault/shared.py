"""What every program of the family shares: growing strings, the line reader, and the faults these can have."""

from __future__ import annotations

from ...core import Rng
from .fault import Change, Fault, Names

_LETTERS = "abcdefghijklmnoprstuvw"


def word(rng: Rng, length: int) -> str:
    """A word of so many letters."""
    return "".join(rng.choice(_LETTERS) for _ in range(length))


def _long_lines(rng: Rng, names: Names) -> list[str]:
    """Unknown commands of every length about the reader's first sizes: only the reader is met."""
    room = int(names["room1"])
    sizes = sorted({room - 2, room - 1, room, room + 1, 2 * room - 1, 2 * room, 4 * room + 3})
    return [word(rng, size) for size in sizes]


_READ = "        if (size + 1 == room) {\n            room *= 2;\n            line = realloc(line, room);\n        }"
SHARED_FAULTS = (
    Fault(
        name="line full",
        kind="a write past the end of a heap block",
        function="text_line",
        symptom="lines of certain lengths crash it",
        changes=(Change("text.c", "        if (size + 1 == room) {", "        if (size == room) {"),),
        lines=_long_lines,
        clues=0,
        other=(Change("text.c", "        if (size + 1 == room) {", "        if (size >= room - 1) {"),),
    ),
    Fault(
        name="old line kept",
        kind="a write to freed memory",
        function="text_line",
        symptom="long lines crash it",
        changes=(
            Change(
                "text.c",
                _READ,
                _READ.replace("line = realloc(line, room);", "if (!realloc(line, room))\n                return NULL;"),
            ),
        ),
        lines=_long_lines,
        clues=0,
    ),
    Fault(
        name="end of input leaks",
        kind="a leak",
        function="text_line",
        symptom="a few bytes are lost at the end of every run",
        changes=(
            Change(
                "text.c",
                "    if (c == EOF && size == 0) {\n        free(line);\n        return NULL;\n    }",
                "    if (c == EOF && size == 0)\n        return NULL;",
            ),
        ),
        lines=_long_lines,
        clues=1,
    ),
)
