"""game/GodotPlatformer: write or repair the controller of a platformer's character, in GDScript.

Levels: 0 one mistake in a controller for flat ground, told by its symptom; 1 two mistakes, with coyote time and jump
buffering; 2 those, a faster fall and a cut jump are still to be written; 3 slopes, steering in the air and ceilings as
well; 4 a prototype with other numbers in it, and turning and one-way platforms too.

The controller is the only artefact. It is read before it is run (`parts.gdscript`): it can move its body by physics
only, and reach nothing else. It then runs in the verifier's own project on hidden levels with hidden inputs, and the
tracks are judged on the host, beside those of the starting controller: what that did right must stay right.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from ...core import Artefact, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict, VerifierError
from ...parts import gdscript
from . import attempts, stage
from .controllers import ASSETS, scene
from .feel import Feature, Feel
from .grading import judged, refused
from .levels import build
from .play import PROJECT, SCRIPT, lay_out, play
from .trials import trials

_PLAY_S = 90.0
_CHECKER = """

if __name__ == "__main__":
    import sys

    print("\\n".join(problems(open(sys.argv[1]).read())) or "allowed")
"""


@dataclass(frozen=True)
class GodotPlatformer(Family):
    """One feel sheet, one controller."""

    def generate(self, rng: Rng, level: int) -> Instance:
        task = build(rng, level)
        shown: dict[str, list[Json]] = {}
        for trial in trials(task.feel, task.asked, rng.child("shown")):
            shown.setdefault(str(trial.feature), []).append({"name": str(trial.feature), **trial.scenario})
        files = {path: (ASSETS / path).read_text() for path in (*PROJECT, "playtest.py")}
        files |= {"player.tscn": scene(task.feel), SCRIPT: task.start}
        files |= {"check_script.py": inspect.getsource(gdscript) + _CHECKER}
        files |= {f"scenarios/{name}.json": json.dumps(each, indent=1) + "\n" for name, each in shown.items()}
        return Instance(
            variables={
                "hero": task.hero,
                "game": task.game,
                "symptoms": list(task.symptoms),
                "feel": cast("dict[str, Json]", asdict(task.feel)),
                "asked": [str(feature) for feature in task.asked],
                "missing": [str(feature) for feature in task.missing],
                "tolerance": stage.tolerances(),
            },
            files={path: text.encode() for path, text in files.items()},
            artefacts=(Artefact(path=SCRIPT, max_mb=1),),
            truth={
                "level": level,
                "feel": cast("dict[str, Json]", asdict(task.feel)),
                "asked": [str(feature) for feature in task.asked],
                "start": task.start,
                "right": task.right,
                "other": task.other,
                "near": cast("dict[str, Json]", dict(task.near)),
            },
            secrets=tuple(line for line in attempts.telling_lines(task.right, task.start)[:3]),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(instance.truth)

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.mutants(instance.truth)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(instance.truth)

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        truth = cast("Mapping[str, Any]", instance.truth)
        feel = Feel(**truth["feel"])
        try:
            script = (await sandbox.read(f"/workspace/{SCRIPT}", max_bytes=4 * gdscript.LONGEST)).decode()
        except ConnectionError:
            raise
        except (OSError, ValueError) as error:
            return refused("script", f"{SCRIPT} cannot be read: {error}")
        if wrong := gdscript.problems(script):
            return refused("script", f"{len(wrong)} things that are not allowed: {'; '.join(wrong[:3])}"[:400])
        plan = trials(feel, [Feature(name) for name in truth["asked"]], hidden)
        scenarios = [trial.scenario for trial in plan]
        places = {
            name: await lay_out(sandbox, name, text, scene(feel), cast("list[Json]", scenarios))
            for name, text in (("before", truth["start"]), ("now", None))
        }
        now = await play(sandbox, places["now"], scenarios, timeout_s=_PLAY_S)
        before = await play(sandbox, places["before"], scenarios, timeout_s=_PLAY_S)
        if before.records is None:
            raise VerifierError(f"the starting controller does not play either: {before.said}")
        if now.records is None:
            return refused("plays", f"the controller leaves no record: {now.said}"[:400])
        return judged(feel, plan, now.records, before.records, now.said)
