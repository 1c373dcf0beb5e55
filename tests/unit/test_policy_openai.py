"""The policy `openai`: how a conversation is asked, and what is made of good and bad answers."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from asking import BRIEF, LS, TOOLS, act, fails, open_vendor
from metier.envs.core import ToolCall
from metier.harness.policy import AssistantTurn, Message, Role, Stop
from metier.harness.policy.openai.answer import UNREADABLE
from metier.harness.testing.policies import PIXEL
from vendor import USAGE, Vendor, delta, error, native, streamed, whole


@pytest_asyncio.fixture
async def vendor() -> AsyncIterator[Vendor]:
    async with open_vendor() as server:
        yield server


# what is asked


async def test_a_request_has_the_model_the_tools_and_what_was_chosen(vendor: Vendor) -> None:
    await act(vendor, temperature=0.5, seed=7, extra={"reasoning_effort": "low"}, headers={"X-Title": "metier"})
    (asked,) = vendor.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["x-title"] == "metier"
    assert "authorization" not in asked.headers
    tools = asked.body.pop("tools")
    assert [tool["function"]["name"] for tool in tools] == ["shell", "view", "submit"]
    assert tools[0]["function"]["parameters"] == TOOLS[0].parameters
    assert asked.body == {
        "model": "model",
        "messages": [{"role": "user", "content": "Do it."}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "seed": 7,
        "max_tokens": 4096,
        "reasoning_effort": "low",
    }


CALLED = AssistantTurn(
    text="I look.",
    reasoning="Why not?",
    calls=(
        ToolCall(tool="shell", arguments={"command": "ls"}, id="a"),
        ToolCall(tool="view", arguments={"path": "x.png"}, id="b"),
    ),
)
SEEN = (
    Message(role=Role.TOOL, text="x.png", call_id="a"),
    Message(role=Role.TOOL, text="picture of x.png", images=(PIXEL,), call_id="b"),
)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(PIXEL).decode()}}


async def test_a_conversation_goes_back_as_the_api_has_it(vendor: Vendor) -> None:
    await act(vendor, told=[BRIEF, CALLED, *SEEN], send_reasoning=True)
    assert vendor.asked[0].body["messages"] == [
        {"role": "user", "content": "Do it."},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Why not?",
            "tool_calls": [
                native("a", "shell", '{"command": "ls"}'),
                native("b", "view", '{"path": "x.png"}'),
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x.png"},
        {"role": "tool", "tool_call_id": "b", "content": "picture of x.png"},
        {"role": "user", "content": [PICTURE]},
    ]


async def test_in_text_the_model_is_told_of_the_tools_and_answered_by_the_user(vendor: Vendor) -> None:
    said = AssistantTurn(text='{"tool":"shell"}', calls=(ToolCall(tool="shell"),))
    told = [BRIEF, said, Message(role=Role.TOOL, text="wrong"), CALLED, *SEEN, AssistantTurn(text=" ")]
    await act(vendor, told=told, calls="text", system="Be brief.")
    body = vendor.asked[0].body
    assert "tools" not in body
    system, *rest = body["messages"]
    assert system["content"].startswith("Be brief.\n\nYou work with tools.")
    assert '{"tool":"shell","arguments":{"command":"..."}}' in system["content"]
    assert all(json.dumps(spec.description) in system["content"] for spec in TOOLS)
    assert rest == [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": '{"tool":"shell"}'},
        {"role": "user", "content": "wrong"},
        {
            "role": "assistant",
            "content": 'I look.\n{"tool":"shell","arguments":{"command":"ls"}}\n'
            '{"tool":"view","arguments":{"path":"x.png"}}',
        },
        {"role": "user", "content": [_text("x.png"), _text("picture of x.png"), PICTURE]},
        {"role": "assistant", "content": "(nothing)"},
    ]


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


async def test_what_the_api_would_refuse_goes_back_as_text(vendor: Vendor) -> None:
    """A name that no function may have, an id that was used, half of a character."""
    odd = AssistantTurn(text="", calls=(ToolCall(tool="rm -rf", id="x"),))
    again = AssistantTurn(text="\ud800", calls=(ToolCall(tool="shell", arguments={"command": "\ud800"}, id="a"),))
    lost = AssistantTurn(text="", calls=(ToolCall(tool="shell", id="c"),))
    await act(
        vendor, told=[BRIEF, odd, Message(role=Role.TOOL, text="\ud800", call_id="x"), CALLED, *SEEN, again, lost]
    )
    messages = vendor.asked[0].body["messages"]
    assert messages[1] == {"role": "assistant", "content": '{"tool":"rm -rf","arguments":{}}'}
    assert messages[2] == {"role": "user", "content": "\ufffd"}
    assert messages[7]["content"].startswith('\ufffd\n{"tool":"shell","arguments":{"(not recorded)"')
    assert messages[8:] == [
        {"role": "assistant", "content": None, "tool_calls": [native("c", "shell", "{}")]},
        {"role": "tool", "tool_call_id": "c", "content": "(not run)"},
    ]


async def test_only_the_newest_pictures_are_shown_and_a_blind_model_is_told(vendor: Vendor) -> None:
    told = [Message(role=Role.USER, text=f"{number}", images=(PIXEL,)) for number in range(4)]
    await act(vendor, told=told, max_images=2)
    await act(vendor, told=told, images=False)
    (shown,), (blind,) = (asked.body["messages"] for asked in vendor.asked)
    older = "[a picture, which is shown no longer]"
    earlier = _text(f"0\n\n{older}\n\n1\n\n{older}")
    assert shown["content"] == [earlier, _text("2"), PICTURE, _text("3"), PICTURE]
    assert blind["content"].count("[a picture, which you cannot see]") == 4


# what is answered


async def test_an_answer_in_pieces_is_put_together(vendor: Vendor) -> None:
    turn = await act(
        vendor,
        streamed(
            b": keep alive\n\n",
            delta(role="assistant", content=""),
            delta(reasoning_content="Hm. "),
            delta(reasoning="So."),
            delta(content="I "),
            delta(content="look."),
            delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "shell", "arguments": ""}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": '{"comm'}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": 'and":"ls"}'}}]),
            delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "submit", "arguments": "{}"}}]),
            delta("tool_calls"),
            USAGE,
        ),
    )
    assert (turn.text, turn.reasoning, turn.stop, turn.notes) == ("I look.", "Hm. So.", Stop.END, ())
    assert turn.calls == (
        ToolCall(tool="shell", arguments={"command": "ls"}, id="a"),
        ToolCall(tool="submit", id="b"),
    )
    assert (turn.usage.prompt_tokens, turn.usage.output_tokens, turn.usage.num_requests) == (10, 5, 1)


async def test_an_answer_that_comes_whole_is_the_same(vendor: Vendor) -> None:
    answer = whole("I look.", calls=[("a", "shell", LS)], finish="tool_calls", reasoning_content="Hm.")
    for stream in (True, False):
        turn = await act(vendor, answer, stream=stream)
        assert (turn.text, turn.reasoning, turn.notes) == ("I look.", "Hm.", ())
        assert turn.calls == (ToolCall(tool="shell", arguments={"command": "ls"}, id="a"),)
    assert "stream" not in vendor.asked[1].body


BAD: dict[str, tuple[dict[str, Any], list[tuple[str, dict[str, Any]]], str]] = {
    "nothing": ({"text": None}, [], ""),
    "an empty text": ({"text": ""}, [], ""),
    "a refusal": ({"text": None, "refusal": "I will not."}, [], "refused"),
    "prose": ({"text": "I would rather not."}, [], ""),
    "garbage": ({"text": "\x00\ufffd{{{"}, [], ""),
    "cut in the middle of a call": (
        {"text": '{"tool":"shell","arguments":{"command":"rm -r', "finish": "length"},
        [],
        "cut at max_tokens",
    ),
    "stopped by a filter": ({"text": "", "finish": "content_filter"}, [], "stopped by the endpoint's content filter"),
    "a tool that is not there": ({"calls": [("a", "browse", "{}")]}, [("browse", {})], ""),
    "broken JSON": (
        {"calls": [("a", "shell", '{"command": ')]},
        [("shell", {UNREADABLE: '{"command": '})],
        "arguments that are no JSON object",
    ),
    "a list for arguments": (
        {"calls": [("a", "shell", "[1]")]},
        [("shell", {UNREADABLE: "[1]"})],
        "arguments that are no JSON object",
    ),
    "a number for arguments": (
        {"calls": [{"id": "a", "function": {"name": "shell", "arguments": 5}}]},
        [("shell", {UNREADABLE: "5"})],
        "arguments that are no JSON object",
    ),
    "an infinite number": (
        {"calls": [("a", "shell", '{"timeout_s": Infinity}')]},
        [("shell", {UNREADABLE: '{"timeout_s": Infinity}'})],
        "arguments that are no JSON object",
    ),
    "a call of nothing": ({"calls": [None, {"function": None}]}, [("", {}), ("", {})], "a call that names no tool"),
    "arguments cut at the end": (
        {"calls": [("a", "shell", LS), ("b", "shell", '{"command":"ls"')], "finish": "length"},
        [("shell", {"command": "ls"}), ("shell", {UNREADABLE: '{"command":"ls"'})],
        "cut at max_tokens",
    ),
    "in single quotes": (
        {"calls": [("a", "functions.shell", "{'command': 'ls'}")]},
        [("shell", {"command": "ls"})],
        "single quotes",
    ),
    "a bare text": (
        {"calls": [("a", "shell", '"ls"')]},
        [("shell", {"command": "ls"})],
        "a bare text for command",
    ),
    "an empty object": ({"calls": [("a", "submit", "{}")]}, [("submit", {})], ""),
    "twice encoded": (
        {"calls": [("a", "shell", json.dumps(LS))]},
        [("shell", {"command": "ls"})],
        "a string in a string",
    ),
    "arguments as an object": (
        {"calls": [{"id": "a", "function": {"name": "shell", "arguments": {"command": "ls"}}}]},
        [("shell", {"command": "ls"})],
        "arguments as an object, not as a string",
    ),
    "no arguments": ({"calls": [("a", "submit", "")]}, [("submit", {})], "no arguments at all"),
    "the old form": (
        {"function_call": {"name": "shell", "arguments": LS}},
        [("shell", {"command": "ls"})],
        "a call without an id of its own",
    ),
    "a call in the text": (
        {"text": 'Well:\n```json\n{"name": "shell", "arguments": {"command": "ls"}}\n```'},
        [("shell", {"command": "ls"})],
        "in a code fence",
    ),
    "content in parts": (
        {"text": [{"type": "text", "text": '{"tool":"submit",'}, {"type": "text", "text": '"arguments":{}}'}, 5]},
        [("submit", {})],
        "",
    ),
    "an unknown reason to stop": ({"text": "hm", "finish": "eos"}, [], ""),
    "no reason to stop": ({"text": "hm", "finish": None}, [], ""),
}


@pytest.mark.parametrize(("said", "calls", "note"), BAD.values(), ids=list(BAD))
async def test_a_bad_answer_is_a_turn(vendor: Vendor, said: dict[str, Any], calls: list[Any], note: str) -> None:
    turn = await act(vendor, whole(**{"text": "", **said}))
    assert [(call.tool, dict(call.arguments)) for call in turn.calls] == calls
    assert (not note and not turn.notes) or note in turn.notes
    assert turn.stop is (Stop.LENGTH if said.get("finish") == "length" else Stop.END)
    assert len(vendor.asked) == 1


async def test_calls_that_share_an_id_get_their_own(vendor: Vendor) -> None:
    calls = [("a", "shell", LS), ("a", "shell", LS), ("", "submit", "{}"), ("\n", "submit", "{}")]
    turn = await act(vendor, whole(calls=calls), told=[BRIEF, AssistantTurn(text="x"), BRIEF])
    assert [call.id for call in turn.calls] == ["a", "call00101", "call00102", "call00103"]
    assert turn.notes == ("a call without an id of its own",)


async def test_a_conversation_that_grew_too_long_ends_for_it(vendor: Vendor) -> None:
    words = "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."
    turn = await act(vendor, error(400, words, "context_length_exceeded"))
    assert (turn.stop, turn.text, turn.calls) == (Stop.CONTEXT, "", ())
    assert "8192" in turn.notes[0]
    assert len(vendor.asked) == 1
    assert "lower max_tokens" in await fails(vendor, error(400, words), max_tokens=8192)
    refusal = error(400, "max_tokens=4096 cannot be greater than max_model_len=2048. Please request fewer.")
    assert "lower max_tokens" in await fails(vendor, refusal)


async def test_an_answer_is_asked_to_be_as_long_as_there_is_room_for(vendor: Vendor) -> None:
    words = "This model's maximum context length is 8192 tokens. However, you requested {} (4096 in the completion)."
    turn = await act(vendor, error(400, words.format("5000 in the messages")), whole("hello"))
    assert (turn.text, turn.stop) == ("hello", Stop.END)
    assert turn.notes == ("max_tokens lowered to 3192, the room that is left",)
    assert [asked.body["max_tokens"] for asked in vendor.asked] == [4096, 3192]
    little = error(400, words.format("8150 in the messages"))
    assert (await act(vendor, little)).stop is Stop.CONTEXT


async def test_a_filter_at_the_door_is_a_turn_too(vendor: Vendor) -> None:
    turn = await act(vendor, error(400, "filtered due to content management policy", "content_filter"))
    assert (turn.stop, turn.text) == (Stop.END, "")
    assert "content filter" in turn.notes[0]
