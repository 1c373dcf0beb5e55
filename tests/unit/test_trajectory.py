"""Trajectories: every sampled token once under the mask; what is not graded is not trained."""

from __future__ import annotations

import pytest

from metier.envs.core import ConfigError, Outcome
from metier.harness.policy.contract import AssistantTurn, Message, Role, TokenTrace
from metier.trainer import models
from metier.trainer.rollout.chat import Chat
from metier.trainer.trajectory import Row, Trajectory, trajectory

BRIEF = Message(role=Role.USER, text="go")


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Chat:
    return Chat(models.tiny(tmp_path_factory.mktemp("tiny")))


def _turn(
    context: tuple[int, ...], output: tuple[int, ...], *, version: int = 0, forked: bool = False
) -> AssistantTurn:
    trace = TokenTrace(
        context_ids=context,
        output_ids=output,
        logprobs=tuple(-0.1 * token for token in output),
        versions=((version, 1), (version + 1, len(output) - 1)),
        forked=forked,
    )
    return AssistantTurn(text="", tokens=trace)


def test_three_turns_are_one_row_of_any_length(chat: Chat) -> None:
    """A merged row is longer than any turn's cap, and nothing of it is cut."""
    turns = [_turn((3, 4, 5), (10, 11)), _turn((6,), tuple(range(20, 60)), version=4), _turn((7, 8), (12, 13))]
    made = trajectory(chat, [BRIEF, *turns], (), outcome=Outcome.COMPLETED, reward=1.0, passed=True, group="g")
    (row,) = made.rows
    assert row.ids == (3, 4, 5, 10, 11, 6, *range(20, 60), 7, 8, 12, 13)
    assert [token for token, action in zip(row.ids, row.actions, strict=True) if action] == [
        10,
        11,
        *range(20, 60),
        12,
        13,
    ]
    assert row.logprobs is not None
    assert row.logprobs[:6] == (0.0, 0.0, 0.0, -1.0, -1.1, 0.0)
    assert row.versions[:8] == (-1, -1, -1, 0, 1, -1, 4, 5)
    assert made.trainable


def test_a_fork_makes_a_row_and_trains_each_token_once(chat: Chat) -> None:
    turns = [_turn((3, 4), (10, 11)), _turn((5, 6), (12, 13), forked=True)]
    made = trajectory(chat, [BRIEF, *turns], (), outcome=Outcome.AGENT_LIMIT, reward=0.0)
    assert [row.ids for row in made.rows] == [(3, 4, 10, 11), (5, 6, 12, 13)]
    assert sum(row.num_actions for row in made.rows) == 4


def test_turns_without_a_trace_are_imitable_but_carry_no_logprobs(chat: Chat) -> None:
    made = trajectory(chat, [BRIEF, AssistantTurn(text="yes")], (), outcome=Outcome.COMPLETED, reward=1.0)
    (row,) = made.rows
    assert row.logprobs is None
    assert row.num_actions == len(chat.encode("yes")) + 1
    assert row.ids[-1] == chat.end_id


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if not outcome.graded])
def test_a_failed_episode_has_no_reward_and_is_not_trainable(chat: Chat, outcome: Outcome) -> None:
    made = trajectory(chat, [BRIEF, _turn((3, 4), (10, 11))], (), outcome=outcome, reward=None)
    assert not made.trainable
    with pytest.raises(ConfigError, match="graded"):
        trajectory(chat, [BRIEF], (), outcome=outcome, reward=0.0)


def test_a_graded_episode_needs_its_reward_and_an_action() -> None:
    with pytest.raises(ConfigError, match="graded"):
        Trajectory(rows=(), outcome=Outcome.COMPLETED, reward=None)
    assert not Trajectory(rows=(), outcome=Outcome.COMPLETED, reward=1.0).trainable


def test_a_row_must_be_consistent() -> None:
    with pytest.raises(ConfigError, match="length"):
        Row(ids=(1, 2), actions=(False,), logprobs=None, versions=(-1, -1))
    with pytest.raises(ConfigError, match="first token"):
        Row(ids=(1,), actions=(True,), logprobs=None, versions=(0,))
