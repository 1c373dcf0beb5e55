"""The vector environment on scripted sandboxes: seeds, resets, deadlines, partial results, closing."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode

from echo_vector import ID, LOSE, SUBMIT, Make, fake, numbers, vectors, wait
from metier.envs.core import ConfigError
from metier.harness.gym import member
from metier.harness.gym.loop import call


@pytest.fixture
def make() -> Iterator[Make]:
    with vectors() as make_vec:
        yield make_vec


def test_it_is_what_gymnasium_wants(make: Make) -> None:
    env = make(2)
    assert isinstance(env, gymnasium.vector.VectorEnv)
    assert type(env).__name__ == "MetierVectorEnv"
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.spec is not None
    assert env.spec.id == ID
    observations, infos = env.reset(seed=0)
    assert observations in env.observation_space
    assert env.action_space.sample() in env.action_space
    assert [tool["function"]["name"] for tool in infos["tools"][1]][-3:] == ["wait", "lose", "submit"]
    env.step(env.action_space.sample())
    again = gymnasium.make_vec(env.spec)
    again.close()
    assert type(gymnasium.make_vec(ID, num_envs=1)).__name__ == "MetierVectorEnv"  # without a mode ours is chosen


def test_members_have_the_episodes_of_single_environments(make: Make) -> None:
    def play(env: Any) -> list[Any]:
        seen: list[Any] = []
        for seed in (3, [9, 9, 9], None):
            observations, infos = env.reset(seed=seed, options={"level": 1})
            seen.append((observations["text"], infos["seed"].tolist(), infos["level"].tolist()))
            for _ in range(4):
                observations, rewards, terminated, truncated, infos = env.step([SUBMIT, numbers("1"), SUBMIT])
                seen.append((observations["text"], rewards.tolist(), terminated.tolist(), truncated.tolist()))
                seen.append(infos["seed"].tolist() if "seed" in infos else None)
        return seen

    first, again, single = play(make()), play(make()), play(make(vectorization_mode="sync"))
    assert first == again
    # the sync environment passes the same level on only to its resets, which is where it matters
    assert [part for part in first if part] == [part for part in single if part]


def test_equal_seeds_are_one_instance_and_others_differ(make: Make) -> None:
    env = make(3)
    _, infos = env.reset(seed=[5, 5, 6])
    boxes = [seat.member.episode.sandbox for seat in env._seats]

    def file(box: Any) -> bytes:
        return call(box.read("/workspace/numbers.txt", max_bytes=999))

    assert file(boxes[0]) == file(boxes[1]) != file(boxes[2])
    assert infos["seed"].tolist() == [5, 5, 6]


def test_steps_run_side_by_side(make: Make) -> None:
    env = make(8)
    env.reset(seed=0)
    began = time.monotonic()
    observations, *_ = env.step([wait(2)] * 8)
    assert time.monotonic() - began < 8 * 2
    assert set(observations["text"]) == {"waited 2 s"}


def test_next_step_autoreset(make: Make) -> None:
    env = make(2)
    env.reset(seed=0)
    _, _, terminated, _, infos = env.step([SUBMIT, numbers("1")])
    assert terminated.tolist() == [True, False]
    assert infos["outcome"][0] == "completed"
    assert infos["_outcome"].tolist() == [True, False]
    observations, rewards, terminated, truncated, infos = env.step([numbers("dropped"), numbers("2")])
    assert "Add up" in observations["text"][0]
    assert infos["_instruction"].tolist() == [True, False]
    assert (rewards.tolist(), terminated.any(), truncated.any()) == ([0.0, 0.0], False, False)
    assert infos["step"].tolist() == [0, 2]


def test_same_step_autoreset(make: Make) -> None:
    env = make(2, autoreset_mode="SameStep")
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    env.reset(seed=0)
    observations, rewards, terminated, truncated, infos = env.step([SUBMIT, LOSE])
    assert all("Add up" in text for text in observations["text"])
    assert infos["final_obs"][0]["text"] == "submitted"
    assert infos["final_info"]["outcome"].tolist() == ["completed", "sandbox_failure"]
    assert (terminated.tolist(), truncated.tolist()) == ([True, False], [False, True])
    assert rewards[0] == 0.0
    assert math.isnan(rewards[1])


def test_disabled_autoreset_and_reset_mask(make: Make) -> None:
    env = make(2, autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    env.step([SUBMIT, numbers("1")])
    with pytest.raises(ConfigError, match="member 0 has no episode"):
        env.step([numbers("1"), numbers("2")])
    _, infos = env.reset(seed=[4, None], options={"reset_mask": np.array([True, False])})
    assert infos["_seed"].tolist() == [True, False]
    _, _, terminated, _, infos = env.step([numbers("1"), numbers("2")])
    assert not terminated.any()
    assert infos["step"].tolist() == [1, 2]
    for wrong in ([True, False, True], np.array([1, 0]), np.array([False, False])):
        with pytest.raises(ConfigError, match="reset_mask"):
            env.reset(options={"reset_mask": wrong})


def test_partial_results_and_no_reply_shifts(make: Make) -> None:
    env = make(3, wait_s=1)
    env.reset(seed=0)
    observations, rewards, terminated, truncated, infos = env.step([wait(0), wait(4), wait(0.01)])
    assert infos["pending"].tolist() == [False, True, False]
    assert "Add up" in observations["text"][1]  # the last it showed
    assert (rewards[1], terminated[1], truncated[1]) == (0.0, False, False)
    with pytest.raises(ConfigError, match="member 1 is still busy"):
        env.step([wait(0), wait(0), wait(0)])
    answers: list[str] = []
    for turn in range(40):
        observations, *_, infos = env.step([wait(turn / 1000), None, None])
        assert observations["text"][0] == f"waited {turn / 1000:g} s"
        if "pending" not in infos:
            answers.append(observations["text"][1])
            break
        time.sleep(0.05)
    assert answers == ["waited 4 s"]
    observations, *_ = env.step([None, wait(0.02), None])
    assert observations["text"][1] == "waited 0.02 s"


def test_a_reset_ends_what_is_pending(make: Make) -> None:
    env = make(2, wait_s=1)
    env.reset(seed=0)
    env.step([wait(30), wait(0)])
    observations, _ = env.reset(seed=1)
    assert all("Add up" in text for text in observations["text"])
    observations, *_, infos = env.step([numbers("1"), numbers("1")])
    assert set(observations["text"]) == {"wrote answer"}
    assert "pending" not in infos
    assert len(fake().open) == 2


def test_a_call_over_its_deadline_ends_its_episode_graded(make: Make) -> None:
    env = make(2, step_s=1)
    env.reset(seed=0)
    observations, rewards, _, truncated, infos = env.step([wait(2), numbers("1")])
    assert truncated.tolist() == [True, False]
    assert (infos["outcome"][0], infos["limit"][0], rewards[0]) == ("agent_limit", "time", 0.0)
    assert "time limit" in observations["text"][0]
    # each step has its own clock: a member that kept to it is still there
    for _ in range(3):
        time.sleep(0.5)
        *_, truncated, infos = env.step([numbers("1"), numbers("1")])
        assert not truncated[1]


def test_closing_twice_and_during_a_step(make: Make) -> None:
    env = make(2)
    env.reset(seed=0)
    mine = {seat.member.episode.sandbox.id for seat in env._seats}
    raised: list[BaseException] = []

    def step() -> None:
        try:
            env.step([wait(60), wait(60)])
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=step)
    thread.start()
    time.sleep(0.3)
    env.close()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert [type(error) for error in raised] == [ClosedEnvironmentError]
    assert not mine & set(fake().open)
    env.close()
    with pytest.raises(ClosedEnvironmentError):
        env.step([SUBMIT, SUBMIT])
    with pytest.raises(ClosedEnvironmentError):
        env.reset()


def test_an_interrupted_step_can_be_closed(make: Make) -> None:
    env = make(2)
    env.reset(seed=0)

    def interrupt() -> None:
        while env.unwrapped._seats[1].running is None:
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.main_thread().ident or 0
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            env.step([wait(60), wait(60)])
    finally:
        signal.signal(signal.SIGINT, before)
    interrupting.join()
    env.close()
    assert all(seat.running is None for seat in env.unwrapped._seats)


def test_rendering_and_visual_observations(make: Make) -> None:
    env = make(2, render_mode="rgb_array")
    env.reset(seed=0)
    frames = env.render()
    assert [frame.shape for frame in frames] == [member.PICTURE] * 2
    visual = gymnasium.make_vec("blender/MeshAssemblySpec-v0", num_envs=2, backend="fake")
    observations, _ = visual.reset(seed=0)
    assert observations["image"].shape == (2, *member.PICTURE)
    assert observations in visual.observation_space
    visual.close()
