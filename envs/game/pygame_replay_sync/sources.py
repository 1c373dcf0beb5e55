"""The simulation as text: one game's names, numbers and layout, with any set of faults in it, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import jinja2

from ...core import Json, Rng

ASSETS = Path(__file__).parent / "assets"
_MODULES = {
    "crowd": ("crowd", "spacing", "pushes"),
    "motion": ("motion", "movement", "driving"),
    "loot": ("loot", "pickups", "salvage"),
    "fights": ("fights", "combat", "shooting"),
    "roster": ("roster", "slots", "shields"),
    "drops": ("drops", "spawns", "supply"),
    "board": ("board", "ranking", "standings"),
}
"""Role of a module → the names it may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skin:
    """What a game calls its things."""

    title: str
    package: str
    unit: str
    units: str
    item: str
    items: str
    points: str
    background: tuple[int, int, int]


SKINS: tuple[Skin, ...] = tuple(
    Skin(
        title=title, package=package, unit=unit, units=unit + "s", item=item, items=items, points=points, background=sea
    )
    for title, package, unit, item, items, points, sea in (
        ("Harbour Rush", "harbour", "tug", "crate", "crates", "cargo", (18, 44, 66)),
        ("Dust Bowl", "dustbowl", "buggy", "battery", "batteries", "charge", (66, 50, 32)),
        ("Ice Derby", "icederby", "sled", "herring", "herrings", "catch", (52, 70, 86)),
        ("Scrap Orbit", "scraporbit", "drone", "shard", "shards", "salvage", (14, 16, 30)),
        ("Orchard War", "orchard", "cart", "apple", "apples", "score", (28, 52, 30)),
        ("Reef Raiders", "reef", "skiff", "pearl", "pearls", "pearls_held", (10, 58, 62)),
    )
)
COLOURS = ((235, 94, 80), (90, 170, 240), (120, 210, 120), (240, 170, 70), (190, 130, 230), (240, 130, 190))
PLAYERS = (
    "ada", "bo", "cleo", "dmitri", "eun", "farid", "greta", "hugo", "ines", "jun", "kofi", "lena", "milo", "nia",
    "oskar", "petra", "quinn", "rosa", "sven", "tomi",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of `rules.py`."""

    width: int
    height: int
    drag: float
    thrust: int
    handicap: float
    push_radius: int
    push: int
    reach: int
    boost: int
    damage: int
    bounty: int
    cooldown: int
    recharge: int
    recharge_every: int
    drop_every: int
    rank_every: int
    hold: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """One game."""

    skin: Skin
    numbers: Numbers
    modules: Mapping[str, str]

    def to_json(self) -> dict[str, Json]:
        """All of it, for an instance's truth."""
        return {"skin": SKINS.index(self.skin), "numbers": asdict(self.numbers), "modules": dict(self.modules)}


def draw_game(rng: Rng) -> Game:
    """Names, numbers and layout."""
    radius = rng.integer(40, 56)
    numbers = Numbers(
        width=20 * rng.integer(40, 60),
        height=20 * rng.integer(32, 44),
        drag=rng.integer(93, 97) / 100.0,
        thrust=10 * rng.integer(40, 90),
        handicap=rng.integer(70, 90) / 100.0,
        push_radius=radius,
        push=rng.integer(6, 14),
        reach=2 * radius + rng.integer(0, 10),
        boost=10 * rng.integer(6, 14),
        damage=rng.integer(18, 34),
        bounty=rng.integer(3, 9),
        cooldown=rng.integer(10, 20),
        recharge=rng.integer(2, 6),
        recharge_every=rng.integer(5, 9),
        drop_every=rng.integer(6, 12),
        rank_every=rng.integer(8, 15),
        hold=rng.integer(40, 60),
    )
    modules = {role: rng.choice(names) for role, names in _MODULES.items()}
    return Game(skin=rng.choice(SKINS), numbers=numbers, modules=modules)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(ASSETS),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def _variables(game: Game, kinds: Mapping[str, str]) -> dict[str, object]:
    skin, faults = game.skin, {"crowd": "", **kinds}
    return {
        "title": skin.title,
        "pkg": skin.package,
        "unit": skin.unit,
        "Unit": skin.unit.capitalize(),
        "units": skin.units,
        "Units": skin.units.capitalize(),
        "item": skin.item,
        "Item": skin.item.capitalize(),
        "items": skin.items,
        "Items": skin.items.capitalize(),
        "points": skin.points,
        "background": skin.background,
        "colours": COLOURS,
        "n": game.numbers,
        "m": game.modules,
        "names": sorted([*game.modules.values(), "commands"]),
        "f": faults,
        "dt": "dt" if faults.get("motion") in ("clock", "frame") else "DT",
    }


def simulation(game: Game, kinds: Mapping[str, str]) -> dict[str, str]:
    """Path → text of the package; `kinds` names the fault of each part that has one."""
    found: dict[str, str] = {}
    for path in sorted((ASSETS / "sim").glob("*.py.j2")):
        role = path.name.removesuffix(".py.j2")
        text = _environment().get_template(f"sim/{path.name}").render(_variables(game, kinds))
        found[f"{game.skin.package}/{game.modules.get(role, role)}.py"] = text
    return found


def document(game: Game, name: str, **more: object) -> str:
    """A file of the project beside the package, from `assets/NAME.j2`."""
    return _environment().get_template(f"{name}.j2").render({**_variables(game, {}), **more})


def game_of(facts: Mapping[str, Json]) -> Game:
    """The game that `to_json` described."""
    numbers, modules, skin = facts["numbers"], facts["modules"], facts["skin"]
    assert isinstance(numbers, dict)
    assert isinstance(modules, dict)
    assert isinstance(skin, int)
    return Game(
        skin=SKINS[skin],
        numbers=Numbers(**numbers),  # pyright: ignore[reportArgumentType]  # as it was written
        modules={role: str(name) for role, name in modules.items()},
    )
