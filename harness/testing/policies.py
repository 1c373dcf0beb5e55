"""Claims about policies: what a runner may rely on, whoever it is that acts.

A case is a policy by its registered name and settings, or by a function that makes one:

    outcomes = await run_suite(POLICY, PolicyCase.of("openai:http://127.0.0.1:8000/v1#mine", {"temperature": 0}))
    outcomes = await run_suite(POLICY, PolicyCase.made("mine", MyPolicy))
"""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metier.envs.core import ConfigError, Deadline, Json, Limit, Outcome, PolicyError, ToolCall

from ..policy import AssistantTurn, Message, Policy, Role, Stop, open_policy
from ..result import NOT_RECORDED, EpisodeResult
from ..tools import tool_specs
from .claims import Suite, raises
from .places import SOON_S

PIXEL = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")
"""A picture, as PNG."""
TOOLS = tool_specs(["shell", "read_file", "edit", "python", "view"])
Conversation = tuple[Message | AssistantTurn, ...]
_BRIEF = Message(role=Role.USER, text="Add up the numbers in numbers.txt, then submit the sum.")


def _called(*calls: ToolCall, text: str = "") -> AssistantTurn:
    return AssistantTurn(text=text, calls=calls)


def _shell(command: str, call_id: str = "") -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command}, id=call_id)


def _seen(text: str, call_id: str = "", *images: bytes) -> Message:
    return Message(role=Role.TOOL, text=text, call_id=call_id, images=images)


CONVERSATIONS: dict[str, Conversation] = {
    "a brief": (_BRIEF,),
    "a brief with a picture, after a system message": (
        Message(role=Role.SYSTEM, text="Be brief."),
        Message(role=Role.USER, text="What is this?", images=(PIXEL,)),
    ),
    "a turn without a call": (_BRIEF, AssistantTurn(text="Let me think."), _seen("No tool was called.")),
    "a turn without anything": (_BRIEF, AssistantTurn(text=""), _seen("No tool was called.")),
    "calls with ids, answered, one by a picture": (
        _BRIEF,
        _called(_shell("ls", "a1"), ToolCall(tool="view", arguments={"path": "x.png"}, id="a2")),
        _seen("numbers.txt", "a1"),
        _seen("picture of x.png", "a2", PIXEL),
    ),
    "calls without ids": (
        _BRIEF,
        _called(_shell("ls"), text='{"tool":"shell","arguments":{"command":"ls"}}'),
        _seen(""),
    ),
    "an id that comes twice": (
        _BRIEF,
        *(_called(_shell("ls", "same")), _seen("one", "same")),
        *(_called(_shell("ls", "same")), _seen("two", "same")),
    ),
    "a call without an answer": (_BRIEF, _called(_shell("a", "b1"), _shell("b", "b2")), _seen("one", "b1")),
    "a turn that was cut": (_BRIEF, AssistantTurn(text='{"tool":"she', stop=Stop.LENGTH), _seen("No tool was called.")),
    "calls of no tool and no sense": (
        _BRIEF,
        _called(ToolCall(tool="no such tool; really", id="c1"), ToolCall(tool="", id="c2")),
        _seen("There is no tool", "c1"),
        _seen("No tool was called.", "c2"),
    ),
    "a call that no record could hold": (
        _BRIEF,
        _called(ToolCall(tool="shell", arguments={NOT_RECORDED: "half of a character"}, id="d1")),
        _seen("refused", "d1"),
    ),
    "text of odd characters, and an answer that nobody asked for": (
        Message(role=Role.USER, text="a \0, a \ufffd and \U0001f642"),
        AssistantTurn(text="<|im_end|>\u202e</tool_call>\ufffe"),
        _seen("\x1b[31mred", "nobody asked"),
    ),
    "a long one": (
        _BRIEF,
        *(part for n in range(40) for part in (_called(_shell("ls", f"e{n}")), _seen("x" * 8192, f"e{n}"))),
    ),
}
"""What every policy must bear to be told, whoever acted before it. Its text is Unicode, as the harness keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCase:
    """A policy under test."""

    title: str
    open: Callable[[], Policy]
    """A new object each time."""
    name: str = ""
    """Under which it is registered, if it is."""
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])
    repeats: bool = True
    """Whether the same conversation is answered by the same turn."""
    silent: bool = False
    """Whether it never answers at all, such as a person who has left; then only its end is looked at."""
    secrets: tuple[str, ...] = ()
    """What it knows and may not tell."""

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Json] | None = None, **more: Any) -> PolicyCase:
        """A registered policy; `more` are the fields of the case."""
        chosen = dict(settings or {})
        return cls(title=name, open=lambda: open_policy(name, chosen), name=name, settings=chosen, **more)

    @classmethod
    def made(cls, title: str, factory: Callable[[], Policy], **more: Any) -> PolicyCase:
        """One that is not registered."""
        return cls(title=title, open=factory, **more)

    def __str__(self) -> str:
        return self.title


POLICY: Suite[PolicyCase] = Suite("policy")

_ANSWERS = "it never answers"
_NAMED = "it is not registered"
_REPEATS = "it does not repeat itself"


def _soon() -> Deadline:
    return Deadline.after(SOON_S, limit="claim_s", set_by="conformance suite")


def _said(turn: AssistantTurn) -> tuple[Any, ...]:
    """What of a turn is the policy's word; times and costs are not."""
    return turn.text, turn.calls, turn.notes, turn.stop


def _answering(case: PolicyCase) -> str:
    return _ANSWERS if case.silent else ""


def _repeating(case: PolicyCase) -> str:
    return _answering(case) or ("" if case.repeats else _REPEATS)


def _registered(case: PolicyCase) -> str:
    return "" if case.name else _NAMED


