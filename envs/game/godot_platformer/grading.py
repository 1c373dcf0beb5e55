"""From tracks to a verdict: what the starting controller already did is a gate, the rest is graded by feature."""

from __future__ import annotations

from collections.abc import Sequence

from ...core import Check, Verdict, VerifierError
from .feel import TICKS, Feature, Feel
from .play import Record
from .stage import Trial

LEAP = 2.5
"""A tick may move the body this many times as far as its greatest speed does."""


def refused(name: str, evidence: str) -> Verdict:
    """The verdict on a script that cannot be measured."""
    return Verdict.of(Check(name=name, score=0.0, gate=True, evidence=evidence))


def wrong_by_feature(trials: Sequence[Trial], records: Sequence[Record]) -> dict[Feature, list[str]]:
    """Feature → what is wrong with it, in the order of its trials."""
    found: dict[Feature, list[str]] = {}
    for trial, record in zip(trials, records, strict=True):
        said = trial.judge(record.track, record.marks)
        found.setdefault(trial.feature, []).extend([said] if said else [])
    return found


def farthest_leap(records: Sequence[Record]) -> float:
    """The longest way of one tick in any track, in pixels."""
    return max(
        max(abs(after[0] - before[0]), abs(after[1] - before[1]))
        for record in records
        for before, after in zip(record.track, record.track[1:], strict=False)
    )


def judged(
    feel: Feel, trials: Sequence[Trial], records: Sequence[Record], before: Sequence[Record], said: str
) -> Verdict:
    """The verdict; `before` are the records of the starting controller, `said` what the engine complained of.

    Raises:
        VerifierError: the starting controller leaves nothing to do.
    """
    wrong, was_wrong = wrong_by_feature(trials, records), wrong_by_feature(trials, before)
    if not any(was_wrong.values()):
        raise VerifierError("the starting controller is right already")
    reach = LEAP * max(feel.max_speed, feel.terminal, feel.jump_speed) / TICKS
    leap = farthest_leap(records)
    checks = [
        Check(
            name="moves without leaps",
            score=float(leap <= reach),
            gate=True,
            evidence=f"at most {leap:.1f} px in a tick, {reach:.1f} allowed",
        )
    ]
    for feature, faults in wrong.items():
        gate = not was_wrong[feature]
        evidence = "; ".join(faults[:2]) or "as the sheet says"
        if faults and said:
            evidence += f" (the engine said: {said[:150]})"
        name = f"{feature} still works" if gate else str(feature)
        checks.append(Check(name=name, score=0.0 if faults else 1.0, gate=gate, evidence=evidence))
    return Verdict.of(*checks)
