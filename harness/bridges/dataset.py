"""Finding the tasks of a folder: a task's own, or a dataset's with a task in each folder of it.

Where a dataset has a manifest (dataset.toml), it names each task with the digest of its content, and a folder whose
content is another is refused. What the manifest names and is not here is told.
"""

from __future__ import annotations

import fnmatch
import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metier.envs.bridges.folder import read_folder
from metier.envs.bridges.refusal import Reason, TaskRefused
from metier.envs.core import ConfigError

MAX_DEPTH = 3
"""Folders between a dataset and its tasks; some have one for tasks, some one for each organisation as well."""
_PUBLISHED = ("task.toml", "instruction.md", "README.md", "trajectory.json")
_TREES = ("environment/", "tests/", "solution/", "steps/")
_NOT_PUBLISHED = ("*.pyc", ".DS_Store", "*.swp", "*.swo", "*~")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFolder:
    """A folder that looks like a task."""

    path: Path
    form: str
    """`harbor` or `terminal-bench`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a folder holds."""

    tasks: tuple[TaskFolder, ...]
    refused: tuple[TaskRefused, ...] = ()
    notes: tuple[str, ...] = ()


def looks_like_tasks(name: str) -> bool:
    """Whether a name is that of a folder on this machine, rather than of an environment or a suite."""
    path = Path(name).expanduser()
    return path.is_dir() and (name.startswith((".", "/", "~")) or bool(_tasks_below(path, MAX_DEPTH)))


def find_tasks(source: Path) -> Found:
    """The tasks in a folder, sorted by path.

    Raises:
        ConfigError: there is no such folder, or no task in it; or its manifest cannot be read.
    """
    source = source.expanduser()
    if not source.is_dir():
        raise ConfigError(f"{source} is no folder; name a task's folder or a dataset's")
    tasks = _tasks_below(source, MAX_DEPTH)
    if not tasks:
        raise ConfigError(f"{source} has no task in it: a task's folder has a task.toml (Harbor) or a task.yaml")
    manifest = source / "dataset.toml"
    if not manifest.is_file():
        return Found(tasks=tuple(tasks))
    return _checked(tasks, _manifest(manifest))


def _tasks_below(folder: Path, depth: int) -> list[TaskFolder]:
    if (folder / "task.toml").is_file():
        return [TaskFolder(path=folder, form="harbor")]
    if (folder / "task.yaml").is_file():
        return [TaskFolder(path=folder, form="terminal-bench")]
    if depth == 0:
        return []
    try:
        inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        return []
    return [task for path in inner if not path.name.startswith(".") for task in _tasks_below(path, depth - 1)]


def _manifest(path: Path) -> dict[str, str]:
    """Task → digest. Raises ConfigError."""
    try:
        said: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        named = {str(one["name"]): str(one["digest"]) for one in said.get("tasks", [])}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: no manifest of a dataset: {error!r}") from None
    return named


def _checked(tasks: list[TaskFolder], named: dict[str, str]) -> Found:
    kept: list[TaskFolder] = []
    refused: list[TaskRefused] = []
    notes: list[str] = []
    seen: set[str] = set()
    for task in tasks:
        name = _own_name(task)
        wanted = named.get(name)
        seen.add(name)
        if wanted is None:
            notes.append(f"{name}: dataset.toml does not name it; it is taken all the same")
            kept.append(task)
            continue
        try:
            is_same = f"sha256:{content_digest(task.path)}" == wanted
        except TaskRefused as error:
            refused.append(error)
            continue
        if is_same:
            kept.append(task)
        else:
            message = f"its content is not what dataset.toml names ({wanted[:19]}…); fetch the dataset again"
            refused.append(TaskRefused(Reason.DIGEST, name, message))
    notes += [f"{name}: named by dataset.toml, and not in this folder" for name in sorted(set(named) - seen)]
    return Found(tasks=tuple(kept), refused=tuple(refused), notes=tuple(notes))


def _own_name(task: TaskFolder) -> str:
    try:
        said = tomllib.loads((task.path / "task.toml").read_text(encoding="utf-8"))
        return str(said["task"]["name"])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError):
        return task.path.name


def content_digest(folder: Path) -> str:
    """A task's digest as a Harbor manifest states it: over the name and SHA-256 of each file that is published.

    A task with a `.gitignore` of its own, whose patterns decide what is published, is taken by the default patterns.
    """
    digest = hashlib.sha256()
    for name, held in sorted(read_folder(folder, folder.name).items()):
        published = name in _PUBLISHED or name.startswith(_TREES)
        base = name.rsplit("/", 1)[-1]
        if published and not any(fnmatch.fnmatch(base, pattern) for pattern in _NOT_PUBLISHED):
            digest.update(f"{name}\0{hashlib.sha256(held.data).hexdigest()}\n".encode())
    return digest.hexdigest()
