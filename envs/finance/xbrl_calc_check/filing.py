"""A filing as data: concepts, calculation arcs, contexts, facts; what `render` writes is a pure function of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, cast

from ...core import Json
from ...parts.xbrl import FactKey, FactValue, normal

Dimensions = tuple[tuple[str, str], ...]


class Context(NamedTuple):
    """When, and for which members."""

    period: str
    """2025-12-31, or 2025-01-01/2025-12-31."""
    dimensions: Dimensions = ()


class Fact(NamedTuple):
    """One element of the instance."""

    concept: str
    context: str
    unit: str
    value: str
    decimals: str


class Arc(NamedTuple):
    """`parent` is the sum of its children by `weight`."""

    role: str
    parent: str
    child: str
    weight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept:
    """One element of the schema. `kind`: money, shares, per_share, heading, axis, member, table or domain."""

    name: str
    label: str
    kind: str
    period: str = "duration"
    balance: str = ""
    total: bool = False
    """Its presentation asks for a total's label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One statement: its extended link role and what it presents, heading first, in order."""

    name: str
    title: str
    concepts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """The whole of it."""

    prefix: str
    company: str
    entity: str
    currency: str
    date: str
    concepts: tuple[Concept, ...]
    roles: tuple[Role, ...]
    arcs: tuple[Arc, ...]
    contexts: Mapping[str, Context]
    units: Mapping[str, str]
    """Id → measure, as iso4217:EUR, or iso4217:EUR/xbrli:shares."""
    facts: tuple[Fact, ...]
    axis: str = ""
    members: tuple[str, ...] = ()

    @property
    def namespace(self) -> str:
        """Of the extension."""
        return f"http://xbrl.{self.prefix}.example/{self.date}"

    @property
    def stem(self) -> str:
        """What its files are called."""
        return f"{self.prefix}-{self.date.replace('-', '')}"

    @property
    def entry(self) -> str:
        """The instance's file."""
        return f"{self.stem}.xml"

    def key(self, fact: Fact) -> FactKey:
        """What a fact is about."""
        context = self.contexts[fact.context]
        return FactKey(fact.concept, context.period, tuple(sorted(context.dimensions)), self.units[fact.unit])

    def said(self) -> dict[FactKey, tuple[FactValue, ...]]:
        """Every key with what is said of it, sorted."""
        found: dict[FactKey, list[FactValue]] = {}
        for fact in self.facts:
            found.setdefault(self.key(fact), []).append(FactValue(normal(fact.value), fact.decimals))
        return {key: tuple(sorted(values)) for key, values in found.items()}

    def label(self, name: str) -> str:
        """A concept's label."""
        return next(concept.label for concept in self.concepts if concept.name == name)


def filing_json(filing: Filing) -> Json:
    """As an instance's truth carries it."""
    return cast(Json, _listed(asdict(filing)))


def _listed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _listed(item) for name, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value


def filing_from_json(data: Mapping[str, Any]) -> Filing:
    """The reverse of `filing_json`."""
    contexts = {
        name: Context(period, tuple((axis, member) for axis, member in dimensions))
        for name, (period, dimensions) in data["contexts"].items()
    }
    return Filing(
        **{
            **data,
            "concepts": tuple(Concept(**one) for one in data["concepts"]),
            "roles": tuple(Role(**{**one, "concepts": tuple(one["concepts"])}) for one in data["roles"]),
            "arcs": tuple(Arc(*one) for one in data["arcs"]),
            "contexts": contexts,
            "facts": tuple(Fact(*one) for one in data["facts"]),
            "members": tuple(data["members"]),
        }
    )
