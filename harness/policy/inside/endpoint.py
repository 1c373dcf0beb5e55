"""The endpoint that an agent inside the sandbox has: chat completions of one model, within the budgets of its episode.

    GET  /v1/models, /v1/models/NAME     the one model
    POST /v1/chat/completions            its answer, from the model's own endpoint, recorded

Every other path, method or host is refused, an absolute address among them: this is no proxy. An answer is given to
the agent once it is whole, also one in pieces, so that what failed half-way can be tried again unseen, and so that a
refusal is a status and no broken stream.

A turn is counted when it is begun. An exchange goes on when the agent leaves it: it is paid, and recorded all the same.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from urllib.parse import quote

from metier.envs.core import Deadline, Limit, PolicyError

from ...sandbox.tunnel import Connection
from ..contract import AssistantTurn, Stay, Stop, Usage
from ..openai.faults import Fault, Meaning
from .chat import Chat, answered, key_of, read_chat
from .http import Answer, Asked, Refused, Room, Talk
from .settings import InsideSettings
from .transcript import Transcript
from .upstream import Upstream

MOST_AT_ONCE = 8
"""Requests of one episode that the model's endpoint is asked at a time."""
MOST_REFUSED = 200
"""Requests that are none: an agent that sends so many does nothing else, and its episode ends."""
_PAUSE_S = 0.01
"""Before a refusal, and that much longer with each: so that it costs whoever asks more than who answers."""
_LONGEST_PAUSE_S = 1.0
_LARGE_BYTES = 256 * 1024
"""Above which a request is read in a thread, so that other episodes do not wait for it."""
_SERVER_ERROR = 502


