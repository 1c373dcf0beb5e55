"""The policy `openai` where the way to the model fails: retries, limits, deadlines, the key; and whole episodes."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
import pytest_asyncio

from asking import BRIEF, QUICK, TOOLS, act, fails, open_vendor
from metier.envs import registry
from metier.envs.core import ConfigError, Deadline, Limit, Outcome, PolicyError
from metier.harness.policy import AssistantTurn, Stop, open_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.result import EpisodeResult
from metier.harness.runner import run_episode
from metier.harness.testing import ECHO, FakeBackend
from metier.scheduler.worker import close_resources
from vendor import Answer, Asked, Vendor, delta, error, spoken, streamed, whole
from waiting import soon

registry.add_registry(ECHO)


@pytest_asyncio.fixture
async def vendor() -> AsyncIterator[Vendor]:
    async with open_vendor() as server:
        yield server


# what goes wrong on the way

GOOD = spoken("hello")
PASSING: dict[str, Answer] = {
    "429": error(429, "slow down"),
    "500": error(500),
    "502, by a proxy": Answer(status=502, pieces=[b"<html>Bad Gateway</html>"]),
    "503": error(503),
    "529": error(529, "overloaded"),
    "408": error(408),
    "a connection that is reset": Answer(end="resets", raw=True),
    "a reset in the middle": streamed(delta(content="he"), done=False, end="resets"),
    "a stream without an end": streamed(delta(content="he"), done=False),
    "a stream of nothing": streamed(done=False),
    "a stream that is over at once": streamed(),
    "a stream of garbage": streamed(b"data: {no json\n\n"),
    "a stream of lists": streamed(b"data: [1]\n\n"),
    "a stream whose choice is a number": streamed({"choices": [5]}),
    "a stream of bytes": streamed(b"\xff\xfe\x00" * 50, done=False),
    "an error in the middle of a stream": streamed(
        delta(content="he"), {"error": {"message": "engine died", "code": 500}}
    ),
    "no HTTP": Answer(pieces=[b"SSH-2.0-OpenSSH_9.2\r\n"], raw=True),
    "a body that is no JSON": Answer(headers={"content-type": "application/json"}, pieces=[b"<html>"]),
    "a body that is a list": Answer(headers={"content-type": "application/json"}, pieces=[b"[]"]),
    "a body without choices": Answer(headers={"content-type": "application/json"}, pieces=[b'{"choices": []}']),
    "a choice without a message": Answer(headers={"content-type": "application/json"}, pieces=[b'{"choices": [{}]}']),
    "an error with status 200": Answer(headers={"content-type": "application/json"}, pieces=[b'{"error": "busy"}']),
    "an answer that was given up": whole("he", finish="abort"),
    "gzip that is none": Answer(headers={"content-encoding": "gzip"}, pieces=[b"not gzip"]),
    "a nest of brackets": Answer(headers={"content-type": "application/json"}, pieces=[b"[" * 100_000]),
}


@pytest.mark.parametrize("broken", PASSING.values(), ids=list(PASSING))
async def test_what_passes_is_tried_again(vendor: Vendor, broken: Answer) -> None:
    turn = await act(vendor, broken, broken, GOOD)
    assert (turn.text, turn.usage.num_requests) == ("hello", 3)
    assert turn.usage.waited_s > 0
    said = await fails(vendor, broken, retries=1)
    assert "attempt 2 of 2" in said
    assert vendor.url in said


FINAL: dict[str, tuple[Answer, str]] = {
    "401": (error(401, "Incorrect API key provided"), "api_key_env"),
    "402": (error(402, "pay first"), "credit"),
    "403": (error(403, "not yours"), "may not use"),
    "404": (error(404, "no such model"), "model's name"),
    "400": (error(400, "unknown parameter 'stream_options'"), "stream_options"),
    "301": (Answer(status=301, headers={"location": "https://elsewhere/"}), "elsewhere"),
    "an account that is used up": (error(429, "no quota", "insufficient_quota"), "credit"),
    "a long page": (Answer(status=418, pieces=[b"x" * 200_000]), "HTTP 418: xxx"),
}


@pytest.mark.parametrize(("answer", "words"), FINAL.values(), ids=list(FINAL))
async def test_what_does_not_pass_is_not_tried_again(vendor: Vendor, answer: Answer, words: str) -> None:
    said = await fails(vendor, answer)
    assert words in said
    assert len(said) < 1000
    assert len(vendor.asked) == 1


async def test_nobody_there_is_said(vendor: Vendor) -> None:
    policy = open_policy("openai:http://127.0.0.1:9/v1#model", {**QUICK, "retries": 2})
    with pytest.raises(PolicyError, match=r"ConnectError.*attempt 3 of 3"):
        await policy.act([BRIEF], TOOLS, deadline=soon())
    await close_resources()


async def test_what_the_endpoint_asks_for_is_waited_for(vendor: Vendor) -> None:
    await act(vendor, error(429, retry_after="0.4"), error(503, retry_after_ms="300"), GOOD)
    first, second, third = (asked.at for asked in vendor.asked)
    assert second - first >= 0.4
    assert third - second >= 0.3


async def test_all_episodes_hold_still_when_one_is_told_to(vendor: Vendor) -> None:
    vendor.script = lambda asked: error(429, retry_after="0.5") if len(vendor.asked) == 0 else GOOD
    first = asyncio.create_task(act(vendor))
    while not vendor.asked:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    await asyncio.gather(first, *(act(vendor) for _ in range(5)))
    assert all(asked.at - vendor.asked[0].at >= 0.5 for asked in vendor.asked[1:])
    assert len(vendor.asked) == 7


async def test_a_wait_that_is_longer_than_the_episode_is_not_begun(vendor: Vendor) -> None:
    began = time.monotonic()
    said = await fails(vendor, error(429, retry_after="3600"), seconds=20)
    assert "would be after episode_s" in said
    assert time.monotonic() - began < 15


async def test_the_rate_limit_is_shared_by_all_episodes(vendor: Vendor) -> None:
    chosen: dict[str, Any] = {"requests_per_minute": 3}
    await asyncio.gather(*(act(vendor, **chosen) for _ in range(3)))
    assert "rate limit" in await fails(vendor, seconds=5, **chosen)
    assert len(vendor.asked) == 3
    await act(vendor)  # other settings, another limit


async def test_tokens_are_limited_by_what_the_endpoint_counted(vendor: Vendor) -> None:
    chosen: dict[str, Any] = {"tokens_per_minute": 5000, "max_tokens": 4000}
    await act(vendor, **chosen)  # estimated at more than 4000, counted as 15
    await act(vendor, **chosen)
    vendor.script = [whole("long", usage={"prompt_tokens": 1, "completion_tokens": 4000, "total_tokens": 4001})]
    await act(vendor, **chosen)
    assert "rate limit" in await fails(vendor, seconds=5, **chosen)


# time

HANGS = Answer(end="hangs")


async def test_an_endpoint_that_hangs_is_a_failure_by_the_episodes_deadline(vendor: Vendor) -> None:
    said = await fails(vendor, HANGS, seconds=0.5)
    assert "no answer" in said
    assert "episode_s" in said


async def test_a_request_that_hangs_is_tried_again(vendor: Vendor) -> None:
    assert (await act(vendor, HANGS, GOOD, request_s=0.5)).text == "hello"


async def test_a_model_that_is_slow_is_cut_and_graded(vendor: Vendor) -> None:
    """What it said until then is its turn; a call that it may not have finished is not run."""
    said = ['{"tool":"submit","arguments":{}}', *[" so"] * 1000]
    slow = streamed(*(delta(content=piece) for piece in said), between_s=0.25)
    for how in ({"seconds": 2}, {"request_s": 2}):
        turn = await act(vendor, slow, **how)
        assert turn.stop is Stop.ABORT
        assert turn.text.startswith('{"tool":"submit"')
        assert turn.calls == ()
        assert turn.notes[0].startswith("cut by " + ("episode_s" if "seconds" in how else "request_s"))
        assert turn.usage.cost_usd is None


async def test_silence_in_the_middle_is_a_failure(vendor: Vendor) -> None:
    silent = streamed(delta(content="he"), done=False, end="hangs")
    assert (await act(vendor, silent, GOOD, idle_s=0.3)).text == "hello"
    assert "idle_s" in await fails(vendor, silent, idle_s=0.3, retries=0)


async def test_an_end_that_is_not_told_is_an_end(vendor: Vendor) -> None:
    turn = await act(vendor, streamed(delta(content="he"), delta("stop"), done=False, end="hangs"), idle_s=0.3)
    assert (turn.text, turn.stop) == ("he", Stop.END)


async def test_a_cancelled_turn_leaves_no_request_behind(vendor: Vendor) -> None:
    acting = asyncio.create_task(act(vendor, HANGS))
    while not vendor.asked:
        await asyncio.sleep(0.01)
    acting.cancel()
    await asyncio.gather(acting, return_exceptions=True)
    async with asyncio.timeout(10):
        while vendor.open_connections:
            await asyncio.sleep(0.01)


async def test_an_answer_without_end_is_not_kept(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metier.harness.policy.openai.stream.MOST_BYTES", 2**20)
    monkeypatch.setattr("metier.harness.policy.openai.endpoint.MOST_BYTES", 2**20)
    flood = [delta(content="x" * 65_536)] * 32
    assert "of an answer" in await fails(vendor, streamed(*flood), retries=0)
    assert "of an answer" in await fails(vendor, whole("x" * 2**21), retries=0)
    monkeypatch.setattr("metier.harness.policy.openai.stream.MOST_EVENT_BYTES", 2**16)
    assert "an event of more" in await fails(vendor, streamed(b"data: " + b"x" * 2**18), retries=0)


# the key, and the money

KEY = "sk-abcdefghijklmnop"


async def test_the_key_is_sent_and_shown_to_nobody(
    vendor: Vendor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SOME_KEY", f" {KEY}\n")
    leaking = whole(f"your key is {KEY}", calls=[("a", "shell", json.dumps({"command": f"echo {KEY}"}))])
    turn = await act(vendor, error(500, f"bad {KEY}"), leaking, api_key_env="SOME_KEY")
    assert [asked.headers["authorization"] for asked in vendor.asked] == [f"Bearer {KEY}"] * 2
    assert turn.text == "your key is [the API key]"
    pieces = [delta(content=KEY[at : at + 3]) for at in range(0, len(KEY), 3)]
    assert (await act(vendor, streamed(*pieces), api_key_env="SOME_KEY")).text == "[the API key]"
    shown = [
        repr(turn),
        await fails(vendor, error(401, f"Incorrect API key: {KEY}"), api_key_env="SOME_KEY"),
        caplog.text,
    ]
    assert not [text for text in shown if KEY in text]
    await act(vendor, GOOD, api_key_env="SOME_KEY", api_key_header="api-key")
    assert vendor.asked[-1].headers["api-key"] == KEY
    assert "authorization" not in vendor.asked[-1].headers


async def test_without_its_key_no_policy_is_opened(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(ConfigError, match="environment variable SOME_KEY"):
        await act(vendor, api_key_env="SOME_KEY")
    monkeypatch.setenv("SOME_KEY", "sëcret")
    with pytest.raises(ConfigError) as caught:
        await act(vendor, api_key_env="SOME_KEY")
    assert "sëcret" not in str(caught.value)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        open_policy("openai:https://api.openai.com/v1#gpt")


async def test_tokens_and_their_price_are_counted(vendor: Vendor) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 200,
        "total_tokens": 1200,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 150},
    }
    prices = {"prompt": "2.50", "cached": "1.25", "output": "10"}
    turn = await act(vendor, whole("x", usage=usage), prices=prices)
    assert (turn.usage.prompt_tokens, turn.usage.cached_tokens) == (1000, 600)
    assert (turn.usage.output_tokens, turn.usage.reasoning_tokens) == (200, 150)
    assert turn.usage.cost_usd == Decimal("0.003750")
    nothing = await act(vendor, whole("x", usage={"prompt_tokens": "many", "completion_tokens": -1}), prices=prices)
    assert (nothing.usage.prompt_tokens, nothing.usage.output_tokens, nothing.usage.cost_usd) == (0, 0, None)
    assert nothing.notes == ("the endpoint counted no tokens",)


# episodes


def echo(asked: Asked) -> Answer:
    """A model that solves `test/Echo-v0`: reads the numbers, and submits their sum."""
    messages = asked.body["messages"]
    if len(messages) == 1:
        return whole(None, calls=[("r", "read_file", '{"path": "numbers.txt"}')])
    total = sum(int(line) for line in messages[-1]["content"].split() if line.isdigit())
    return spoken("The sum is here:\n" + json.dumps({"name": "submit", "arguments": {"answer": str(total)}}))


async def play(vendor: Vendor, seconds: float = 60, **chosen: Any) -> EpisodeResult:
    backend = FakeBackend()
    result = await run_episode(
        Task(env_id="test/Echo-v0", seed=3),
        open_policy(f"openai:{vendor.url}#model", {**QUICK, **chosen}),
        backend,
        Preparer(backend),
        deadline=Deadline.after(seconds, limit="episode_s", set_by="test"),
    )
    assert EpisodeResult.model_validate_json(result.model_dump_json()) == result
    return result


async def test_an_episode_is_solved_through_an_endpoint_and_its_steps_replay_it(vendor: Vendor) -> None:
    vendor.script = echo
    played = await play(vendor, prices={"prompt": "1", "output": "1"})
    assert (played.outcome, played.reward, played.passed) == (Outcome.COMPLETED, 1.0, True)
    turns = [part for part in played.conversation if isinstance(part, AssistantTurn)]
    assert [turn.usage.cost_usd for turn in turns] == [Decimal("0.000015")] * 2
    backend = FakeBackend()
    again = await run_episode(
        Task(env_id="test/Echo-v0", seed=3),
        open_policy("replay", {"steps": played.model_dump(mode="json")["steps"]}),
        backend,
        Preparer(backend),
        deadline=soon(),
    )
    assert (again.steps, again.reward, again.checks) == (played.steps, played.reward, played.checks)


@pytest.mark.parametrize("answer", [whole(None), whole("no"), whole(calls=[("a", "browse", "{}")]), spoken("{" * 50)])
async def test_a_model_that_never_does_anything_right_is_graded(vendor: Vendor, answer: Answer) -> None:
    vendor.script = [answer]
    played = await play(vendor)
    assert (played.outcome, played.limit, played.reward) == (Outcome.AGENT_LIMIT, Limit.STEPS, 0.0)


@pytest.mark.parametrize("answer", [error(500), error(401), HANGS, Answer(raw=True, end="resets")])
async def test_an_endpoint_that_fails_is_never_a_reward(vendor: Vendor, answer: Answer) -> None:
    vendor.script = [answer]
    played = await play(vendor, seconds=5, retries=1)
    assert (played.outcome, played.reward) == (Outcome.POLICY_FAILURE, None)
    assert vendor.url in played.failure


async def test_a_model_that_talks_until_time_is_over_is_graded(vendor: Vendor) -> None:
    vendor.script = [streamed(*[delta(content="so ")] * 1000, between_s=0.05)]
    played = await play(vendor, seconds=1)
    assert (played.outcome, played.limit, played.reward) == (Outcome.AGENT_LIMIT, Limit.TIME, 0.0)


async def test_a_conversation_that_outgrows_the_model_is_graded(vendor: Vendor) -> None:
    vendor.script = [whole("hm"), error(400, "prompt is too long: 5 tokens > 4 maximum")]
    played = await play(vendor)
    assert (played.outcome, played.limit, played.reward) == (Outcome.AGENT_LIMIT, Limit.TOKENS, 0.0)
