"""Compound colliders against the body they stand for: volumes, bounds, and drops from hidden starts.

The true body falls from hidden starts. Where it rests, and rests again when it is disturbed a little, the collider is
let go in the same disturbed place and must end as the true body does. Where only the height is sure (a thing that may
roll), only the height is compared.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import Check, Json, Rng, Sandbox, VerifierError
from . import drop_test_probe
from .control import require_tool
from .poses import about, any_turn
from .probe import run_probe

LEAST_OVERLAP = 0.7
_STARTS, _DISTURBED_DEG = 10, 3.0
_NAMES = ("coverage", "overshoot", "bounding box", "rests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is asked of a collider."""

    coverage: float
    """Least share of the body's volume that lies in the collider."""
    overshoot: float
    """Most volume outside of the body, as a share of the body's volume."""
    bounds: float
    """Most deviation of each side of the bounding box, as a share of the box's diagonal."""
    height: float
    """Most deviation of the centre of mass' height at rest, as a share of the diagonal."""
    tilt_deg: float
    """Most angle between the two rests."""


async def check_collider(
    sandbox: Sandbox,
    path: str,
    pieces: Sequence[Mapping[str, Json]],
    demand: Demand,
    hidden: Rng,
    *,
    cap: int,
    timeout_s: float,
) -> list[Check]:
    """All checks of the collider file at `path` against the body made of convex `pieces`.

    Raises:
        VerifierError: the probe broke by itself, Bullet does not load, or no rest is kept when disturbed.
        SandboxLost: the sandbox is gone.
    """
    payload: dict[str, Json] = {
        "path": path,
        "cap": cap,
        "pieces": [dict(piece) for piece in pieces],
        "seed": hidden.child("points").integer(0, 2**62),
        "starts": [list(any_turn(hidden.child(f"start {index}"))) for index in range(_STARTS)],
        "disturbances": [
            [_disturbance(hidden.child(f"disturbance {index} {which}")) for which in range(2)]
            for index in range(_STARTS)
        ],
        "least_overlap": LEAST_OVERLAP,
        "spread_height": demand.height / 2.0,
        "spread_tilt_deg": demand.tilt_deg,
    }
    source = inspect.getsource(drop_test_probe) + "\n_answer(measure(payload))\n"
    result = await run_probe(sandbox, source, payload, timeout_s=timeout_s)
    if not isinstance(result.value, dict):
        await require_tool(sandbox, "pybullet")
        return _failed(f"measuring it {result.failure}")
    return judge(result.value, demand)


def judge(measured: Mapping[str, Any], demand: Demand) -> list[Check]:
    """The checks on what `drop_test_probe.measure` answered.

    Raises:
        VerifierError: no rest is kept when disturbed.
    """
    if "error" in measured:
        return _failed(str(measured["error"]))
    coverage, overshoot, overlap = measured["coverage"], measured["overshoot"], measured["overlap"]
    evidence = f"overlap (intersection over union) {overlap:.3f}, at least {LEAST_OVERLAP}"
    readable = Check(name="collider file", score=1.0, gate=True, evidence="read")
    gate = Check(name="overlap", score=float(overlap >= LEAST_OVERLAP), gate=True, evidence=evidence)
    missing, excess = demand.coverage - coverage, overshoot - demand.overshoot
    bounds = measured["bounds"]
    checks = [
        readable,
        gate,
        Check(
            name="coverage",
            score=_graded(missing, demand.coverage / 2.0),
            evidence=f"{coverage:.3f} of the volume, at least {demand.coverage}",
        ),
        Check(
            name="overshoot",
            score=_graded(excess, 0.5),
            evidence=f"{overshoot:.3f} of the volume, at most {demand.overshoot}",
        ),
        Check(
            name="bounding box",
            score=float(bounds <= demand.bounds),
            evidence=f"off by {bounds:.4f} of the diagonal, at most {demand.bounds}",
        ),
    ]
    return [*checks, _rests(measured.get("rests"), demand)]


def _graded(over: float, span: float) -> float:
    """1 up to the limit, then falling to 0 over `span`."""
    return max(0.0, min(1.0, 0.9 - 0.9 * over / span)) if over > 0 else 1.0


def _rests(rests: Sequence[Mapping[str, Any]] | None, demand: Demand) -> Check:
    if rests is None:
        return Check(name="rests", score=0.0, weight=2.0, evidence="not dropped")
    if not rests:
        raise VerifierError("no rest is kept when it is disturbed; the body is no good for a drop test")
    good = sum(
        abs(rest["height"]) <= demand.height and (rest["tilt_deg"] is None or rest["tilt_deg"] <= demand.tilt_deg)
        for rest in rests
    )
    needed = len(rests) - (max(1, len(rests) // 5) if len(rests) > 1 else 0)
    worst = max(abs(rest["height"]) for rest in rests)
    evidence = f"{good} of {len(rests)} drops end alike, {needed} needed; largest height error {worst:.4f}"
    return Check(name="rests", score=min(1.0, good / needed), weight=2.0, evidence=evidence)


def _failed(problem: str) -> list[Check]:
    gate = Check(name="collider file", score=0.0, gate=True, evidence=problem)
    return [gate, *(Check(name=name, score=0.0, evidence="not measured") for name in _NAMES)]


def _disturbance(rng: Rng) -> list[Json]:
    """A turn by a few degrees about any axis."""
    z, around = 2.0 * rng.fraction() - 1.0, 2.0 * math.pi * rng.fraction()
    flat = math.sqrt(1.0 - z * z)
    return list(about((flat * math.cos(around), flat * math.sin(around), z), _DISTURBED_DEG))
