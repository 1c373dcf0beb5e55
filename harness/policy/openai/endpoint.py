"""One request to an endpoint, and its answer: whole, in pieces, or cut where its time is over."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

import httpx

from metier.envs.core import Deadline

from .faults import Fault, Meaning, again, refused, told
from .settings import OpenAISettings
from .stream import MOST_BYTES, Assembly, events

ERROR_BYTES = 64 * 1024
"""Of an error's body, which are read."""
CUT = "cut"
"""The reason that ended an answer which its time ended."""
_KEPT_CONNECTIONS = 64
_KEPT_S = 30.0
_ABOUT_NOW_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A completion, and how long it took."""

    completion: dict[str, Any]
    prefill_s: float
    """To its first piece; 0 where it came whole."""
    decode_s: float
    cut_by: str = ""
    """What ended it, where the model was not done."""


class Endpoint:
    """Its connections, on one event loop."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=settings.connect_s),
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS, keepalive_expiry=_KEPT_S
            ),
            trust_env=not settings.on_this_machine,
            # http:// has no certificates, and reading the machine's takes longer than all else here
            verify=settings.url.startswith("https:"),
        )

    async def close(self) -> None:
        """Ends all connections."""
        await self._client.aclose()

    async def ask(self, body: bytes, headers: dict[str, str], deadline: Deadline) -> Reply:
        """One attempt.

        Raises:
            Fault: It was not answered.
        """
        limit = deadline.within(self._settings.request_s, "request_s", "the policy openai")
        talk = _Talk(self._settings, limit)
        try:
            async with asyncio.timeout(limit.left_s()) as scope:
                async with self._client.stream(
                    "POST", self._settings.endpoint, content=body, headers=headers
                ) as response:
                    return await talk.read(response, scope)
        except TimeoutError:
            return talk.cut()
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            raise Fault(Meaning.FINAL, f"no request can be sent: {type(error).__name__}") from None
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise again(f"{type(error).__name__}: {error or 'the connection failed'}") from None


class _Talk:
    """One answer as it comes."""

    def __init__(self, settings: OpenAISettings, limit: Deadline) -> None:
        self._settings = settings
        self._limit = limit
        self._began = time.monotonic()
        self._first: float | None = None
        self._assembly = Assembly()

    async def read(self, response: httpx.Response, scope: asyncio.Timeout) -> Reply:
        """The answer, to its end. Raises Fault, TimeoutError."""
        if response.status_code != 200:
            body = await _body(response, ERROR_BYTES)
            raise refused(
                response.status_code,
                response.headers,
                body.decode("utf-8", "replace"),
                max_tokens=self._settings.max_tokens,
            )
        if "text/event-stream" not in response.headers.get("content-type", ""):
            completion = _completion(await _body(response, MOST_BYTES + 1))
            return Reply(completion=completion, prefill_s=0.0, decode_s=time.monotonic() - self._began)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + self._limit.left_s()
        async for data in events(response.aiter_bytes()):
            self._assembly.add(data)
            if self._assembly.over:
                break
            if self._assembly.begun:
                self._first = self._first or time.monotonic()
                scope.reschedule(min(ends_at, loop.time() + self._settings.idle_s))
        if self._assembly.finish is None and not (self._assembly.over and self._assembly.begun):
            raise again("an answer without an end")
        return self._reply(self._assembly.completion())

    def cut(self) -> Reply:
        """What there is when time is over. Raises Fault where that is nothing, or where silence ended it."""
        if self._assembly.finish is not None:  # complete; only its end was not told
            return self._reply(self._assembly.completion())
        fired = self._limit.left_s() <= _ABOUT_NOW_S
        if not fired:
            raise again(f"silent for {self._settings.idle_s:g} s in the middle of an answer (idle_s)")
        limit = f"{self._limit.limit}, set by {self._limit.set_by}"
        if not self._assembly.begun:
            raise again(f"no answer in {time.monotonic() - self._began:.1f} s ({limit})")
        return self._reply(self._assembly.completion(CUT), cut_by=limit)

    def _reply(self, completion: dict[str, Any], cut_by: str = "") -> Reply:
        first, now = self._first or time.monotonic(), time.monotonic()
        return Reply(completion=completion, prefill_s=first - self._began, decode_s=now - first, cut_by=cut_by)


async def _body(response: httpx.Response, most: int) -> bytes:
    """Its first bytes, at most so many."""
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= most:
            break
    return body[:most]


def _completion(body: bytes) -> dict[str, Any]:
    if len(body) > MOST_BYTES:
        raise again(f"more than {MOST_BYTES >> 20} MiB of an answer")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise again(f"an answer that is no JSON: {body[:80]!r}") from None
    if not isinstance(value, dict):
        raise again(f"an answer that is no object: {body[:80]!r}")
    if value.get("error"):
        raise told(value["error"])
    return value
