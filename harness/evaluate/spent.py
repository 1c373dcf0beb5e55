"""What turns cost: tokens, requests, money; added up exactly."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated

import pydantic

from ..policy import AssistantTurn
from ..result import EpisodeResult

Count = Annotated[int, pydantic.Field(ge=0)]


class Spent(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Of an episode, or of many.

    Example:
        >>> Spent(num_turns=1, output_tokens=5) + Spent(num_turns=2, cost_usd=Decimal("0.10"))
        Spent(num_turns=3, prompt_tokens=0, output_tokens=5, cached_tokens=0, num_requests=0, cost_usd=Decimal('0.10'))
    """

    num_turns: Count = 0
    prompt_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: Count = 0
    """Among those of the prompt."""
    num_requests: Count = 0
    cost_usd: Annotated[Decimal, pydantic.Field(ge=0, allow_inf_nan=False)] | None = None
    """None where no turn had a price."""

    @property
    def tokens(self) -> int:
        """Prompt and output together."""
        return self.prompt_tokens + self.output_tokens

    def __add__(self, other: Spent) -> Spent:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Spent(
            num_turns=self.num_turns + other.num_turns,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            num_requests=self.num_requests + other.num_requests,
            cost_usd=sum(costs, Decimal(0)) if costs else None,
        )

    @classmethod
    def total(cls, parts: Iterable[Spent]) -> Spent:
        """All of them together."""
        return sum(parts, cls())

    @classmethod
    def of(cls, result: EpisodeResult) -> Spent:
        """What the turns of an episode cost."""
        turns = [part.usage for part in result.conversation if isinstance(part, AssistantTurn)]
        return cls.total(
            cls(
                num_turns=1,
                prompt_tokens=usage.prompt_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=usage.cached_tokens,
                num_requests=usage.num_requests,
                cost_usd=usage.cost_usd,
            )
            for usage in turns
        )
