"""The registry: `registry.yaml` → entries → families and briefs.

Registration data lives in `registry.yaml` only; behaviour lives in the family's class only. Reading is lazy: an import
reads ids, and an entry is validated when it is asked for, so that hundreds of entries cost an import nothing.

Other packages add environments of their own through the entry-point group `metier.registries`, whose value names the
package that holds a `registry.yaml`. A file that no installed package offers is named by METIER_REGISTRIES (several
with colons, as in PATH); the folder above its own is where its modules are found. A wrong file or entry of theirs never
takes ours down: it is left out, and `problems` says why.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import importlib.util
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .core import ConfigError, Family, GenerationError, Instance, Json
from .registry_file import DOMAINS, Contents, RawEntry, read, read_all, registry_path

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .entry import Entry
    from .suite import Suite

M = TypeVar("M", bound="BaseModel")

__all__ = [
    "DOMAINS",
    "GROUP",
    "NAMED",
    "RawEntry",
    "add_package",
    "add_registry",
    "entries",
    "get",
    "ids",
    "make_family",
    "problems",
    "read",
    "registry_path",
    "render_brief",
    "schema",
    "sources",
    "suggest",
    "suite",
    "suites",
]

GROUP = "metier.registries"
"""The entry-point group: `name = "package"`, or `name = "package:other_file.yaml"`."""
NAMED = "METIER_REGISTRIES"
"""The environment variable: paths of registry files; processes that are started later find the same environments."""


@dataclasses.dataclass(slots=True)
class _Known:
    entries: dict[str, RawEntry]
    problems: list[str]
    suites: dict[str, RawEntry] = dataclasses.field(default_factory=dict[str, RawEntry])

    def add(self, path: Path) -> list[str]:
        """What a file has, all of it or, where a name is taken by another file, nothing; gives the ids."""
        contents = read_all(path)
        for known, new in ((self.entries, contents.entries), (self.suites, contents.suites)):
            for name, raw in new.items():
                if name in known and known[name].path != path:
                    raise ConfigError(f"{raw.place()}: {name} is already defined at {known[name].place()}")
        self.entries.update(contents.entries)
        self.suites.update(contents.suites)
        return list(contents.entries)


@functools.cache
def _known() -> _Known:
    own: Contents = read_all(registry_path())
    known = _Known(own.entries, [], own.suites)
    for name, find in _external():
        try:
            known.add(find())
        except ConfigError as error:
            known.problems.append(f"the registry {name!r} of another package was left out: {error}")
    return known


def _external() -> Iterator[tuple[str, Any]]:
    """The registries that were named or installed: a name, and a function that gives the file's path."""
    from importlib.metadata import entry_points

    for path in filter(None, os.environ.get(NAMED, "").split(os.pathsep)):
        yield path, functools.partial(_with_modules, Path(path))
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        yield point.name, functools.partial(_file_of, point.module, point.attr or "registry.yaml")


def _file_of(module: str, name: str) -> Path:
    """A file of a package, found without importing it (a package inside another imports the outer one)."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"no package {module}: {error}") from error
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"no package {module}; the entry point's value is the package that holds {name}")
    return Path(spec.submodule_search_locations[0]) / name


def _with_modules(path: Path) -> Path:
    """The file, when the modules of the package that it lies in can be imported."""
    above = str(path.parent.parent)
    if above not in sys.path:
        sys.path.append(above)
    return path


def add_package(path: Path) -> list[str]:
    """As `add_registry`, for a file in a package that is not installed, and for the processes started from now on too.

    Raises:
        ConfigError: as `add_registry`.
    """
    added = add_registry(_with_modules(path))
    named = [one for one in os.environ.get(NAMED, "").split(os.pathsep) if one]
    if str(path) not in named:
        os.environ[NAMED] = os.pathsep.join([*named, str(path)])
    return added


def add_registry(path: Path) -> list[str]:
    """Add the entries and suites of another registry file for this process; returns the entries' ids.

    Raises:
        ConfigError: as `read`, or an id that is already taken by another file.
    """
    return _known().add(path)


def ids() -> list[str]:
    """Every registered id, ours in the registry's order, then those of other packages."""
    return list(_known().entries)


