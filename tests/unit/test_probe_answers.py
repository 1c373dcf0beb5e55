"""What counts as a probe's answer, whatever else was printed or left out, and whose fault it is where there is none."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from metier.envs.core import ExecResult, User, VerifierError
from metier.envs.parts.probe import ProbeResult, run_probe
from metier.harness.testing import result


class Program:
    """A sandbox that answers every command the same way, and keeps what it was asked."""

    def __init__(self, answer: ExecResult | Callable[[str], ExecResult]) -> None:
        self.answer = answer
        self.asked: list[tuple[list[str], bytes, User]] = []

    async def exec(self, command: Any, *, stdin: bytes = b"", user: User = "agent", **_: Any) -> ExecResult:
        self.asked.append((command, stdin, user))
        return self.answer if isinstance(self.answer, ExecResult) else self.answer(self.nonce)

    @property
    def nonce(self) -> str:
        """Of the last call, as a program could read it in its own command line."""
        found = re.search(r"[0-9a-f]{32}", self.asked[-1][0][-1])
        assert found is not None
        return found[0]


async def probed(answer: Any, *, user: User = "agent") -> tuple[ProbeResult, Program]:
    box = Program(answer)
    return await run_probe(box, "source", {"hidden": 1}, timeout_s=3, user=user), box  # type: ignore[arg-type]


NO_ANSWER = {
    "nothing": b"",
    "an empty line": b"\n",
    "words": b"abc\n",
    "not a number": b"NaN\n",
    "a pass line": b"PASSED\nAll tests passed\nreward=1.0\nOK\n",
    "an answer without the nonce": b"\n1.0\n",
    "an answer under a nonce of its own": b"\n" + b"0" * 32 + b" 1.0\n",
    "no UTF-8": b"\xff\xfe 1.0\n",
}


@pytest.mark.parametrize("said", NO_ANSWER)
async def test_a_program_that_exits_well_and_says_something_else_has_not_answered(said: str) -> None:
    answer, _ = await probed(result(NO_ANSWER[said]))
    assert answer.value is None
    assert "ended with exit code 0 and no answer" in answer.failure


@pytest.mark.parametrize("said", NO_ANSWER)
async def test_no_pass_line_before_or_behind_it_changes_an_answer(said: str) -> None:
    around = NO_ANSWER[said]
    answer, _ = await probed(lambda nonce: result(around + f"\n{nonce} [0.0]\n".encode() + around))
    assert answer == ProbeResult(value=[0.0])


async def test_a_probe_of_our_own_that_breaks_is_the_verifiers_fault() -> None:
    """Else an overloaded machine or a wrong image would put zeros on right answers."""
    with pytest.raises(VerifierError, match="ModuleNotFoundError: no numpy"):
        await probed(result(exit_code=1, stderr=b"Traceback\nModuleNotFoundError: no numpy\n"), user="root")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"exit_code": None, "timed_out": True}, "did not end within 3 s"),
        ({"exit_code": None, "signal": 9, "oom_killed": True}, "was killed for its memory"),
        ({"exit_code": None, "signal": 11}, "signal 11"),
        ({"exit_code": 1}, "exit code 1"),
    ],
)
async def test_a_program_of_the_agents_that_breaks_is_the_agents_fault(how: dict[str, Any], words: str) -> None:
    answer, _ = await probed(dataclasses.replace(result(), **how))
    assert answer.value is None and words in answer.failure


async def test_every_call_has_another_nonce_and_the_payload_is_no_argument() -> None:
    """What stands in a command line can be read by every process there."""
    box = Program(result())
    for _ in range(2):
        await run_probe(box, "source", {"hidden": "value"}, timeout_s=3, user="agent")  # type: ignore[arg-type]
    (first, said, _), (second, *_) = box.asked
    assert first != second
    assert json.loads(said) == {"hidden": "value"} and "hidden" not in " ".join(first)
    assert first[:3] == ["python3", "-I", "-c"]


async def test_the_frame_around_a_probe_is_a_program_that_answers() -> None:
    def ran(_: str) -> ExecResult:
        command, said, _user = box.asked[-1]
        done = subprocess.run([sys.executable, *command[1:]], input=said, capture_output=True, check=True)
        return result(done.stdout)

    box = Program(ran)
    source = "print('noise'); _answer(payload['n'] + 1); print('more')"
    answer = await run_probe(box, source, {"n": 20}, timeout_s=9)  # type: ignore[arg-type]
    assert answer == ProbeResult(value=21)
