"""Level sanity: each level turns a knob that can be measured, and is not the one before it with other numbers.

Several instances of every level are generated, and each is measured: sizes of files, brief and truth, the number of
things in it, what stays the same within a level, the words of the brief. Two neighbouring levels must differ in a
measure whose values do not overlap, or in something that is constant in each. That is a sign of a difference, not of a
right difficulty: solve rates are the proof of that.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from metier.envs.core import Instance, Json, MetierError
from metier.envs.registry import make_family

from ...prepare import Prepared, Task, generate
from ..bench import Bench, Cell, found
from ..certificate import Finding

DRAWS = 8
"""Instances of each level."""
_MOST = 2000
_WORD = re.compile(r"[^\W\d_]{3,}")


async def levels_differ(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Every level against the one before it, and the family's own words about levels."""
    levels = sorted({cell.level for cell in cells})
    seed = cells[0].seed
    measured = await asyncio.to_thread(_measured, bench, levels, seed)
    family = make_family(bench.entry, bench.options)
    told = re.search(r"\blevels?\b", f"{type(family).__doc__} {_module_doc(family)}", re.IGNORECASE) is not None
    first = Cell(level=levels[0], seed=seed)
    findings = [
        found(
            first,
            "the docstring says what levels turn",
            told or bench.entry.levels == 1,
            "" if told else "say in the docstring of the family's class which knob each level turns",
        )
    ]
    for before, level in itertools.pairwise(levels):
        knobs = list(_knobs(measured[before], measured[level]))
        evidence = "; ".join(knobs[:12]) or f"nothing measured tells level {level} from level {before}"
        findings.append(found(Cell(level=level, seed=seed), f"differs from level {before}", bool(knobs), evidence))
    bench.say(f"levels: {len(levels)} levels, {sum(not finding.ok for finding in findings)} red")
    return findings


def _module_doc(family: object) -> str:
    return sys.modules[type(family).__module__].__doc__ or ""


class Measured:
    """One level: what its instances are made of."""

    def __init__(self, drawn: Sequence[Prepared], calls: Sequence[int]) -> None:
        self.sizes = {
            name: sorted(values)
            for name, values in {
                "files": [len(one.instance.files) for one in drawn],
                "bytes of files": [sum(map(len, one.instance.files.values())) for one in drawn],
                "words of the brief": [len(one.brief.split()) for one in drawn],
                "artefacts": [len(one.instance.artefacts) for one in drawn],
                "size of the truth": [len(json.dumps(dict(one.instance.truth))) for one in drawn],
                "set-up lines": [len(one.instance.setup) for one in drawn],
                "calls of the oracle": list(calls),
                **_counts([one.instance for one in drawn]),
            }.items()
        }
        self.constants = _constants([one.instance for one in drawn])
        words = [frozenset(_WORD.findall(one.brief)) for one in drawn]
        self.always = frozenset.intersection(*words)
        self.ever = frozenset.union(*words)


def _measured(bench: Bench, levels: Sequence[int], seed: int) -> dict[int, Measured]:
    measured: dict[int, Measured] = {}
    for level in levels:
        tasks = [
            Task(env_id=bench.entry.id, seed=seed + draw, level=level, options=dict(bench.options))
            for draw in range(DRAWS)
        ]
        drawn = [generate(task) for task in tasks]
        measured[level] = Measured(drawn, [_calls(one) for one in drawn])
    return measured


def _calls(prepared: Prepared) -> int:
    try:
        return len(prepared.family.oracle(prepared.instance))
    except MetierError:
        return 0


def _knobs(before: Measured, after: Measured) -> Iterator[str]:
    """What tells two levels apart, in words."""
    for name in before.sizes.keys() & after.sizes.keys():
        low, high = before.sizes[name], after.sizes[name]
        if low[-1] < high[0] or high[-1] < low[0]:
            yield f"{name} {_range(low)} → {_range(high)}"
    for name in sorted(before.constants.keys() | after.constants.keys()):
        one, other = before.constants.get(name), after.constants.get(name)
        if one is not None and other is not None and one != other:
            yield f"{name} {one[:30]} → {other[:30]}"
    if gone := sorted(before.always - after.ever):
        yield f"the brief no longer says {', '.join(gone[:6])}"
    if new := sorted(after.always - before.ever):
        yield f"the brief now says {', '.join(new[:6])}"


def _range(values: Sequence[int]) -> str:
    return str(values[0]) if values[0] == values[-1] else f"{values[0]}-{values[-1]}"


def _counts(instances: Sequence[Instance]) -> dict[str, list[int]]:
    """How many things each list or mapping of truth and variables holds, where every instance has it."""
    counted = [
        {name: len(value) for name, value in _parts(instance) if isinstance(value, list | dict)}
        for instance in instances
    ]
    return {
        f"number of {name}": [one[name] for one in counted]
        for name in counted[0]
        if all(name in one for one in counted)
    }


def _constants(instances: Sequence[Instance]) -> dict[str, str]:
    """What is the same in all instances of a level; a level's own number is no knob."""
    seen = [
        {name: value for name, value in _parts(instance) if not isinstance(value, list | dict)}
        for instance in instances
    ]
    return {
        name: repr(value)
        for name, value in seen[0].items()
        if "level" not in name.rpartition(".")[2].lower() and all(name in one and one[name] == value for one in seen)
    }


def _parts(instance: Instance) -> Iterator[tuple[str, Json]]:
    """Every named value of truth and variables; places in lists are not named, so that lists can be counted."""
    waiting: list[tuple[str, Any]] = [("truth", dict(instance.truth)), ("variables", dict(instance.variables))]
    for _ in range(_MOST):
        if not waiting:
            return
        name, value = waiting.pop()
        yield name, value
        if isinstance(value, Mapping):
            waiting.extend((f"{name}.{key}", part) for key, part in sorted(value.items(), key=str))
