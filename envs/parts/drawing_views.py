"""What a drawing of a solid shows, by the CAD kernel of a verifier sandbox: the lines of its three usual views.

The kernel's hidden-line removal is the judge (`drawing_views_probe.py`); it builds the solid itself, from the elements
of a prismatic part, and never sees anything of the agent's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from importlib.resources import files
from typing import Any, NamedTuple, cast

from ..core import Json, Sandbox, VerifierError
from .prismatic import Vec
from .probe import run_probe

Flat = tuple[float, float]

_PROBE = "\n_answer({name: lines(solid(payload['rows']), *look) for name, look in payload['looks'].items()})\n"


class View(StrEnum):
    """From where one looks."""

    FRONT = auto()
    """From -Y: X to the right, Z up."""
    TOP = auto()
    """From above: X to the right, Y up."""
    RIGHT = auto()
    """From +X: Y to the right, Z up."""

    @property
    def depth(self) -> int:
        """The axis one looks along."""
        return {View.FRONT: 1, View.TOP: 2, View.RIGHT: 0}[self]

    @property
    def look(self) -> tuple[Vec, Vec]:
        """Where the eye is, and what points to the right."""
        return {
            View.FRONT: ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0)),
            View.TOP: ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
            View.RIGHT: ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        }[self]


@dataclass(frozen=True, slots=True)
class Stroke:
    """A straight line."""

    start: Flat
    end: Flat


@dataclass(frozen=True, slots=True)
class Curve:
    """A piece of a circle, counter-clockwise from `start_deg`; 360° is a whole one."""

    centre: Flat
    radius: float
    start_deg: float
    sweep_deg: float


Line = Stroke | Curve


class Seen(NamedTuple):
    """The lines of one view; a hidden one may lie under a visible one."""

    visible: Sequence[Line]
    hidden: Sequence[Line]


def source(name: str) -> str:
    """The text of a module of this folder that is sent to a sandbox."""
    return files(__package__ or "").joinpath(f"{name}.py").read_text(encoding="utf-8")


async def views(sandbox: Sandbox, rows: Json, *, timeout_s: float) -> Mapping[View, Seen]:
    """The three views of the part that `rows` tell (`prismatic_solid.py`), in true size, in the part's coordinates.

    Raises:
        VerifierError: the kernel gave no answer.
        SandboxLost: the sandbox is gone.
    """
    program = source("prismatic_solid") + source("drawing_views_probe") + _PROBE
    payload: Json = {"rows": rows, "looks": {view.value: cast("Json", view.look) for view in View}}
    result = await run_probe(sandbox, program, payload, timeout_s=timeout_s)
    if not isinstance(result.value, dict):
        raise VerifierError(f"the kernel's views of the part: {result.failure}")
    answer = cast("dict[str, list[list[Any]]]", result.value)
    return {view: Seen(*(_lines(answer[view.value], hidden) for hidden in (False, True))) for view in View}


def _lines(pieces: Sequence[Sequence[Any]], hidden: bool) -> list[Line]:
    distinct = dict.fromkeys(line_of(numbers) for is_hidden, *numbers in pieces if is_hidden is hidden)
    return list(distinct)


def line_of(numbers: Sequence[float]) -> Line:
    """A line from [x0, y0, x1, y1] or [x, y, radius, start, sweep]."""
    if len(numbers) == 4:
        x0, y0, x1, y1 = numbers
        return Stroke((x0, y0), (x1, y1))
    x, y, radius, start, sweep = numbers
    return Curve((x, y), radius, start, sweep)
