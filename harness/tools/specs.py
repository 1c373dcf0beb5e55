"""The built-in tools, as the model is told of them."""

from __future__ import annotations

from collections.abc import Sequence

from metier.envs.core import Json, ToolSpec


def _spec(name: str, description: str, required: Sequence[str], **properties: Json) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
    )


_TIMEOUT: Json = {"type": "integer", "minimum": 1, "maximum": 3600, "description": "Seconds; 60 by default."}

SUBMIT = _spec(
    "submit",
    "End the task and have it graded. A short answer, where the task asks for one, goes in `answer`.",
    [],
    answer={"type": "string"},
)

SPECS: dict[str, ToolSpec] = {
    "shell": _spec(
        "shell",
        "Run a command in a persistent bash session in /workspace; directory, variables and background jobs survive.",
        ["command"],
        command={"type": "string"},
        timeout_s=_TIMEOUT,
    ),
    "read_file": _spec(
        "read_file",
        "Read a text file, from line `start` (1 by default).",
        ["path"],
        path={"type": "string"},
        start={"type": "integer", "minimum": 1},
    ),
    "edit": _spec(
        "edit",
        "Replace `old`, which must occur exactly once in the file, by `new`. With an empty `old`, write a new file.",
        ["path", "old", "new"],
        path={"type": "string"},
        old={"type": "string"},
        new={"type": "string"},
    ),
    "python": _spec(
        "python",
        "Run Python in a persistent interpreter in /workspace; the last expression's value is shown.",
        ["code"],
        code={"type": "string"},
        timeout_s=_TIMEOUT,
    ),
    "view": _spec(
        "view",
        "See a picture: of a file (an image or a model), or without `path` of the live scene of the Python session.",
        [],
        path={"type": "string"},
    ),
}


def tool_specs(names: Sequence[str]) -> tuple[ToolSpec, ...]:
    """The specs of the named built-in tools, and `submit`."""
    return (*(SPECS[name] for name in names), SUBMIT)
