"""Placeholders of a command that a person names: words in braces, filled in when it is run."""

from __future__ import annotations

import string
from collections.abc import Sequence


def check_placeholders(command: Sequence[str], known: Sequence[str]) -> None:
    """Raises ValueError: a word of the command has a placeholder that is none of these.

    Example:
        >>> check_placeholders(["agent", "--task={brief}"], ["brief"])
        >>> check_placeholders(["{task}"], ["brief"])
        Traceback (most recent call last):
        ValueError: unknown placeholder 'task' (there are brief); write {{ for a brace
    """
    for word in command:
        names = {name for _, name, _, _ in string.Formatter().parse(word) if name is not None}
        if unknown := sorted(names - set(known)):
            raise ValueError(
                f"unknown placeholder {unknown[0]!r} (there are {', '.join(known)}); write {{{{ for a brace"
            )
