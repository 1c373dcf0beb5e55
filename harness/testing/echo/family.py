"""Add up numbers. Its own tools are for tests: `wait` sleeps on the host, `lose` takes the sandbox away."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metier.envs.core import (
    Artefact,
    Check,
    Family,
    Instance,
    Json,
    Rng,
    Sandbox,
    SandboxLost,
    ToolCall,
    ToolResult,
    ToolSpec,
    TradeTools,
    Verdict,
)

WAIT = ToolSpec(
    name="wait",
    description="Wait.",
    parameters={
        "type": "object",
        "properties": {"seconds": {"type": "number", "minimum": 0, "maximum": 60}},
        "required": ["seconds"],
        "additionalProperties": False,
    },
)
LOSE = ToolSpec(
    name="lose",
    description="Lose the sandbox, by nobody's fault.",
    parameters={"type": "object", "properties": {}, "additionalProperties": False},
)


def submit(answer: str) -> ToolCall:
    """The last call."""
    return ToolCall(tool="submit", arguments={"answer": answer})


class EchoTools:
    """`wait` and `lose`."""

    specs: tuple[ToolSpec, ...] = (WAIT, LOSE)

    async def call(self, call: ToolCall) -> ToolResult:
        if call.tool == LOSE.name:
            raise SandboxLost("lost on request; start another episode")
        seconds = call.arguments["seconds"]
        assert isinstance(seconds, int | float)
        await asyncio.sleep(seconds)
        return ToolResult(text=f"waited {seconds:g} s")


@dataclass(frozen=True)
class Echo(Family):
    """`unit` is named in the brief; level n has n + 2 numbers."""

    unit: str = ""

    def generate(self, rng: Rng, level: int) -> Instance:
        numbers = [rng.integer(100, 999) for _ in range(level + 2)]
        return Instance(
            variables={"unit": self.unit},
            files={"numbers.txt": "".join(f"{number}\n" for number in numbers).encode()},
            artefacts=(Artefact(path="answer", max_mb=1),),
            truth={"sum": sum(numbers), "last": numbers[-1], "count": len(numbers)},
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        read = ToolCall(tool="read_file", arguments={"path": "numbers.txt"})
        return [read, submit(str(instance.truth["sum"]))]

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        total = instance.truth["sum"]
        assert isinstance(total, int)
        return {
            "last only": [submit(str(instance.truth["last"]))],
            "off by one": [submit(str(total + 1))],
            "how many": [submit(str(instance.truth["count"]))],
            "the file itself": [submit("numbers.txt")],
        }

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        written = {"path": "answer", "old": "", "new": f"{instance.truth['sum']}\n"}
        return {"written, not said": [ToolCall(tool="edit", arguments=written), ToolCall(tool="submit")]}

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        try:
            said = (await sandbox.read("/workspace/answer", max_bytes=100)).decode("utf-8", "replace").strip()
        except ConnectionError:
            raise
        except (OSError, ValueError) as error:
            said = f"nothing ({error})"
        right: Json = said == str(instance.truth["sum"])
        return Verdict.of(Check(name="sum", score=float(bool(right)), evidence=f"the answer is {said[:60]!r}"))

    def trade_tools(self, sandbox: Sandbox, instance: Instance) -> TradeTools:
        return EchoTools()
