"""Controllers as text: the right one for a feel, the ones that an instance starts with, and another right one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

from .feel import Feature, Feel

ASSETS = Path(__file__).parent / "assets"
OLD_JUMP = frozenset({Feature.RUN, Feature.JUMP, Feature.SINGLE})
"""What a controller does before anybody has worked on its feel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One mistake in an otherwise right controller: its name in the template, what it breaks, how a player tells it."""

    name: str
    breaks: Feature
    symptom: str


_FLAT = (
    Fault(name="ticks forgotten", breaks=Feature.RUN, symptom="it takes for ever to get up to speed"),
    Fault(
        name="delta forgotten", breaks=Feature.RUN, symptom="it is at full speed, and at rest again, in a single tick"
    ),
    Fault(
        name="stops as it starts",
        breaks=Feature.RUN,
        symptom="letting go of the stick, it does not stop in the time we agreed",
    ),
    Fault(name="half the speed", breaks=Feature.JUMP, symptom="jumps are far too low"),
    Fault(name="half the gravity", breaks=Feature.JUMP, symptom="jumps are far too high and take too long"),
    Fault(name="falls as it rises", breaks=Feature.FALL, symptom="the way down is as slow as the way up"),
    Fault(name="gravities exchanged", breaks=Feature.JUMP, symptom="the way up is hasty and low, the way down floats"),
    Fault(name="no terminal speed", breaks=Feature.FALL, symptom="in long shafts it falls faster and faster"),
    Fault(name="repeats while held", breaks=Feature.SINGLE, symptom="with the button held it goes on jumping"),
    Fault(name="jumps anywhere", breaks=Feature.SINGLE, symptom="it can jump again in mid-air"),
)
_GRACE = (
    Fault(name="grace counts seconds", breaks=Feature.COYOTE, symptom="long after the ledge one can still jump"),
    Fault(name="no grace", breaks=Feature.COYOTE, symptom="just after the ledge a jump is refused"),
    Fault(name="grace not spent", breaks=Feature.SINGLE, symptom="two quick presses give a much higher jump"),
    Fault(name="press kept", breaks=Feature.BUFFER, symptom="a press high up in the air still fires at the landing"),
    Fault(name="press lost", breaks=Feature.BUFFER, symptom="a press a little before the landing is ignored"),
)
FAULTS: dict[int, tuple[Fault, ...]] = {0: _FLAT, 1: _GRACE}
"""By level: what may be wrong in a controller that is whole otherwise."""


@cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,
    )
    return environment.get_template(name)


def scene(feel: Feel) -> str:
    """The character's scene: a box of its size on a kinematic body."""
    return _template("player.tscn.j2").render(feel=feel)


def controller(feel: Feel, has: Collection[Feature], *, title: str, faults: Collection[Fault] = ()) -> str:
    """The controller of `feel` that has those features, with `faults` in it."""
    names = [fault.name for fault in faults]
    return _template("controller.gd.j2").render(feel=feel, has=[str(each) for each in has], faults=names, title=title)


def other_controller(feel: Feel, has: Collection[Feature], *, title: str) -> str:
    """A right controller of another make: one velocity, clocks in seconds, exact integration of the way up and down."""
    return _template("other_controller.gd.j2").render(feel=feel, has=[str(each) for each in has], title=title)
