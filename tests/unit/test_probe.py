"""A probe's answer: only the one under its nonce counts; what the agent prints there is no failure of ours."""

from __future__ import annotations

import re
from typing import Any

import pytest

from metier.envs.core import ExecResult, SandboxSpec, VerifierError
from metier.envs.parts.probe import ProbeResult, run_probe
from metier.harness.testing import FakeBackend, FakeSandbox, result


class Answers(dict[str, Any]):
    """Any command is answered by what `printed` makes of the probe's nonce."""

    def __init__(self, printed: str, exit_code: int = 0) -> None:
        self.printed, self.exit_code = printed, exit_code

    def get(self, key: str, default: Any = None) -> Any:
        return self.reply

    def reply(self, sandbox: FakeSandbox, command: str) -> ExecResult:
        nonce = re.findall("[0-9a-f]{32}", command)[0]
        return result(stdout=self.printed.replace("NONCE", nonce).encode(), exit_code=self.exit_code)


async def probe(printed: str, *, exit_code: int = 0, root: bool = False) -> ProbeResult:
    backend = FakeBackend()
    backend.replies = Answers(printed, exit_code)
    box = FakeSandbox(backend, "fake", SandboxSpec(image="any"), {})
    return await run_probe(box, "...", {"n": 1}, timeout_s=5, user="root" if root else "agent")


async def test_the_last_line_under_the_nonce_is_the_answer() -> None:
    assert (await probe('noise\nNONCE {"a": 1}\nNONCE [2]\nnoise\n')).value == [2]


@pytest.mark.parametrize("forged", ["[" * 100_000, '{"a":' * 50_000, "[" * 9_000 + "]" * 9_000, "", "nonsense", "1 2"])
async def test_what_cannot_be_read_under_the_nonce_is_a_failed_answer(forged: str) -> None:
    """A parser that gives up by RecursionError would be a broken verifier: "no reward", chosen by the agent."""
    found = await probe(f"NONCE {forged}\n")
    assert found.value is None
    assert found.failure.startswith("ended with exit code 0 and no answer")


async def test_only_a_probe_of_roots_own_can_break() -> None:
    assert (await probe("", exit_code=1)).value is None
    with pytest.raises(VerifierError, match="a probe broke"):
        await probe("", exit_code=1, root=True)
