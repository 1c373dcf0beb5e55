"""Which rows run together: every row once, a shared beginning is shared, and sharing never computes more."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from metier.trainer.prefixes import RUN_TOKENS, cluster

ROWS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=30), min_size=1, max_size=10)


@given(rows=ROWS, most=st.integers(10, 200))
@settings(deadline=None, max_examples=150)
def test_a_partition_with_true_prefixes(rows: list[list[int]], most: int) -> None:
    runs = cluster(rows, max_tokens=most)
    assert sorted(index for run in runs for index in run.rows) == list(range(len(rows)))
    for run in runs:
        heads = {tuple(rows[index][: run.prefix]) for index in run.rows}
        assert len(heads) == 1
        assert all(len(rows[index]) > run.prefix for index in run.rows)
        distinct = {tuple(rows[index]) for index in run.rows}
        longest = max(map(len, distinct))
        assert run.cost == run.prefix + len(distinct) * (longest - run.prefix)
        assert run.cost <= most or len(distinct) == 1


@given(rows=ROWS)
@settings(deadline=None, max_examples=100)
def test_never_dearer_than_one_by_one(rows: list[list[int]]) -> None:
    runs = cluster(rows)
    alone = sum(len(row) + RUN_TOKENS for row in rows)
    assert sum(run.cost + RUN_TOKENS for run in runs) <= alone


def test_a_group_shares_and_a_stranger_does_not() -> None:
    group = [[1] * 200 + [tail] * 20 for tail in (2, 3, 4)]
    runs = cluster([group[0], [9] * 50, group[1], group[2]])
    assert {frozenset(run.rows): run.prefix for run in runs} == {frozenset({0, 2, 3}): 200, frozenset({1}): 0}


def test_equal_rows_are_computed_once() -> None:
    (run,) = cluster([[1, 2, 3]] * 8)
    assert (run.prefix, run.cost, len(run.rows)) == (0, 3, 8)
