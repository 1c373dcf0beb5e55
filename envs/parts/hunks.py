"""From one text to another as small edits, each of which names a place that occurs once: what the edit tool takes."""

from __future__ import annotations

import difflib
from typing import NamedTuple


class Hunk(NamedTuple):
    """Replace `old`, which occurs once in the text so far, by `new`."""

    old: str
    new: str


def hunks(before: str, after: str) -> list[Hunk]:
    """Edits that lead from `before` to `after` when made in order, with as few lines of context as are needed.

    Example:
        >>> hunks("a\\nb\\nc\\n", "a\\nB\\nc\\n")
        [Hunk(old='b\\n', new='B\\n')]
    """
    found: list[Hunk] = []
    text = before
    while text != after:
        old, new = text.splitlines(keepends=True), after.splitlines(keepends=True)
        matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
        _, first, last, begin, end = next(code for code in matcher.get_opcodes() if code[0] != "equal")
        while True:
            hunk = Hunk("".join(old[first:last]), "".join(new[begin:end]))
            if hunk.old and text.count(hunk.old) == 1:
                break
            if first == 0 and last == len(old):
                raise ValueError("the text before has no line")
            # what stands above is equal in both texts already; what stands below may not be
            if first > 0:
                first, begin = first - 1, begin - 1
            else:
                last, end = last + 1, end + 1
        found.append(hunk)
        text = text.replace(hunk.old, hunk.new)
    return found


def context(before: str, after: str, lines: int) -> str:
    """The first place of `after` that differs from `before`, with so many equal lines above and below it."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    codes = difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes()
    _, _, _, begin, end = next(code for code in codes if code[0] != "equal")
    return "".join(new[max(0, begin - lines) : end + lines])
