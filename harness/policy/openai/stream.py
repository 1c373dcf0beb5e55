"""An answer in pieces: server-sent events, put together to the completion that they are the pieces of."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from .faults import again, told

MOST_BYTES = 32 * 2**20
"""Of one answer; more than any model says in one turn."""
MOST_EVENT_BYTES = 4 * 2**20
DONE = "[DONE]"


class Events:
    """Cuts bytes into events; keeps what has no end yet."""

    def __init__(self) -> None:
        self._kept = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[str]:
        """The data of each event that is complete. Raises Fault for one that is too long."""
        *lines, self._kept = (self._kept + chunk).split(b"\n")
        if len(self._kept) > MOST_EVENT_BYTES:
            raise again(f"an event of more than {MOST_EVENT_BYTES >> 20} MiB")
        found: list[str] = []
        for line in lines:
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                found.append(b"\n".join(self._data).decode("utf-8", "replace"))
                self._data = []
        return found

    def end(self) -> list[str]:
        """The last event, where no empty line follows it."""
        return [*self.feed(b"\n\n")]


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The data of each event; an empty one for each piece that completes none, as a sign of life.

    Raises:
        Fault: More than any answer has.
    """
    cut, total = Events(), 0
    async for chunk in chunks:
        total += len(chunk)
        if total > MOST_BYTES:
            raise again(f"more than {MOST_BYTES >> 20} MiB of an answer")
        found = cut.feed(chunk)
        for data in found or [""]:
            yield data
    for data in cut.end():
        yield data


@dataclass(slots=True)
class _Call:
    """A call so far."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])

    def whole(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}


class Assembly:
    """The completion so far, in the form of one that came whole."""

    def __init__(self) -> None:
        self.begun = False
        """Whether the model has said anything."""
        self.over = False
        self.finish: str | None = None
        self.usage: Any = None
        self._texts: dict[str, list[str]] = {"content": [], "reasoning_content": [], "refusal": []}
        self._calls: list[_Call] = []
        self._at: dict[Any, int] = {}

    def add(self, data: str) -> None:
        """Another event.

        Raises:
            Fault: It is no piece of a completion.
        """
        if not data or self.over:
            return
        if data.strip() == DONE:
            self.over = True
            return
        try:
            piece = json.loads(data)
        except (ValueError, RecursionError):
            raise again(f"an event that is no JSON: {data[:80]!r}") from None
        if not isinstance(piece, dict):
            raise again(f"an event that is no object: {data[:80]!r}")
        if piece.get("error"):
            raise told(piece["error"])
        if piece.get("usage"):
            self.usage = piece["usage"]
        choices = piece.get("choices")
        if not isinstance(choices, list) or not choices:
            return
        choice = choices[0]
        if not isinstance(choice, dict):
            raise again(f"an event whose choice is no object: {data[:80]!r}")
        if isinstance(choice.get("finish_reason"), str):
            self.finish = choice["finish_reason"]
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._merge(delta)

    def _merge(self, delta: dict[str, Any]) -> None:
        said = {**delta, "reasoning_content": delta.get("reasoning_content") or delta.get("reasoning")}
        for name, texts in self._texts.items():
            if isinstance(said.get(name), str) and said[name]:
                texts.append(said[name])
                self.begun = True
        calls = delta.get("tool_calls")
        for position, call in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(call, dict):
                self._merge_call(call, position)
                self.begun = True

    def _merge_call(self, piece: dict[str, Any], position: int) -> None:
        """A piece belongs to the call of its index; one without an index to a new call where it has an id or a name."""
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        index = piece.get("index")
        fresh = bool(piece.get("id") or function.get("name"))
        place = index if isinstance(index, int) else (len(self._calls) if fresh else len(self._calls) - 1 - position)
        if place not in self._at:
            self._at[place] = len(self._calls)
            self._calls.append(_Call())
        call = self._calls[self._at[place]]
        if isinstance(piece.get("id"), str) and piece["id"]:
            call.id = piece["id"]
        name, arguments = function.get("name"), function.get("arguments")
        if isinstance(name, str) and name != call.name:  # some repeat it with each piece
            call.name += name
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif isinstance(arguments, dict):
            call.arguments = [json.dumps(arguments)]

    def completion(self, finish: str | None = None) -> dict[str, Any]:
        """All of it, as a body that came whole; `finish` for one that was cut."""
        message: dict[str, Any] = {name: "".join(texts) for name, texts in self._texts.items() if texts}
        if self._calls:
            message["tool_calls"] = [call.whole() for call in self._calls]
        choice = {"message": message, "finish_reason": finish or self.finish or "stop"}
        return {"choices": [choice], "usage": self.usage}
