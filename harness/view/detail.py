"""An episode as its page shows it: turns with their calls, each call with what was observed, pictures by number.

Everything in it comes from a transcript and is bounded: a text that is longer than anything of ours is cut, and the
page says by how much.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from metier.envs.core import Json, ToolCall

from ..evaluate.plan import PlannedEnvironment
from ..evaluate.row import FailedTry, Row
from ..policy import AssistantTurn, Message, Role
from ..policy.contract import Usage, write_call
from ..result import Detail as _Known
from ..result import EpisodeResult
from ..tools.truncate import TEXT_LIMIT_BYTES
from .index import exact, options_text
from .pictures import picture

_MOST_CHARACTERS = 400_000
_CUT = re.compile(r"\n\[(\d{1,15}) bytes cut here[^\n]*\]\n")
_REMARK = re.compile(
    r"(?:\A|\n)\[((?:exit code|ended by signal|stopped after|killed:|still running|the episode ended:|"
    r"\d+ pictures were|\d+ bytes of output)[^\[\]\n]{0,300})\]\s*\Z"
)
_NOT_KEPT = re.compile(r"(\d{1,15}) bytes of output were not kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text, and how many characters of it are left out of the page."""

    text: str
    left_out: int = 0

    @classmethod
    def of(cls, text: str) -> Text:
        """Bounded."""
        return cls(text=text[:_MOST_CHARACTERS], left_out=max(0, len(text) - _MOST_CHARACTERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A picture of the episode."""

    number: int
    """Counted through the whole episode; with `suffix` it is the last part of its address."""
    suffix: str = ""
    width: int = 0
    height: int = 0
    problem: str = ""
    """Why it is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the agent saw of a call."""

    text: Text
    pictures: tuple[Shown, ...]
    cut_bytes: int
    """That the agent did not see."""
    remark: str
    """The harness's word at the end, such as an exit code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a call; what is no text is JSON."""

    name: str
    value: Text
    is_text: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a turn."""

    tool: str
    arguments: tuple[Argument, ...]
    step: int | None
    """Counted from 1 through the episode; None where it was not run."""
    ok: bool | None
    seconds: float | None
    """In the sandbox; None where nobody measured."""
    observation: Observation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the policy said."""

    number: int
    text: Text
    """Empty where it is nothing but the calls in their canonical writing."""
    reasoning: Text
    notes: tuple[str, ...]
    stop: str
    usage: Usage
    seconds: float | None
    """That the policy took."""
    calls: tuple[Call, ...]
    """Where it called nothing and was told so, one call without a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What was told to the policy, other than an observation."""

    role: str
    text: Text
    pictures: tuple[Shown, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A check of the verdict."""

    name: str
    score: float
    weight: float
    gate: bool
    evidence: Text


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """An episode."""

    id: str
    env: str
    level: Json
    seed: Json
    sample: Json
    options: str
    digest: str
    image: str
    outcome: str
    limit: str | None
    reward: float | None
    passed: bool | None
    failure: str
    started_at: str
    ended_at: str
    timings_s: dict[str, float]
    checks: tuple[Check, ...]
    history: tuple[FailedTry, ...]
    parts: tuple[Said | Turn, ...]
    dropped: int
    """Calls after the end, which were not run."""
    cut_bytes: int = 0
    num_pictures: int = 0


def detail(row: Row, episode: EpisodeResult, planned: PlannedEnvironment) -> Detail:
    """What the page shows of an episode."""
    reading = _Reading(episode)
    parts = tuple(reading.parts())
    return Detail(
        id=f"{row.key}-{row.round}",
        env=row.env_id,
        level=exact(row.level),
        seed=exact(row.seed),
        sample=exact(row.sample),
        options=options_text(planned.options),
        digest=planned.digest,
        image=planned.image,
        outcome=str(row.outcome),
        limit=None if row.limit is None else str(row.limit),
        reward=row.reward,
        passed=row.passed,
        failure=episode.failure[:_MOST_CHARACTERS],
        started_at=row.started_at,
        ended_at=row.ended_at,
        timings_s=row.timings_s,
        checks=tuple(
            Check(name=one.name, score=one.score, weight=one.weight, gate=one.gate, evidence=Text.of(one.evidence))
            for one in episode.checks
        ),
        history=row.history,
        parts=parts,
        dropped=len(episode.dropped),
        cut_bytes=reading.cut_bytes,
        num_pictures=reading.num_pictures,
    )


def pictures(episode: EpisodeResult) -> Iterator[bytes]:
    """All of an episode, in the order of their numbers."""
    for part in episode.conversation:
        if isinstance(part, Message):
            yield from part.images


def cut_bytes(text: str) -> int:
    """How much of an output an observation says was left out.

    Results of earlier versions keep the words and not the number; so it is read where only the harness writes it, in
    the middle of a text that is as long as an observation may be, and at its end.

    Example:
        >>> cut_bytes("a" * 4096 + "\\n[12 bytes cut here]\\n" + "b" * 4096), cut_bytes("\\n[12 bytes cut here]\\n")
        (12, 0)
    """
    total = 0
    half = TEXT_LIMIT_BYTES // 2
    found = _CUT.search(text)
    if found is not None and half - 4 < len(text[: found.start()].encode("utf-8", "replace")) <= half:
        total += int(found[1])
    told = _NOT_KEPT.search(remark(text))
    return total + (int(told[1]) if told else 0)


def remark(text: str) -> str:
    """What the harness says at the end of an observation; empty where it says nothing.

    Example:
        >>> remark("make: Error 2\\n[exit code 2]"), remark("[1]\\n")
        ('exit code 2', '')
    """
    found = _REMARK.search(text[-400:])
    return found[1] if found else ""


class _Reading:
    """One pass through a conversation."""

    def __init__(self, episode: EpisodeResult) -> None:
        self.cut_bytes = 0
        self.num_pictures = 0
        self._parts = episode.conversation
        self._details = episode.details
        self._turns_s = episode.turns_s
        self._num_steps = self._num_turns = 0

    def parts(self) -> Iterator[Said | Turn]:
        at = 0
        while at < len(self._parts):
            part = self._parts[at]
            at += 1
            if isinstance(part, Message):
                yield Said(role=str(part.role), text=Text.of(part.text), pictures=self._pictures(part.images))
                continue
            calls = part.calls or (ToolCall(tool=""),)
            seen: list[Message] = []
            while at < len(self._parts) and len(seen) < len(calls):
                answer = self._parts[at]
                if not (isinstance(answer, Message) and answer.role is Role.TOOL):
                    break
                if answer.call_id != calls[len(seen)].id:
                    break
                seen.append(answer)
                at += 1
            yield self._turn(part, calls if part.calls or seen else (), seen)

    def _turn(self, turn: AssistantTurn, calls: Sequence[ToolCall], seen: Sequence[Message]) -> Turn:
        self._num_turns += 1
        took_s = self._turns_s[self._num_turns - 1] if self._num_turns <= len(self._turns_s) else None
        written = bool(turn.calls) and turn.text.split("\n") == [write_call(call) for call in turn.calls]
        return Turn(
            number=self._num_turns,
            text=Text.of("" if written else turn.text),
            reasoning=Text.of(turn.reasoning),
            notes=turn.notes,
            stop=str(turn.stop),
            usage=turn.usage,
            seconds=took_s,
            calls=tuple(self._call(call, seen[at] if at < len(seen) else None) for at, call in enumerate(calls)),
        )

    def _call(self, call: ToolCall, answer: Message | None) -> Call:
        observation = step = None
        known = _Known()
        if answer is not None:
            self._num_steps += 1
            step = self._num_steps
            known = self._details[step - 1] if step <= len(self._details) else known
            cut = cut_bytes(answer.text) if known.cut_bytes is None else known.cut_bytes
            self.cut_bytes += cut
            observation = Observation(
                text=Text.of(answer.text),
                pictures=self._pictures(answer.images),
                cut_bytes=cut,
                remark=remark(answer.text),
            )
        arguments = tuple(_argument(name, value) for name, value in call.arguments.items())
        return Call(
            tool=call.tool,
            arguments=arguments,
            step=step,
            ok=known.ok,
            seconds=known.duration_s,
            observation=observation,
        )

    def _pictures(self, images: Sequence[bytes]) -> tuple[Shown, ...]:
        return tuple(map(self._shown, images))

    def _shown(self, data: bytes) -> Shown:
        number = self.num_pictures
        self.num_pictures += 1
        found = picture(data)
        if isinstance(found, str):
            return Shown(number=number, problem=found)
        return Shown(number=number, suffix=found.suffix, width=found.width, height=found.height)


def _argument(name: str, value: Json) -> Argument:
    if isinstance(value, str):
        return Argument(name=name, value=Text.of(value), is_text=True)
    return Argument(name=name, value=Text.of(json.dumps(value, ensure_ascii=False, indent=1)), is_text=False)
