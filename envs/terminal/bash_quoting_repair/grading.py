"""Cases in the verifier's sandbox: the script as it was, then as it is now, each beside what a right one leaves.

A category in which the old script was right is a gate; the others are what the repair is paid for. So nothing is paid
for leaving things as they are, and what worked must go on working.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...core import Check, Json, Rng, Sandbox, Verdict, VerifierError
from ...parts.probe import run_probe
from . import case_probe
from .hostile import LEVELS, Case, draw
from .model import Tree, expect
from .script import Plan

_OLD_PATH = "/tmp/old-script.sh"
_OLD_S = 150.0
"""Longer than for the new one: where the old script is too slow, the machine is."""
_NEW_S = 110.0
_LARGEST = 1 << 20
_SOURCE = inspect.getsource(case_probe) + "\n_answer(run_all(payload['script'], payload['cases']))\n"


def draw_cases(plan: Plan, level: int, hidden: Rng) -> list[Case]:
    """The level's cases, one of each category."""
    return [draw(plan, category, hidden.child(category)) for category in LEVELS[level]]


def request(plan: Plan, case: Case) -> dict[str, Json]:
    """A case as the probe takes it."""
    return {
        "home": _text(case.home),
        "source": _text(case.world.source),
        "target": _text(case.world.target),
        "source_name": case.source.decode("latin-1"),
        "target_name": case.target.decode("latin-1"),
        "relative": case.relative,
        "temporary": case.temporary.decode("latin-1"),
        "locked": case.world.locked,
        "lock": plan.words["LOCK"],
        "tool": plan.words["TOOL"],
        "tool_lines": b"".join(line + b"\n" for line in case.world.tool_lines).decode("latin-1"),
        "tool_status": case.world.tool_status,
        "signal": case.world.signal,
    }


def difference(plan: Plan, case: Case, seen: Mapping[str, Any]) -> str:
    """What the run left otherwise than a right script, in words; empty where nothing."""
    if seen.get("failure"):
        return str(seen["failure"])
    try:
        return _compared(plan, case, seen)
    except (KeyError, TypeError, AttributeError):
        return "the probe's answer was replaced"


def _compared(plan: Plan, case: Case, seen: Mapping[str, Any]) -> str:
    right = expect(plan, copy.deepcopy(case.world))
    lock = [plan.words["LOCK"]] if right.locked else []
    pairs: list[tuple[str, object, object]] = [
        ("exit status", seen["status"], right.status),
        ("source", seen["source"]["files"], _text(right.source)),
        ("target", seen["target"]["files"], _text(right.target)),
        ("files of its caller", seen["home"]["files"], _text(case.home)),
        ("folders of its caller", seen["home"]["folders"], []),
        ("TMPDIR", [*seen["temporary"]["files"], *seen["temporary"]["folders"]], []),
        ("lock", [name for name in seen["target"]["folders"] if name == plan.words["LOCK"]], lock),
    ]
    if "count" in plan.names:
        pairs.append(("standard output", seen["printed"], right.printed.decode("latin-1")))
    if "prune" in plan.names:
        pairs.append(("folders of source", sorted(seen["source"]["folders"]), sorted(_texts(right.folders))))
    return "; ".join(f"{what}: {_unlike(found, wanted)}" for what, found, wanted in pairs if found != wanted)


async def examine(sandbox: Sandbox, plan: Plan, old: str, level: int, hidden: Rng) -> Verdict:
    """Run both scripts on the same cases, and judge."""
    path = f"/workspace/{plan.path}"
    try:
        await sandbox.read(path, max_bytes=_LARGEST)
    except ConnectionError:
        raise
    except (OSError, ValueError) as error:
        return Verdict.of(Check(name="script", score=0.0, gate=True, evidence=f"{plan.path}: {error}"))
    cases = draw_cases(plan, level, hidden)
    await sandbox.write(_OLD_PATH, old.encode())
    before = await _observed(sandbox, plan, _OLD_PATH, cases, _OLD_S)
    if isinstance(before, str):
        raise VerifierError(f"the script as it was could not be run: {before}")
    after = await _observed(sandbox, plan, path, cases, _NEW_S)
    if isinstance(after, str):
        return Verdict.of(Check(name="script", score=0.0, gate=True, evidence=after))
    return judge(plan, cases, before, after)


def judge(
    plan: Plan, cases: Sequence[Case], before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> Verdict:
    """One check for each category."""
    checks: list[Check] = []
    for case, was, now in zip(cases, before, after, strict=True):
        wrong = difference(plan, case, now)
        checks.append(
            Check(
                name=case.category,
                score=0.0 if wrong else 1.0,
                gate=not difference(plan, case, was),
                evidence=wrong[:500] or f"right with {len(case.world.source)} files",
            )
        )
    return Verdict.of(*checks)


async def _observed(
    sandbox: Sandbox, plan: Plan, path: str, cases: Sequence[Case], timeout_s: float
) -> list[Mapping[str, Any]] | str:
    payload: Json = {"script": path, "cases": [request(plan, case) for case in cases]}
    result = await run_probe(sandbox, _SOURCE, payload, timeout_s=timeout_s, user="agent")
    answer = result.value
    if result.failure or not isinstance(answer, list) or len(answer) != len(cases):
        return result.failure or "the probe's answer was replaced"
    if not all(isinstance(one, dict) and ("failure" in one or "status" in one) for one in answer):
        return "the probe's answer was replaced"
    return cast("list[Mapping[str, Any]]", answer)


def _text(tree: Tree) -> dict[str, Json]:
    return {path.decode("latin-1"): data[: case_probe.SHOWN_BYTES].decode("latin-1") for path, data in tree.items()}


def _texts(names: set[bytes]) -> list[str]:
    return [name.decode("latin-1") for name in names]


def _unlike(found: object, wanted: object) -> str:
    """Where two values differ, shortly."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        missing = sorted(str(name) for name in wanted.keys() - found.keys())
        extra = sorted(str(name) for name in found.keys() - wanted.keys())
        other = sorted(str(name) for name in found.keys() & wanted.keys() if found[name] != wanted[name])
        parts = [("missing", missing), ("left over", extra), ("other content", other)]
        return ", ".join(f"{what} {names[:2]!r} ({len(names)})" for what, names in parts if names)
    return f"{str(found)[:160]!r} instead of {str(wanted)[:160]!r}"
