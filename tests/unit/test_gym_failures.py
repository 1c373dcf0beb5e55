"""What goes wrong in a vector environment: members that are lost, faults of ours, and what callers may not give."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest

from echo_vector import ID, LOSE, SUBMIT, Make, fake, numbers, vectors, wait
from metier.envs.core import ConfigError, GenerationError, Outcome, SandboxUnavailable
from metier.harness.gym import member
from metier.harness.gym.vector import MetierVectorEnv
from metier.harness.testing import FakeBackend, FakeSandbox
from metier.harness.testing.echo.family import Echo
from metier.harness.unexpected import UnexpectedError


@pytest.fixture
def make() -> Iterator[Make]:
    with vectors() as make_vec:
        yield make_vec


# members that are lost


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


def test_what_never_comes_back_is_a_failure_of_ours(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "_GRADING_S", -9.9)  # with verify_s of 10: a tenth of a second
    env = make(2, step_s=1)
    env.reset(seed=0)
    _, rewards, _, truncated, infos = env.step([wait(60), numbers("1")])
    assert math.isnan(rewards[0])
    assert (rewards[1], truncated.tolist()) == (0.0, [True, False])
    assert "step_s (set by test/Echo-v0) fired" in infos["failure"][0]


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
    arguments: dict[str, Any] = {"backend": "fake", **wrong}
    with pytest.raises(ConfigError):
        MetierVectorEnv(ID, **arguments)


@pytest.mark.parametrize("mask", ["yes", [[True], []], 3, [1], None])
def test_what_is_no_mask_or_no_actions_is_told(make: Make, mask: Any) -> None:
    env = make(1)
    if mask is not None:
        with pytest.raises(ConfigError, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="one for each member"):
        env.step(5)
