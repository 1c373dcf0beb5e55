"""A measurement that does not end is the artefact's fault only where the tool itself would have loaded."""

from __future__ import annotations

from typing import Any

import pytest

from metier.envs.core import HashRng, Verdict, VerifierError
from metier.envs.parts import brep, control
from metier.envs.parts.brep import HiddenPoints, check_step
from metier.envs.parts.prismatic import Block, Part
from metier.envs.parts.probe import ProbeResult

PART = Part(added=(Block(low=(0.0, 0.0, 0.0), high=(1.0, 1.0, 1.0)),), cut=())
HIDDEN = HiddenPoints(points=[(0.5, 0.5, 0.5)], inside=[True])
SLOW = ProbeResult(value=None, failure="did not end within 85 s")


async def _graded(monkeypatch: pytest.MonkeyPatch, alone: ProbeResult) -> Verdict:
    async def measuring(*_: Any, **__: Any) -> ProbeResult:
        return SLOW

    async def loading(*_: Any, **__: Any) -> ProbeResult:
        return alone

    monkeypatch.setattr(brep, "run_probe", measuring)
    monkeypatch.setattr(control, "run_probe", loading)
    sandbox: Any = None
    return Verdict.of(*await check_step(sandbox, "/workspace/part.step", PART, HIDDEN, timeout_s=85))


async def test_a_file_that_outlasts_the_probe_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = await _graded(monkeypatch, ProbeResult(value=True))
    assert (verdict.reward, verdict.passed) == (0.0, False)
    assert "did not end within 85 s" in verdict.checks[0].evidence


async def test_a_machine_too_slow_to_load_the_kernel_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(VerifierError, match="overloaded"):
        await _graded(monkeypatch, SLOW)


def test_hidden_points_of_a_plain_block_need_no_round_surface() -> None:
    assert len(brep.hidden_points(PART, HashRng(b"block"), count=20).points) == 20
