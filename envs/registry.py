"""The registry: `registry.yaml` → entries → families and briefs.

Registration data lives in `registry.yaml` only; behaviour lives in the family's class only. Reading is lazy: an import
reads ids, and an entry is validated when it is asked for, so that hundreds of entries cost an import nothing.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import importlib.resources
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from .core import ConfigError, Family, Instance, Json

if TYPE_CHECKING:
    from .entry import Entry

_ID = re.compile(r"^(terminal|blender|cad|game|finance|law|office|data|test)/[A-Z][A-Za-z0-9]*-v\d+$")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def registry_path() -> Path:
    """Where the distribution's own `registry.yaml` lies."""
    return Path(str(importlib.resources.files("metier.envs").joinpath("registry.yaml")))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RawEntry:
    """An entry as read, with the place it was read from, so that an error can name it."""

    fields: Mapping[str, Any]
    path: Path
    line: int

    @property
    def place(self) -> str:
        """file:line, as compilers write it."""
        return f"{self.path.name}:{self.line}"


def read(path: Path) -> dict[str, RawEntry]:
    """The entries of a registry file by id.

    Raises:
        ConfigError: no file, no YAML, no list of entries with ids, a malformed or a duplicate id; file and line named.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the registry {path}: {error.strerror}") from error
    try:
        node = yaml.compose(text, Loader=_LOADER)
        items: object = yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path.name} is not YAML: {error}") from error
    if not isinstance(items, list) or not isinstance(node, yaml.SequenceNode):
        raise ConfigError(f"{path.name}:1: a registry is a list of entries that begin with '- id: domain/Name-v0'")
    entries: dict[str, RawEntry] = {}
    for item, item_node in zip(items, node.value, strict=True):
        raw = RawEntry(fields=item if isinstance(item, dict) else {}, path=path, line=item_node.start_mark.line + 1)
        env_id = raw.fields.get("id")
        if not isinstance(env_id, str) or not _ID.match(env_id):
            raise ConfigError(f"{raw.place}: id {env_id!r} must look like domain/Name-v0, with a known domain")
        if env_id in entries:
            raise ConfigError(f"{raw.place}: {env_id} is already defined at {entries[env_id].place}")
        entries[env_id] = raw
    return entries


@functools.cache
def _all() -> dict[str, RawEntry]:
    return read(registry_path())


def add_registry(path: Path) -> list[str]:
    """Add the entries of another registry file for this process; returns their ids.

    Raises:
        ConfigError: as `read`, or an id that is already taken by another file.
    """
    entries = read(path)
    known = _all()
    for env_id, raw in entries.items():
        if env_id in known and known[env_id].path != path:
            raise ConfigError(f"{raw.place}: {env_id} is already defined at {known[env_id].place}")
    known.update(entries)
    return list(entries)


def ids() -> list[str]:
    """Every registered id, in the registry's order."""
    return list(_all())


def get(env_id: str) -> Entry:
    """The validated entry of an id.

    Raises:
        ConfigError: an unknown id (near misses are suggested), or a wrong field (file and line are named).
    """
    raw = _all().get(env_id)
    if raw is None:
        raise ConfigError(f"unknown environment {env_id!r}{suggest(env_id, ids())}; `metier ls` lists all")
    return _validated(raw)


def _validated(raw: RawEntry) -> Entry:
    from pydantic import ValidationError

    from .entry import Entry

    try:
        return Entry.model_validate(raw.fields)
    except ValidationError as error:
        wrong: list[str] = []
        for problem in error.errors():
            name = ".".join(str(part) for part in problem["loc"]) or "entry"
            hint = suggest(name, list(Entry.model_fields)) if problem["type"] == "extra_forbidden" else ""
            wrong.append(f"{name}: {problem['msg']}{hint}")
        raise ConfigError(f"{raw.place}: {raw.fields['id']}: {'; '.join(wrong)}") from error


def suggest(wrong: str, known: list[str]) -> str:
    """' (did you mean …?)' with the nearest known names, or nothing."""
    lowered = {name.lower(): name for name in known}
    near = difflib.get_close_matches(wrong.lower(), list(lowered), n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(lowered[name] for name in near)}?)" if near else ""


def make_family(entry: Entry, options: Mapping[str, Json] | None = None) -> Family:
    """The family of an entry, with its options.

    Raises:
        ConfigError: the entry point cannot be imported, or an option is unknown or refused.
    """
    module_name, _, class_name = entry.entry_point.partition(":")
    try:
        kind: Any = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{entry.id}: cannot import {entry.entry_point}: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Family)):
        raise ConfigError(f"{entry.id}: {entry.entry_point} is not a Family")
    given = dict(options or {})
    known = [field.name for field in dataclasses.fields(kind)]
    for name in given:
        if name not in known:
            what = f"it has {', '.join(known)}" if known else "it has none"
            raise ConfigError(f"{entry.id}: unknown option {name!r}{suggest(name, known)}; {what}")
    arguments: dict[str, Any] = given
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{entry.id}: option refused: {error}") from error


def render_brief(family: Family, instance: Instance, level: int) -> str:
    """The brief: `instruction.md` beside the family's module, filled with the instance's variables and `level`."""
    import jinja2

    module = importlib.import_module(type(family).__module__)
    folder = Path(str(module.__file__)).parent
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )
    text = (folder / "instruction.md").read_text(encoding="utf-8")
    brief = environment.from_string(text).render({"level": level} | dict(instance.variables)).strip()
    return "\n\n".join([brief, *instance.context])
