"""finance/ProspectusAudit: find where the sections of an offering prospectus contradict each other.

One ledger decides every figure of all documents; a contradiction is one figure changed in one place. Each instance is
proven by reading every figure back from its files: those changed contradict the ledger, all others agree with it at the
precision that they show. Whatever the length, facts, contradictions and the words around them are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import Artefact, Family, Instance, Rng, Sandbox, ToolCall, Verdict, instance_rng
from ...parts.token_count import count_tokens
from . import attempts, bots
from .case import Knobs, make_case
from .draft import FOLDER
from .grading import (
    CAP,
    FINDINGS,
    QUOTE_LEAST,
    QUOTE_MOST,
    Error,
    FindingsError,
    Key,
    Shelf,
    Spot,
    grade,
    read_findings,
    unreadable,
)
from .writer import Hop

_INDEX = f"{FOLDER}/index.csv"
_PLAIN = frozenset({Hop.DIRECT})
_MIDDLE = _PLAIN | {Hop.SCALE, Hop.TERM, Hop.DERIVED}
_LEVELS = (
    Knobs(tokens=20_000, fewest=1, most=2, hops=_PLAIN, ties=1, can_be_clean=False),
    Knobs(tokens=50_000, fewest=1, most=3, hops=_PLAIN | {Hop.SCALE}, ties=2),
    Knobs(tokens=100_000, fewest=2, most=5, hops=_MIDDLE, ties=3),
    Knobs(tokens=180_000, fewest=3, most=8, hops=frozenset(Hop) - {Hop.DIRECT}, ties=3),
    Knobs(tokens=300_000, fewest=5, most=12, hops=frozenset(Hop) - {Hop.DIRECT, Hop.SCALE}, ties=4),
)


@dataclass(frozen=True)
class ProspectusAudit(Family):
    """Tie a prospectus out, and report the pairs of places that contradict each other, or that there are none.

    Levels: 0 one or two in the same words and unit, 20,000 tokens; 1 other units and rounding; 2 defined terms,
    synonyms and computed ratios; 3 figures of other dates, amendments with precedence, code names and register
    numbers; 4 up to twelve of the farther kinds, most of them in passages about something else, 300,000 tokens. From
    level 1 more than a quarter of the instances are clean.

    `tokens` sets another length, from 20,000 to 1,000,000. Instances with the same `core` from 0 up have the same
    facts, contradictions and answer at every length, whatever the seed; -1 draws them by the seed.
    """

    tokens: int = 0
    core: int = -1

    def __post_init__(self) -> None:
        if self.tokens and not 20_000 <= self.tokens <= 1_000_000:
            raise ValueError(f"tokens is 0, or from 20000 to 1000000, not {self.tokens}")
        if self.core < -1:
            raise ValueError(f"core is -1, or a number from 0 up, not {self.core}")

    def generate(self, rng: Rng, level: int) -> Instance:
        knobs = _LEVELS[level]
        core = rng.child("core")
        if self.core >= 0:
            core = instance_rng("finance/ProspectusAudit-v0/core", {}, self.core, level).child("core")
        case = make_case(core, rng.child("filler"), knobs, level, self.tokens or knobs.tokens)
        return Instance(
            variables={
                "level": level,
                "issuer": case.names.issuer,
                "files": len(case.files),
                "tokens": f"{round(sum(map(count_tokens, case.files.values())), -3):,}",
                "can_be_clean": knobs.can_be_clean,
                "ties": [*case.to_tie],
                "cap": CAP,
                "quote_least": QUOTE_LEAST,
                "quote_most": QUOTE_MOST,
            },
            files={f"{FOLDER}/{name}": text.encode() for name, text in case.files.items()}
            | {_INDEX: case.index.encode()},
            artefacts=(Artefact(path=FINDINGS, max_mb=1),),
            truth=case.truth(),
            secrets=case.secrets(),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(_key(instance), Shelf(_documents(instance)))

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth: Mapping[str, Any] = instance.truth
        harmless = [(Spot.from_json(first), Spot.from_json(second)) for first, second in truth["harmless"]]
        key, files = _key(instance), _documents(instance)
        shelf = Shelf(files)
        wrong = dict(attempts.mutants(key, shelf, harmless))
        if instance.variables["level"] not in (0, 1):
            index = instance.files[_INDEX].decode()
            for bot in (bots.rare_word_grep, bots.same_number_matcher):
                wrong[bot.__name__] = attempts.handed_in(attempts.ties(key, shelf), bot(files, index))
        return wrong

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(_key(instance), Shelf(_documents(instance)))

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        try:
            text = await read_findings(sandbox)
        except FindingsError as error:
            return unreadable(str(error))
        return grade(text, _key(instance), Shelf(_documents(instance)))


def _key(instance: Instance) -> Key:
    truth: Mapping[str, Any] = instance.truth
    errors = [
        Error(wrong=Spot.from_json(one["wrong"]), others=tuple(Spot.from_json(spot) for spot in one["others"]))
        for one in truth["errors"]
    ]
    ties = {code: tuple(Spot.from_json(spot) for spot in spots) for code, spots in truth["ties"].items()}
    return Key(errors=tuple(errors), ties=ties)


def _documents(instance: Instance) -> dict[str, str]:
    """The documents by name, without the index."""
    return {path.rpartition("/")[2]: data.decode() for path, data in instance.files.items() if path.endswith(".md")}
