"""What was said and done in an episode that failed for good stays with its result, in a batch as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from echo_episode import ID, LOSE, READ, SUBMIT, said, wait
from metier.envs.core import ConfigError, Outcome, PolicyError, ToolCall
from metier.harness import runner
from metier.harness.evaluate import run_batch
from metier.harness.policy import Message
from metier.harness.result import EpisodeResult
from metier.scheduler import open_executor
from metier.scheduler.retries import RETRIES


def payload(*calls: ToolCall, seed: int = 3) -> Mapping[str, Any]:
    listed = [{"tool": call.tool, "arguments": dict(call.arguments)} for call in calls]
    policy = {"name": "scripted", "settings": {"calls": listed}}
    return {"env_id": ID, "seed": seed, "sample": 7, "backend": "fake", "policy": policy}


async def batch(*payloads: Mapping[str, Any], timeout_s: float = 60) -> list[EpisodeResult]:
    async with open_executor("local", cpus=1, slots={"sandbox": 4}) as executor:
        return await run_batch(executor, payloads, in_flight=4, timeout_s=timeout_s)


async def test_a_sandbox_lost_at_every_try_leaves_the_transcript_of_the_last() -> None:
    lost, fine = await batch(payload(READ, wait(0), LOSE, SUBMIT), payload(READ, SUBMIT))
    assert (lost.outcome, lost.reward, lost.sample) == (Outcome.SANDBOX_FAILURE, None, 7)
    assert lost.failure == "SandboxLost: lost on request; start another episode"
    assert lost.steps == (READ, wait(0))
    assert said(lost)[1] == "waited 0 s"
    assert lost.conversation[:3] == fine.conversation[:3]
    assert {"reset", "policy", "tool", "total"} <= lost.timings_s.keys()
    assert EpisodeResult.model_validate_json(lost.model_dump_json()) == lost
    assert fine.outcome is Outcome.COMPLETED


async def test_a_policy_that_dies_in_the_middle_leaves_what_it_had_done(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    class Dying:
        async def act(self, conversation: Any, tools: Any, *, deadline: Any) -> Any:
            nonlocal tries
            if len(conversation) > 1:
                tries += 1
                raise PolicyError(f"the engine is dead, for the {tries}. time")
            return runner.AssistantTurn(text="first I look", calls=(READ,))

    monkeypatch.setattr(runner, "open_policy", lambda *_: Dying())
    (result,) = await batch(payload())
    assert tries == 1 + RETRIES["PolicyError"]
    assert result.failure == f"PolicyError: the engine is dead, for the {tries}. time"
    assert (result.outcome, result.steps) == (Outcome.POLICY_FAILURE, (READ,))
    assert result.conversation[1].text == "first I look"


async def test_an_episode_cut_off_at_its_deadline_leaves_what_it_had_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metier.scheduler.attempt.GRACE_S", 0.1)

    class Deaf:
        async def act(self, conversation: Any, tools: Any, *, deadline: Any) -> Any:
            if len(conversation) > 1:
                await runner.asyncio.sleep(60)
            return runner.AssistantTurn(text="first I look", calls=(READ,))

    monkeypatch.setattr(runner, "open_policy", lambda *_: Deaf())
    (result,) = await batch(payload(), timeout_s=1.0)
    assert result.outcome is Outcome.CLUSTER_FAILURE
    assert result.failure.startswith("DeadlineExceeded: ")
    assert (result.steps, len(said(result))) == ((READ,), 1)


async def test_what_never_began_has_an_empty_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any, **__: Any) -> Any:
        raise runner.MetierError("no episode")

    monkeypatch.setattr(runner.Episode, "start", nothing)
    (result,) = await batch(payload(READ))
    assert (result.outcome, result.conversation, result.steps) == (Outcome.CLUSTER_FAILURE, (), ())


async def test_the_callers_mistake_is_still_raised() -> None:
    with pytest.raises(ConfigError, match="did you mean"):
        await batch({**payload(READ), "env_id": "test/Ecko-v0"})


def test_a_worker_that_was_lost_leaves_nothing() -> None:
    result = runner.failed(dict(payload()), "ClusterError", "the worker was lost")
    assert (result.outcome, result.conversation, result.sample) == (Outcome.CLUSTER_FAILURE, (), 7)
    assert not any(isinstance(part, Message) for part in result.conversation)
