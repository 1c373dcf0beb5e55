"""Spaces of our own: tool calls as actions, any Unicode as text (Gymnasium's Text wants a character set)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import gymnasium
import jsonschema

from metier.envs.core import Json, ToolSpec


class TextSpace(gymnasium.Space[str]):
    """Any Unicode text, also the empty one."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """Up to 32 characters, of several alphabets."""
        alphabet = "abc XYZ 019 äß 漢字 🙂\n"
        return "".join(alphabet[self.np_random.integers(len(alphabet))] for _ in range(self.np_random.integers(33)))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextSpace)

    def __repr__(self) -> str:
        return "TextSpace()"


class ToolCallSpace(gymnasium.Space[dict[str, Json]]):
    """One call, `{"tool": …, "arguments": {…}}`, from JSON schemas; `sample()` is valid, `contains` never raises."""

    def __init__(self, specs: Sequence[ToolSpec], seed: int | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)
        self.specs = tuple(specs)
        self._validators = _validators(self.specs)

    def __getstate__(self) -> dict[str, Any]:
        """Without the validators, which do not travel; they follow from the specs."""
        return {name: value for name, value in self.__dict__.items() if name != "_validators"}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._validators = _validators(self.specs)

    @property
    def tools(self) -> list[dict[str, Json]]:
        """The tools in the OpenAI function-calling format."""
        return [
            {
                "type": "function",
                "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
            }
            for spec in self.specs
        ]

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> dict[str, Json]:
        spec = self.specs[self.np_random.integers(len(self.specs))]
        return {"tool": spec.name, "arguments": self._value(spec.parameters)}

    def _value(self, schema: Any) -> Any:
        if "enum" in schema:
            return schema["enum"][self.np_random.integers(len(schema["enum"]))]
        match schema.get("type"):
            case "object":
                required = schema.get("required", [])
                return {
                    name: self._value(part)
                    for name, part in schema.get("properties", {}).items()
                    if name in required or self.np_random.integers(2)
                }
            case "array":
                size = self._integer(schema.get("minItems", 0), schema.get("maxItems", 3))
                return [self._value(schema.get("items", {"type": "string"})) for _ in range(size)]
            case "integer":
                low: int = schema.get("minimum", 0)
                return self._integer(low, schema.get("maximum", low + 100))
            case "number":
                least: float = schema.get("minimum", 0.0)
                most: float = schema.get("maximum", least + 1.0)
                return self.np_random.uniform(least, most)
            case "boolean":
                return bool(self.np_random.integers(2))
            case _:
                words = ("ls", "pwd", "echo hello", "1 + 1", "notes.txt", "ünïcode")
                return words[self.np_random.integers(len(words))]

    def _integer(self, low: int, high: int) -> int:
        """Both ends included."""
        return int(self.np_random.integers(low, high + 1))

    def contains(self, x: Any) -> bool:
        try:
            if not isinstance(x, dict):
                return False
            call = cast("dict[Any, Any]", x)
            if set(call) != {"tool", "arguments"} or call["tool"] not in self._validators:
                return False
            return bool(self._validators[call["tool"]].is_valid(call["arguments"]))
        except Exception:  # whatever a stranger puts into a space is not in it, and that is all we say
            return False

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCallSpace) and self.specs == other.specs

    def __repr__(self) -> str:
        return f"ToolCallSpace({', '.join(spec.name for spec in self.specs)})"


def _validators(specs: Sequence[ToolSpec]) -> dict[str, Any]:
    schemas: dict[str, Any] = {spec.name: spec.parameters for spec in specs}
    return {name: jsonschema.Draft202012Validator(schema) for name, schema in schemas.items()}
