"""The conversation as token ids: ChatML laid by hand, appended to and never re-encoded.

    <|im_start|>system⏎how to call, one example a tool<|im_end|>⏎
    <|im_start|>user⏎the brief<|im_end|>⏎
    <|im_start|>assistant⏎{"tool":…}<|im_end|>        ← an output: sampled, or the oracle's; its <|im_end|> is an action
    ⏎<|im_start|>user⏎the observation<|im_end|>⏎<|im_start|>assistant⏎ …

A turn that came from an engine is its trace's ids; any other (the oracle's) is its canonical text, encoded. Text never
yields a mark: a brief or an observation that spells `<|im_end|>` is ordinary characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metier.envs.core import ConfigError, ToolSpec
from metier.harness.policy.calls import write_example
from metier.harness.policy.contract import AssistantTurn, Message, Role, write_call

from ..models import IM_END, IM_START

_SYSTEM = "Work in /workspace. Reply with one JSON tool call:\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The ids between two outputs, and an output."""

    context_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    logprobs: tuple[float, ...] | None
    """Of `output_ids`; None where nothing sampled them."""
    versions: tuple[tuple[int, int], ...] = ()
    forked: bool = False
    """Whether the ids before this turn are no prefix of its prompt."""


class Chat:
    """A tokenizer and the layout above."""

    def __init__(self, model: Path) -> None:
        """`model`: a Hugging Face folder.

        Raises:
            ConfigError: It holds no tokenizer with the ChatML marks.
        """
        from tokenizers import Tokenizer

        path = model / "tokenizer.json"
        if not path.is_file():
            raise ConfigError(f"{path} is missing: name a Hugging Face folder (see `metier models get`)")
        self._tokenizer = Tokenizer.from_file(str(path))
        # Otherwise the tokenizer turns a mark spelled out in a text into the mark itself.
        self._tokenizer.encode_special_tokens = True
        start, end = self._tokenizer.token_to_id(IM_START), self._tokenizer.token_to_id(IM_END)
        if start is None or end is None:
            raise ConfigError(f"the tokenizer of {model} lacks {IM_START} or {IM_END}: this layout is ChatML")
        self.start_id: int = start
        self.end_id: int = end
        self._newline = self.encode("\n")
        self._role_ids: dict[str, tuple[int, ...]] = {
            name: (self.start_id, *self.encode(f"{name}\n")) for name in ("system", "user", "assistant")
        }

    def encode(self, text: str) -> tuple[int, ...]:
        """Text to ids; marks in it stay text."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Ids to text, without the mark that ends an output."""
        bare = ids[:-1] if ids and ids[-1] == self.end_id else ids
        return self._tokenizer.decode(list(bare), skip_special_tokens=False)

    def turns(self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec]) -> list[Turn]:
        """The outputs of a conversation, each with the context that came before it; what follows the last is left."""
        return self._layout(conversation, tools)[0]

    def prompt(self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec]) -> Prompt:
        """What the next output continues."""
        turns, pending = self._layout(conversation, tools)
        earlier: list[int] = []
        for turn in turns:
            if turn.forked:
                earlier.clear()
            earlier += (*turn.context_ids, *turn.output_ids)
        return Prompt(earlier_ids=tuple(earlier), context_ids=(*pending, *self._role_ids["assistant"]))

    def _layout(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec]
    ) -> tuple[list[Turn], tuple[int, ...]]:
        """All turns, and the ids after the last one."""
        turns: list[Turn] = []
        pending = self._message("system", _SYSTEM + "\n".join(write_example(spec) for spec in tools))
        for part in conversation:
            if isinstance(part, Message):
                pending += self._message("system" if part.role is Role.SYSTEM else "user", part.text)
                continue
            turn = self._turn(part, (*pending, *self._role_ids["assistant"]))
            turns.append(turn)
            cut = not turn.output_ids or turn.output_ids[-1] != self.end_id
            pending = (self.end_id, *self._newline) if cut else self._newline
        return turns, pending

    def _message(self, role: str, text: str) -> tuple[int, ...]:
        return (*self._role_ids[role], *self.encode(text), self.end_id, *self._newline)

    def _turn(self, turn: AssistantTurn, context_ids: tuple[int, ...]) -> Turn:
        if turn.tokens is not None:
            return Turn(
                context_ids=tuple(turn.tokens.context_ids),
                output_ids=tuple(turn.tokens.output_ids),
                logprobs=tuple(turn.tokens.logprobs),
                versions=turn.tokens.versions,
                forked=turn.tokens.forked,
            )
        text = "\n".join(map(write_call, turn.calls)) or turn.text
        return Turn(context_ids=context_ids, output_ids=(*self.encode(text), self.end_id), logprobs=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`earlier_ids` were seen or sampled before; `context_ids` are new."""

    earlier_ids: tuple[int, ...]
    context_ids: tuple[int, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """The whole prompt."""
        return self.earlier_ids + self.context_ids
