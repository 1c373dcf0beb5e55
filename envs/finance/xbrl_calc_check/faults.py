"""Plant faults in a right filing, each on facts and arcs of its own, so that each is repaired or not by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core import GenerationError, Json, Rng
from ...parts.xbrl import FactKey
from .filing import Arc, Context, Fact, Filing

_ATTEMPTS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What was changed: the facts by key, right and wrong ones, and the arcs."""

    kind: str
    keys: tuple[FactKey, ...] = ()
    arcs: tuple[tuple[str, str, str], ...] = ()
    """(role, parent, child)."""

    def to_json(self) -> dict[str, Json]:
        """As an instance's truth carries it."""
        keys: list[Json] = [
            [key.concept, key.period, [list(pair) for pair in key.dimensions], key.unit] for key in self.keys
        ]
        return {"kind": self.kind, "keys": keys, "arcs": [list(arc) for arc in self.arcs]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Fault:
        """The reverse of `to_json`."""
        keys = tuple(
            FactKey(concept, period, tuple((axis, member) for axis, member in dimensions), unit)
            for concept, period, dimensions, unit in data["keys"]
        )
        return cls(kind=data["kind"], keys=keys, arcs=tuple((one, two, three) for one, two, three in data["arcs"]))


def plant(rng: Rng, right: Filing, kinds: Sequence[str]) -> tuple[Filing, tuple[Fault, ...]]:
    """The filing with a fault of each kind, and what they are.

    Raises:
        GenerationError: there is no room for one.
    """
    faulty, faults = right, list[Fault]()
    for index, kind in enumerate(kinds):
        for attempt in range(_ATTEMPTS):
            taken_keys = {key for fault in faults for key in fault.keys}
            taken_arcs = {arc for fault in faults for arc in fault.arcs}
            made = _KINDS[kind](rng.child(f"{kind} {index} {attempt}"), faulty)
            if made is None:
                continue
            changed, arcs = made
            keys = _differing(faulty, changed)
            if taken_keys & set(keys) or taken_arcs & set(arcs) or not (keys or arcs):
                continue
            faulty = changed
            faults.append(Fault(kind=kind, keys=keys, arcs=arcs))
            break
        else:
            raise GenerationError(f"no room for a fault of kind {kind}; file more facts")
    return faulty, tuple(faults)


def _differing(before: Filing, after: Filing) -> tuple[FactKey, ...]:
    """The keys of which the filings say different things."""
    old, new = before.said(), after.said()
    return tuple(sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key)))


_ArcKey = tuple[str, str, str]
_Made = tuple[Filing, tuple[_ArcKey, ...]]


def _sole(filing: Filing) -> list[int]:
    """Facts in thousands that are filed once, by position."""
    said = filing.said()
    return [
        at
        for at, fact in enumerate(filing.facts)
        if fact.decimals == "-3" and len(said[filing.key(fact)]) == 1 and fact.unit == filing.currency
    ]


def _summed(filing: Filing) -> list[int]:
    """Those that a calculation of theirs would miss: items, not totals, without members."""
    items = {arc.child for arc in filing.arcs} - {arc.parent for arc in filing.arcs}
    return [
        at
        for at in _sole(filing)
        if filing.facts[at].concept in items and not filing.contexts[filing.facts[at].context].dimensions
    ]


def _with(filing: Filing, at: int, fact: Fact) -> Filing:
    return replace(filing, facts=(*filing.facts[:at], fact, *filing.facts[at + 1 :]))


def _revalued(filing: Filing, at: int, value: str) -> Filing:
    return _with(filing, at, filing.facts[at]._replace(value=value))


def _typo(rng: Rng, filing: Filing) -> _Made | None:
    """Two neighbouring digits of the thousands change places."""
    at = rng.choice(_summed(filing))
    digits = filing.facts[at].value.removesuffix("000")
    places = [place for place in range(len(digits) - 2) if digits[place] != digits[place + 1] != "-"]
    places = [place for place in places if digits[place].isdigit() and (place or digits[1] != "0")]
    if not places:
        return None
    place = rng.choice(places)
    turned = digits[:place] + digits[place + 1] + digits[place] + digits[place + 2 :]
    return _revalued(filing, at, turned + "000"), ()


def _sign(rng: Rng, filing: Filing) -> _Made | None:
    at = rng.choice(_summed(filing))
    value = filing.facts[at].value
    return _revalued(filing, at, value.removeprefix("-") if value.startswith("-") else f"-{value}"), ()


def _scale(rng: Rng, filing: Filing) -> _Made | None:
    """The printed figure in thousands was filed as it stands."""
    at = rng.choice(_summed(filing))
    return _revalued(filing, at, filing.facts[at].value.removesuffix("000")), ()


def _decimals(rng: Rng, filing: Filing) -> _Made | None:
    at = rng.choice(_sole(filing))
    return _with(filing, at, filing.facts[at]._replace(decimals=rng.choice(("0", "3", "-6")))), ()


