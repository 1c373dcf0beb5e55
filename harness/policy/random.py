"""The random baseline: valid calls without sense."""

from __future__ import annotations

from collections.abc import Sequence

from metier.envs.core import Deadline, ToolCall, ToolSpec

from ..gym.spaces import ToolCallSpace
from .contract import AssistantTurn, Message, write_call


class RandomPolicy:
    """Samples the action space; the same seed and turn give the same call."""

    def __init__(self, seed: int = 0) -> None:
        if not isinstance(seed, int):  # pyright: ignore[reportUnnecessaryIsInstance]  # from JSON settings
            raise TypeError(f"seed must be an integer, not {seed!r}")
        self._seed = seed

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        sample = ToolCallSpace(tools, seed=self._seed + 7919 * len(conversation)).sample()
        arguments = sample["arguments"]
        assert isinstance(arguments, dict)
        call = ToolCall(tool=str(sample["tool"]), arguments=arguments)
        return AssistantTurn(text=write_call(call), calls=(call,))
