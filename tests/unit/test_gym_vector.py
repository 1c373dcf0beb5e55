"""The vector environment on scripted sandboxes: seeds, resets, deadlines, partial results, losses, closing."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode

import metier
from metier.envs.core import ConfigError, GenerationError, Outcome, SandboxUnavailable
from metier.harness.gym import member
from metier.harness.gym.loop import backends, call
from metier.harness.gym.vector import MetierVectorEnv
from metier.harness.testing import ECHO, FakeBackend, FakeSandbox
from metier.harness.testing.echo.family import Echo
from metier.harness.unexpected import UnexpectedError

metier.register_environments(ECHO)
ID = "test/Echo-v0"
SUBMIT = {"tool": "submit", "arguments": {}}
LOSE = {"tool": "lose", "arguments": {}}
Make = Callable[..., Any]


def wait(seconds: float) -> dict[str, Any]:
    return {"tool": "wait", "arguments": {"seconds": seconds}}


def numbers(text: str) -> dict[str, Any]:
    return {"tool": "edit", "arguments": {"path": "answer", "old": "", "new": text}}


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Any] = []

    def make_vec(num_envs: int = 3, **more: Any) -> Any:
        mode = more.pop("vectorization_mode", "vector_entry_point")
        made.append(gymnasium.make_vec(ID, num_envs=num_envs, vectorization_mode=mode, backend="fake", **more))
        return made[-1]

    yield make_vec
    for one in made:
        one.close()


def fake() -> Any:
    return call(backends.get("fake"))[0]


def test_it_is_what_gymnasium_wants(make: Make) -> None:
    env = make(2)
    assert isinstance(env, gymnasium.vector.VectorEnv)
    assert type(env).__name__ == "MetierVectorEnv"
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
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


def test_a_dead_member_is_nan_told_and_replaced_and_nobody_elses_reply_moves(make: Make) -> None:
    env = make(3)
    env.reset(seed=0)
    dead = env._seats[1].member.episode.sandbox.id
    observations, rewards, terminated, truncated, infos = env.step([wait(0), LOSE, wait(0.1)])
    assert observations["text"] == ("waited 0 s", "", "waited 0.1 s")
    assert rewards[[0, 2]].tolist() == [0.0, 0.0]
    assert math.isnan(rewards[1])
    assert (terminated.tolist(), truncated.tolist()) == ([False] * 3, [False, True, False])
    assert infos["outcome"].tolist() == [None, "sandbox_failure", None]
    assert infos["failure"][1].startswith("SandboxLost: lost on request")
    assert dead not in fake().open
    observations, rewards, *_, infos = env.step([wait(0.2), wait(0.3), wait(0)])
    assert [text[:8] for text in observations["text"]] == ["waited 0", "Add up t", "waited 0"]
    assert rewards.tolist() == [0.0] * 3
    observations, *_ = env.step([wait(0), wait(0.1), wait(0.2)])
    assert observations["text"] == ("waited 0 s", "waited 0.1 s", "waited 0.2 s")


def test_a_sandbox_lost_from_outside_costs_only_its_member(make: Make) -> None:
    env = make(2)
    env.reset(seed=0)
    env._seats[0].member.episode.sandbox.lose()
    _, rewards, _, truncated, infos = env.step([numbers("1"), numbers("1")])
    assert math.isnan(rewards[0])
    assert (rewards[1], truncated.tolist(), infos["outcome"][0]) == (0.0, [True, False], "sandbox_failure")


def test_a_reset_that_fails_somewhere_is_tried_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(2)
    real, asked = FakeBackend.acquire, 0

    async def acquire(self: FakeBackend, *arguments: Any, **more: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise SandboxUnavailable("the engine is busy")
        return await real(self, *arguments, **more)

    monkeypatch.setattr(FakeBackend, "acquire", acquire)
    observations, infos = env.reset(seed=0)
    assert sorted(bool(text) for text in observations["text"]) == [False, True]
    failed = observations["text"].index("")
    assert infos["outcome"][failed] == "sandbox_failure"
    observations, rewards, *_ = env.step([numbers("1")] * 2)
    assert "Add up" in observations["text"][failed]
    assert not np.isnan(rewards).any()


def test_a_reset_that_fails_everywhere_raises(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(2)

    async def acquire(self: FakeBackend, *arguments: Any, **more: Any) -> Any:
        raise SandboxUnavailable("no engine; start one")

    monkeypatch.setattr(FakeBackend, "acquire", acquire)
    with pytest.raises(SandboxUnavailable, match="start one"):
        env.reset(seed=0)


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


def test_what_never_comes_back_is_a_failure_of_ours(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "_GRADING_S", -9.9)  # with verify_s of 10: a tenth of a second
    env = make(2, step_s=1)
    env.reset(seed=0)
    _, rewards, _, truncated, infos = env.step([wait(60), numbers("1")])
    assert math.isnan(rewards[0])
    assert (rewards[1], truncated.tolist()) == (0.0, [True, False])
    assert "step_s (set by test/Echo-v0) fired" in infos["failure"][0]


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"level": 9}, "has levels 0 to 2"),
        ({"render_mode": "hologram"}, "render_mode"),
        ({"step_s": 0}, "step_s"),
        ({"wait_s": -1}, "wait_s"),
        ({"colour": "red"}, "unknown option"),
    ],
)
def test_what_is_wrong_is_refused_at_once(make: Make, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make(**({"num_envs": 2} | arguments))


def test_wrong_numbers_of_seeds_and_actions_are_refused(make: Make) -> None:
    env = make(2)
    with pytest.raises(ConfigError, match="reset"):
        env.step([SUBMIT, SUBMIT])
    with pytest.raises(ConfigError, match="3 seeds for 2 members"):
        env.reset(seed=[1, 2, 3])
    with pytest.raises(ConfigError, match="level"):
        env.reset(options={"levle": 1})
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="1 actions for 2 members"):
        env.step([SUBMIT])


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


# faults of ours that nobody foresaw


def broken(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a fault of ours")


def test_a_fault_of_ours_in_one_member_is_noticed_by_no_other(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    env = make()
    env.reset(seed=0)
    monkeypatch.setattr(env._seats[1].member.episode, "step", broken)
    _, rewards, _, truncated, infos = env.step([wait(0), wait(0), wait(0)])
    assert (np.isnan(rewards).tolist(), truncated.tolist()) == ([False, True, False], [False, True, False])
    assert infos["outcome"][1] is Outcome.CLUSTER_FAILURE
    assert "UnexpectedError" in infos["failure"][1]
    assert "ZeroDivisionError: a fault of ours" in infos["failure"][1]
    assert "Traceback" in caplog.text
    assert len(fake().open) == 2, "its sandbox was given back"
    observations, rewards, _, _, _ = env.step([wait(0), None, wait(0)])
    assert rewards.tolist() == [0.0, 0.0, 0.0]
    assert "numbers.txt" in observations["text"][1], "the next reset of its seat is a fresh episode"


def test_a_fault_of_ours_in_a_reset_is_its_members_own(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make(2)
    unpack = FakeSandbox.unpack

    async def second_breaks(self: FakeSandbox, *arguments: Any, **more: Any) -> None:
        if len(fake_open) == 2:
            broken()
        await unpack(self, *arguments, **more)

    fake_open = fake().open
    monkeypatch.setattr(FakeSandbox, "unpack", second_breaks)
    _, infos = env.reset(seed=0)
    assert [str(one or "") for one in infos["outcome"]].count("cluster_failure") == 1
    assert len(fake_open) == 1


def test_tools_of_the_environment_that_cannot_be_made_leave_no_sandbox(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Echo, "trade_tools", broken)
    single = gymnasium.make(ID, backend="fake")
    with pytest.raises(GenerationError, match="own tools broke"):
        single.reset(seed=0)
    assert fake().open == {}


def test_a_fault_of_ours_is_typed_for_a_single_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    single: Any = gymnasium.make(ID, backend="fake").unwrapped
    single.reset(seed=0)
    monkeypatch.setattr(single.episode, "step", broken)
    with pytest.raises(UnexpectedError, match="ZeroDivisionError"):
        single.step(wait(0))
    assert fake().open == {}


# what callers may give


@pytest.mark.parametrize("backend", [None, 3, ["docker"], b"docker"])
def test_a_backend_is_a_name(backend: Any) -> None:
    with pytest.raises(ConfigError, match="backend is a name"):
        gymnasium.make(ID, backend=backend)
    with pytest.raises(ConfigError, match="backend is a name"):
        gymnasium.make_vec(ID, num_envs=1, vectorization_mode="vector_entry_point", backend=backend)


@pytest.mark.parametrize(
    "wrong",
    [
        {"options": "abc"},
        {"options": [1]},
        {"options": 0},
        {"options": {"level": 10**5000}},
        {"options": {10**5000: 1}},
        {"options": {"level": None}},
        {"seed": 10**5000},
        {"seed": -1},
        {"seed": 2**63},
        {"seed": 1.0},
        {"seed": True},
        {"seed": "1"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_reset_does_not_take_is_told(make: Make, wrong: dict[str, Any]) -> None:
    for env in (gymnasium.make(ID, backend="fake").unwrapped, make(1)):
        with pytest.raises(ConfigError) as refused:
            env.reset(**wrong)
        assert len(str(refused.value)) < 400
    assert fake().open == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"level": 10**5000},
        {"num_envs": -(10**5000)},
        {"step_s": "1"},
        {"step_s": True},
        {"autoreset_mode": "sometimes"},
        {"render_mode": 10**5000},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_make_vec_does_not_take_is_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        MetierVectorEnv(ID, **({"backend": "fake"} | wrong))


@pytest.mark.parametrize("mask", ["yes", [[True], []], 3, [1], None])
def test_what_is_no_mask_or_no_actions_is_told(make: Make, mask: Any) -> None:
    env = make(1)
    if mask is not None:
        with pytest.raises(ConfigError, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="one for each member"):
        env.step(5)
