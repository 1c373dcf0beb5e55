"""The tools answer whatever is asked of them, in bounded valid text; only a lost sandbox raises."""

from __future__ import annotations

import dataclasses
import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import pytest
from hypothesis import HealthCheck, given, settings
from PIL import Image

import metier
from hostile import REGISTRY, Drawn, arguments, calls, check_answer, text, value
from metier.envs.core import (
    Deadline,
    ExecResult,
    GenerationError,
    Json,
    SandboxLost,
    SandboxSpec,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from metier.harness.sandbox import RequestRefused
from metier.harness.sandbox.fake import _File  # pyright: ignore[reportPrivateUsage]
from metier.harness.testing import FakeBackend, FakeSandbox, result
from metier.harness.tools import SPECS, Toolbox
from metier.harness.tools.door import CALL_BYTES, CONTENT_BYTES, PATH_BYTES, TEXT_BYTES, unfit
from metier.harness.tools.truncate import TEXT_LIMIT_BYTES, valid_text


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("registry") / "registry.yaml"
    path.write_text(REGISTRY.format(env_id="test/Hostile-v0", agent_s=100000))
    metier.register_environments(path)
    made = gymnasium.make("test/Hostile-v0", backend="fake", render_mode="rgb_array").unwrapped
    made.reset(seed=1)
    yield made
    made.close()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(call=calls(list(SPECS)).map(Drawn))
def test_no_call_raises_out_of_a_step(env: Any, call: Drawn) -> None:
    check_answer(env.step(call.it))
    assert env.render().any()
    env.step({"tool": "edit", "arguments": {"path": "alive", "old": "", "new": "yes\n"}})
    observation, *_ = env.step({"tool": "read_file", "arguments": {"path": "alive"}})
    assert observation["text"] == "yes\n"


def open_box(backend: FakeBackend) -> FakeSandbox:
    return FakeSandbox(backend, "fake", SandboxSpec(image="any"), {})


class Always(dict[str, Any]):
    """One reply to every command."""

    def get(self, key: str, default: Any = None) -> Any:
        return self[""]


class Mine:
    """A family's own tool that does what the test says."""

    specs = (ToolSpec(name="mine", description="Mine.", parameters={"type": "object"}),)

    def __init__(self, does: Callable[[Any], ToolResult]) -> None:
        self._does = does

    async def call(self, call: ToolCall) -> ToolResult:
        return self._does(call.arguments)


def toolbox(
    reply: ExecResult | Callable[[FakeSandbox, str], ExecResult] | None = None, mine: Mine | None = None
) -> Toolbox:
    backend = FakeBackend()
    if reply is not None:
        backend.replies = Always({"": reply})
    return Toolbox(list(SPECS), open_box(backend), mine)


async def ask(box: Toolbox, tool: str, *, left_s: float = 100, **given: Json) -> ToolResult:
    return await box.call(
        ToolCall(tool=tool, arguments=given), deadline=Deadline.after(left_s, limit="agent_s", set_by="test")
    )


@pytest.mark.parametrize("path", ["../x", "/workspace/../etc/x", "a/../../b"])
async def test_a_path_that_climbs_is_told_what_to_do(path: str) -> None:
    for old in ("", "a"):
        answer = await ask(toolbox(), "edit", path=path, old=old, new="x")
        assert (answer.ok, "may not hold '..'" in answer.text) == (False, True)
    assert "/workspace" in (await ask(toolbox(), "read_file", path=path)).text


@pytest.mark.parametrize("name", ["path", "command", "code"])
def test_nul_is_told(name: str) -> None:
    assert "NUL at character 1" in str(unfit({name: "a\0b"}))
    assert unfit({"new": "a\0b"}) is None


@pytest.mark.parametrize(
    ("name", "most"),
    [("path", PATH_BYTES), ("command", TEXT_BYTES), ("code", TEXT_BYTES), ("new", CONTENT_BYTES), ("own", TEXT_BYTES)],
)
def test_the_limits_are_exact(name: str, most: int) -> None:
    assert unfit({name: "x" * most}) is None
    assert unfit({name: "é" * (most // 2)}) is None
    for long in ("x" * (most + 1), "é" * (most // 2 + 1)):
        assert f"over {most // 1024} KiB" in str(unfit({name: long}))


def test_all_together_are_bounded_too() -> None:
    whole = "x" * TEXT_BYTES
    fits = CALL_BYTES // TEXT_BYTES - 1
    assert unfit({str(number): whole for number in range(fits)}) is None
    assert "all together" in str(unfit({str(number): whole for number in range(fits + 2)}))
    assert "all together" in str(unfit({"a": [0] * CALL_BYTES}))


@settings(deadline=None)
@given(value.map(Drawn))
def test_whatever_passes_the_door_is_bounded_json(drawn: Drawn) -> None:
    assert isinstance(drawn.it, dict) or unfit(drawn.it) is not None
    if unfit({"thing": drawn.it}) is None:
        assert len(json.dumps(drawn.it, allow_nan=False, ensure_ascii=False).encode()) < 10 * CALL_BYTES


@settings(deadline=None)
@given(arguments(["path", "old", "new"]).map(Drawn))
def test_a_refusal_is_short(drawn: Drawn) -> None:
    assert len((unfit(drawn.it) or "").encode()) < 500


async def test_half_a_character_is_refused_and_shown_as_its_number() -> None:
    box = toolbox()
    for tool, name in [("shell", "command"), ("python", "code"), ("edit", "path"), ("submit", "answer")]:
        given_: Any = {name: "ab\ud800"}
        answer = await ask(box, tool, **given_)
        assert "'\\ud800' at character 2 is half of a character" in answer.text


@settings(deadline=None)
@given(text.map(Drawn))
def test_valid_text_encodes_and_keeps_what_is_valid(drawn: Drawn) -> None:
    said: str = drawn.it
    assert valid_text(said).encode() or not said
    if not any("\ud800" <= character <= "\udfff" for character in said):
        assert valid_text(said) == said


async def test_every_answer_is_cut_once_with_its_count() -> None:
    name = "x" * 10_000_000
    answer = await ask(toolbox(), name)
    assert "(10000000 characters)" in answer.text and len(answer.text) < 500
    shown = await ask(toolbox(result(b"y" * 20_000, exit_code=3)), "shell", command="x")
    cut, half = 20_000 - TEXT_LIMIT_BYTES, "y" * (TEXT_LIMIT_BYTES // 2)
    note = f"[{cut} bytes cut here; all of it is in /tmp/output-1.txt]"
    assert (shown.text, shown.cut_bytes) == (f"{half}\n{note}\n{half}\n[exit code 3]", cut)
    loud = await ask(toolbox(mine=Mine(lambda _: ToolResult(text="z" * 9_000 + "\ud800", cut_bytes=5))), "mine")
    assert loud.cut_bytes == 9_003 - TEXT_LIMIT_BYTES + 5
    assert len(loud.text.encode()) < TEXT_LIMIT_BYTES + 100


TIMED_OUT = dataclasses.replace(result(), timed_out=True, exit_code=None)


@pytest.mark.parametrize(
    ("tool", "given_", "left_s", "words"),
    [
        ("shell", {"command": "x", "timeout_s": 600}, 3.2, "[stopped after 3.2 s (agent_s)]"),
        ("shell", {"command": "x", "timeout_s": 2}, 3.2, "[stopped after 2 s (timeout_s)]"),
        ("shell", {"command": "x", "timeout_s": 2.0}, 3.2, "[stopped after 2 s (timeout_s)]"),
        ("python", {"code": "x"}, 900, "[stopped after 60 s (timeout_s)]"),
        ("view", {}, 900, "[stopped after 120 s (the limit of view)]"),
        ("view", {}, 7, "[stopped after 7 s (agent_s)]"),
    ],
)
async def test_a_stop_names_the_limit_that_fired(tool: str, given_: Any, left_s: float, words: str) -> None:
    answer = await ask(toolbox(TIMED_OUT), tool, left_s=left_s, **given_)
    assert words in answer.text


def png(width: int = 8, height: int = 8) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height)).save(out, "PNG")
    return out.getvalue()


def bomb() -> bytes:
    """The head of a picture of 100,000 pixels a side."""
    head = struct.pack("!IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    return png()[:8] + b"".join(
        struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data))
        for kind, data in [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    )


BAD_PICTURES = {
    "nothing": b"",
    "no picture": b"hello",
    "its signature alone": png()[:8],
    "half of one": png(200, 200)[:-40],
    "a bomb": bomb(),
    "another kind": b"GIF89a" + bytes(40),
}


@pytest.mark.parametrize("name", BAD_PICTURES)
async def test_a_picture_that_does_not_open_is_told(name: str) -> None:
    def wrote(box: FakeSandbox, _: str) -> ExecResult:
        box._files["/tmp/view-1.png"] = _File(data=BAD_PICTURES[name], mode=0o644, user="agent")
        return result()

    answer = await ask(toolbox(wrote), "view")
    assert (answer.ok, answer.images) == (False, ())
    assert "no picture" in answer.text
    mine = Mine(lambda _: ToolResult(text="two", images=(png(), BAD_PICTURES[name])))
    both = await ask(toolbox(mine=mine), "mine")
    assert both.images == (png(),)
    assert "1 pictures were left out" in both.text


@pytest.mark.parametrize("error", [ValueError("x"), OSError(5, "no"), RecursionError(), RequestRefused("too long")])
async def test_a_fault_of_a_familys_tool_is_an_observation(error: Exception) -> None:
    def breaks(_: Any) -> ToolResult:
        raise error

    answer = await ask(toolbox(mine=Mine(breaks)), "mine", any="thing")
    assert not answer.ok and answer.text.startswith("mine")


@pytest.mark.parametrize("error", [SandboxLost("gone"), GenerationError("broken")])
async def test_what_says_whose_fault_it_is_passes(error: Exception) -> None:
    def breaks(_: Any) -> ToolResult:
        raise error

    with pytest.raises(type(error)):
        await ask(toolbox(mine=Mine(breaks)), "mine")


async def test_a_lost_sandbox_raises_from_every_tool() -> None:
    backend = FakeBackend()
    lost = open_box(backend)
    lost.lose()
    box = Toolbox(list(SPECS), lost)
    calls_: list[tuple[str, Any]] = [
        ("shell", {"command": "x"}),
        ("read_file", {"path": "x"}),
        ("edit", {"path": "x", "old": "", "new": ""}),
        ("python", {"code": "x"}),
        ("view", {}),
    ]
    for tool, given_ in calls_:
        with pytest.raises(SandboxLost):
            await ask(box, tool, **given_)


@pytest.mark.parametrize("error", [OSError(12, "no memory"), BrokenPipeError(32, "broken"), ValueError("strange")])
async def test_what_the_sandbox_refuses_is_an_observation(error: Exception) -> None:
    def refuses(*_: Any) -> ExecResult:
        raise error

    for tool, name in [("shell", "command"), ("python", "code"), ("view", "path")]:
        given_: Any = {name: "x"}
        answer = await ask(toolbox(refuses), tool, **given_)
        assert not answer.ok and str(error.args[-1]) in answer.text
