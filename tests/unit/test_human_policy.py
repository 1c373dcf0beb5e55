"""The person at the terminal: what is typed becomes a call, and the end of input ends the episode in order."""

from __future__ import annotations

import asyncio
import os
import pty
from pathlib import Path

import pytest

from metier.envs.core import ToolCall, ToolSpec
from metier.harness.policy import Message, Role
from metier.harness.policy.human import HumanPolicy, Keyboard
from waiting import soon

SPECS = tuple(ToolSpec(name=name, description="", parameters={}) for name in ("shell", "edit", "python", "submit"))
BRIEF = (Message(role=Role.USER, text="brief"),)


def person(fd: int) -> HumanPolicy:
    policy = HumanPolicy()
    policy._keyboard = Keyboard(fd)
    return policy


async def calls(fd: int, count: int) -> list[ToolCall]:
    policy = person(fd)
    return [(await policy.act(BRIEF, SPECS, deadline=soon())).calls[0] for _ in range(count)]


def typed(text: str) -> int:
    """A pipe in which all of it lies ready, and then ends."""
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    return read


async def test_lines_and_blocks_are_calls_and_the_end_submits() -> None:
    said = "ls -l\n\n/nonsense\n/edit a.txt\nold\n.\nnew\nlines\n.\nlast"
    assert [(call.tool, dict(call.arguments)) for call in await calls(typed(said), 4)] == [
        ("shell", {"command": "ls -l"}),
        ("edit", {"path": "a.txt", "old": "old", "new": "new\nlines"}),
        ("shell", {"command": "last"}),
        ("submit", {}),
    ]


@pytest.mark.parametrize("said", ["", "/python\nprint(1)\n", "/edit a\nold\n.\nne", "/edit a"])
async def test_input_that_ends_in_the_middle_of_a_call_submits(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    (call,) = await calls(typed(said), 1)
    assert call == ToolCall(tool="submit")
    assert "end of input: submitted" in capsys.readouterr().out


async def test_a_file_is_read_like_a_terminal_and_none_at_all_has_ended(tmp_path: Path) -> None:
    (tmp_path / "said").write_bytes(b"echo \xff\r\n")
    with (tmp_path / "said").open() as file:
        assert [call.tool for call in await calls(file.fileno(), 2)] == ["shell", "submit"]
    assert [call.tool for call in await calls(-1, 1)] == ["submit"]


async def test_a_terminal_that_goes_away_has_ended() -> None:
    keyboard, terminal = pty.openpty()
    try:
        waiting = asyncio.create_task(calls(terminal, 1))
        await asyncio.sleep(0.01)
        os.close(keyboard)
        async with asyncio.timeout(5):
            assert [call.tool for call in await waiting] == ["submit"]
    finally:
        os.close(terminal)


async def test_waiting_for_a_person_can_be_cancelled_and_loses_no_word() -> None:
    read, write = os.pipe()
    policy = person(read)
    waiting = asyncio.create_task(policy.act(BRIEF, SPECS, deadline=soon()))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    os.write(write, b"whole\n")
    turn = await policy.act(BRIEF, SPECS, deadline=soon())
    assert turn.calls[0].arguments == {"command": "whole"}
    for fd in (read, write):
        os.close(fd)
