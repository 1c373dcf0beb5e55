"""Fine-tuning data as JSON Lines: what to imitate (`sft`), and what to prefer to what (`preference`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any

from ..reader import Attempt
from .chat import messages
from .dialogue import function_schemas, identity
from .pictures import Pictures
from .tokens import token_rows

Line = dict[str, Any]


class Level(StrEnum):
    """What a line's conversation is made of."""

    CHAT = auto()
    """Messages."""
    TOKEN = auto()
    """Token ids as the engine saw them; only of policies that record them."""


@dataclass(slots=True, kw_only=True)
class LeftOut:
    """What an export could not carry, by reason, so that it can be told."""

    counts: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, why: str, count: int = 1) -> None:
        """One more."""
        self.counts[why] = self.counts.get(why, 0) + count


def sft(attempts: Iterable[Attempt], level: Level, pictures: Pictures, left_out: LeftOut) -> Iterator[Line]:
    """A line for each attempt; at token level one for each of its rows."""
    for attempt in attempts:
        about = {"metadata": identity(attempt)}
        if level is Level.TOKEN:
            rows = token_rows(attempt)
            if rows is None:
                left_out.add("has no token ids")
            else:
                yield from ({**row, "reward": about["metadata"]["reward"], **about} for row in rows)
            continue
        before, after = messages(attempt, pictures)
        if not any(message["role"] == "assistant" for message in after):
            left_out.add("has no turn")
            continue
        yield {"messages": [*before, *after], "tools": function_schemas(attempt), **about}


def preference(
    attempts: Iterable[Attempt],
    level: Level,
    pictures: Pictures,
    left_out: LeftOut,
    *,
    min_margin: float = 0.1,
    pairs: int = 1,
) -> Iterator[Line]:
    """Of each instance, up to `pairs` pairs of attempts whose rewards are at least `min_margin` apart.

    The best goes with the worst, the second best with the second worst, and so on, so that no attempt is in two pairs.
    """
    groups: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        started, verdict = attempt.started, attempt.verdict
        if started is None or verdict is None:
            left_out.add("has no reward")
            continue
        instance = repr((started.env_id, started.seed, started.level, sorted(map(str, started.options.items()))))
        groups.setdefault(instance, []).append(attempt)
    for group in groups.values():
        group.sort(key=_reward, reverse=True)
        found = 0
        for chosen, rejected in zip(group, reversed(group), strict=True):
            if found >= pairs or _reward(chosen) - _reward(rejected) < min_margin:
                break
            line = _pair(chosen, rejected, level, pictures, left_out)
            if line is not None:
                found += 1
                yield line
        left_out.add("has no partner", len(group) - 2 * found)


def _reward(attempt: Attempt) -> float:
    assert attempt.verdict is not None, "only graded attempts are grouped"
    return attempt.verdict.reward


def _pair(chosen: Attempt, rejected: Attempt, level: Level, pictures: Pictures, left_out: LeftOut) -> Line | None:
    about = {"metadata": {"chosen": identity(chosen), "rejected": identity(rejected)}}
    if level is Level.TOKEN:
        rows = [token_rows(chosen), token_rows(rejected)]
        if any(found is None or len(found) != 1 for found in rows):
            left_out.add("has no token ids, or forked")
            return None
        (good,), (bad,) = rows  # pyright: ignore[reportGeneralTypeIssues, reportOptionalIterable]
        return {"chosen": good, "rejected": bad, **about}
    (prompt, good), (other_prompt, bad) = messages(chosen, pictures), messages(rejected, pictures)
    if prompt != other_prompt or not good or not bad:
        left_out.add("was asked in other words, or has no turn")
        return None
    return {"prompt": prompt, "chosen": good, "rejected": bad, "tools": function_schemas(chosen), **about}
