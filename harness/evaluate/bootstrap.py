"""Bootstrap intervals, clustered by instance: instances are drawn again, each with all its samples.

Samples of one instance are alike, so that an interval over single samples would be too narrow. Values are exact
multiples of 2^-32 and draws come from our own stream, so that the same results give the same interval everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from metier.envs.core import HashRng

from .statistics import Interval

RESAMPLES = 2000
_SCALE = 1 << 32
_DRAWS_AT_ONCE = 1 << 20
Values = Sequence[Fraction | None]
"""One an instance; None where it has none."""


def clustered_intervals(columns: Sequence[Values], *, stream: str, resamples: int = RESAMPLES) -> list[Interval | None]:
    """The 95% percentile interval of each column's mean over the instances that have a value; None below two of them.

    All columns see the same draws. An instance without a value keeps its place among those that are drawn; a resample
    in which no value was drawn counts for nothing.

    Args:
        columns: statistics of the same instances.
        stream: names the stream of draws.
        resamples: how many.

    Raises:
        ValueError: columns of different lengths.

    Example:
        >>> clustered_intervals([[Fraction(1), Fraction(0), Fraction(1), None]], stream="example")
        [Interval(low=0.0, high=1.0)]
    """
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"columns of {sorted(lengths)} instances")
    count = lengths.pop() if lengths else 0
    known = [at for at, column in enumerate(columns) if sum(value is not None for value in column) >= 2]
    intervals: list[Interval | None] = [None] * len(columns)
    if not known:
        return intervals
    scaled_CI = np.array([[_scaled(value) for value in columns[at]] for at in known], dtype=np.int64)
    there_CI = np.array([[value is not None for value in columns[at]] for at in known], dtype=np.int64)
    means: list[list[NDArray[np.float64]]] = [[] for _ in known]
    for drawn_BI in _draws(count, stream, resamples):
        for row, (scaled_I, there_I) in enumerate(zip(scaled_CI, there_CI, strict=True)):
            means[row].append(_means(drawn_BI, scaled_I, there_I))
    for at, parts in zip(known, means, strict=True):
        ordered = np.sort(np.concatenate(parts))
        low, high = (ordered[_rank(len(ordered), quantile)] for quantile in (0.025, 0.975))
        intervals[at] = Interval(float(low), float(high))
    return intervals


def _draws(count: int, stream: str, resamples: int) -> Iterator[NDArray[np.int64]]:
    """Indices of instances, resample by instance, so many rows at once that memory stays small."""
    rng = HashRng(b"bootstrap:" + stream.encode())
    rows = max(1, _DRAWS_AT_ONCE // count)
    for first in range(0, resamples, rows):
        # one request a resample, so that the stream is the same whatever is held at once
        words = b"".join(
            rng.integer(0, (1 << 32 * count) - 1).to_bytes(4 * count, "big")
            for _ in range(min(rows, resamples - first))
        )
        numbers = np.frombuffer(words, dtype=">u4").astype(np.uint64)
        # the high half of number · count: even to within count / 2^32
        yield ((numbers * np.uint64(count)) >> np.uint64(32)).astype(np.int64).reshape(-1, count)


def _scaled(value: Fraction | None) -> int:
    return 0 if value is None else round(value * _SCALE)


def _means(drawn_BI: NDArray[np.int64], scaled_I: NDArray[np.int64], there_I: NDArray[np.int64]) -> NDArray[np.float64]:
    sums_B, counts_B = scaled_I[drawn_BI].sum(axis=1), there_I[drawn_BI].sum(axis=1)
    some = counts_B > 0
    return sums_B[some] / (counts_B[some] * _SCALE)


def _rank(count: int, quantile: float) -> int:
    """The index of a quantile among so many sorted values, by nearest rank."""
    return max(0, math.ceil(quantile * count) - 1)
