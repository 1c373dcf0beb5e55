"""Read an XBRL filing with Arelle in the verifier sandbox: facts by what they mean, links by what they say.

A fact's key is its concept, period, dimensions and unit, whatever its context is called; so a right filing may be
written in any way. A filing that cannot be loaded is a result with a `failure`, never an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple, cast

from ..core import Json, Sandbox
from . import xbrl_probe
from .control import require_tool
from .probe import run_probe

_SOURCE = inspect.getsource(xbrl_probe) + "\n_answer(examine(payload))\n"

Link = tuple[str, ...]
"""Arcrole, role, the names of both ends, and what it carries: weight, order, preferred label; or a label's own."""


class FactKey(NamedTuple):
    """What a fact is about."""

    concept: str
    period: str
    """2025-12-31, or 2025-01-01/2025-12-31."""
    dimensions: tuple[tuple[str, str], ...]
    unit: str


class FactValue(NamedTuple):
    """What a fact says: the value normalised, its decimals as written."""

    value: str
    decimals: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """What Arelle read."""

    facts: Mapping[FactKey, tuple[FactValue, ...]] = field(default_factory=dict[FactKey, tuple[FactValue, ...]])
    strangers: tuple[str, ...] = ()
    """Concepts of facts in another namespace or of another entity, nil facts among them."""
    links: frozenset[Link] = frozenset()
    concepts: frozenset[tuple[str, ...]] = frozenset()
    files: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    """Of the errors and inconsistencies found by validation."""
    messages: tuple[str, ...] = ()
    failure: str = ""


def normal(text: str) -> str:
    """A numeric value so that equal ones are equal text; other text as it is."""
    try:
        return f"{Decimal(text).normalize():f}"
    except InvalidOperation:
        return text


async def read_filing(
    sandbox: Sandbox, root: str, entry: str, *, namespace: str, entity: str, calculation: str, timeout_s: float
) -> Filing:
    """Load `root/entry`; `calculation` is Arelle's name of a mode, as c11r.

    Raises:
        VerifierError: Arelle did not end in time, and does not load by itself either.
        SandboxLost: the sandbox is gone.
    """
    question: dict[str, Json] = {"root": root, "entry": entry, "calculation": calculation}
    probe = await run_probe(sandbox, _SOURCE, question, timeout_s=timeout_s, user="agent", output_kib=16384)
    if probe.failure:
        await require_tool(sandbox, "arelle.api.Session")
        return Filing(failure=probe.failure)
    if not isinstance(probe.value, dict):
        return Filing(failure="the probe's answer was replaced")
    answer = cast(dict[str, Any], probe.value)
    if answer["failure"]:
        return Filing(failure=answer["failure"], files=tuple(answer.get("files", ())))
    facts: dict[FactKey, tuple[FactValue, ...]] = {}
    strangers: list[str] = []
    for one in answer["facts"]:
        if one["namespace"] != namespace or one["entity"] != entity or one["nil"]:
            strangers.append(one["concept"])
            continue
        dimensions = tuple((axis, member) for axis, member in one["dimensions"])
        key = FactKey(one["concept"], one["period"], dimensions, one["unit"])
        facts[key] = (*facts.get(key, ()), FactValue(normal(one["value"]), one["decimals"]))
    return Filing(
        facts=facts,
        strangers=tuple(strangers),
        links=frozenset(tuple(link) for link in answer["links"]),
        concepts=frozenset(tuple(concept) for concept in answer["concepts"]),
        files=tuple(answer["files"]),
        codes=tuple(answer["codes"]),
        messages=tuple(answer["messages"]),
    )
