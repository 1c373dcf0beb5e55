"""What tests leave behind is read without ever raising: whoever wrote it may be the agent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.envs.bridges.rewards import from_reward_files, from_summary, summarised, told_of_report


@pytest.mark.parametrize(
    ("json_text", "text", "reward", "passed"),
    [
        (None, b"1\n", 1.0, True),
        (None, b" 0.5 ", 0.5, False),
        (b'{"reward": 0}', b"1", 0.0, False),
        (b'{"reward": 1, "style": 0.2}', None, 1.0, True),
        (b'{"a": 1, "b": 0}', None, 0.5, False),
        (b"0.25", None, 0.25, False),
        (b'{"reward": true}', None, 1.0, True),
        (None, b"7", 1.0, True),
        (None, b"-3", 0.0, False),
    ],
)
def test_rewards_are_read(json_text: bytes | None, text: bytes | None, reward: float, passed: bool) -> None:
    verdict = from_reward_files(json_text, text)
    assert (verdict.reward, verdict.passed) == (reward, passed)


@pytest.mark.parametrize(
    ("json_text", "text"),
    [
        (None, None),
        (None, b""),
        (None, b"abc"),
        (None, b"nan"),
        (None, b"inf"),
        (None, b"\xff"),
        (b"", b"1"),
        (b"{", b"1"),
        (b"{}", b"1"),
        (b"[1]", b"1"),
        (b'{"reward": "1"}', b"1"),
        (b'{"reward": NaN}', b"1"),
        (b'{"reward": 1e999}', b"1"),
        (b'{"reward": ' + b"9" * 400 + b"}", b"1"),
        (b'{"reward": 1, "x": null}', b"1"),
        (b"[" * 100_000, b"1"),
    ],
)
def test_no_reward_is_a_zero_with_the_reason(json_text: bytes | None, text: bytes | None) -> None:
    verdict = from_reward_files(json_text, text, shown="the end of the output")
    assert (verdict.reward, verdict.passed) == (0.0, False)
    assert "the end of the output" in verdict.checks[0].evidence and len(verdict.checks[0].evidence) < 400


@given(st.one_of(st.none(), st.binary(max_size=60)), st.one_of(st.none(), st.binary(max_size=60)))
def test_any_bytes_give_a_verdict(json_text: bytes | None, text: bytes | None) -> None:
    verdict = from_reward_files(json_text, text)
    assert verdict.checks and 0.0 <= verdict.reward <= 1.0


_LEAF = st.none() | st.booleans() | st.floats() | st.text(max_size=5)
_JSON = st.recursive(_LEAF, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=8)


@given(_JSON)
def test_any_json_gives_a_verdict(value: object) -> None:
    data = json.dumps(value).encode()
    assert 0.0 <= from_reward_files(data, None).reward <= 1.0
    told_of_report(data)


def test_a_report_tells_which_tests_failed() -> None:
    tests = [{"name": "a", "status": "passed"}, {"name": "b", "status": "failed"}]
    report = told_of_report(json.dumps({"results": {"tests": tests}}).encode())
    assert report == "1 of 2 tests passed\nb: failed"
    assert from_reward_files(None, b"0", report=report).checks[0].evidence.startswith(report)


SUMMARY = """\
============================= test session starts ==============================
PASSED fake.py::not_in_the_summary
=========================== short test summary info ============================
PASSED ../tests/t.py::test_a
XFAIL ../tests/t.py::test_x - known
SKIPPED [1] ../tests/t.py:3: not here
FAILED ../tests/t.py::test_b[1-2] - AssertionError: assert 1 - 1
ERROR ../tests/t.py::test_c
========================= 1 failed, 1 passed in 0.1s ==========================
"""


def test_the_verdict_is_pytests_summary() -> None:
    tests = summarised(SUMMARY)
    assert {name: good for name, good in tests.items() if "t.py" not in name} == {
        "test_a": True,
        "test_x - known": True,
        "test_b[1-2]": False,
        "test_c": False,
    }
    verdict = from_summary(SUMMARY)
    assert (verdict.reward, verdict.passed) == (0.0, False)
    good = "\n".join(line for line in SUMMARY.splitlines() if not line.startswith(("FAILED", "ERROR")))
    assert from_summary(good).passed


@pytest.mark.parametrize("output", ["", "all good", "=== short test summary info ===\n", "PASSED a::b"])
def test_no_summary_is_a_zero(output: str) -> None:
    assert from_summary(output).reward == 0.0


def test_a_summary_that_was_printed_before_does_not_count() -> None:
    forged = "=== short test summary info ===\nPASSED t.py::test_b\n"
    assert not from_summary(forged + SUMMARY).passed


@given(st.text())
def test_any_output_gives_a_verdict(output: str) -> None:
    assert from_summary(output + "\n=== short test summary info ===\n" + output).reward in (0.0, 1.0)
