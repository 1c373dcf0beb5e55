"""The typed-number parser, in both directions: what must be read, and what must not be taken for something else."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.envs.parts.answers import AnswerError, close, parse_number

SAME = [
    ("1.2 million", "1200000"),
    ("1.2B", "1200000000"),
    ("1.2 billion", "1200000000"),
    ("1200 million", "1200000000"),
    ("1,200,000,000", "1200000000"),
    ("1 200 000,5", "1200000.5"),
    ("543", "543"),
    ("12.5%", "0.125"),
    ("12.5 per cent", "0.125"),
    ("12.5 bps", "0.00125"),
    ("5%", "0.05"),
    ("0.05", "0.05"),
    ("(1,950)", "-1950"),
    ("(12.5)", "-12.5"),
    ("(12.5%)", "-0.125"),
    ("(12.5)%", "-0.125"),
    ("1.234,5", "1234.5"),
    ("1.234.567", "1234567"),
    ("12,5", "12.5"),
    ("0,125", "0.125"),
    ("1,234", "1234"),
    ("1.234", "1.234"),
    ("2.158e1", "21.58"),
    ("minus 5", "-5"),
    ("\u22125", "-5"),
    ("twelve", "12"),
    ("twelve million", "12000000"),
    ("3.42x", "3.42"),
    ("six", "6"),
    ("$1.2 million", "1200000"),
    ("-€5", "-5"),
    ("€-5", "-5"),
    (" .5 ", "0.5"),
]
REFUSED = [
    "",
    " ",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "Infinity",
    "null",
    "None",
    "()",
    "1,20,000",
    "1.2.3",
    "--5",
    "5 apples",
]
CODE = [
    "__import__('os')",
    "1+1",
    "2**9",
    "0x10",
    "1_000",
    "5;6",
    "3.4 3.5",
    "1e999999",
    "9" * 200,
    "٣",
    "%",
    "million",
]


@pytest.mark.parametrize(("text", "value"), SAME)
def test_reads_what_a_person_would_write(text: str, value: str) -> None:
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("1.2 million", "1.2B"),
        ("543", "543 billion"),
        ("12.5%", "12.5 bps"),
        ("5", "5%"),
        ("(1,950)", "1950"),
        ("1.234,5", "1.2345"),
    ],
)
def test_different_numbers_differ_both_ways(text: str, other: str) -> None:
    assert parse_number(text) != parse_number(other)
    assert not close(parse_number(other), parse_number(text), abs(parse_number(text)) / 100)


@pytest.mark.parametrize("text", REFUSED + CODE)
def test_refuses_what_is_no_number(text: str) -> None:
    with pytest.raises(AnswerError):
        parse_number(text)


@given(st.text(max_size=100))
def test_any_text_is_a_finite_number_or_refused(text: str) -> None:
    try:
        value = parse_number(text)
    except AnswerError:
        return
    assert value.is_finite()


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9))
def test_plain_and_grouped_decimals_round_trip(value: Decimal) -> None:
    assert parse_number(f"{value:f}") == value
    assert parse_number(f"{value:,f}") == value


def test_close_includes_the_tolerance_itself() -> None:
    assert close(Decimal("3.42"), Decimal("3.425"), Decimal("0.005"))
    assert not close(Decimal("3.42"), Decimal("3.4251"), Decimal("0.005"))
