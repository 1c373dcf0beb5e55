"""What each level asks: which duties the script has, and where its faults lie."""

from __future__ import annotations

from dataclasses import dataclass

from ...core import Rng
from .script import FAULTY_LOCK, FAULTY_WORK, Form, Plan
from .steps import STEPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level's knobs."""

    always: tuple[str, ...] = ()
    """Steps that every script of the level has."""
    some: tuple[str, ...]
    drawn: int
    """How many more, of `some`."""
    sound: int = 0
    """How many of the steps are right already."""
    faults: tuple[int, int]
    """First and last index of the faults that may be planted."""
    works: bool = False
    locks: bool = False


LEVELS = (
    Level(some=("drop", "rename", "collect"), drawn=1, faults=(0, 1)),
    Level(some=("drop", "rename", "collect"), drawn=2, faults=(0, 2)),
    Level(
        always=("collect",),
        some=("drop", "purge", "spool", "rename", "manifest", "prune", "count"),
        drawn=3,
        sound=1,
        faults=(0, 2),
    ),
    Level(
        always=("collect", "feed"),
        some=("drop", "purge", "spool", "rename", "manifest", "prune", "count"),
        drawn=3,
        sound=1,
        faults=(1, 3),
        works=True,
    ),
    Level(
        always=("collect", "feed", "purge", "manifest"),
        some=("drop", "spool", "rename", "prune", "count"),
        drawn=3,
        sound=2,
        faults=(1, 3),
        works=True,
        locks=True,
    ),
)

_WORDS: dict[str, tuple[str, ...]] = {
    "SELF": ("tidy-intake", "nightly-sweep", "settle-dropbox", "rotate-inbox", "house-keep", "file-returns"),
    "EXT": ("csv", "pdf", "xml", "dat", "tsv"),
    "SUB": ("archive", "accepted", "filed", "received"),
    "LIST": ("retired.list", "withdrawn.list", "to-drop.list"),
    "KEEP": ("keep.list", "pinned.list", "hold.list"),
    "FOLDER": ("scratch", "cache", "drafts"),
    "SPOOL": ("spool", "outgoing", "bounced"),
    "FEED": ("rates.feed", "stock.feed", "routes.feed"),
    "MANIFEST": ("MANIFEST", "contents.idx", "INVENTORY"),
    "TOOL": ("fetch-rates", "pull-stock", "list-routes", "query-desk"),
    "LOCK": (".lock", ".running", ".busy"),
}
_ENDINGS = (("JPEG", "jpg"), ("htm", "html"), ("text", "md"), ("part", "done"), ("yml", "yaml"))
_VARIABLES = (("SRC", "DST"), ("source", "target"), ("from", "into"), ("IN_DIR", "OUT_DIR"))


def draw_plan(level: Level, rng: Rng) -> tuple[Plan, dict[str, Form]]:
    """A script's duties and words, and the forms that its faulty parts take."""
    words = {name: rng.child(name).choice(choices) for name, choices in _WORDS.items()}
    words["OLD"], words["NEW"] = rng.child("endings").choice(_ENDINGS)
    words["SRC"], words["DST"] = rng.child("variables").choice(_VARIABLES)
    names = {*level.always, *rng.child("steps").sample(level.some, level.drawn)}
    chosen = [step for step in STEPS if step.name in names]
    plan = Plan(names=tuple(step.name for step in chosen), words=words, works=level.works, locks=level.locks)
    faults = rng.child("faults")
    sound = faults.sample([step.name for step in chosen if step.name not in ("collect", "feed")], level.sound)
    forms: dict[str, Form] = {}
    for step in chosen:
        first, last = (min(bound, len(step.faulty) - 1) for bound in level.faults)
        if step.name not in sound:
            forms[step.name] = faults.integer(first, last)
    if level.works:
        forms["head"] = faults.integer(0, len(FAULTY_LOCK if level.locks else FAULTY_WORK) - 1)
    return plan, forms
