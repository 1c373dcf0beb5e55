"""Budgets: what an evaluation may use before it starts no further trial. What runs then is still played to its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Annotated

import pydantic

from metier.envs.core import Outcome

from .row import Row
from .spent import Spent


class Budget(pydantic.BaseModel, frozen=True, extra="forbid"):
    """None is no limit. Tokens, turns and money count what the folder's plan has used since its first trial."""

    tokens: Annotated[int, pydantic.Field(ge=1)] | None = None
    """Prompt and output together."""
    turns: Annotated[int, pydantic.Field(ge=1)] | None = None
    cost_usd: Annotated[Decimal, pydantic.Field(gt=0, allow_inf_nan=False)] | None = None
    wall_s: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)] | None = None
    """Of this process."""
    failures_in_a_row: Annotated[int, pydantic.Field(ge=1)] | None = 10
    """Trials that failures of ours ended, one after the other: then something is down, and the rest would fail too."""


class Meter:
    """Counts, and says when a budget is used up."""

    def __init__(self, budget: Budget, before: Iterable[Row], clock: Callable[[], float] = time.monotonic) -> None:
        self._budget = budget
        self._spent = Spent.total(row.spent_in_all for row in before)
        self._clock = clock
        self._began = clock()
        self._failures: list[str] = []

    def count(self, row: Row) -> None:
        """A trial has ended."""
        self._spent += row.spent_in_all
        if row.valid:
            self._failures.clear()
        elif row.outcome is not Outcome.GENERATION_FAILURE:  # which is an environment's own, and says nothing of others
            self._failures.append(row.failure)

    def used_up(self) -> str:
        """Why no further trial may start; empty where one may."""
        budget, spent = self._budget, self._spent
        if spent.num_requests and budget.tokens is not None and not spent.tokens:
            return "the endpoint counts no tokens, so that a limit on them cannot be kept"
        if spent.num_requests and budget.cost_usd is not None and spent.cost_usd is None:
            return "the policy has no prices, so that a limit on cost cannot be kept; set its prices"
        if budget.tokens is not None and spent.tokens >= budget.tokens:
            return f"{spent.tokens} of {budget.tokens} tokens are used"
        if budget.turns is not None and spent.num_turns >= budget.turns:
            return f"{spent.num_turns} of {budget.turns} turns are used"
        if budget.cost_usd is not None and (spent.cost_usd or Decimal(0)) >= budget.cost_usd:
            return f"{spent.cost_usd} of {budget.cost_usd} US dollars are used"
        elapsed_s = self._clock() - self._began
        if budget.wall_s is not None and elapsed_s >= budget.wall_s:
            return f"{elapsed_s:.0f} of {budget.wall_s:g} seconds are over"
        return ""

    def broken(self) -> str:
        """Why the rest would only fail as well; empty where nothing says so."""
        most = self._budget.failures_in_a_row
        if most is None or len(self._failures) < most:
            return ""
        return f"{len(self._failures)} trials in a row failed, the last with {self._failures[-1]}"
