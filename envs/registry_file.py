"""Reading a registry file: entries by id, and the place of every field, so that an error names file and line.

A file is a list of entries, or a mapping of `suites` and `environments` to such lists. One pass of the C parser; an
entry's values are made when it is asked for, so that hundreds of entries cost an import next to nothing.
"""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from .core import ConfigError

DOMAINS = ("terminal", "blender", "cad", "game", "finance", "law", "office", "data", "test")
"""The namespaces of our own ids; another package chooses its own."""
ID_PATTERN = r"^[a-z][a-z0-9_-]*/[A-Z][A-Za-z0-9]*-v\d+$"
SUITE_PATTERN = r"^[a-z][a-z0-9-]*-v\d+$"
_YAML: Any = yaml
"""Its types say nothing of nodes, loaders and constructors."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.cache
def registry_path() -> Path:
    """Where the distribution's own `registry.yaml` lies."""
    return Path(str(importlib.resources.files("metier.envs").joinpath("registry.yaml")))


@dataclass(frozen=True, slots=True, kw_only=True)
class RawEntry:
    """An entry, or a suite by its name, as read and not yet validated."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a registry file holds."""

    entries: dict[str, RawEntry]
    """By id."""
    suites: dict[str, RawEntry]
    """By name."""


def read(path: Path) -> dict[str, RawEntry]:
    """The entries of a registry file by id. Raises as `read_all`."""
    return read_all(path).entries


def read_all(path: Path) -> Contents:
    """The entries and suites of a registry file.

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
    lists = _lists(path, root)
    return Contents(
        entries=_by_name(path, lists.get("environments", ()), _id),
        suites=_by_name(path, lists.get("suites", ()), _suite_name),
    )


def _lists(path: Path, root: Any) -> dict[str, list[Any]]:
    """The nodes of the file's lists, by the list's name."""
    if isinstance(root, yaml.SequenceNode):
        return {"environments": root.value}
    wanted = "a registry is a list of entries, each '- id: domain/Name-v0', or has `suites` and `environments`"
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError(f"{_place(path, 1)}: {wanted}")
    lists: dict[str, list[Any]] = {}
    for key, value in root.value:
        place = _place(path, key.start_mark.line + 1)
        if key.value not in ("suites", "environments") or not isinstance(value, yaml.SequenceNode):
            raise ConfigError(f"{place}: {key.value}: {wanted}, each of them a list")
        if key.value in lists:
            raise ConfigError(f"{place}: {key.value} is given twice")
        lists[key.value] = value.value
    if "environments" in lists and next(reversed(lists)) != "environments":  # `metier new` adds to a file's end
        raise ConfigError(f"{_place(path, 1)}: `environments` comes last in a registry: put `suites` above it")
    return lists


def _by_name(path: Path, nodes: Sequence[Any], name_of: Callable[[Path, Any], str]) -> dict[str, RawEntry]:
    found: dict[str, RawEntry] = {}
    for node in nodes:
        raw = RawEntry(id=name_of(path, node), path=path, node=node)
        if raw.id in found:
            raise ConfigError(f"{raw.place()}: {raw.id} is already defined at {found[raw.id].place()}")
        found[raw.id] = raw
    return found


def _suite_name(path: Path, node: Any) -> str:
    found = _below(node, "suite")
    name = found[1].value if found else None
    if not isinstance(name, str) or not re.match(SUITE_PATTERN, name):
        place = _place(path, node.start_mark.line + 1)
        raise ConfigError(f"{place}: suite {name!r} must look like some-name-v0: small letters, digits and hyphens")
    return name


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
