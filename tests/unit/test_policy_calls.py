"""Reading calls from what a model wrote: many ways to say one, each with its note; never an error, never long."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from metier.envs.core import ToolCall
from metier.harness.policy.calls import MOST_CALLS, read_calls
from metier.harness.policy.contract import write_call
from metier.harness.policy.loose import Unreadable, read_loose, read_python_arguments
from metier.harness.tools import tool_specs

TOOLS = tool_specs(["shell", "read_file", "edit", "python", "view"])
LS = ("shell", {"command": "ls"})
SUBMIT = ("submit", {})
MEGABYTES_10 = 10_000_000
LONG_S = 60.0
"""Of the processor's time: what takes time in proportion takes seconds of it, and what does not takes hours."""


def read(text: str, **how: Any) -> tuple[list[tuple[str, dict[str, Any]]], tuple[str, ...]]:
    parsed = read_calls(text, TOOLS, **how)
    return [(call.tool, dict(call.arguments)) for call in parsed.calls], parsed.notes


SAID: dict[str, tuple[str, list[tuple[str, dict[str, Any]]], list[str]]] = {
    "as it should be": ('{"tool":"shell","arguments":{"command":"ls"}}', [LS], []),
    "two, one after the other": (
        '{"tool":"shell","arguments":{"command":"ls"}}\n{"tool":"submit","arguments":{}}',
        [LS, SUBMIT],
        [],
    ),
    "in a list": ('[{"tool":"submit","arguments":{}}, {"tool":"submit","arguments":{}}]', [SUBMIT, SUBMIT], []),
    "in a fence, with prose on both sides": (
        'I look.\n```json\n{"tool":"shell","arguments":{"command":"ls"}}\n```\nThat is all.',
        [LS],
        ["in a code fence", "text around the calls"],
    ),
    "in Hermes' tags": (
        '<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>',
        [LS],
        ["keys name and arguments instead of tool and arguments", "in tags"],
    ),
    "in Qwen's tags": (
        (
            "<tool_call>\n<function=edit>\n<parameter=path>\na\n</parameter>\n<parameter=old>\n</parameter>\n"
            '<parameter=new>\n{"name": "x", "arguments": {}}\n</parameter>\n</function>\n</tool_call>'
        ),
        [("edit", {"path": "a", "old": "", "new": '{"name": "x", "arguments": {}}'})],
        ["a call in tags", "in tags"],
    ),
    "in tags, with a number": (
        '<invoke name="shell"><parameter name="command">w</parameter><parameter name="timeout_s">5</parameter>',
        [("shell", {"command": "w", "timeout_s": 5})],
        ["a tag left open", "a call in tags"],
    ),
    "in tags left open": (
        "<function=shell><parameter=command>ls",
        [LS],
        ["a tag left open", "a call in tags"],
    ),
    "by Mistral's mark": (
        '[TOOL_CALLS]shell[ARGS]{"command": "ls"}',
        [LS],
        ["a tool's name before its arguments", "in tags", "text around the calls"],
    ),
    "by DeepSeek's marks": (
        '<｜tool▁call▁begin｜>function<｜tool▁sep｜>shell\n```json\n{"command": "ls"}\n```<｜tool▁call▁end｜>',
        [LS],
        ["a tool's name before its arguments", "in a code fence", "text around the calls"],
    ),
    "on a channel": (
        '<|channel|>commentary to=functions.shell <|constrain|>json<|message|>{"command":"ls"}<|call|>',
        [LS],
        ["a tool's name before its arguments", "in tags", "text around the calls"],
    ),
    "as an action": (
        'Thought: look.\nAction: shell\nAction Input: {"command": "ls"}',
        [LS],
        ["a tool's name before its arguments", "text around the calls"],
    ),
    "as an action with bare text": (
        '{"action": "shell", "action_input": "ls"}',
        [LS],
        [
            "arguments as a string",
            "a bare text for command",
            "keys action and action_input instead of tool and arguments",
        ],
    ),
    "with no arguments, as a string": (
        '{"tool": "submit", "arguments": "{}"}',
        [SUBMIT],
        ["arguments as a string"],
    ),
    "as in a response of the API": (
        '{"type": "function", "function": {"name": "shell", "arguments": "{\\"command\\": \\"ls\\"}"}}',
        [LS],
        [
            "a call in an object named function",
            "arguments as a string",
            "keys name and arguments instead of tool and arguments",
        ],
    ),
    "as a list of the API": (
        '{"tool_calls": [{"tool": "shell", "arguments": {"command": "ls"}}, {"tool": "submit", "arguments": null}]}',
        [LS, SUBMIT],
        ["calls in a list named tool_calls", "null for no arguments"],
    ),
    "as a key": ('{"shell": {"command": "ls"}}', [LS], ["a tool's name as the key of its arguments"]),
    "with the arguments beside the name": (
        '{"tool": "shell", "command": "ls"}',
        [LS],
        ["keys tool and none instead of tool and arguments"],
    ),
    "with a namespace": (
        '{"tool": "functions.shell", "arguments": {"command": "ls"}}',
        [LS],
        ["the name 'functions.shell' for shell"],
    ),
    "in capitals, with a mark after it": (
        '{"tool": "Read-File<|channel|>json", "arguments": {"path": "a"}}',
        [("read_file", {"path": "a"})],
        ["the name 'Read-File<|channel|>json' for read_file"],
    ),
    "in Python's words": (
        "{'tool': 'shell', 'arguments': {'command': 'ls', 'x': [True, None, (1, 2.5)]}}",
        [("shell", {"command": "ls", "x": [True, None, [1, 2.5]]})],
        ["single quotes", "Python's words for true, false and null"],
    ),
    "with a comma too many": (
        '{"tool": "shell", "arguments": {"command": "ls",},}',
        [LS],
        ["a comma too many"],
    ),
    "with names without quotes": (
        '{tool: "shell", arguments: {command: "ls"}}',
        [LS],
        ["names without quotes"],
    ),
    "with quotes that are not escaped": (
        '{"tool": "shell", "arguments": {"command": "grep "a b" f"}}',
        [("shell", {"command": 'grep "a b" f'})],
        ["quotes inside a text"],
    ),
    "with an escape that JSON does not have": (
        r'{"tool": "shell", "arguments": {"command": "grep \d+ f\n"}}',
        [("shell", {"command": "grep \\d+ f\n"})],
        ["escapes that JSON does not have"],
    ),
    "with three quotes": (
        '{"tool": "python", "arguments": {"code": """\nprint("a")\n"""}}',
        [("python", {"code": '\nprint("a")\n'})],
        ["three quotes around a text", "line breaks inside a text"],
    ),
    "without its last bracket": (
        '```json\n{"tool": "shell", "arguments": {"command": "ls"}\n```',
        [LS],
        ["brackets left open at the end", "in a code fence"],
    ),
    "after thinking of another": (
        '<think>{"tool": "submit", "arguments": {}}?</think>\n{"tool": "shell", "arguments": {"command": "ls"}}',
        [LS],
        ["thinking before the calls"],
    ),
    "with the mark of thinking in an argument": (
        '{"tool": "shell", "arguments": {"command": "echo </think>"}}',
        [("shell", {"command": "echo </think>"})],
        [],
    ),
    "like Python's": (
        'shell("ls", timeout_s=5)',
        [("shell", {"command": "ls", "timeout_s": 5})],
        ["arguments by position", "a call like Python's"],
    ),
    "a list like Python's": (
        "[shell(command='ls'), submit()]",
        [LS, SUBMIT],
        ["a call like Python's", "single quotes"],
    ),
    "like Python's, with an object": (
        'shell({"command": "ls"})',
        [LS],
        ["a tool's name before its arguments", "text around the calls"],
    ),
    "a broken one before a whole one": (
        '{\'x\': \'y\' z} {"tool":"shell","arguments":{"command":"ls"}}',
        [LS],
        ["not JSON: a text without an end", "text around the calls"],
    ),
    "a sloppy one around a strict object": (
        "{'tool': 'shell', 'arguments': {\"command\": \"ls\"}}",
        [LS],
        ["single quotes"],
    ),
    "of a tool that is not there": ('{"tool":"browse","arguments":{"q":1}}', [("browse", {"q": 1})], []),
}


