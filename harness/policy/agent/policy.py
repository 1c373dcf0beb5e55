"""The policy: waits for what the agent does next, and tells it what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any

from metier.envs.core import Deadline, PolicyError, ToolCall, ToolSpec

from ...gym.spaces import ToolCallSpace
from ...result import recorded_call, recorded_turn
from ...tools.door import unfit
from ..contract import AssistantTurn, Message, Role, Stop, write_call
from .door import Asked, Door
from .process import AgentProcess
from .settings import AgentSettings


class _Session:
    """One agent in one episode."""

    def __init__(self, settings: AgentSettings, tools: Sequence[ToolSpec]) -> None:
        self._settings = settings
        self._space = ToolCallSpace(tools)
        self._door = Door(tools)
        self._agent = AgentProcess(settings)
        self._asked: Asked | None = None
        self._num_calls = 0
        self.last: AssistantTurn | None = None

    async def start(self, brief: str) -> None:
        """Raises PolicyError."""
        await self._door.open()
        await self._agent.start(brief, self._door.url)

    def news(self, conversation: Sequence[Message | AssistantTurn]) -> list[Message] | None:
        """What it has not been told yet; None where this is not how its conversation goes on."""
        turns = [index for index, part in enumerate(conversation) if isinstance(part, AssistantTurn)]
        if self.last is None or not turns or conversation[turns[-1]] != recorded_turn(self.last):
            return None
        return [part for part in conversation[turns[-1] + 1 :] if isinstance(part, Message)]

    def tell(self, news: Sequence[Message]) -> None:
        """What came of its last call."""
        if self._asked is not None:
            text = "\n".join(message.text for message in news)
            self._asked.tell(text, [image for message in news for image in message.images])
            self._asked = None

    async def turn(self, deadline: Deadline) -> AssistantTurn:
        """What it does next. Raises PolicyError."""
        asking = asyncio.ensure_future(self._door.asked.get())
        ending = asyncio.ensure_future(self._agent.ended())
        try:
            await asyncio.wait({asking, ending}, timeout=deadline.left_s(), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                self.last = await self._called(asking.result())
            elif ending.done():
                self.last = await self._left(ending.result())
            else:
                await self.close()
                self.last = AssistantTurn(text="", stop=Stop.ABORT, notes=(f"cut by {deadline.limit}",))
        finally:
            asking.cancel()
            ending.cancel()
        return recorded_turn(self.last)

    async def _called(self, asked: Asked) -> AssistantTurn:
        self._num_calls += 1
        self._asked = asked
        if self._submits(asked.call):  # the episode ends with it, and nobody will call us again
            self.tell([Message(role=Role.TOOL, text="submitted")])
            self._door.end()
            await self.close(self._settings.linger_s)
        return AssistantTurn(text=write_call(recorded_call(asked.call)), calls=(asked.call,))

    def _submits(self, call: ToolCall) -> bool:
        said = {"tool": call.tool, "arguments": dict(call.arguments)}
        return call.tool == "submit" and said in self._space and unfit(call.arguments) is None

    async def _left(self, exit_code: int) -> AssistantTurn:
        words = self._agent.last_words
        await self.close()
        if exit_code and not self._num_calls:
            name = self._settings.command[0]
            raise PolicyError(f"the agent {name!r} ended with {exit_code} before its first call: {words[-1000:]!r}")
        call = ToolCall(tool="submit")
        note = f"the agent ended (exit code {exit_code}) without a submission"
        return AssistantTurn(text=write_call(call), calls=(call,), notes=(note,))

    def abandon(self) -> None:
        """At once, without waiting: for when the task is over."""
        self._agent.kill()
        self._door.abandon()

    async def close(self, linger_s: float = 0.0) -> None:
        """Ends the agent and its server; idempotent."""
        await self._agent.close(linger_s)
        await self._door.close()


_sessions: weakref.WeakKeyDictionary[asyncio.Task[Any], _Session] = weakref.WeakKeyDictionary()
"""By the task that acts: whoever plays several episodes at once plays each in a task of its own."""


@dataclasses.dataclass(frozen=True, slots=True)
class AgentPolicy:
    """Acts through an agent's process; a conversation that does not go on from the last turn starts another agent."""

    settings: AgentSettings

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        """The agent's next call, as a turn; where it ended by itself, a submission.

        Raises:
            PolicyError: The agent cannot be started, or failed before it called a tool.
        """
        task = asyncio.current_task()
        assert task is not None
        session = _sessions.get(task)
        if session is not None and (news := session.news(conversation)) is not None:
            session.tell(news)
            return await session.turn(deadline)
        if session is not None:
            await session.close()
        session = _sessions[task] = _Session(self.settings, tools)
        task.add_done_callback(lambda _, session=session: session.abandon())
        try:
            await session.start(_told(conversation))
            return await session.turn(deadline)
        except BaseException:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(session.close())
            raise

    async def close(self) -> None:
        """Ends the agent of this task, if there is one."""
        task = asyncio.current_task()
        session = _sessions.pop(task, None) if task is not None else None
        if session is not None:
            await session.close()


def _told(conversation: Sequence[Message | AssistantTurn]) -> str:
    """The task, and what was said before this agent came."""
    said = [part.text if isinstance(part, Message) else f"> {part.text}" for part in conversation]
    return "\n\n".join(text for text in said if text.strip())


def agent_policy(**settings: Any) -> AgentPolicy:
    """The registered policy `agent`. Raises ConfigError."""
    return AgentPolicy(AgentSettings.of(**settings))
