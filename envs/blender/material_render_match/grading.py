"""How a matched material is judged; every rule here is stated in `instruction.md`.

The agent's material, the goal's and the start's are rendered side by side in views that were never shown: other shapes,
other lights, other sides. What counts is how much of the way from the start to the goal was gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from ...core import Check, Rng, Sandbox
from ...parts.probe import run_probe
from .recipes import srgb

PICTURE = 0.03
"""Mean difference of a hidden picture, of 1, that still counts as a match."""
SHAPES = ("ball", "block", "cylinder", "monkey", "ring")
SIZE_PX, SAMPLES = 96, 12
_KNOBS_WEIGHT = 2.0


def lights(rng: Rng, *, tinted: bool) -> list[list[Any]]:
    """A key light, a fill light from the other side, and perhaps a third from behind."""
    azimuth, drawn = rng.integer(0, 359), []
    for turn, watts in ((0, 240), (140, 110), (220, 150))[: rng.integer(2, 3)]:
        colour = [round(1 - rng.integer(0, 45) / 100, 2) for _ in range(3)] if tinted else [1.0, 1.0, 1.0]
        drawn.append([(azimuth + turn + rng.integer(-20, 20)) % 360, rng.integer(20, 65), watts, colour])
    return drawn


def hidden_views(shape: str, hidden: Rng) -> list[dict[str, Any]]:
    """Three studios: the shape of the goal pictures from elsewhere, and two others."""
    others = hidden.child("shapes").sample([each for each in SHAPES if each != shape], 2)
    views: list[dict[str, Any]] = []
    for each in (shape, *others):
        rng = hidden.child(f"view {each}")
        camera = [rng.integer(0, 359), rng.integer(5, 50)]
        # a light near the camera, so that no picture is all shadow
        key = [(camera[0] + rng.choice((-45, 45))) % 360, rng.integer(25, 55), 230, [1.0, 1.0, 1.0]]
        more = lights(rng.child("lights"), tinted=False)[1:]
        views.append({"mesh": each, "lights": [key, *more], "cameras": {"Cam": camera}, "turn": rng.integer(0, 359)})
    return views


async def measure(sandbox: Sandbox, question: Mapping[str, Any]) -> dict[str, Any]:
    """What the probe found, or {"failure": why}."""
    folder = files(__package__ or "")
    source = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in ("studio.py", "match_probe.py"))
    fixed = {"size": SIZE_PX, "samples": SAMPLES}
    result = await run_probe(sandbox, source, {**question, **fixed}, timeout_s=270)
    answer: Any = result.value
    return {"failure": result.failure} if answer is None else answer


def judge(found: Mapping[str, Any], knobs: Sequence[Mapping[str, Any]], shapes: Sequence[str]) -> list[Check]:
    """The checks on what the probe found."""
    wrong = found["problems"]
    gate = Check(
        name="a plain procedural material",
        score=float(not wrong),
        gate=True,
        evidence="; ".join(wrong[:5]) or "it is one",
    )
    if wrong:
        return [gate]
    checks = [gate]
    for index, (shape, (theirs, start)) in enumerate(zip(shapes, found["views"], strict=True)):
        checks.append(_view_check(f"hidden view {index + 1}, {shape}", theirs, start))
    for knob in knobs:
        checks.append(_knob_check(knob, found["values"][knob["name"]], _KNOBS_WEIGHT / len(knobs)))
    return checks


def _view_check(name: str, theirs: float, start: float) -> Check:
    limit = min(PICTURE, 0.3 * start)
    score = 1.0 if theirs <= limit else max(0.0, 0.8 * (1 - theirs / start))
    evidence = f"differs from the goal by {theirs:.4f} on average, the start by {start:.4f}; at most {limit:.4f} counts"
    return Check(name=name, score=score, evidence=evidence)


def _knob_check(knob: Mapping[str, Any], value: Any, weight: float) -> Check:
    if value is None:
        return Check(name=knob["name"], score=0.0, weight=weight, evidence="no constant value is set there")
    error = knob_error(knob, value)
    before = knob_error(knob, knob["start"]) if knob["start"] is not None else None
    evidence = f"off by {error:.3f}, at most {knob['tolerance']:g} counts"
    if error <= knob["tolerance"]:
        return Check(name=knob["name"], score=1.0, weight=weight, evidence=evidence)
    score = max(0.0, 0.5 * (1 - error / before)) if before else 0.0
    return Check(name=knob["name"], score=score, weight=weight, evidence=evidence)


def knob_error(knob: Mapping[str, Any], value: Any) -> float:
    """In the knob's own measure: sRGB channels, a share of the right value, or plain."""
    right = knob["value"]
    if knob["kind"] == "colour":
        if not isinstance(value, list):
            return 1.0
        return max(abs(srgb(a) - srgb(b)) for a, b in zip(value[:3], right[:3], strict=True))
    if isinstance(value, list):
        return 1.0
    off = abs(value - right)
    return off / right if knob["kind"] in {"share", "texture"} else off