@pytest.mark.parametrize(("text", "calls", "notes"), SAID.values(), ids=list(SAID))
def test_what_models_write_is_read_and_noted(text: str, calls: list[Any], notes: list[str]) -> None:
    assert read(text) == (calls, tuple(notes))


@pytest.mark.parametrize(
    "text",
    [
        "I would call submit() now.",
        "Then: view('x.png') shows it, and submit() ends it.",
        'The user is {"name": "Ada", "age": 36}.',
        "if (x) { return {}; }",
        '<think>I might call {"tool": "submit", "arguments": {}}',
        '{"tool": "shell", "arguments": {"command": NaN}}',
        "{'tool': 'shell', 'arguments': {'timeout_s': 1e999}}",
        '{"tool": "shell", "arguments": {"command": "\\ud800"}}',
        "{'tool': 'shell', 'arguments': {'command': '\\ud800'}}",
        "{'a': " + "[" * 40 + "]" * 40 + "}",
        "submit(" * 1000,
        "print(submit)",
        "",
        "\x00\ud800",
    ],
)
def test_what_is_no_call_is_none(text: str) -> None:
    assert read(text)[0] == []


@pytest.mark.parametrize(
    "text",
    [
        '{"tool":"shell","arguments":{"command":"ls"',
        '{"tool":"shell","arguments":{"command":"rm -rf /workspace/',
        "<function=shell><parameter=command>rm -rf /workspace/",
        "shell('ls'",
    ],
)
def test_what_was_cut_is_not_completed(text: str) -> None:
    assert read(text, whole=False)[0] == []


