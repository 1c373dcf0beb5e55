"""A request until it is answered: attempts, the pauses between them, and the rate limit that all episodes share."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from metier.envs.core import Deadline
from metier.scheduler.worker import on_close

from ..rate import Gate, Spent
from .credentials import scrubbed
from .endpoint import Endpoint, Reply
from .faults import Fault, Meaning
from .settings import OpenAISettings

_LOG = logging.getLogger(__name__)
_MOST_DOUBLINGS = 30
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked, and about how many tokens it will use."""

    body: dict[str, Any]
    headers: dict[str, str]
    tokens: int
    key: str
    """Which no log may show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A reply, and what it took to get it."""

    reply: Reply
    num_requests: int
    waited_s: float


def pause_s(attempt: int, settings: OpenAISettings, retry_after_s: float | None) -> float:
    """Before the attempt after this one (the first is 1): doubled each time, between half and all of it by chance.

    What the endpoint asks for is waited for in any case, and up to a second or a tenth more, so that not all come back
    at once.
    """
    bound = min(settings.longest_backoff_s, settings.backoff_s * 2 ** min(attempt - 1, _MOST_DOUBLINGS))
    pause = bound * random.uniform(0.5, 1.0)
    if retry_after_s is None:
        return pause
    return max(pause, retry_after_s + random.uniform(0.0, min(settings.backoff_s, 1.0) + 0.1 * retry_after_s))


class Line:
    """The way to one endpoint, shared by all who use it on one event loop: its connections and its rate limit."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        self._endpoint = Endpoint(settings)
        self._gate = Gate(settings.requests_per_minute, settings.tokens_per_minute)

    async def close(self) -> None:
        """Ends its connections."""
        await self._endpoint.close()

    async def ask(self, request: Request, read: Callable[[Answered], T], deadline: Deadline) -> T:
        """What `read` makes of the answer; where it cannot be read, it is no answer.

        Raises:
            Fault: It was never answered; its words say how often it was tried.
        """
        began = time.monotonic()
        data = json.dumps(request.body, ensure_ascii=False).encode()
        for attempt in range(1, self._settings.retries + 2):
            spent = await self._admitted(request.tokens, deadline)
            asked = time.monotonic()
            try:
                reply = await self._endpoint.ask(data, request.headers, deadline)
                _correct(spent, reply)
                return read(Answered(reply=reply, num_requests=attempt, waited_s=asked - began))
            except Fault as fault:
                await self._pause(fault, attempt, began, request.key, deadline)
        raise AssertionError("the last attempt returns or raises")

    async def _admitted(self, tokens: int, deadline: Deadline) -> Spent | None:
        try:
            return await self._gate.enter(tokens, deadline)
        except TimeoutError:
            words = f"the rate limit, this side's or the endpoint's, leaves no room before {deadline.limit}"
            raise Fault(Meaning.FINAL, f"{words}; raise it, or run fewer episodes at once") from None

    async def _pause(self, fault: Fault, attempt: int, began: float, key: str, deadline: Deadline) -> None:
        """Waits for the next attempt. Raises Fault where there is to be none."""
        if fault.meaning is not Meaning.AGAIN:
            raise fault
        elapsed = f"attempt {attempt} of {self._settings.retries + 1}, {time.monotonic() - began:.1f} s"
        if attempt > self._settings.retries:
            raise Fault(Meaning.FINAL, f"{fault.words} ({elapsed})", status=fault.status)
        pause = pause_s(attempt, self._settings, fault.retry_after_s)
        if pause >= deadline.left_s():
            late = f"the next attempt, in {pause:.1f} s, would be after {deadline.limit} (set by {deadline.set_by})"
            raise Fault(Meaning.FINAL, f"{fault.words} ({elapsed}; {late})", status=fault.status)
        if fault.retry_after_s is not None:
            self._gate.quiet(fault.retry_after_s)
        _LOG.info("%s: %s (%s), again in %.1f s", self._settings.model, scrubbed(fault.words, key), elapsed, pause)
        await asyncio.sleep(pause)


def _correct(spent: Spent | None, reply: Reply) -> None:
    """What was estimated gives way to what the endpoint counted."""
    usage = reply.completion.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    if spent is not None and isinstance(total, int) and total >= 0:
        spent.amount = total


_lines: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Line]] = weakref.WeakKeyDictionary()


def line(settings: OpenAISettings) -> Line:
    """The line of these settings on the running loop; closed with the worker's other resources."""
    loop = asyncio.get_running_loop()
    lines = _lines.setdefault(loop, {})
    names = ("url", "api_key_env", "connect_s", "request_s", "idle_s", "retries", "backoff_s", "longest_backoff_s")
    limits = ("model", "requests_per_minute", "tokens_per_minute", "max_tokens")
    key = settings.model_dump_json(include={*names, *limits})
    if key not in lines:
        made = lines[key] = Line(settings)
        here = weakref.ref(loop)

        async def close() -> None:
            if lines.get(key) is made:
                del lines[key]
            if asyncio.get_running_loop() is here():  # the connections of a loop that has ended, ended with it
                await made.close()

        on_close(f"connections to {settings.url}", close)
    return lines[key]