class Endpoint:
    """Of one episode."""

    def __init__(self, settings: InsideSettings, stay: Stay, deadline: Deadline) -> None:
        self.over = asyncio.Event()
        """Set when a limit was reached or the model's endpoint has failed."""
        self.limit: Limit | None = None
        self.why = ""
        self.failure: PolicyError | None = None
        self._upstream = Upstream(settings.upstream)
        self._model = settings.upstream.model
        self._transcript = Transcript(stay.say)
        self._deadline = deadline
        self._most_turns = settings.max_turns or stay.max_turns
        self._most_tokens = settings.max_total_tokens
        self._num_turns = self._num_tokens = self._num_refused = 0
        self._room = Room()
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._exchanges: set[asyncio.Task[Answer]] = set()
        self._waiting_since = self._waited_s = 0.0
        self._probing = asyncio.Lock()
        self._calm = asyncio.Event()
        """Not while the endpoint is probed: an agent that used up a vendor's rate is no reason to call it down."""
        self._calm.set()
        self._answered_at = 0.0

    @property
    def busy(self) -> bool:
        """Whether the model has not answered everything."""
        return bool(self._exchanges)

    @property
    def waited_s(self) -> float:
        """For the model, until now; requests at once count once."""
        now = time.monotonic() - self._waiting_since if self._exchanges else 0.0
        return self._waited_s + now

    def reached(self, limit: Limit, why: str) -> None:
        """The first limit that is reached is the one that counts."""
        if not self.over.is_set():
            self.limit, self.why = limit, why
            self.over.set()

    async def serve(self, connection: Connection) -> None:
        """One connection of the agent's. Raises ConnectionError where it is gone."""
        await Talk(connection, self._room).serve(self._answer, self._wrong)

    async def settle(self, timeout_s: float) -> None:
        """Waits for exchanges that are under way, when nobody waits for their answers any more."""
        if self._exchanges:
            await asyncio.wait(self._exchanges, timeout=timeout_s)

    async def close(self) -> None:
        """Ends what is under way."""
        for exchange in self._exchanges:
            exchange.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)

    async def doubt(self) -> None:
        """After time ran out while the model had not answered: whose time was it?"""
        await self.close()
        try:
            await self._upstream.probe()
        except PolicyError as error:
            self.limit, self.failure = None, PolicyError(f"no answer until {self.why}; and then: {error}")

    async def _wrong(self) -> None:
        self._num_refused += 1
        if self._num_refused > MOST_REFUSED:
            self.reached(Limit.STEPS, f"more than {MOST_REFUSED} requests that had to be refused")
        await asyncio.sleep(min(_LONGEST_PAUSE_S, _PAUSE_S * self._num_refused))

    async def _answer(self, asked: Asked) -> Answer:
        path = asked.target.partition("?")[0]
        model = f"/v1/models/{quote(self._model, safe='/')}"
        if path == "/v1/chat/completions":
            if asked.method != "POST":
                raise Refused(405, "chat completions are asked for by POST")
            return await self._completion(asked.body)
        if path in ("/v1/models", model):
            if asked.method != "GET":
                raise Refused(405, "models are asked for by GET")
            one = {"id": self._model, "object": "model", "created": 0, "owned_by": "metier"}
            return Answer.of(one if path == model else {"object": "list", "data": [one]})
        raise Refused(404, "there are POST /v1/chat/completions and GET /v1/models here, and nothing else", "not_found")

    async def _completion(self, body: bytes) -> Answer:
        settings = self._upstream.settings
        if len(body) > _LARGE_BYTES:
            chat = await asyncio.to_thread(read_chat, body, settings)
        else:
            chat = read_chat(body, settings)
        self._admit()
        exchange = asyncio.create_task(self._exchange(chat, self._num_turns))
        if not self._exchanges:
            self._waiting_since = time.monotonic()
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._ended)
        return await asyncio.shield(exchange)

    def _ended(self, exchange: asyncio.Task[Answer]) -> None:
        self._exchanges.discard(exchange)
        if not self._exchanges:
            self._waited_s += time.monotonic() - self._waiting_since
        if not exchange.cancelled():
            exchange.exception()  # whoever asked may have left

    def _admit(self) -> None:
        """Counts a turn. Raises Refused where there is none left."""
        if not self.over.is_set():
            if self._num_turns >= self._most_turns:
                self.reached(Limit.STEPS, f"its {self._most_turns} turns are used up")
            elif self._most_tokens is not None and self._num_tokens >= self._most_tokens:
                self.reached(Limit.TOKENS, f"its {self._most_tokens} tokens are used up")
        if self.over.is_set():
            raise Refused(429, f"the episode is over: {self.why or 'the model cannot be reached'}", "episode_over")
        self._num_turns += 1

    async def _exchange(self, chat: Chat, number: int) -> Answer:
        """Raises Refused."""
        try:
            async with self._slots:
                await self._calm.wait()
                done = await self._upstream.ask(chat.body, number - 1, self._deadline)
        except Fault as fault:
            return await self._failed(chat, fault)
        except asyncio.CancelledError:
            self._record(chat, AssistantTurn(text="", stop=Stop.ABORT, notes=("cut by the end of the episode",)))
            raise
        self._answered_at = time.monotonic()
        turn = dataclasses.replace(done.turn, notes=(*done.turn.notes, *chat.notes))
        answer = answered(chat, done.completion, number=number, created=time.time(), model=self._model)
        message = done.completion["choices"][0]["message"]
        self._record(chat, turn, _key(message, turn))
        return answer

    def _record(self, chat: Chat, turn: AssistantTurn, said: str | None = None) -> None:
        self._num_tokens += turn.usage.prompt_tokens + turn.usage.output_tokens
        self._transcript.add(chat.heard, turn, said)

    async def _failed(self, chat: Chat, fault: Fault) -> Answer:
        """What a request that was not answered means for whoever asked, and for the episode. Raises Refused."""
        words = self._upstream.scrubbed(fault.words)
        if fault.meaning is Meaning.CONTEXT:
            turn = AssistantTurn(text="", stop=Stop.CONTEXT, notes=(f"the conversation is too long: {words}",))
            self._record(chat, turn)
            raise Refused(400, words, "context_length_exceeded")
        if fault.meaning is Meaning.FILTERED:
            self._record(chat, AssistantTurn(text="", notes=(f"refused by the endpoint's content filter: {words}",)))
            raise Refused(400, words, "content_filter")
        status = fault.status if fault.status is not None and 400 <= fault.status < 600 else _SERVER_ERROR
        try:
            usage = await self._probed()
        except PolicyError as error:
            self._record(chat, AssistantTurn(text="", stop=Stop.ABORT, notes=(f"no answer: {words}",)))
            if not self.over.is_set():
                self.failure = PolicyError(f"{words}; and then: {error}")
                self.over.set()
            raise Refused(_server(status), "the model's endpoint does not answer", "upstream_error") from None
        note = f"the endpoint failed at this request, and answered another: {words}"
        self._record(chat, AssistantTurn(text="", notes=(note,), usage=usage))
        raise Refused(status, words, "upstream_error")

    async def _probed(self) -> Usage:
        """What it cost to learn that the endpoint answers. Raises PolicyError."""
        failed_at = time.monotonic()
        async with self._probing:
            if self._answered_at > failed_at:
                return Usage()
            self._calm.clear()
            try:
                usage = (await self._upstream.probe()).usage
            finally:
                self._calm.set()
            self._answered_at = time.monotonic()
            return usage


def _server(status: int) -> int:
    """401, 403 and 404 are about the host's key and address, and none of the agent's affair."""
    return status if status in (408, 409, 429) or status >= 500 else _SERVER_ERROR


def _key(message: dict[str, object], turn: AssistantTurn) -> str:
    """The turn, as a client tells it again."""
    calls = message.get("tool_calls")
    given = [
        {"function": {"name": function.get("name"), "arguments": function.get("arguments")}}
        for call in (calls if isinstance(calls, list) else [])
        if isinstance(call, dict) and isinstance(function := call.get("function"), dict)
    ]
    return key_of(turn.text, given)
