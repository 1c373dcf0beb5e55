"""Which rows to run together: rows that begin alike share one run of their beginning.

Members of a group agree on the prompt, mostly on the first call and its observation; oracle rows agree on the system
message; equal rows are one. Sorted by their ids, rows that agree are neighbours, so the cheapest grouping is a
partition of the sorted list, found by dynamic programming over the tokens each run would compute, padding included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RUN_TOKENS = 24
"""What starting one more run costs, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Rows whose first `prefix` ids are equal; each has at least one id after them."""

    rows: tuple[int, ...]
    prefix: int
    cost: int
    """Tokens computed."""


def cluster(ids: Sequence[Sequence[int]], *, max_tokens: int = 4096) -> list[Cluster]:
    """A partition of the rows into runs of at most `max_tokens` each (a single longer row is a run of its own).

    Example:
        >>> [(c.rows, c.prefix) for c in cluster([[1] * 50 + [2], [1] * 50 + [3], [7] * 9])]
        [((0, 1), 50), ((2,), 0)]
    """
    order = sorted(range(len(ids)), key=lambda index: tuple(ids[index]))
    best: list[tuple[int, list[Cluster]]] = [(0, [])]
    for end in range(1, len(order) + 1):
        options = []
        prefix = len(ids[order[end - 1]]) - 1
        longest, distinct = 0, 0
        for start in range(end - 1, -1, -1):
            row = ids[order[start]]
            longest = max(longest, len(row))
            following = ids[order[start + 1]] if start < end - 1 else None
            if following is not None:
                prefix = min(prefix, _agree(row, following))
            distinct += following is None or tuple(row) != tuple(following)
            alone = distinct == 1
            shared = 0 if alone else prefix
            cost = shared + distinct * (longest - shared)
            if cost > max_tokens and not alone:
                break
            run = Cluster(rows=tuple(order[start:end]), prefix=shared, cost=cost)
            total, runs = best[start]
            options.append((total + cost + RUN_TOKENS, runs, run))
        total, runs, run = min(options, key=lambda option: option[0])
        best.append((total, [*runs, run]))
    return best[-1][1]


def _agree(a: Sequence[int], b: Sequence[int]) -> int:
    """How many first ids are equal, leaving each row at least one."""
    most = min(len(a), len(b)) - 1
    return next((at for at in range(most) if a[at] != b[at]), most)
