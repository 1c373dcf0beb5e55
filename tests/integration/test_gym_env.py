"""`gymnasium.make` on real sandboxes: the checker, seeds, bad actions, limits, vectors, a removed sandbox."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import metier
from metier.envs.core import ConfigError, Outcome, SandboxLost, ToolCall
from metier.harness.gym.env import MetierEnv
from metier.harness.policy.scripted import oracle_policy

COVENANT = "finance/CovenantTest-v0"
BLENDER = "blender/MeshAssemblySpec-v0"

pytestmark = pytest.mark.docker


@pytest.fixture
def env() -> Iterator[gymnasium.Env[Any, Any]]:
    made = gymnasium.make(COVENANT, backend="docker")
    yield made
    made.close()


def action(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


@pytest.mark.parametrize("env_id", [COVENANT, BLENDER])
def test_the_gymnasium_checker_passes(env_id: str) -> None:
    made = gymnasium.make(env_id, backend="docker", render_mode="rgb_array")
    with warnings.catch_warnings():
        # the checker has advice about spaces that are not its own; what it rejects raises
        warnings.simplefilter("ignore")
        check_env(made.unwrapped, skip_render_check=False)
    made.close()


def test_metier_prefix_works() -> None:
    made = gymnasium.make(f"metier:{COVENANT}")
    assert isinstance(made.unwrapped, MetierEnv)
    assert metier.__version__


def test_seeds_are_honoured_end_to_end(env: gymnasium.Env[Any, Any]) -> None:
    def first_file(seed: int | None) -> tuple[str, str]:
        observation, _ = env.reset(seed=seed)
        listed, *_ = env.step(action("shell", command="cat *"))
        return observation["text"], listed["text"]

    assert first_file(5) == first_file(5)
    assert first_file(5) != first_file(6)
    first_file(7)
    drawn = first_file(None)
    first_file(7)
    assert first_file(None) == drawn  # a run seeded once repeats whole


def test_an_oracle_transcript_earns_the_reward(env: gymnasium.Env[Any, Any]) -> None:
    env.reset(seed=11)
    *calls, last = oracle_policy(COVENANT, 11)._calls  # pyright: ignore[reportPrivateUsage]
    for call in calls:
        env.step(action(call.tool, **call.arguments))
    _, reward, terminated, truncated, info = env.step(action(last.tool, **last.arguments))
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["outcome"] is Outcome.COMPLETED
    assert info["verdict"].passed


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("no call at all", "No tool was called"),
        ({}, "No tool was called"),
        ({"tool": 3}, "No tool was called"),
        (action("shel", command="ls"), "did you mean shell"),
        (action("shell"), "'command' is a required property"),
        (action("shell", command=7), "7 is not of type 'string'"),
        (action("shell", command="ls", colour="red"), "colour"),
        ({"tool": "shell", "arguments": "ls"}, "arguments"),
        (action("submit", answer=4), "4 is not of type 'string'"),
    ],
)
def test_a_bad_action_is_answered_in_words(env: gymnasium.Env[Any, Any], bad: Any, words: str) -> None:
    env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.unwrapped.step(bad)
    assert words in observation["text"]
    assert (reward, terminated, truncated, info["ok"]) == (0.0, False, False, False)


def test_steps_bound_every_episode_and_the_limit_is_graded(env: gymnasium.Env[Any, Any]) -> None:
    env.reset(seed=2)
    steps = env.unwrapped.entry.limits.steps  # type: ignore[attr-defined]
    for _ in range(steps - 1):
        *_, terminated, truncated, _ = env.step(action("shell", command="true"))
        assert not terminated and not truncated
    observation, reward, terminated, truncated, info = env.step(action("shell", command="true"))
    assert (terminated, truncated, reward) == (False, True, 0.0)
    assert (info["outcome"], info["limit"]) == (Outcome.AGENT_LIMIT, "steps")
    assert "steps limit" in observation["text"]
    with pytest.raises(ConfigError, match="has ended"):
        env.step(action("shell", command="true"))


def test_unicode_crosses_both_ways_and_long_output_is_cut_with_its_count(env: gymnasium.Env[Any, Any]) -> None:
    env.reset(seed=3)
    observation, *_ = env.step(action("shell", command="echo 'Größe 漢字 🙂'"))
    assert "Größe 漢字 🙂" in observation["text"]
    observation, *_, info = env.step(action("shell", command="seq 1 20000"))
    assert info["cut_bytes"] > 0
    assert f"[{info['cut_bytes']} bytes cut here; all of it is in /tmp/output-1.txt]" in observation["text"]
    observation, *_ = env.step(action("shell", command="seq 1 20000 | cmp - /tmp/output-1.txt && echo same"))
    assert observation["text"].strip() == "same"


def test_an_unknown_reset_option_is_refused(env: gymnasium.Env[Any, Any]) -> None:
    with pytest.raises(ConfigError, match="level"):
        env.reset(options={"levle": 1})
    with pytest.raises(ConfigError, match="has levels 0 to 4"):
        env.reset(options={"level": 5})


def test_a_sandbox_removed_from_outside_is_a_typed_error_and_no_reward(env: gymnasium.Env[Any, Any]) -> None:
    env.reset(seed=4)
    episode = env.unwrapped.episode  # type: ignore[attr-defined]
    subprocess.run(["docker", "rm", "-f", episode.sandbox.id], check=True, capture_output=True)
    with pytest.raises(SandboxLost, match=r"."):
        env.step(action("shell", command="true"))
    observation, _ = env.reset(seed=4)  # and the environment is as good as new
    assert observation["text"]


def test_it_works_in_a_sync_vector_env() -> None:
    vector: Any = gymnasium.make_vec(COVENANT, num_envs=2, vectorization_mode="sync")
    observations, _ = vector.reset(seed=[1, 2])
    assert len(observations["text"]) == 2
    call = action("shell", command="true")
    _, rewards, terminated, truncated, _ = vector.step([call, action("submit")])
    assert list(terminated) == [False, True]
    assert not truncated.any()
    assert np.isfinite(rewards).all()
    vector.close()


def test_a_call_object_is_an_action_too(env: gymnasium.Env[Any, Any]) -> None:
    env.reset(seed=1)
    observation, *_ = env.unwrapped.step(ToolCall(tool="shell", arguments={"command": "echo hi"}))  # type: ignore[arg-type]
    assert observation["text"] == "hi\n"
