"""Which thing comes back broken, and how: one recipe a level.

0 holes in flat places; 1 more holes, and skins that are doubled, split or turned; 2 faces inside, needles and caps,
with materials and UVs to keep; 3 surface that only symmetry can tell, and points pushed through walls; 4 all of it, in
a casting whose void must stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...core import Rng
from ...parts.furnishings import FURNITURE, WARE
from ...parts.polyhedra import PolyMesh, box
from .faults import FAULTS
from .patient import Patient

_THINGS = (
    ("stool", "table", "bench", "steps", "bed"),
    ("table", "bench", "chair", "shelf", "crate", "vase", "mug"),
    ("chair", "bench", "stool", "mug", "jug", "cabinet"),
    ("chair", "cabinet", "sofa", "mug", "jug", "kettle"),
    ("cabinet", "sofa", "steps", "bed"),
)
_HANDLED = frozenset({"mug", "jug", "kettle"})
_GRID = {"mug": 0.012, "jug": 0.022, "kettle": 0.02, "vase": 0.025, "crate": 0.06}
_MATERIALS = (("oak", "linen"), ("beech", "felt"), ("steel", "cork"), ("stoneware", "cobalt_glaze"), ("ash", "wool"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A patient and what the brief says of it."""

    thing: str
    patient: Patient
    materials: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    num_shells: int = 1


def admit(rng: Rng, level: int) -> Case:
    """A broken thing; draws again, from a further stream, where a fault finds no place."""
    for attempt in range(40):
        case = _try(rng.child(f"attempt {attempt}"), level)
        if case is not None:
            return case
    raise AssertionError("no thing had room for its faults")


def _try(rng: Rng, level: int) -> Case | None:
    thing = rng.choice(_THINGS[level])
    clean = _made(thing, rng.child("thing"))
    notes: list[str] = []
    if thing == "crate":
        notes.append("The crate is open at the top: it is a thick-walled box, not a block.")
    elif thing in _HANDLED | {"vase"}:
        notes.append("Its wall is thick and goes round the rim; the vessel itself stays open at the top.")
    if thing == "kettle":
        notes[-1] = "It is modelled as one solid body; spout and handle belong to it."
    shells = 1
    if level == 4:
        clean, shells = clean.joined(_void(thing, clean).turned_in()), 2
        notes.append(
            "It is a hollow casting: a closed box-shaped void inside, which stays. The surface of the void faces into "
            "the void, so that the solid between both surfaces has them both turned outwards."
        )
    mirror = -1
    if level >= 3:
        mirror = 1 if thing in _HANDLED else 0
        notes.append(
            f"Its shape is symmetric about {'XY'[mirror]} = 0; where surface is lost or pushed away on one side, the "
            "other side still has it."
        )
    patient = Patient(clean=clean, rng=rng.child("faults"), mirror=mirror)
    for kind in _kinds(rng.child("kinds"), level):
        if not FAULTS[kind](patient):
            return None
        patient.kinds.append(kind)
    return Case(
        thing=thing,
        patient=patient,
        materials=rng.choice(_MATERIALS) if level >= 2 else (),
        notes=tuple(notes),
        num_shells=shells,
    )


def _kinds(rng: Rng, level: int) -> list[str]:
    """Those that need most room first, turned faces last."""
    if level == 0:
        return ["plain hole"] * rng.integer(1, 2) + rng.choice(([], ["strays"]))
    if level == 1:
        skins = rng.sample(["doubled skin", "split seam", "strays", "debris"], 2)
        return ["plain hole", "plain hole", *skins, rng.choice(("flipped faces", "inside out"))]
    if level == 2:
        skins = rng.sample(["doubled skin", "split seam", "debris"], 1)
        return ["plain hole", "inner wall", "needle", "cap", *skins, "strays", "flipped faces"]
    if level == 3:
        skins = rng.sample(["doubled skin", "split seam", "needle", "cap", "inner wall"], 2)
        return ["shaped hole", "spike", *["spike"] * rng.integer(0, 1), "plain hole", *skins, "debris", "flipped faces"]
    more = rng.sample(["doubled skin", "split seam", "inner wall"], 2)
    return [
        "shaped hole",
        "shaped hole",
        "spike",
        "spike",
        "plain hole",
        *more,
        "needle",
        "cap",
        "debris",
        "strays",
        rng.choice(("flipped faces", "inside out")),
    ]


def _made(thing: str, rng: Rng) -> PolyMesh:
    if thing in FURNITURE:
        return FURNITURE[thing](rng, 0.1)
    return WARE[thing](rng, _GRID[thing])


def _void(thing: str, clean: PolyMesh) -> PolyMesh:
    """A block well inside the body of a piece of furniture, symmetric about X = 0."""
    (x0, y0, _), (x1, y1, z1) = clean.bounds()
    if thing == "cabinet":
        return box((x0 + 0.1, y0 + 0.14, 0.2), (x1 - 0.1, y1 - 0.1, z1 - 0.1), 0.12)
    if thing == "sofa":
        return box((x0 + 0.1, y0 + 0.1, 0.18), (x1 - 0.1, y1 - 0.1, 0.32), 0.12)
    if thing == "bed":
        return box((x0 + 0.12, y0 + 0.12, 0.25), (x1 - 0.12, y1 - 0.15, 0.35), 0.12)
    return box((x0 + 0.06, y0 + 0.06, 0.04), (x1 - 0.06, y1 - 0.1, 0.13), 0.1)
