"""Which trials of a submission are replayed.

They follow from a random draw that is made once the upload is here, so that whoever uploads cannot know them, and a
server that starts again goes on with the same. Trials that passed come first: with f of them forged, n that are
replayed all look right with a chance of (1 - f)**n.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..evaluate.row import Row

_PASSED_SHARE = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRule:
    """How many trials are replayed.

    Example:
        >>> SampleRule().size(4200), SampleRule().size(60), SampleRule().size(5)
        (420, 20, 5)
    """

    share: float = 0.1
    at_least: int = 20

    def size(self, valid: int) -> int:
        """Of so many valid trials."""
        return min(valid, max(self.at_least, math.ceil(self.share * valid)))


def drawn(rows: Sequence[Row], draw: str, size: int) -> list[Row]:
    """The valid rows to replay, in the order of the draw; three of four passed, as far as there are such.

    Args:
        rows: those that count.
        draw: the submission's.
        size: how many.
    """
    valid = [row for row in rows if row.valid]
    ordered = sorted(valid, key=lambda row: hmac.new(draw.encode(), row.key.encode(), hashlib.sha256).digest())
    size = min(size, len(ordered))
    passed = [row for row in ordered if row.passed]
    others = [row for row in ordered if not row.passed]
    num_passed = min(len(passed), max(math.ceil(_PASSED_SHARE * size), size - len(others)))
    return [*passed[:num_passed], *others[: size - num_passed]]
