"""An STL file measured for printing, in a verifier sandbox, against the stepped bodies that it should hold.

Three gates come first: a readable file; a surface that is closed, turned outwards and all over; and the bodies' own
share of their bounding box, so that no hull or block passes for them. Then the number of bodies, clean facets, size
and place, volume and surface, and hidden points 0.1 mm on either side of every face. Tolerances: place 0.05 mm,
volume 0.5%, surface 1%.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple, cast

from ..core import Check, Json, Rng, Sandbox
from . import prism_mesh
from .control import require_tool
from .prism_mesh import Corner, Region, contains, walk
from .probe import run_probe

PLACE_MM = 0.05
VOLUME_SHARE = 0.005
SURFACE_SHARE = 0.01
FILL_SHARE = 0.08
NEAR_MM = 0.1
_CLEAR_MM = 0.04
_PER_FACE = 3
_FINE = ("letter", "rib", "outline", "counter")
_NAMES = (
    "bodies",
    "clean facets",
    "size and place",
    "volume and surface",
    "holes, posts and pockets",
    "walls and lettering",
    "material",
)


class Probes(NamedTuple):
    """Hidden points, whether there is material at each, and the name of the feature whose face it is beside."""

    points: Sequence[Corner]
    inside: Sequence[bool]
    names: Sequence[str]


def hidden_probes(bodies: Sequence[Region], rng: Rng, *, anywhere: int) -> Probes:
    """Beside every face of every region, and `anywhere` more; none where in doubt."""
    points: list[Corner] = []
    names: list[str] = []
    for region, above in walk(bodies):
        for point in _beside(region, above, rng.child(region.name)):
            if _settled(bodies, point):
                points.append(point)
                names.append(region.name)
    low, high = prism_mesh.bounds(bodies)
    while anywhere:
        x, y, z = (round(a - 1.0 + rng.fraction() * (b - a + 2.0), 4) for a, b in zip(low, high, strict=True))
        if _settled(bodies, (x, y, z)):
            points.append((x, y, z))
            names.append("")
            anywhere -= 1
    return Probes(points=points, inside=[contains(bodies, point) for point in points], names=names)


def _beside(region: Region, above: Region | None, rng: Rng) -> Iterator[Corner]:
    for low, high, _ in prism_mesh.wall_spans(region, above):
        for _ in range(2 * _PER_FACE):
            index = rng.integer(0, len(region.ring) - 1)
            (ax, ay), (bx, by) = region.ring[index], region.ring[(index + 1) % len(region.ring)]
            share, off = 0.1 + 0.8 * rng.fraction(), rng.choice((-NEAR_MM, NEAR_MM)) / math.hypot(bx - ax, by - ay)
            z = low + (high - low) * (0.2 + 0.6 * rng.fraction())
            x, y = ax + share * (bx - ax) + off * (by - ay), ay + share * (by - ay) - off * (bx - ax)
            yield round(x, 4), round(y, 4), round(z, 4)
    xs, ys = zip(*region.ring, strict=True)
    for end in (end for span in region.solid for end in span):
        for _ in range(_PER_FACE):
            x, y = xs[0], ys[0]
            for _ in range(200):
                x = min(xs) + rng.fraction() * (max(xs) - min(xs))
                y = min(ys) + rng.fraction() * (max(ys) - min(ys))
                if prism_mesh.region_at([region], (x, y)) is region:
                    break
            yield round(x, 4), round(y, 4), round(end + rng.choice((-NEAR_MM, NEAR_MM)), 4)


def _settled(bodies: Sequence[Region], point: Corner) -> bool:
    here = contains(bodies, point)
    steps = (-_CLEAR_MM, 0.0, _CLEAR_MM)
    x, y, z = point
    return all(contains(bodies, (x + a, y + b, z + c)) == here for a in steps for b in steps for c in steps)


async def check_print(
    sandbox: Sandbox, path: str, bodies: Sequence[Region], probes: Probes, at: tuple[float, float], *, timeout_s: float
) -> list[Check]:
    """All checks of the STL file at `path`; `at` is where the bodies' own origin belongs on the plate.

    Raises:
        VerifierError: the probe broke by itself, or numpy does not load.
        SandboxLost: the sandbox is gone.
    """
    source = files(__package__ or "").joinpath("print_probe.py").read_text(encoding="utf-8")
    points: list[Json] = [[x + at[0], y + at[1], z] for x, y, z in probes.points]
    result = await run_probe(sandbox, source, {"path": path, "points": points}, timeout_s=timeout_s)
    if not isinstance(result.value, dict):
        await require_tool(sandbox, "numpy")
        return judge({"error": f"measuring it {result.failure}"}, bodies, probes, at)
    return judge(result.value, bodies, probes, at)


def judge(
    measured: Mapping[str, Any], bodies: Sequence[Region], probes: Probes, at: tuple[float, float]
) -> list[Check]:
    """The checks on what `print_probe.measure` answered."""
    error = str(measured.get("error", ""))
    gates = [_gate("readable STL", error or "one surface", not error)]
    if not error:
        gates.append(_closed(measured))
        gates.append(_fill(measured, bodies))
    if any(gate.score < 1.0 for gate in gates):
        return [*gates, *(Check(name=name, score=0.0, evidence="not measured") for name in _NAMES)]
    right = [
        inside == (abs(winding - 1.0) < 0.01) and (inside or abs(winding) < 0.01)
        for winding, inside in zip(cast("list[float]", measured["windings"]), probes.inside, strict=True)
    ]
    kinds = {region.name: region.kind for region, _ in walk(bodies)}
    fine = {name for name, kind in kinds.items() if kind in _FINE}
    return [
        *gates,
        _bodies(measured, bodies),
        _clean(measured),
        _place(measured, bodies, at),
        _amounts(measured, bodies),
        _features("holes, posts and pockets", probes, right, set(kinds) - fine),
        _features("walls and lettering", probes, right, fine),
        _material(probes, right),
    ]


def _gate(name: str, evidence: str, right: bool) -> Check:
    return Check(name=name, score=float(right), gate=True, evidence=evidence)


def _closed(measured: Mapping[str, Any]) -> Check:
    open_edges, turned = measured["open_edges"], measured["turned_edges"]
    if open_edges or turned:
        evidence = f"{open_edges} edges do not join exactly two facets, {turned} join facets turned against each other"
        return _gate("closed and turned outwards", evidence, False)
    inward = sum(volume <= 0.0 for volume in measured["body_volumes"])
    evidence = f"{inward} bodies inside out" if inward else f"closed, {measured['facets']} facets"
    return _gate("closed and turned outwards", evidence, not inward)


def _fill(measured: Mapping[str, Any], bodies: Sequence[Region]) -> Check:
    """Free of scale and turn, so that a mended part in the wrong unit still counts as that part."""
    box = math.prod(max(high - low, 1e-9) for low, high in zip(measured["low"], measured["high"], strict=True))
    low, high = prism_mesh.bounds(bodies)
    expected = prism_mesh.volume(bodies) / math.prod(b - a for a, b in zip(low, high, strict=True))
    share = measured["volume"] / box
    evidence = f"{share:.1%} of its bounding box is material, the part's own share is {expected:.1%}"
    return _gate("it is this part", evidence, abs(share / expected - 1.0) <= FILL_SHARE)


def _bodies(measured: Mapping[str, Any], bodies: Sequence[Region]) -> Check:
    found = measured["bodies"]
    return Check(
        name="bodies", score=float(found == len(bodies)), evidence=f"{found}, where {len(bodies)} are asked for"
    )


def _clean(measured: Mapping[str, Any]) -> Check:
    words = {
        "thin": "without area",
        "repeated": "there twice",
        "crossings": "pairs crossing",
        "wrong_normals": "with a stored normal against their corners",
    }
    wrong = [f"{measured[key]} {what}" for key, what in words.items() if measured[key]]
    return Check(name="clean facets", score=1.0 - len(wrong) / len(words), evidence=", ".join(wrong) or "clean")


def _place(measured: Mapping[str, Any], bodies: Sequence[Region], at: tuple[float, float]) -> Check:
    low, high = ([a + b for a, b in zip(end, (*at, 0.0), strict=True)] for end in prism_mesh.bounds(bodies))
    error = max(abs(a - b) for a, b in zip([*low, *high], [*measured["low"], *measured["high"]], strict=True))
    evidence = f"bounding box off by up to {error:.3f} mm, allowed {PLACE_MM} mm"
    return Check(name="size and place", score=float(error <= PLACE_MM), evidence=evidence)


def _amounts(measured: Mapping[str, Any], bodies: Sequence[Region]) -> Check:
    volume = measured["volume"] / prism_mesh.volume(bodies) - 1.0
    surface = measured["area"] / prism_mesh.surface(bodies) - 1.0
    right = (abs(volume) <= VOLUME_SHARE) + (abs(surface) <= SURFACE_SHARE)
    evidence = (
        f"volume off by {volume:+.2%} (allowed {VOLUME_SHARE:.1%}), surface by {surface:+.2%} ({SURFACE_SHARE:.0%})"
    )
    return Check(name="volume and surface", score=right / 2.0, evidence=evidence)


def _features(name: str, probes: Probes, right: Sequence[bool], features: set[str]) -> Check:
    wrong = {name for name, ok in zip(probes.names, right, strict=True) if not ok} & features
    there = features & set(probes.names)
    evidence = (
        f"{len(wrong)} of {len(there)} are not as they were: {', '.join(sorted(wrong)[:6])}" if wrong else "all there"
    )
    return Check(name=name, score=max(0.0, 1.0 - 2.0 * len(wrong) / max(len(there), 1)), weight=2.0, evidence=evidence)


def _material(probes: Probes, right: Sequence[bool]) -> Check:
    mine = [ok for name, ok in zip(probes.names, right, strict=True) if not name]
    wrong = mine.count(False)
    score = max(0.0, 1.0 - 4.0 * wrong / max(len(mine), 1))
    return Check(name="material", score=score, evidence=f"{wrong} of {len(mine)} points anywhere are on the wrong side")
