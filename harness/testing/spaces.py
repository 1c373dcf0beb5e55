"""Claims about an action space of tool calls: what a policy may rely on when it samples, checks and describes calls."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import jsonschema

from ..gym.spaces import ToolCallSpace
from .claims import Suite

SPACE: Suite[ToolCallSpace] = Suite("tool call space")

_TYPES = {"object", "array", "string", "integer", "number", "boolean"}
_RUBBISH: list[Any] = [
    None,
    7,
    float("nan"),
    "shell",
    b"\xff",
    [],
    {},
    {"tool": "shell"},
    {"tool": [], "arguments": {}},
    {"tool": {}, "arguments": {}},
    {"tool": "no such tool", "arguments": {}},
    {"tool": "submit", "arguments": None},
    {"tool": "submit", "arguments": {1: 2}},
    {"tool": "submit", "arguments": {}, "more": 1},
    object(),
]


@SPACE.claim
async def samples_are_in_the_space(space: ToolCallSpace) -> None:
    for _ in range(200):
        call = space.sample()
        assert call in space, f"sampled {call}, which the space does not contain"
        json.dumps(call)


@SPACE.claim
async def a_seed_repeats_the_samples(space: ToolCallSpace) -> None:
    one, other = copy.deepcopy(space), copy.deepcopy(space)
    one.seed(5)
    other.seed(5)
    assert [one.sample() for _ in range(20)] == [other.sample() for _ in range(20)]


@SPACE.claim
async def rubbish_is_outside_and_raises_nothing(space: ToolCallSpace) -> None:
    for thing in _RUBBISH:
        assert space.contains(thing) is False, f"{thing!r} is in the space"


@SPACE.claim
async def an_unknown_argument_is_outside(space: ToolCallSpace) -> None:
    for _ in range(20):
        call: Any = space.sample()
        call["arguments"] = {**call["arguments"], "no such argument": 1}
        assert call not in space, f"{call} is in the space; its schema should say additionalProperties: false"


@SPACE.claim
async def tools_are_told_in_the_openai_format(space: ToolCallSpace) -> None:
    tools: Any = json.loads(json.dumps(space.tools))
    assert [tool["function"]["name"] for tool in tools] == [spec.name for spec in space.specs]
    assert len({spec.name for spec in space.specs}) == len(space.specs), "two tools share a name"
    for tool in tools:
        assert tool["type"] == "function"
        assert tool["function"]["description"].strip(), f"{tool['function']['name']} has no description"
        jsonschema.Draft202012Validator.check_schema(tool["function"]["parameters"])
        _plain(tool["function"]["parameters"])


@SPACE.claim
async def submit_is_always_there(space: ToolCallSpace) -> None:
    assert "submit" in [spec.name for spec in space.specs]


@SPACE.claim
async def it_copies_and_pickles(space: ToolCallSpace) -> None:
    assert copy.deepcopy(space) == space
    assert pickle.loads(pickle.dumps(space)) == space


def _plain(schema: Any) -> None:
    """Only what every model's tool format and our own sampler know."""
    assert "enum" in schema or schema.get("type") in _TYPES, f"a schema of type {schema.get('type')!r}: {schema}"
    for part in schema.get("properties", {}).values():
        _plain(part)
    if "items" in schema:
        _plain(schema["items"])
