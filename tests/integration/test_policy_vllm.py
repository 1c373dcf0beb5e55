"""The policy `openai` against vLLM's own server, with a small random model: what it says is rubbish, and how is not."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from metier.envs import registry
from metier.envs.core import Deadline, Limit, Outcome, PolicyError
from metier.harness.policy import AssistantTurn, Message, Role, Stop, open_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.runner import run_episode
from metier.harness.sandbox import open_backend
from metier.harness.testing import ECHO, FakeBackend
from metier.harness.testing.policies import CONVERSATIONS, PIXEL
from metier.harness.tools import tool_specs
from metier.scheduler.worker import close_resources
from metier.trainer import models
from waiting import soon

pytestmark = pytest.mark.slow

registry.add_registry(ECHO)
TOOLS = tool_specs(["shell"])
BRIEF = Message(role=Role.USER, text="Do it.")
CONTEXT_TOKENS = 1024
START_S = 900
"""For vLLM to import and start, on a machine that does much else."""
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or m.tool_calls }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of its own."""
    folder = models.tiny(tmp_path_factory.mktemp("tiny"), context_tokens=CONTEXT_TOKENS)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"})
    )
    (folder / "template.jinja").write_text(TEMPLATE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "server.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *_options(folder, port)],
            env={**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(process, f"http://127.0.0.1:{port}/health", log)
        yield f"http://127.0.0.1:{port}"
    finally:
        _stop(process)


def _options(folder: Path, port: int) -> list[str]:
    served = ["--model", str(folder), "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(port)]
    small = ["--dtype", "float32", "--max-model-len", str(CONTEXT_TOKENS), "--enforce-eager"]
    template = ["--chat-template", str(folder / "template.jinja")]
    return [*served, *small, *template, "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]


def _wait(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(health, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(1)
    pytest.fail(f"vLLM's server did not start: {log.read_text()[-3000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Its workers too."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait(30)


@pytest_asyncio.fixture(autouse=True)
async def _connections() -> AsyncIterator[None]:
    yield
    await close_resources()


async def act(
    server: str, *, told: Any = (BRIEF,), model: str = "tiny", seconds: float = 300, **chosen: Any
) -> AssistantTurn:
    policy = open_policy(f"openai:{server}#{model}", {"max_tokens": 24, "temperature": 0, "retries": 0, **chosen})
    return await policy.act(told, TOOLS, deadline=Deadline.after(seconds, limit="episode_s", set_by="test"))


async def test_an_answer_in_pieces_is_the_answer_that_comes_whole(server: str) -> None:
    pieces, whole = await act(server), await act(server, stream=False)
    assert pieces.text == whole.text
    assert (pieces.calls, pieces.stop) == (whole.calls, whole.stop)
    for turn in (pieces, whole):
        assert turn.usage.prompt_tokens > 5
        assert 0 < turn.usage.output_tokens <= 24
        assert turn.usage.decode_s > 0
    assert pieces.usage.prefill_s > 0


@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_that_the_server_tells_apart_is_a_call(server: str, stream: bool) -> None:
    """The server holds the model to the schema, so that even a random one calls a tool."""
    chosen = {"tool_choice": {"type": "function", "function": {"name": "submit"}}}
    turn = await act(server, stream=stream, extra=chosen, max_tokens=200)
    (call,) = turn.calls
    assert call.tool == "submit"
    back = [BRIEF, turn, Message(role=Role.TOOL, text="go on", call_id=call.id)]
    assert isinstance(await act(server, told=back), AssistantTurn)


@pytest.mark.parametrize("name", [name for name in CONVERSATIONS if "picture" not in name and name != "a long one"])
@pytest.mark.parametrize("calls", ["native", "text"])
async def test_every_conversation_is_taken(server: str, name: str, calls: str) -> None:
    turn = await act(server, told=CONVERSATIONS[name], calls=calls, max_tokens=4)
    assert turn.stop in (Stop.END, Stop.LENGTH, Stop.CONTEXT)


async def test_a_conversation_that_is_too_long_ends_for_it(server: str) -> None:
    turn = await act(server, told=CONVERSATIONS["a long one"])
    assert turn.stop is Stop.CONTEXT


async def test_what_the_caller_got_wrong_is_said(server: str) -> None:
    for words, chosen in {
        "lower max_tokens": {"max_tokens": 4 * CONTEXT_TOKENS},
        "model's name": {"model": "another"},
        "set images to false": {"told": [Message(role=Role.USER, text="see", images=(PIXEL,))]},
    }.items():
        with pytest.raises(PolicyError, match=words):
            await act(server, **chosen)
    blind = await act(server, told=[Message(role=Role.USER, text="see", images=(PIXEL,))], images=False)
    assert blind.usage.output_tokens > 0


async def test_many_at_once_and_one_that_is_cut(server: str) -> None:
    turns = await asyncio.gather(*(act(server, temperature=1, seed=number) for number in range(8)))
    assert len({turn.text for turn in turns}) > 1
    endless = {"ignore_eos": True}
    cut = await act(server, extra=endless, max_tokens=CONTEXT_TOKENS - 100, request_s=0.5)
    assert cut.stop in (Stop.ABORT, Stop.LENGTH)


async def test_an_episode_of_a_random_model_is_graded(server: str) -> None:
    backend = FakeBackend()
    policy = open_policy(f"openai:{server}#tiny", {"max_tokens": 16, "temperature": 1})
    result = await run_episode(
        Task(env_id="test/Echo-v0", seed=3), policy, backend, Preparer(backend), deadline=soon(600)
    )
    assert result.outcome in (Outcome.AGENT_LIMIT, Outcome.COMPLETED)
    assert result.reward == 0.0
    assert result.limit in (Limit.STEPS, Limit.TOKENS, None)


async def test_an_agent_inside_the_sandbox_reaches_the_model_and_is_graded(server: str, tmp_path: Path) -> None:
    """What a random model says is rubbish to a real agent too; that it was said, and what it cost, is recorded."""
    shutil.copy(Path(__file__).parents[1] / "fixtures" / "inside_agent.py", tmp_path / "agent.py")
    settings = {
        "command": ["python3", "{folder}/agent.py", "solve", "stream"],
        "folder": str(tmp_path),
        "without": ["wait", "lose"],
        "upstream": {"max_tokens": 16, "temperature": 1},
    }
    async with open_backend("bubblewrap") as backend:
        policy = open_policy(f"inside:{server}#tiny", settings)
        result = await run_episode(
            Task(env_id="test/Echo-v0", seed=3), policy, backend, Preparer(backend), deadline=soon(600)
        )
    assert (result.outcome, result.reward, result.replayable) == (Outcome.COMPLETED, 0.0, False)
    turns = [part for part in result.conversation if isinstance(part, AssistantTurn)]
    assert turns and all(turn.usage.prompt_tokens > 20 and turn.usage.output_tokens > 0 for turn in turns)
