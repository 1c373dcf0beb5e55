"""What an agent may call, what it called, and what it saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from typing_extensions import TypeAliasType

Json = TypeAliasType("Json", "bool | int | float | str | list[Json] | dict[str, Json] | None")
"""The recursive JSON type; money travels as decimal strings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool, as the model is told of it.

    Example:
        >>> ToolSpec(name="shell", description="Run bash.", parameters={
        ...     "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}).name
        'shell'
    """

    name: str
    description: str
    parameters: Json
    """JSON schema of object, array, string, integer, number, boolean, enum only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call; a wrong one is answered by an observation."""

    tool: str
    arguments: Mapping[str, Json] = field(default_factory=dict[str, Json])
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What the agent sees; `cut_bytes` left the middle, and the text says so."""

    text: str
    images: tuple[bytes, ...] = ()
    """PNG bytes."""
    cut_bytes: int = 0
    ok: bool = True