def test_no_more_calls_are_read_than_any_episode_takes() -> None:
    calls, notes = read('{"tool":"submit","arguments":{}}' * 1000)
    assert len(calls) == MOST_CALLS
    assert f"more than {MOST_CALLS} calls; the rest was not read" in notes


def test_without_tools_fewer_liberties_are_taken() -> None:
    assert read_calls('shell("ls")').calls == ()
    assert read_calls('{"shell": {"command": "ls"}}').calls == ()
    assert read_calls('{"name": "shell", "arguments": {}}').calls == (ToolCall(tool="shell"),)


TEXTS = st.text(max_size=30)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(TEXTS.filter(lambda name: name not in ("tool_calls", "calls")), VALUES, max_size=3)
NAMES = st.sampled_from([spec.name for spec in TOOLS])
DRESSES: dict[str, Callable[[str], str]] = {
    "bare": lambda said: said,
    "fence": lambda said: f"```json\n{said}\n```",
    "tags": lambda said: f"<tool_call>{said}</tool_call>",
    "prose": lambda said: f"So I do this:\n{said}\nand wait.",
    "list": lambda said: f"[{said}]",
}


@given(tool=NAMES, arguments=ARGUMENTS, dress=st.sampled_from(list(DRESSES)))
@settings(deadline=None, max_examples=150)
def test_a_call_is_read_through_any_dress(tool: str, arguments: dict[str, Any], dress: str) -> None:
    call = ToolCall(tool=tool, arguments=arguments)
    assert read_calls(DRESSES[dress](write_call(call)), TOOLS).calls == (call,)


@given(tool=NAMES, arguments=ARGUMENTS)
@settings(deadline=None, max_examples=150)
def test_arguments_as_a_string_are_the_arguments(tool: str, arguments: dict[str, Any]) -> None:
    parsed = read_calls(json.dumps({"tool": tool, "arguments": json.dumps(arguments)}), TOOLS)
    assert parsed.calls == (ToolCall(tool=tool, arguments=arguments),)
    assert parsed.notes == ("arguments as a string",)


