"""Measures of the meshes in a .blend file, taken in a verifier sandbox whose image has bpy; lengths in millimetres.

The file is opened with scripts and drivers off and modifiers are evaluated. One Blender unit counts as one metre. A
file that cannot be opened or measured is an answer with `failure` set, never an error: the agent made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from ..core import Sandbox
from .probe import run_probe

Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshQuestion:
    """What to measure of one object beyond topology, bounds and volume."""

    centre: Point
    """Where the middle of its bounding box should be; sections and points move with where it really is."""
    sections: Sequence[tuple[int, float]]
    """(axis, coordinate) of planes whose cut area is wanted."""
    points: Sequence[Point]
    """Where the surface's winding number is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshMeasure:
    """One object's evaluated mesh in world space."""

    open_edges: int = 0
    """Edges that do not join exactly two faces."""
    turned_edges: int = 0
    """Edges whose two faces disagree on which side is out."""
    loose_points: int = 0
    shells: int = 0
    euler: int = 0
    """V - E + F: 2 per shell, less 2 per through-hole."""
    num_faces: int = 0
    low: Point = (0.0, 0.0, 0.0)
    high: Point = (0.0, 0.0, 0.0)
    volume: float = 0.0
    """Signed: negative where the faces look inwards."""
    sections: Sequence[float] = ()
    windings: Sequence[float] = ()
    error: str = ""
    """Why it could not be measured."""

    @property
    def fault(self) -> str:
        """Why it is not one closed solid; empty if it is."""
        if self.error:
            return self.error
        if self.open_edges or self.loose_points:
            return (
                f"is not closed ({self.open_edges} edges without exactly two faces, {self.loose_points} loose points)"
            )
        if self.turned_edges:
            return f"has faces that are turned against each other ({self.turned_edges} edges)"
        if self.shells != 1:
            return f"consists of {self.shells} separate surfaces"
        return "" if self.volume > 0 else f"has a volume of {self.volume:g} mm3: its faces look inwards"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlendMeasure:
    """What a .blend file holds."""

    failure: str = ""
    """Why nothing could be measured."""
    types: Mapping[str, str]
    """Object name → its type (MESH, CAMERA, LIGHT…), of every object in the file."""
    hidden: frozenset[str] = frozenset()
    """Objects that are not visible in viewport and render, or not in the scene."""
    oddities: tuple[str, ...] = ()
    """What a plain model has not: further scenes, instances, linked libraries, drivers."""
    meshes: Mapping[str, MeshMeasure]
    """The objects asked for that exist and are meshes."""


async def measure_blend(
    sandbox: Sandbox, path: str, questions: Mapping[str, MeshQuestion], *, timeout_s: float
) -> BlendMeasure:
    """Open the .blend at `path` (absolute, in the sandbox) and measure the objects named in `questions`.

    Raises:
        VerifierError: the probe broke by itself.
    """
    source = files(__package__ or "").joinpath("mesh_probe.py").read_text(encoding="utf-8")
    payload: dict[str, Any] = {"path": path, "objects": {name: asdict(asked) for name, asked in questions.items()}}
    result = await run_probe(sandbox, source, payload, timeout_s=timeout_s)
    if result.value is None:
        return BlendMeasure(failure=result.failure, types={}, meshes={})
    answer: Any = result.value
    if "error" in answer:
        return BlendMeasure(failure=answer["error"], types={}, meshes={})
    scene, meshes = answer["scene"], answer["objects"]
    return BlendMeasure(
        types={item["name"]: item["type"] for item in scene["objects"]},
        hidden=frozenset(item["name"] for item in scene["objects"] if not item["shown"]),
        oddities=tuple(_oddities(scene)),
        meshes={name: MeshMeasure(**facts) for name, facts in meshes.items() if facts is not None},
    )


def _oddities(scene: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    if scene["num_scenes"] != 1:
        found.append(f"{scene['num_scenes']} scenes")
    if scene["num_instances"]:
        found.append(f"{scene['num_instances']} instances made by collections, particles or geometry nodes")
    found += [f"linked library {path}" for path in scene["libraries"]]
    return found + [f"driver on {name}" for name in scene["drivers"]]
