"""Spans, against sets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from metier.harness.record.spans import Spans


@given(st.lists(st.integers(0, 30)))
def test_spans_are_a_set(numbers: list[int]) -> None:
    spans, plain = Spans(), set[int]()
    for number in numbers:
        assert spans.add(number) == (number not in plain)
        plain.add(number)
    assert [number for number in range(-1, 33) if number in spans] == sorted(plain)
    assert len(spans) == len(plain)
    assert all(last + 1 < first for (_, last), (first, _) in zip(spans.whole, spans.whole[1:], strict=False))
    assert spans.from_zero == (bool(plain) and plain == set(range(len(plain))))
    assert Spans(spans.whole).whole == spans.whole


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5))), st.lists(st.integers(0, 30)))
def test_spans_join(spans: list[tuple[int, int]], numbers: list[int]) -> None:
    plain = {number for first, length in spans for number in range(first, first + length + 1)} | set(numbers)
    joined = Spans()
    for number in numbers:
        joined.add(number)
    joined.update((first, first + length) for first, length in spans)
    assert {number for number in range(40) if number in joined} == plain