def _duplicate(rng: Rng, filing: Filing) -> _Made | None:
    """An earlier draft's figure is still there, somewhere else in the file."""
    fact = filing.facts[rng.choice(_summed(filing))]
    draft = str(int(fact.value) + rng.choice((-1, 1)) * rng.integer(40, 900) * 1000)
    place = rng.integer(0, len(filing.facts))
    return replace(filing, facts=(*filing.facts[:place], fact._replace(value=draft), *filing.facts[place:])), ()


def _other_year(rng: Rng, filing: Filing) -> _Made | None:
    """A figure filed for another year."""
    at = rng.choice(_summed(filing))
    fact = filing.facts[at]
    others = [name for name in filing.contexts if name[:2] == fact.context[:2] and "_" not in name]
    others.remove(fact.context)
    return (_with(filing, at, fact._replace(context=rng.choice(others))), ()) if others else None


def _unit(rng: Rng, filing: Filing) -> _Made | None:
    at = rng.choice(_summed(filing))
    other = next(unit for unit in filing.units if unit not in (filing.currency, "shares") and "per" not in unit)
    return _with(filing, at, filing.facts[at]._replace(unit=other)), ()


def _member(rng: Rng, filing: Filing) -> _Made | None:
    """Two segments' figures change places."""
    with_member = [at for at in _sole(filing) if filing.contexts[filing.facts[at].context].dimensions]
    if not with_member:
        return None
    first = rng.choice(with_member)
    one = filing.facts[first]
    others = [
        at
        for at in with_member
        if filing.facts[at].concept == one.concept
        and filing.facts[at].context[:6] == one.context[:6]
        and filing.facts[at].value != one.value
    ]
    if not others:
        return None
    second = rng.choice(others)
    other = filing.facts[second]
    changed = _with(filing, first, one._replace(context=other.context))
    return _with(changed, second, other._replace(context=one.context)), ()


def _period(rng: Rng, filing: Filing) -> _Made | None:
    """A segment's context ends or begins a day off."""
    names = [name for name, context in filing.contexts.items() if context.dimensions]
    if not names:
        return None
    name = rng.choice(names)
    context = filing.contexts[name]
    start, _, end = context.period.partition("/")
    moved = rng.choice((f"{start}/{end[:-2]}30", f"{start[:-2]}02/{end}", f"{int(start[:4]) - 1}{start[4:]}/{end}"))
    return replace(filing, contexts={**filing.contexts, name: Context(moved, context.dimensions)}), ()


def _offset(rng: Rng, filing: Filing) -> _Made | None:
    """Two items of one total are wrong by the same amount, so that the total hides it."""
    first = rng.choice(_summed(filing))
    one = filing.facts[first]
    arc = next(arc for arc in filing.arcs if arc.child == one.concept)
    siblings = {(other.child, other.weight) for other in filing.arcs if other.parent == arc.parent}
    others = [
        (at, weight)
        for at in _summed(filing)
        for child, weight in siblings
        if filing.facts[at].concept == child != one.concept and filing.facts[at].context == one.context
    ]
    if not others:
        return None
    second, weight = rng.choice(sorted(others))
    by = rng.integer(90, 1900) * 1000
    changed = _revalued(filing, first, str(int(one.value) + by))
    return _revalued(changed, second, str(int(filing.facts[second].value) - by * arc.weight * weight)), ()


def _weight(rng: Rng, filing: Filing) -> _Made | None:
    at = rng.integer(0, len(filing.arcs) - 1)
    arc = filing.arcs[at]
    return _arcs(filing, at, arc._replace(weight=-arc.weight)), ((arc.role, arc.parent, arc.child),)


def _missing_arc(rng: Rng, filing: Filing) -> _Made | None:
    at = rng.integer(0, len(filing.arcs) - 1)
    arc = filing.arcs[at]
    return _arcs(filing, at), ((arc.role, arc.parent, arc.child),)


def _extra_arc(rng: Rng, filing: Filing) -> _Made | None:
    """A total sums an item that its subtotal has summed already."""
    totals = {arc.parent: arc for arc in filing.arcs}
    twice = [
        (upper, lower) for upper in filing.arcs for lower in filing.arcs if upper.child == lower.parent
        and upper.role == lower.role and lower.child not in totals
    ]  # fmt: skip
    if not twice:
        return None
    upper, lower = rng.choice(twice)
    new = Arc(upper.role, upper.parent, lower.child, upper.weight * lower.weight)
    if any(arc[:3] == new[:3] for arc in filing.arcs):
        return None
    return replace(filing, arcs=(*filing.arcs, new)), ((new.role, new.parent, new.child),)


def _arcs(filing: Filing, at: int, *new: Arc) -> Filing:
    return replace(filing, arcs=(*filing.arcs[:at], *new, *filing.arcs[at + 1 :]))


_KINDS: Mapping[str, Callable[[Rng, Filing], _Made | None]] = {
    "typo": _typo,
    "sign": _sign,
    "scale": _scale,
    "decimals": _decimals,
    "duplicate": _duplicate,
    "other_year": _other_year,
    "unit": _unit,
    "member": _member,
    "period": _period,
    "offset": _offset,
    "weight": _weight,
    "missing_arc": _missing_arc,
    "extra_arc": _extra_arc,
}
