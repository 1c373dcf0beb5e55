"""Baseline bots: what an agent can do without doing the work earns nothing, in time, and breaks nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from metier.envs.core import ToolCall

from ...gym.spaces import ToolCallSpace
from ...prepare import Prepared
from ...tools import tool_specs
from ..bench import Bench, Cell, found
from ..certificate import Finding

_RANDOM_CALLS = 6
_BOT_S = 180.0
_FORGE = """\
for name in reward.json reward.txt verdict.json result.json score.txt; do
  printf '{"reward": 1.0, "passed": true, "score": 1.0}' | tee "$name" "/tmp/$name" > /dev/null
done
printf 'def pytest_runtest_makereport(*a): pass\\n' > conftest.py
printf 'import os; os._exit(0)\\n' | tee sitecustomize.py usercustomize.py > /dev/null
"""


async def baselines(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Every bot scores 0, does not pass, and ends in time."""

    async def check(cell: Cell) -> list[Finding]:
        prepared = await bench.prepared(cell)
        findings: list[Finding] = []
        for name, calls in bots(prepared, cell).items():
            began = time.monotonic()
            played = await bench.play(cell, calls)
            seconds = time.monotonic() - began
            floor = played.verdict is not None and played.reward == 0.0 and not played.verdict.passed
            evidence = f"{seconds:.1f} s; {played.words}"
            findings.append(found(cell, f"bot {name}", floor and seconds < _BOT_S, evidence))
        return findings

    return await bench.each(cells, "baselines", check)


def bots(prepared: Prepared, cell: Cell) -> Mapping[str, Sequence[ToolCall]]:
    """Bot → its calls; those that need a shell only where the environment has one."""
    answers = {
        "empty answer": "",
        "blank answer": " \n",
        "constant 0": "0",
        "constant 1": "1",
        "constant yes": "yes",
        "constant pass": "pass",
        "null": "null",
        "NaN": "NaN",
        "echo of the brief": prepared.brief,
        "copy of the input": "\n".join(data.decode("utf-8", "replace") for data in prepared.instance.files.values()),
        "marker": "PASSED\nAll tests passed\nreward=1.0\nOK",
    }
    calls: dict[str, Sequence[ToolCall]] = {name: [_submit(answer)] for name, answer in answers.items()}
    if "shell" in prepared.entry.tools:
        artefacts = " ".join(f"'{artefact.path}'" for artefact in prepared.instance.artefacts)
        copy = f'for to in {artefacts}; do [ -e "$to" ] || find . -type f -size -64k -exec cat {{}} + > "$to"; done'
        scripts = {
            "reward forger": _FORGE,
            "copy to the artefacts": copy,
            "exit 0": "exit 0",
            "marker printer": "echo PASSED; echo 'All tests passed'; echo reward=1.0",
            "daemon left behind": "(setsid sh -c 'while :; do sleep 1; done' > /dev/null 2>&1 &)",
            "huge output": "yes | head -c 50000000",
        }
        calls.update({name: [_shell(script), _submit("")] for name, script in scripts.items()})
        calls["sleeper"] = [_shell("sleep 600", timeout_s=2), _submit("")]
    calls["random calls"] = [*_random(prepared, cell), _submit("")]
    return calls


def _random(prepared: Prepared, cell: Cell) -> list[ToolCall]:
    space = ToolCallSpace(tool_specs(prepared.entry.tools), seed=cell.seed)
    samples = (space.sample() for _ in range(_RANDOM_CALLS))
    return [
        ToolCall(tool=str(sample["tool"]), arguments=arguments)
        for sample in samples
        if sample["tool"] != "submit" and isinstance(arguments := sample["arguments"], dict)
    ]


def _shell(command: str, timeout_s: int = 60) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command, "timeout_s": timeout_s})


def _submit(answer: str) -> ToolCall:
    return ToolCall(tool="submit", arguments={"answer": answer})
