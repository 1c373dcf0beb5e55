"""A recorded episode, played again: the calls that were run, one a turn, and nothing after them.

With the same instance the same calls lead to the same artefacts, which is how a record is verified. A call that was
refused when it was made is refused again. Where the recording ends without a submission, so does the episode: as one
that ran out of tokens, graded on what is there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pydantic

from metier.envs.core import ConfigError, Deadline, ToolCall, ToolSpec

from .contract import AssistantTurn, Message, Stop, write_call

_CALLS: pydantic.TypeAdapter[tuple[ToolCall, ...]] = pydantic.TypeAdapter(tuple[ToolCall, ...])
_INSIDE = ("result", "episode")
"""Where a row keeps the episode, if it is not the episode itself."""


class Which(NamedTuple):
    """An episode among those of a file."""

    env_id: str
    seed: int
    level: int = 0
    sample: int = 0


class ReplayPolicy:
    """Says the next recorded call each turn, whatever it sees."""

    def __init__(self, steps: Sequence[ToolCall]) -> None:
        self._steps = tuple(steps)

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        turn = sum(isinstance(part, AssistantTurn) for part in conversation)
        if turn >= len(self._steps):
            return AssistantTurn(text="", stop=Stop.CONTEXT, notes=("the recording ends here",))
        call = self._steps[turn]
        if not call.tool:  # a turn without a call
            return AssistantTurn(text="")
        return AssistantTurn(text=write_call(call), calls=(call,))


def replay_policy(
    address: str = "", steps: Any = None, env_id: str = "", seed: int = 0, level: int = 0, sample: int = 0
) -> ReplayPolicy:
    """The registered policy `replay`: of `steps`, or of an episode in the file of results that `address` names.

    Args:
        address: A file of one episode's result as JSON, or of many, one a line.
        steps: The calls themselves, instead.
        env_id: With the next three, which of the episodes.

    Raises:
        ConfigError: The file has no such episode, or one that cannot be replayed, or it is no file of results.
    """
    if bool(address) == (steps is not None):
        raise ConfigError("the policy replay takes the address of a file of results, or steps, and not both")
    if steps is not None:
        return ReplayPolicy(_validated(steps, "its steps"))
    path = Path(address)
    try:
        state = path.stat()
        recorded = _recorded(path, state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}; name a file of results") from None
    which = Which(env_id, seed, level, sample)
    if which not in recorded:
        named = f"{env_id} seed {seed} level {level} sample {sample}"
        raise ConfigError(f"{path} has {len(recorded)} episodes, and none of {named}")
    found = recorded[which]
    if found is None:
        raise ConfigError(
            f"{path}: {env_id} seed {seed} level {level} sample {sample} cannot be replayed: its agent acted "
            "inside the sandbox by itself, and nobody saw its calls; run the policy again instead"
        )
    return ReplayPolicy(found)


def _validated(steps: Any, what: str) -> tuple[ToolCall, ...]:
    try:
        return _CALLS.validate_python(steps)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{what} are no list of tool calls: {at}: {first['msg']}") from None


@lru_cache(maxsize=2)
def _recorded(path: Path, changed_ns: int, size: int) -> dict[Which, tuple[ToolCall, ...] | None]:
    """The steps of each episode, None where they are not all that was done; of attempts, the last counts.

    Read once, as long as the file does not change.
    """
    found: dict[Which, tuple[ToolCall, ...] | None] = {}
    for row in _rows(path):
        episode = next((row[name] for name in _INSIDE if isinstance(row.get(name), dict)), row)
        if not isinstance(episode.get("env_id"), str) or "steps" not in episode:
            continue
        which = Which(episode["env_id"], *(episode.get(name, 0) for name in ("seed", "level", "sample")))
        if episode.get("replayable") is False:
            found[which] = None
            continue
        found[which] = _validated(episode["steps"], f"{path}: the steps of {which.env_id} seed {which.seed}")
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """One JSON document, or one a line. Raises ConfigError, OSError."""
    text = path.read_text("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield from _lines(path, text)
        return
    for row in value if isinstance(value, list) else [value]:
        if isinstance(row, dict):
            yield row


def _lines(path: Path, text: str) -> Iterator[dict[str, Any]]:
    lines = [line for line in text.split("\n") if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines) and number > 1:  # the writer was killed in the middle of it
                return
            raise ConfigError(f"{path} is no file of results: line {number} is no JSON") from None
        if isinstance(row, dict):
            yield row
