"""game/PygameReplaySync: make a lockstep match come out the same on every peer.

Levels: 0 one cause, named with its file; 1 two, by what sets them off and where; 2 three, by what sets them off;
3 four, untold, one of them in the last digits or in the drawing; 4 six, untold. The replay tool offers the conditions
of a network up to level 2, afterwards only another hash seed, and hashes in the place of values.

The simulation is a package of generated text; its right form runs on the host only. Peers are compared with one another
to the last bit and with that form to a tolerance, so that neither a constant nor a borrowed state passes. A peer runs
the agent's program, so nothing in it can be trusted: what sets peers apart happens to them from outside
(`conditions.py`), and holds even for a peer that chooses its own hash seed, ignores whoever else uses `random`, or
draws nothing.

Out of reach: inside its process a program may do what it likes as long as states and frames come out right, and a sum
that is rounded to some digits hides most of what differs in the last ones.

Holes found: 2026-12-01 (v0): peers were told their conditions, in the process of the agent's program, which could turn
them off; a peer could begin again with a hash seed of its own; an empty `draw` passed; a peer's answer that was nested
deep, or an integer beyond every float, broke the verifier. All closed on that day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...core import Artefact, Check, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from . import attempts
from .faults import FAULTS, Fault, Part
from .grading import expected, judge, observe
from .sources import Game, document, draw_game, game_of, simulation
from .trials import trials, whole

NUM_FAULTS = (1, 2, 3, 4, 6)
"""By level."""
_SUBTLE = frozenset({Part.CROWD, Part.SCREEN})
_HASHED = next(fault for fault in FAULTS if fault.part is Part.DROPS and fault.kind == "hash")
_PEER_S = 55.0
"""For each of three, one after the other."""


@dataclass(frozen=True)
class PygameReplaySync(Family):
    """One game, a few causes of divergence."""

    def generate(self, rng: Rng, level: int) -> Instance:
        game = draw_game(rng.child("game"))
        faults = _choose(rng.child("faults"), level)
        kinds = {str(fault.part): fault.kind for fault in faults}
        start, right = simulation(game, kinds), simulation(game, {})
        files = {
            **start,
            "LOCKSTEP.md": document(game, "LOCKSTEP.md"),
            "replay.py": document(game, "replay.py", level=level),
            "logs/match.json": json.dumps(_log(game, rng.child("log")), indent=1) + "\n",
        }
        causes: list[Json] = [
            {"file": _file_of(game, fault), "cause": fault.cause, "when": fault.when} for fault in faults
        ]
        return Instance(
            variables={
                "level": level,
                "title": game.skin.title,
                "pkg": game.skin.package,
                "unit": game.skin.unit,
                "causes": causes,
            },
            files={path: text.encode() for path, text in files.items()},
            artefacts=(Artefact(path=game.skin.package, tree=True, max_mb=1),),
            truth={"game": game.to_json(), "kinds": cast("dict[str, Json]", kinds)},
            secrets=tuple(attempts.telling_lines(right, files)[:3]),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(instance.truth)

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.mutants(instance.truth)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(instance.truth)

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        truth = cast("Mapping[str, Any]", instance.truth)
        game, planted = game_of(truth["game"]), [Part(name) for name in truth["kinds"]]
        plan = trials(game, hidden.child("trials"))
        observed = await observe(sandbox, game, plan, hidden.child("peers"), timeout_s=_PEER_S)
        if observed.runs is None:
            return Verdict.of(Check(name="peers play", score=0.0, gate=True, evidence=observed.failure))
        return judge(plan, observed.runs, expected(game, plan), planted)


def _choose(rng: Rng, level: int) -> list[Fault]:
    """One fault of each of some parts; from level 3 on one of the subtle parts is among them."""
    parts = rng.shuffled(list(Part))
    if level >= 3:
        first = rng.choice(sorted(_SUBTLE))
        parts = [first, *(part for part in parts if part is not first)]
    chosen = parts[: NUM_FAULTS[level]]
    found = [rng.choice([fault for fault in FAULTS if fault.part is part]) for part in sorted(chosen)]
    kinds = {fault.kind for fault in found}
    if {"module", "dice"} <= kinds:
        # a match without dice of its own has none that drawing could throw
        found = [_HASHED if fault.kind == "module" else fault for fault in found]
    return found


def _file_of(game: Game, fault: Fault) -> str:
    """Where the fault is, in this game's layout."""
    role = {Part.COOLDOWN: "fights"}.get(fault.part, str(fault.part))
    if fault.part is Part.DROPS and fault.kind == "hash":
        role = "world"
    return f"{game.modules.get(role, role)}.py"


def _log(game: Game, rng: Rng) -> dict[str, Json]:
    scenario = whole(game, rng, ticks=150).scenario
    return {
        "config": scenario.config,
        "ticks": scenario.ticks,
        "joins": dict(scenario.joins),
        "messages": list(scenario.messages),
    }
