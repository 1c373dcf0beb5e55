"""Sets of sequence numbers as spans: an attempt that is whole is one span, however many events it has."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

Span = tuple[int, int]
"""First and last, both of them in it."""


class Spans:
    """A set of numbers from 0.

    Example:
        >>> spans = Spans([(0, 3), (7, 7)])
        >>> spans.add(4), spans.add(4), 5 in spans, spans.whole
        (True, False, False, ((0, 4), (7, 7)))
    """

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in sorted(spans):
            if self._lasts and first <= self._lasts[-1] + 1:
                self._lasts[-1] = max(self._lasts[-1], last)
            else:
                self._firsts.append(first)
                self._lasts.append(last)

    @property
    def whole(self) -> tuple[Span, ...]:
        """The spans, in order; no two of them touch."""
        return tuple(zip(self._firsts, self._lasts, strict=True))

    def __contains__(self, number: int) -> bool:
        place = bisect.bisect_right(self._firsts, number) - 1
        return place >= 0 and number <= self._lasts[place]

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.whole)

    def add(self, number: int) -> bool:
        """Whether it was new."""
        place = bisect.bisect_right(self._firsts, number)
        if place and number <= self._lasts[place - 1]:
            return False
        joins_left = place > 0 and self._lasts[place - 1] == number - 1
        joins_right = place < len(self._firsts) and self._firsts[place] == number + 1
        if joins_left and joins_right:
            self._lasts[place - 1] = self._lasts[place]
            del self._firsts[place], self._lasts[place]
        elif joins_left:
            self._lasts[place - 1] = number
        elif joins_right:
            self._firsts[place] = number
        else:
            self._firsts.insert(place, number)
            self._lasts.insert(place, number)
        return True

    def update(self, spans: Iterable[Span]) -> None:
        """Add all of these."""
        merged = Spans([*self.whole, *spans])
        self._firsts, self._lasts = merged._firsts, merged._lasts

    @property
    def from_zero(self) -> bool:
        """Whether nothing is missing below its largest number."""
        return len(self._firsts) == 1 and self._firsts[0] == 0
