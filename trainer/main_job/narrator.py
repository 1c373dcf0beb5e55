"""Whom a main job tells how it goes: phases, counts, and remarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Narrator(Protocol):
    """Shows a long job to a person."""

    def phase(self, title: str) -> None:
        """A new phase begins."""
        ...

    def say(self, text: str) -> None:
        """A remark: a figure, a table, a path."""
        ...

    @contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[str], None]]:
        """Work of `total` pieces: call what is yielded after each, with a word on how it stands (or none)."""
        ...


class Silent:
    """Says nothing; for tests."""

    def phase(self, title: str) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    @contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[str], None]]:
        yield lambda _: None
