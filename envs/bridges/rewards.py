"""Reading what tests leave behind: a reward file, a report of tests, or the summary that pytest prints.

Nothing here raises for what it reads. Whoever wrote it may be the agent, so what is missing, is no number or has no end
is a reward of 0 with the reason as evidence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ..core import Check, Verdict

MAX_REWARD_BYTES = 64 << 10
MAX_REPORT_BYTES = 4 << 20
_TOLD = 12
_SUMMARY = re.compile(r"^=+ *short test summary info *=+$", re.IGNORECASE | re.MULTILINE)
_RESULT = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS):? +(\S.*)$")
_GOOD = frozenset({"PASSED", "XFAIL", "SKIPPED"})


def none_given(why: str, shown: str = "") -> Verdict:
    """No reward was stated: 0."""
    evidence = f"{why}\n{shown}".strip()
    return Verdict(checks=(Check(name="reward stated", score=0.0, gate=True, evidence=evidence),), passed=False)


def from_reward_files(json_text: bytes | None, text: bytes | None, *, shown: str = "", report: str = "") -> Verdict:
    """The verdict of `reward.json`, which wins, else of `reward.txt`; None is a file that is not there.

    `report` tells of single tests, `shown` is the end of the output.

    Example:
        >>> from_reward_files(None, b"0.5").reward
        0.5
    """
    if json_text is None and text is None:
        return none_given("the tests left neither reward.json nor reward.txt", shown)
    stated = _of_json(json_text) if json_text is not None else _of_text(text or b"")
    if isinstance(stated, str):
        return none_given(stated, shown)
    main = stated.get("reward")
    if main is None:
        main = sum(stated.values()) / len(stated)
    said = "" if 0 <= main <= 1 else f"the tests said {main:g}, rewards here lie in [0, 1]"
    score = min(1.0, max(0.0, main))
    evidence = "\n".join(part for part in (said, report, shown if score < 1 else "") if part)
    others = [
        Check(name=name[:80] or "(unnamed)", score=min(1.0, max(0.0, value)), weight=0.0, evidence=f"{value:g}")
        for name, value in stated.items()
        if name != "reward"
    ]
    return Verdict(checks=(Check(name="reward", score=score, evidence=evidence), *others), passed=score == 1.0)


def _of_text(text: bytes) -> dict[str, float] | str:
    try:
        value = float(text.decode("utf-8", "strict").strip())
    except (ValueError, UnicodeDecodeError):
        return f"reward.txt holds no number: {text[:60]!r}"
    return {"reward": value} if math.isfinite(value) else f"reward.txt holds {value}, which is no reward"


def _of_json(text: bytes) -> dict[str, float] | str:
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        return f"reward.json is no JSON: {text[:60]!r}"
    stated: dict[str, Any] = {str(name): value for name, value in said.items()} if isinstance(said, dict) else {}
    if not isinstance(said, dict):
        stated = {"reward": said}
    if not stated:
        return "reward.json names no reward"
    found: dict[str, float] = {}
    for name, value in stated.items():
        number = _number(value)
        if number is None:
            return f"reward.json: {name[:60]!r} is {str(value)[:60]!r}, no finite number"
        found[name] = number
    return found


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def told_of_report(data: bytes | None) -> str:
    """The failed tests of a CTRF report, as evidence; nothing where it cannot be read."""
    if data is None:
        return ""
    try:
        said: Any = json.loads(data)
        tests = [(str(one["name"])[:120], str(one["status"])[:20]) for one in said["results"]["tests"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    failed = [f"{name}: {status}" for name, status in tests if status != "passed"]
    more = f", and {len(failed) - _TOLD} more" if len(failed) > _TOLD else ""
    return (
        f"{len(tests) - len(failed)} of {len(tests)} tests passed"
        + "".join(f"\n{line}" for line in failed[:_TOLD])
        + more
    )


def summarised(output: str) -> Mapping[str, bool]:
    """Test → whether it counts as passed, by pytest's last summary; empty where there is none.

    Example:
        >>> summarised("=== short test summary info ===\\nPASSED t.py::a\\nFAILED t.py::b - no")
        {'a': True, 'b': False}
    """
    starts = [match.end() for match in _SUMMARY.finditer(output)]
    found: dict[str, bool] = {}
    for line in output[starts[-1] :].splitlines() if starts else ():
        match = _RESULT.match(line.strip())
        if match is None:
            continue
        status, rest = match.groups()
        name = rest.split(" - ")[0] if status in ("FAILED", "ERROR") else rest
        name = name.partition("::")[2] or name
        found[name.strip()] = found.get(name.strip(), True) and status in _GOOD
    return found


def from_summary(output: str, *, shown: str = "") -> Verdict:
    """All tests have to pass."""
    tests = summarised(output)
    if not tests:
        return none_given("the tests printed no summary of pytest's with a test in it", shown)
    failed = [name for name, good in tests.items() if not good]
    evidence = f"{len(tests) - len(failed)} of {len(tests)} tests passed"
    evidence = f"{evidence}\n{shown}" if failed else evidence
    whole = Check(name="all tests pass", score=float(not failed), evidence=evidence)
    each = [Check(name=name[:80], score=float(good), weight=0.0) for name, good in tests.items()]
    return Verdict(checks=(whole, *each), passed=not failed)