@given(value=st.dictionaries(TEXTS, VALUES, max_size=4))
@settings(deadline=None, max_examples=300)
@example(value={"a\"b'c": "', 'x': \"\n\\"})
def test_what_python_prints_is_read_as_it_is(value: dict[str, Any]) -> None:
    assert read_loose(repr(value)).value == value


@given(value=st.dictionaries(TEXTS, VALUES, max_size=4))
@settings(deadline=None, max_examples=200)
def test_json_is_read_as_it_is(value: dict[str, Any]) -> None:
    for ascii_only in (True, False):
        text = json.dumps(value, ensure_ascii=ascii_only)
        loose = read_loose(text)
        assert (loose.value, loose.end) == (value, len(text))


@given(
    positional=st.lists(VALUES, max_size=3),
    named=st.dictionaries(st.from_regex(r"[a-z]\w{0,8}", fullmatch=True), VALUES),
)
@settings(deadline=None, max_examples=100)
def test_pythons_arguments_are_read_as_they_are(positional: list[Any], named: dict[str, Any]) -> None:
    said = ", ".join([*map(repr, positional), *(f"{name}={value!r}" for name, value in named.items())])
    read = read_python_arguments(said + ") and so on", 0)
    assert (list(read.positional), read.named, read.end) == (positional, named, len(said) + 1)


PIECES = [
    *"{}[]()\"'`,:\\\n =.-1a",
    *('"tool"', '"name":', "shell", "shell(", "submit()", '{"tool":"shell","arguments":', "{'a':", '{"a":', "{}"),
    *("<tool_call>", "<function=shell>", "<parameter=command>", "</parameter>", "</function>", '<invoke name="view">'),
    *(
        "<think>",
        "</think>",
        "```",
        "```json",
        '"""',
        "'''",
        "True",
        "null",
        "<|x|>",
        "\ud800",
        "\\u12",
        "\\ud83d",
        "🙂",
    ),
    *("[ARGS]", "Action Input: ", "command=", "1e9", "\\"),
]
RUBBISH = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40).map("".join)


@given(text=RUBBISH, whole=st.booleans())
@settings(deadline=None, max_examples=500)
def test_reading_never_raises_and_gives_what_can_be_sent(text: str, whole: bool) -> None:
    for tools in (TOOLS, ()):
        parsed = read_calls(text, tools, whole=whole)
        for call in parsed.calls:
            write_call(call).encode()
        assert all(isinstance(note, str) and len(note) <= 160 for note in parsed.notes)
        assert len(parsed.notes) <= 16


@given(text=RUBBISH)
@settings(deadline=None, max_examples=300)
def test_loose_reading_raises_only_its_own_error(text: str) -> None:
    for opened in ("{", "["):
        try:
            loose = read_loose(opened + text)
        except Unreadable as error:
            reached = error.at
        else:
            reached = loose.end
        assert 0 < reached <= len(text) + 1


def timed(text: str, whole: bool = True) -> None:
    began = time.process_time()
    read_calls(text, TOOLS, whole=whole)
    assert time.process_time() - began < LONG_S


@pytest.mark.slow
@given(before=RUBBISH, unit=st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join), whole=st.booleans())
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@example(before="", unit='{"a":', whole=True)
@example(before="", unit="{'a':'", whole=True)
@example(before="", unit="{'a' ", whole=True)
@example(before='{"x":[' * 900, unit="{},", whole=True)
@example(before="shell('", unit="x", whole=True)
@example(before="{", unit=" ", whole=True)
@example(before='{"tool":"edit","arguments":{"new":"', unit='x"', whole=False)
@example(before="<function=shell>", unit="<parameter=command>x", whole=True)
def test_ten_megabytes_take_seconds(before: str, unit: str, whole: bool) -> None:
    timed((before + unit * (MEGABYTES_10 // len(unit)))[:MEGABYTES_10], whole)


def test_a_call_of_ten_megabytes_is_read() -> None:
    call = ToolCall(tool="edit", arguments={"path": "a", "old": "", "new": "x\n" * (MEGABYTES_10 // 2)})
    parsed = read_calls(write_call(call), TOOLS)
    assert parsed.calls == (call,)
