"""What the finish is made of: a goal recipe, the start the agent gets, and the knobs between them.

Levels: 0 one colour; 1 colour, roughness and metallic; 2 a noise pattern through a colour ramp; 3 a relief through a
bump node, metallic and coat beside it; 4 pattern, ramp and roughness to be built from nothing. Colours are drawn as
they look (sRGB) and kept as Blender wants them (linear).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ...core import Rng

Recipe = dict[str, Any]
COLOUR = 0.04
"""Tolerance of a colour channel, in sRGB."""
_PATTERNS = {
    "TexNoise": "TEX_NOISE",
    "TexVoronoi": "TEX_VORONOI",
    "TexWave": "TEX_WAVE",
    "TexMagic": "TEX_MAGIC",
}
_FACTOR = {"TexNoise": "Fac", "TexVoronoi": "Distance", "TexWave": "Fac", "TexMagic": "Fac"}
GREY = [0.2, 0.2, 0.2, 1.0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Goal, start, and what is to be found out between them."""

    goal: Recipe
    start: Recipe
    knobs: tuple[Mapping[str, Any], ...]
    kind: str
    """The word for it in the brief."""


def linear(srgb: float) -> float:
    """IEC 61966-2-1."""
    return srgb / 12.92 if srgb <= 0.04045 else ((srgb + 0.055) / 1.055) ** 2.4


def srgb(value: float) -> float:
    """The inverse of `linear`, bounded to [0, 1]."""
    value = min(1.0, max(0.0, value))
    return value * 12.92 if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055


def _colour(rng: Rng, *, away: Sequence[float] = GREY) -> list[float]:
    """A strong colour, well away from another."""
    while True:
        levels = rng.shuffled([rng.integer(10, 35), rng.integer(35, 65), rng.integer(70, 92)])
        colour = [round(linear(level / 100), 4) for level in levels]
        if max(abs(srgb(a) - srgb(b)) for a, b in zip(colour, away, strict=False)) > 0.25:
            return [*colour, 1.0]


def _far(rng: Rng, *ranges: tuple[int, int]) -> float:
    low, high = rng.choice(ranges)
    return rng.integer(low, high) / 100


def _principled(**inputs: Any) -> dict[str, Any]:
    sockets = {"Base Color": GREY, "Roughness": 0.5, "Metallic": 0.0, **inputs}
    return {"type": "BsdfPrincipled", "name": "Principled BSDF", "inputs": sockets}


_OUTPUT = {"type": "OutputMaterial", "name": "Material Output"}
_OUT = ["Principled BSDF", "BSDF", "Material Output", "Surface"]
_COORDINATES = {"type": "TexCoord", "name": "Texture Coordinate"}


def _knob(node: str, socket: str, name: str, value: Any, start: Any, tolerance: float, kind: str) -> dict[str, Any]:
    known = {"node": node, "socket": socket, "name": name, "value": value, "start": start}
    return {**known, "tolerance": tolerance, "kind": kind}


def finish(rng: Rng, level: int) -> Finish:
    """Draw the goal of a level."""
    if level == 4:
        return _built(rng)
    knobs: list[dict[str, Any]] = []
    bsdf = "Principled BSDF"
    if level >= 2:
        one = _colour(rng.child("one"))
        other = _colour(rng.child("other"), away=one)
        for index, (value, at) in enumerate(((one, 0.05), (other, 0.5))):
            grey = [at, at, at, 1.0]
            knob = _knob("Ramp", "", f"ramp colour {index + 1}", value, grey, COLOUR, "colour")
            knobs.append({**knob, "ramp": index})
        scale = _far(rng.child("scale"), (200, 350), (800, 1200))
        knobs.append(_knob("Pattern", "Scale", "pattern scale", _half(scale), 5.0, 0.04, "share"))
    else:
        knobs.append(_knob(bsdf, "Base Color", "base colour", _colour(rng.child("base")), GREY, COLOUR, "colour"))
    if level >= 1:
        value = _far(rng.child("roughness"), (8, 25), (75, 95))
        knobs.append(_knob(bsdf, "Roughness", "roughness", value, 0.5, 0.05, "plain"))
    if level in (1, 3):
        knobs.append(_knob(bsdf, "Metallic", "metallic", _far(rng.child("metal"), (70, 100)), 0.0, 0.1, "plain"))
    if level >= 3:
        coat = _far(rng.child("coat"), (60, 100))
        knobs.append(_knob(bsdf, "Coat Weight", "coat weight", coat, 0.0, 0.15, "plain"))
        depth, size = _far(rng.child("depth"), (45, 90)), _half(_far(rng.child("relief"), (900, 1600)))
        knobs.append(_knob("Bump", "Strength", "bump strength", depth, 0.1, 0.12, "plain"))
        knobs.append(_knob("Relief", "Scale", "relief scale", size, 5.0, 0.04, "share"))
    frame = _frame(level, rng.child("frame"))
    kind = ("a plain paint", "a plain finish", "a mottled finish", "an embossed, coated metal")[level]
    return Finish(goal=_set(frame, knobs, "value"), start=_set(frame, knobs, "start"), knobs=tuple(knobs), kind=kind)


