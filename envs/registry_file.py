"""Reading a registry file: entries by id, and the place of every field, so that an error names file and line.

One pass of the C parser; an entry's values are made when it is asked for, so that hundreds of entries cost an import
next to nothing.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .core import ConfigError

DOMAINS = ("terminal", "blender", "cad", "game", "finance", "law", "office", "data", "test")
"""The namespaces of our own ids; another package chooses its own."""
ID_PATTERN = r"^[a-z][a-z0-9_-]*/[A-Z][A-Za-z0-9]*-v\d+$"
_YAML: Any = yaml
"""Its types say nothing of nodes, loaders and constructors."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.cache
def registry_path() -> Path:
    """Where the distribution's own `registry.yaml` lies."""
    return Path(str(importlib.resources.files("metier.envs").joinpath("registry.yaml")))


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEntry:
    """An entry as read, not yet validated."""

    id: str
    path: Path
    node: Any
    """The YAML node, which knows the line of each field."""

    def place(self, *at: str | int) -> str:
        """file:line of the field that `at` leads to, or of the innermost part of it that is there."""
        node, mark = self.node, self.node.start_mark
        for step in at:
            found = _below(node, step)
            if found is None:
                break
            mark, node = found
        return _place(self.path, mark.line + 1)

    def fields(self) -> dict[str, Any]:
        """The entry's values.

        Raises:
            ConfigError: it is no mapping, a field is given twice, or a value is of no kind that YAML knows by itself.
        """
        if not isinstance(self.node, yaml.MappingNode):
            raise ConfigError(f"{self.place()}: an entry is a mapping that begins with 'id: domain/Name-v0'")
        seen: set[str] = set()
        for key, _ in self.node.value:
            if str(key.value) in seen:
                raise ConfigError(
                    f"{_place(self.path, key.start_mark.line + 1)}: {self.id}: {key.value} is given twice"
                )
            seen.add(str(key.value))
        try:
            return _YAML.constructor.SafeConstructor().construct_document(self.node)
        except (yaml.constructor.ConstructorError, ValueError) as error:  # a tag of its own; 2026-13-45 as a date
            raise ConfigError(f"{self.place()}: {self.id}: {getattr(error, 'problem', None) or error}") from error


def _below(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """The mark and the node of a mapping's field or a sequence's item."""
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None


def _place(path: Path, line: int) -> str:
    """As compilers write it; our own file by its name alone, since there is one of it."""
    return f"{path.name if path == registry_path() else path}:{line}"


def read(path: Path) -> dict[str, RawEntry]:
    """The entries of a registry file by id.

    Raises:
        ConfigError: no file, no YAML, no list of entries with ids, a malformed or a duplicate id; file and line named.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the registry {path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        root = _YAML.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{_place(path, line)}: not YAML: {getattr(error, 'problem', None) or error}") from error
    if not isinstance(root, yaml.SequenceNode):
        raise ConfigError(f"{_place(path, 1)}: a registry is a list of entries that begin with '- id: domain/Name-v0'")
    entries: dict[str, RawEntry] = {}
    for node in root.value:
        raw = RawEntry(id=_id(path, node), path=path, node=node)
        if raw.id in entries:
            raise ConfigError(f"{raw.place()}: {raw.id} is already defined at {entries[raw.id].place()}")
        entries[raw.id] = raw
    return entries


def _id(path: Path, node: Any) -> str:
    found = _below(node, "id")
    env_id = found[1].value if found else None
    if not isinstance(env_id, str) or not re.match(ID_PATTERN, env_id):
        place = _place(path, node.start_mark.line + 1)
        raise ConfigError(f"{place}: id {env_id!r} must look like domain/Name-v0: small letters, then a capital")
    if path == registry_path() and env_id.partition("/")[0] not in DOMAINS:
        raise ConfigError(
            f"{_place(path, node.start_mark.line + 1)}: {env_id} has no known domain; they are {', '.join(DOMAINS)}"
        )
    return env_id
