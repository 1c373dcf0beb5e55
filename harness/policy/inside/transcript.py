"""The conversation of an agent that tells its model everything anew with each request.

A message that was told before is the same message, and is in the conversation once; one that comes twice within a
request is there twice. So an agent that adds to its conversation is recorded as it speaks, and one that makes a new one
of it (a summary, a second agent) by what is new in it. What a model said is a turn, whoever tells it again.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence

from ...result import recorded_turn
from ...tools.truncate import valid_text
from ..contract import AssistantTurn, Message, Role
from .chat import Heard

MOST_BYTES = 32 << 20
"""Of one episode's messages; of those beyond it is recorded how many they were."""
MESSAGE_BYTES = 1024
"""What a message counts beside its words, so that many without any have an end too."""
Say = Callable[[Message | AssistantTurn], None]


class Transcript:
    """What of an episode's requests goes into its conversation."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._known: Counter[bytes] = Counter()
        self._size = 0
        self.num_turns = 0

    def add(self, heard: Sequence[Heard], turn: AssistantTurn, said: str | None = None) -> None:
        """A request and what came of it; `said` is the key of the turn, as a later request will tell it."""
        here: Counter[bytes] = Counter()
        num_left = left_bytes = 0
        for one in heard:
            digest = _digest(one.key)
            here[digest] += 1
            if here[digest] <= self._known[digest]:
                continue
            message = dataclasses.replace(one.message, text=valid_text(one.message.text))
            size = len(message.text.encode()) + sum(map(len, message.images))
            if self._size + size + MESSAGE_BYTES > MOST_BYTES:
                num_left, left_bytes = num_left + 1, left_bytes + size
            else:
                self._size += size + MESSAGE_BYTES
                self._say(message)
        if num_left:
            self._say(Message(role=Role.USER, text=f"[not recorded: {num_left} messages, {left_bytes} bytes]"))
        for digest, count in here.items():
            self._known[digest] = max(count, self._known[digest])
        if said is not None:
            self._known[_digest(said)] += 1
        self.num_turns += 1
        self._say(recorded_turn(turn))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
