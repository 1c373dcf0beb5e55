"""An attempt as a dialogue: what was told, said, called and observed, with a name for each call.

Formats of other people want every call and its observation to share an id. Models whose calls are text give none, so
those that have none, or one twice, are numbered here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from metier.envs.core import ToolCall

from ..event import EndedBody, Event, StepBody, Told, TurnBody
from ..reader import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A step and the call of its turn that it answers, None where the turn made no call."""

    step: StepBody
    call_id: str | None
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A turn, what was told before it, and what came of it. `turn` is None for what comes before the first one."""

    told: tuple[Told, ...]
    turn: TurnBody | None
    at_ns: int
    calls: tuple[tuple[str, ToolCall], ...]
    """Each with its id."""
    observed: tuple[Observed, ...]


def exchanges(attempt: Attempt) -> Iterator[Exchange]:
    """The attempt's turns, in order; messages that nobody answered come last, without one."""
    told: list[Told] = []
    opened: list[Event] = []
    for event in attempt.events:
        if isinstance(event.body, TurnBody | EndedBody) and (opened or told):
            yield _exchange(told, opened)
            told, opened = [], []
        if isinstance(event.body, TurnBody | EndedBody):
            told = list(event.body.told)
        if isinstance(event.body, TurnBody | StepBody):
            opened.append(event)
    if told or opened:
        yield _exchange(told, opened)


def _exchange(told: Sequence[Told], opened: Sequence[Event]) -> Exchange:
    turn = opened[0].body if opened and isinstance(opened[0].body, TurnBody) else None
    calls = _named(turn) if turn else ()
    observed: list[Observed] = []
    for event in opened:
        if isinstance(event.body, StepBody):
            place = len(observed)
            call_id = calls[place][0] if place < len(calls) else None
            observed.append(Observed(step=event.body, call_id=call_id, at_ns=event.at_ns))
    at_ns = opened[0].at_ns if opened else 0
    return Exchange(told=tuple(told), turn=turn, at_ns=at_ns, calls=calls, observed=tuple(observed))


def _named(turn: TurnBody) -> tuple[tuple[str, ToolCall], ...]:
    seen: set[str] = set()
    named: list[tuple[str, ToolCall]] = []
    for place, call in enumerate(turn.turn.calls):
        name = call.id if call.id and call.id not in seen else f"call_{turn.index}_{place}"
        seen.add(name)
        named.append((name, call))
    return tuple(named)


def function_schemas(attempt: Attempt) -> list[dict[str, Any]]:
    """The tools that the agent had, as OpenAI describes functions."""
    started = attempt.started
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in (started.tools if started else ())
    ]


def identity(attempt: Attempt) -> dict[str, Any]:
    """Where an exported row came from."""
    started, verdict, ended = attempt.started, attempt.verdict, attempt.ended
    found: dict[str, Any] = {"run_id": attempt.run_id, "episode_id": attempt.episode_id, "attempt": attempt.attempt}
    if started:
        found |= {"env_id": started.env_id, "seed": started.seed, "level": started.level, "sample": started.sample}
        found |= {"options": dict(started.options), "policy": started.policy}
        found["environment_digest"] = started.provenance.environment_digest
    found["outcome"] = str(ended.outcome) if ended else None
    found["reward"] = verdict.reward if verdict else None
    found["passed"] = verdict.passed if verdict else None
    return found