def _half(value: float) -> float:
    return round(value * 2) / 2


def _frame(level: int, rng: Rng) -> Recipe:
    """The nodes and links that goal and start share."""
    nodes, links = [_principled(), _OUTPUT], [_OUT]
    if level >= 2:
        ramp = [[0.35, GREY], [0.65, GREY]]
        nodes = [
            _COORDINATES,
            {"type": "TexNoise", "name": "Pattern", "inputs": {"Scale": 5.0, "Detail": 2.0}},
            {"type": "ValToRGB", "name": "Ramp", "ramp": ramp},
            *nodes,
        ]
        links = [
            ["Texture Coordinate", "Object", "Pattern", "Vector"],
            ["Pattern", "Fac", "Ramp", "Fac"],
            ["Ramp", "Color", "Principled BSDF", "Base Color"],
            *links,
        ]
    if level >= 3:
        relief = rng.choice(("TexVoronoi", "TexNoise"))
        nodes += [
            {"type": relief, "name": "Relief", "inputs": {"Scale": 5.0}},
            {"type": "Bump", "name": "Bump", "inputs": {"Strength": 0.1, "Distance": 0.1}},
        ]
        links += [
            ["Texture Coordinate", "Object", "Relief", "Vector"],
            ["Relief", _FACTOR[relief], "Bump", "Height"],
            ["Bump", "Normal", "Principled BSDF", "Normal"],
        ]
    return {"nodes": nodes, "links": links}


def _set(frame: Recipe, knobs: Sequence[Mapping[str, Any]], which: str) -> Recipe:
    """The frame with every knob at its `which`."""
    recipe = deepcopy(frame)
    for knob in knobs:
        node = next(node for node in recipe["nodes"] if node["name"] == knob["node"])
        if "ramp" in knob:
            node["ramp"][knob["ramp"]][1] = knob[which]
        else:
            node["inputs"][knob["socket"]] = knob[which]
    return recipe


def _built(rng: Rng) -> Finish:
    """A pattern that drives colour and roughness; the start has nothing but the shader."""
    pattern = rng.choice(sorted(_PATTERNS))
    fine = pattern in {"TexNoise", "TexVoronoi"}  # the others have several periods a unit
    scale = _half(_far(rng.child("scale"), (200, 400), (600, 900)) if fine else _far(rng.child("scale"), (150, 400)))
    one = _colour(rng.child("one"))
    other = _colour(rng.child("other"), away=one)
    smooth, rough = _far(rng.child("smooth"), (10, 25)), _far(rng.child("rough"), (60, 85))
    metal = _far(rng.child("metal"), (0, 10), (80, 100))
    goal = built_recipe(pattern, scale, one, other, (smooth, rough), metal)
    start = {"nodes": [_principled(), _OUTPUT], "links": [_OUT]}
    texture = {"name": "pattern", "type": _PATTERNS[pattern], "value": scale, "start": None}
    return Finish(
        goal=goal,
        start=start,
        knobs=({**texture, "tolerance": 0.04, "kind": "texture"},),
        kind="a patterned finish",
    )


def built_recipe(
    pattern: str,
    scale: float,
    one: Sequence[float],
    other: Sequence[float],
    roughness: tuple[float, float],
    metal: float,
) -> Recipe:
    """Level 4's graph."""
    factor = _FACTOR[pattern]
    nodes = [
        _COORDINATES,
        {"type": pattern, "name": "Pattern", "inputs": {"Scale": scale}},
        {"type": "ValToRGB", "name": "Ramp", "ramp": [[0.0, list(one)], [1.0, list(other)]]},
        {"type": "MapRange", "name": "Gloss", "inputs": {"To Min": roughness[0], "To Max": roughness[1]}},
        _principled(Metallic=metal),
        _OUTPUT,
    ]
    links = [
        ["Texture Coordinate", "Object", "Pattern", "Vector"],
        ["Pattern", factor, "Ramp", "Fac"],
        ["Ramp", "Color", "Principled BSDF", "Base Color"],
        ["Pattern", factor, "Gloss", "Value"],
        ["Gloss", "Result", "Principled BSDF", "Roughness"],
        _OUT,
    ]
    return {"nodes": nodes, "links": links}