async def a_turn_is_valid_and_can_be_recorded(case: PolicyCase, conversation: Conversation) -> None:
    turn = await case.open().act(conversation, TOOLS, deadline=_soon())
    assert isinstance(turn, AssistantTurn), f"{turn!r} is no AssistantTurn"
    assert isinstance(turn.text, str) and isinstance(turn.reasoning, str)
    assert isinstance(turn.stop, Stop), f"stop is {turn.stop!r}"
    assert all(isinstance(note, str) and note for note in turn.notes), f"notes are {turn.notes!r}"
    for call in turn.calls:
        assert isinstance(call, ToolCall) and isinstance(call.tool, str) and isinstance(call.id, str), f"{call!r}"
        json.dumps(dict(call.arguments), allow_nan=False)
    counts = (turn.usage.prompt_tokens, turn.usage.output_tokens, turn.usage.cached_tokens, turn.usage.num_requests)
    assert min(counts) >= 0, f"usage is {turn.usage}"
    episode = EpisodeResult(
        env_id="a/B-v0",
        seed=0,
        level=0,
        sample=0,
        outcome=Outcome.AGENT_LIMIT,
        limit=Limit.STEPS,
        reward=0.0,
        conversation=(turn,),
    )
    written = episode.model_dump_json()
    assert EpisodeResult.model_validate_json(written).model_dump_json() == written, "a record changes the turn"


POLICY.add(a_turn_is_valid_and_can_be_recorded, {name: (c,) for name, c in CONVERSATIONS.items()}, _answering)


async def the_conversation_is_left_as_it_is(case: PolicyCase) -> None:
    for conversation in CONVERSATIONS.values():
        told, kept = list(conversation), copy.deepcopy(conversation)
        await case.open().act(told, TOOLS, deadline=_soon())
        assert tuple(told) == kept, "the policy changed the conversation it was told"


POLICY.add(the_conversation_is_left_as_it_is, unmet=_answering)


async def it_keeps_nothing_between_calls(case: PolicyCase) -> None:
    conversations: Sequence[Conversation] = tuple(CONVERSATIONS.values())
    fresh = [_said(await case.open().act(told, TOOLS, deadline=_soon())) for told in conversations]
    one = case.open()
    there = [_said(await one.act(told, TOOLS, deadline=_soon())) for told in conversations]
    back = [_said(await one.act(told, TOOLS, deadline=_soon())) for told in reversed(conversations)]
    assert there == fresh, "an object that has acted before answers otherwise than a new one"
    assert back == fresh[::-1], "it answers otherwise in another order"


POLICY.add(it_keeps_nothing_between_calls, unmet=_repeating)


async def episodes_at_once_do_not_mix(case: PolicyCase) -> None:
    conversations = [*CONVERSATIONS.values()] * 2
    alone = [_said(await case.open().act(told, TOOLS, deadline=_soon())) for told in conversations]
    one = case.open()
    together = await asyncio.gather(*(one.act(told, TOOLS, deadline=_soon()) for told in conversations))
    assert [_said(turn) for turn in together] == alone


POLICY.add(episodes_at_once_do_not_mix, unmet=_repeating)


async def it_ends_by_its_deadline(case: PolicyCase, seconds: float) -> None:
    deadline = Deadline.after(seconds, limit="turn_s", set_by="conformance suite")
    async with asyncio.timeout(seconds + SOON_S):
        try:
            turn = await case.open().act(CONVERSATIONS["a brief"], TOOLS, deadline=deadline)
        except PolicyError as error:
            words = str(error)
        else:
            assert isinstance(turn, AssistantTurn)
            return
    assert "turn_s" in words, f"the error does not name the limit that fired: {words}"


POLICY.add(it_ends_by_its_deadline, {"one that has passed": 0.0, "a short one": 0.2})


async def it_can_be_cancelled_and_goes_on(case: PolicyCase) -> None:
    one = case.open()
    acting = asyncio.ensure_future(one.act(CONVERSATIONS["a brief"], TOOLS, deadline=_soon()))
    await asyncio.sleep(0.05)
    acting.cancel()
    done, _ = await asyncio.wait({acting}, timeout=SOON_S)
    assert done, "it goes on after it was cancelled"
    assert acting.cancelled() or acting.exception() is None, f"cancelling raised {acting.exception()!r}"
    if not case.silent:
        assert isinstance(await one.act(CONVERSATIONS["a brief"], TOOLS, deadline=_soon()), AssistantTurn)


POLICY.add(it_can_be_cancelled_and_goes_on)


async def its_settings_travel_as_json(case: PolicyCase) -> None:
    assert json.loads(json.dumps(case.settings)) == case.settings
    first = open_policy(case.name, json.loads(json.dumps(case.settings)))
    second = open_policy(case.name, pickle.loads(pickle.dumps(dict(case.settings))))
    if not _repeating(case):
        told = CONVERSATIONS["a brief"]
        turns = [await one.act(told, TOOLS, deadline=_soon()) for one in (first, second)]
        assert _said(turns[0]) == _said(turns[1])


POLICY.add(its_settings_travel_as_json, unmet=_registered)


async def a_setting_it_does_not_know_is_refused(case: PolicyCase) -> None:
    with raises(ConfigError, match="no_such_setting"):
        open_policy(case.name, {**case.settings, "no_such_setting": 1})


POLICY.add(a_setting_it_does_not_know_is_refused, unmet=_registered)


async def its_secrets_stay_where_they_are(case: PolicyCase) -> None:
    one = case.open()
    shown = [repr(one), repr(await one.act(CONVERSATIONS["a brief"], TOOLS, deadline=_soon()))]
    for secret in case.secrets:
        assert not [text for text in shown if secret in text], "it tells a secret"


POLICY.add(its_secrets_stay_where_they_are, unmet=_answering)
