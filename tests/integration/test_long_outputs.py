"""What reaches the model of an output, of any size and shape: bounded, in whole characters, no part missing unsaid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest

import metier
from hostile import OUR_WORDS_BYTES, REGISTRY
from metier.harness.gym.loop import call
from metier.harness.tools.truncate import TEXT_LIMIT_BYTES

pytestmark = pytest.mark.docker

KEPT_BYTES = 2 * 256 * 1024
"""Of a stream, head and tail, by the sandbox; the rest is counted."""


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("registry") / "registry.yaml"
    path.write_text(REGISTRY.format(env_id="test/LongOutputs-v0", agent_s=10000))
    metier.register_environments(path)
    made = gymnasium.make("test/LongOutputs-v0", backend="docker").unwrapped
    made.reset(seed=1)
    yield made
    made.close()


def printed(env: Any, unit: str, times: int, where: str) -> tuple[str, dict[str, Any]]:
    """What is shown of so much output."""
    code = f"import sys; sys.{where}.write({unit!r} * {times}); sys.{where}.flush()"
    observation, *_, info = env.step({"tool": "shell", "arguments": {"command": f"python3 -c {code!r}"}})
    assert len(observation["text"].encode()) <= TEXT_LIMIT_BYTES + OUR_WORDS_BYTES
    assert info["ok"]
    return observation["text"], info


@pytest.mark.parametrize("where", ["stdout", "stderr"])
@pytest.mark.parametrize("size", [TEXT_LIMIT_BYTES + extra for extra in (-1, 0, 1)] + [10 * TEXT_LIMIT_BYTES])
def test_the_limit_is_exact_and_what_is_beyond_it_is_counted(env: Any, size: int, where: str) -> None:
    text, info = printed(env, "x", size, where)
    assert info["cut_bytes"] == max(0, size - TEXT_LIMIT_BYTES)
    assert text.count("x") >= min(size, TEXT_LIMIT_BYTES)
    assert ("bytes cut here" in text) == (size > TEXT_LIMIT_BYTES)


SHAPES = {
    "one line of 100 kB": ("x", 100_000),
    "100,000 lines": ("x\n", 100_000),
    "empty lines": ("\n", 100_000),
    "two bytes a character": ("é", 60_000),
    "three bytes a character": ("漢", 40_001),
    "four bytes a character": ("🙂", 30_001),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_whole_lies_where_it_is_said_to_lie(env: Any, shape: str) -> None:
    unit, times = SHAPES[shape]
    whole = (unit * times).encode()
    text, info = printed(env, unit, times, "stdout")
    assert "\ufffd" not in text, "half of a character"
    said = re.search(r"\[(\d+) bytes cut here; all of it is in (\S+)\]", text)
    assert said is not None and int(said[1]) == info["cut_bytes"] >= len(whole) - TEXT_LIMIT_BYTES
    assert call(env.episode.sandbox.read(said[2], max_bytes=1 << 20)) == whole


@pytest.mark.parametrize("unit", ["x", "é\n", "🙂"])
def test_what_was_not_kept_is_said_not_to_be_there(env: Any, unit: str) -> None:
    size = len(unit.encode())
    times = 1_500_000 // size
    text, info = printed(env, unit, times, "stdout")
    missing = size * times - KEPT_BYTES
    assert f"{missing} bytes of output were not kept" in text
    assert info["cut_bytes"] >= size * times - TEXT_LIMIT_BYTES
    said = re.search(r"\[\d+ bytes cut here; what was kept of it is in (\S+)\]", text)
    assert said is not None and "\ufffd" not in text
    kept = call(env.episode.sandbox.read(said[1], max_bytes=1 << 20)).decode()
    assert f"\n[... {missing} bytes cut ...]\n" in kept


@pytest.mark.parametrize("junk", [r"\000", r"\377", r"\303", r"\r", r"\033[2J", r"\302\205"])
def test_what_is_no_text_is_shown_as_text(env: Any, junk: str) -> None:
    command = f"yes \"$(printf 'a{junk}b')\" | head -c 300000; printf '{junk}'"
    observation, *_, info = env.step({"tool": "shell", "arguments": {"command": command}})
    text = observation["text"]
    assert len(text.encode()) <= TEXT_LIMIT_BYTES + OUR_WORDS_BYTES
    assert text.startswith("a") and info["cut_bytes"] > 0
    assert env.step({"tool": "shell", "arguments": {"command": "echo on"}})[0]["text"] == "on\n"
