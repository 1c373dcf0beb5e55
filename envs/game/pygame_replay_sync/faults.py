"""What may keep two peers apart: each fault lives in one part of the simulation and is told at three lengths."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto


class Part(StrEnum):
    """A part of a tick that can be tried on its own."""

    INBOX = auto()
    CROWD = auto()
    MOTION = auto()
    LOOT = auto()
    DROPS = auto()
    FIGHTS = auto()
    COOLDOWN = auto()
    ROSTER = auto()
    BOARD = auto()
    SCREEN = auto()


NEEDS: dict[Part, frozenset[Part]] = {Part.SCREEN: frozenset({Part.MOTION, Part.DROPS})}
"""Parts that cannot be right on their own trial while one of these is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One cause of divergence; `kind` is its name in the templates."""

    part: Part
    kind: str
    cause: str
    """For the easiest level: what is wrong, in its file."""
    when: str
    """What sets it off, and what then differs."""


def _of(part: Part, *rows: tuple[str, str, str]) -> tuple[Fault, ...]:
    return tuple(Fault(part=part, kind=kind, cause=cause, when=when) for kind, cause, when in rows)


_SEED = "under another hash seed"
_LATE = "when messages arrive in another order"
_JOIN = "when peers have joined in another order"
FAULTS: tuple[Fault, ...] = (
    *_of(
        Part.INBOX,
        ("arrival", "commands of a tick are taken in the order of arrival", f"{_LATE}, boosts go to others"),
        ("number", "commands of a tick are ordered by number alone", f"{_LATE}, boosts go to others"),
        (
            "repeats",
            "a message that arrives twice counts twice",
            "when the network repeats a message, boosts are wrong",
        ),
        ("keys", "commands of a tick are taken in the order of a set", f"{_SEED}, boosts go to others"),
        ("eager", "commands are carried out when they arrive", "when messages arrive early, commands count too soon"),
    ),
    *_of(
        Part.CROWD,
        ("names", "pushes are summed over a set of names", f"{_SEED}, speeds differ in the last digits"),
        ("objects", "pushes are summed over a set of objects", "from run to run, speeds differ in the last digits"),
        ("join", "pushes are summed in the order of joining", f"{_JOIN}, speeds differ in the last digits"),
    ),
    *_of(
        Part.MOTION,
        ("clock", "a tick lasts as long as the wall clock says", "when a peer pauses, places differ"),
        ("frame", "a tick lasts as long as the frame clock says", "when a peer pauses, places differ"),
    ),
    *_of(
        Part.LOOT,
        ("names", "who is first in reach depends on the order of a set", f"{_SEED}, others take what lies about"),
        ("objects", "who is first in reach depends on addresses", "from run to run, others take what lies about"),
        ("join", "who is first in reach depends on who joined first", f"{_JOIN}, others take what lies about"),
        ("items", "what is taken first depends on the order of a set", f"{_SEED}, other things are left lying"),
    ),
    *_of(
        Part.DROPS,
        (
            "module",
            "drops use the dice of the whole process",
            "when something else in the process uses random, new things fall elsewhere",
        ),
        ("hash", "the dice of a match are seeded with a hash of a text", f"{_SEED}, new things fall elsewhere"),
    ),
    *_of(
        Part.FIGHTS,
        ("set", "shots are carried out in the order of a set", f"{_SEED}, bounties go to others"),
        ("target", "shots are ordered by their target alone", f"{_SEED}, bounties go to others"),
        ("heap", "shots are ordered by addresses", "from run to run, bounties go to others"),
    ),
    *_of(
        Part.COOLDOWN,
        ("clock", "who may shoot again is decided by the clock", "when a peer pauses, shots hit or miss differently"),
    ),
    *_of(
        Part.ROSTER,
        ("join", "slots are given in the order of joining", f"{_JOIN}, shields differ"),
        ("count", "slots go on counting from earlier matches", "after an earlier match in the process, shields differ"),
        ("hash", "slots follow the hashes of the names", f"{_SEED}, shields differ"),
    ),
    *_of(
        Part.BOARD,
        ("join", "of equals the first to join leads", f"{_JOIN}, another one leads"),
        ("set", "of equals whoever comes first in a set leads", f"{_SEED}, another one leads"),
        ("table", "of equals the last to join leads", f"{_JOIN}, another one leads"),
    ),
    *_of(
        Part.SCREEN,
        ("smooth", "drawing moves what it draws", "when a peer draws more frames, places differ"),
        ("dice", "drawing throws the dice of the match", "when a peer draws more frames, new things fall elsewhere"),
        ("fade", "drawing wears things out", "when a peer draws more frames, things are worth less"),
        ("flash", "drawing counts the cooldown down", "when a peer draws more frames, cooldowns end too soon"),
    ),
)