def entries() -> list[Entry]:
    """Every entry, validated. A wrong one of another package is left out with a warning.

    Raises:
        ConfigError: an entry of our own file is wrong.
    """
    valid: list[Entry] = []
    for raw in _known().entries.values():
        try:
            valid.append(validated(raw))
        except ConfigError as error:
            if raw.path == registry_path():
                raise
            problem = f"an entry of another package was left out: {error}"
            if problem not in _known().problems:
                _known().problems.append(problem)
                warnings.warn(problem, stacklevel=2)
    return valid


def problems() -> list[str]:
    """Why files of other packages were left out, and entries since `entries` was asked; empty where all is well."""
    return list(_known().problems)


def sources() -> dict[Path, list[str]]:
    """Every registry file in use, with its ids."""
    found: dict[Path, list[str]] = {}
    for env_id, raw in _known().entries.items():
        found.setdefault(raw.path, []).append(env_id)
    return found


def get(env_id: str) -> Entry:
    """The validated entry of an id.

    Raises:
        ConfigError: an unknown id (near misses are suggested), or a wrong field (file and line are named).
    """
    raw = _known().entries.get(env_id)
    if raw is None:
        raise ConfigError(f"unknown environment {env_id!r}{suggest(env_id, ids())}; `metier ls --all` lists all")
    return validated(raw)


def suites() -> list[str]:
    """The name of every registered suite, ours first."""
    return list(_known().suites)


def suite(name: str) -> Suite:
    """The validated suite of a name.

    Raises:
        ConfigError: an unknown name (near misses are suggested), or a wrong field (file and line are named).
    """
    from .suite import Suite

    raw = _known().suites.get(name)
    if raw is None:
        raise ConfigError(f"unknown suite {name!r}{suggest(name, suites())}; there are {', '.join(suites()) or 'none'}")
    return _modelled(raw, Suite)


def validated(raw: RawEntry) -> Entry:
    """The entry of what was read.

    Raises:
        ConfigError: a field is unknown, missing or wrong; each is named with its file and line.
    """
    from .entry import Entry

    return _modelled(raw, Entry)


def _modelled(raw: RawEntry, kind: type[M]) -> M:
    from pydantic import ValidationError

    from .entry import Limits

    try:
        return kind.model_validate(raw.fields())
    except ValidationError as error:
        wrong: list[str] = []
        for problem in error.errors():
            name = ".".join(str(part) for part in problem["loc"]) or "entry"
            said = problem["msg"]
            if problem["type"] == "extra_forbidden":
                fields = Limits if len(problem["loc"]) > 1 else kind
                said = f"no such field{suggest(name.rpartition('.')[2], list(fields.model_fields))}"
            wrong.append(f"{raw.place(*problem['loc'])}: {raw.id}: {name}: {said}")
        raise ConfigError("; ".join(wrong)) from error


def schema() -> dict[str, Any]:
    """The JSON schema of a registry file, for editors and for those who make registries by program."""
    from .entry import Entry
    from .suite import Suite

    entry, suite = Entry.model_json_schema(), Suite.model_json_schema()
    environments = {"type": "array", "items": {"$ref": "#/$defs/Entry"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A registry of environments",
        "anyOf": [
            environments,
            {
                "type": "object",
                "properties": {
                    "suites": {"type": "array", "items": {"$ref": "#/$defs/Suite"}},
                    "environments": environments,
                },
                "additionalProperties": False,
            },
        ],
        "$defs": entry.pop("$defs", {}) | suite.pop("$defs", {}) | {"Entry": entry, "Suite": suite},
    }


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
    """The brief: `instruction.md` beside the family's module, filled with the instance's variables and `level`.

    Raises:
        GenerationError: there is none, or it cannot be filled; file and line are named.
    """
    import jinja2

    module = importlib.import_module(type(family).__module__)
    path = Path(str(module.__file__)).with_name("instruction.md")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )
    variables = {"level": level} | dict(instance.variables)
    try:
        brief = environment.from_string(path.read_text(encoding="utf-8")).render(variables).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise GenerationError(f"cannot read the brief {path}: {getattr(error, 'strerror', None) or error}") from error
    except jinja2.TemplateSyntaxError as error:
        raise GenerationError(f"{path}:{error.lineno}: {error.message}") from error
    except Exception as error:  # what a template does with its variables
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
        known = f"; it may use {', '.join(variables)}" if isinstance(error, jinja2.UndefinedError) else ""
        raise GenerationError(f"{path}:{lines[-1] if lines else 1}: {error}{known}") from error
    return "\n\n".join([brief, *instance.context])
