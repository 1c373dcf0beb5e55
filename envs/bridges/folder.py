"""Reading a task's folder: every file of it, and nothing beside it.

Links inside the folder count as what they lead to; one that leads out, or round in a circle, is refused, as is what is
no regular file. Sizes are bounded before anything is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .refusal import Reason, TaskRefused

MAX_FILE_BYTES = 64 << 20
MAX_BYTES = 256 << 20
MAX_FILES = 10_000
_LEFT_OUT = frozenset({"__pycache__", ".git", ".DS_Store"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One file."""

    data: bytes
    executable: bool = False


Files = Mapping[str, Held]
"""Path relative to the folder, with slashes → file; sorted."""


def read_folder(folder: Path, task: str) -> dict[str, Held]:
    """Everything in a folder, at any depth.

    Raises:
        TaskRefused: a link leads out, something is no file, or there is too much of it.
    """
    root = folder.resolve()
    found: dict[str, Held] = {}
    total = 0
    for name, path in sorted(_below(root, root, task, ())):
        size = path.stat().st_size
        total += size
        if size > MAX_FILE_BYTES or total > MAX_BYTES or len(found) >= MAX_FILES:
            raise TaskRefused(
                Reason.TOO_LARGE,
                task,
                f"{name}: a task has at most {MAX_FILES} files, {MAX_FILE_BYTES >> 20} MiB each and "
                f"{MAX_BYTES >> 20} MiB together; fetch what is large in the Dockerfile",
            )
        found[name] = Held(data=path.read_bytes(), executable=bool(path.stat().st_mode & 0o100))
    return found


def below(files: Files, folder: str) -> dict[str, Held]:
    """The files of a subfolder, by their path in it."""
    prefix = folder.rstrip("/") + "/"
    return {name.removeprefix(prefix): held for name, held in files.items() if name.startswith(prefix)}


def text_of(files: Files, name: str, task: str) -> str:
    """A file as text.

    Raises:
        TaskRefused: it is missing, or no UTF-8.
    """
    if name not in files:
        raise TaskRefused(Reason.DAMAGED, task, f"{name} is missing")
    try:
        return files[name].data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TaskRefused(Reason.DAMAGED, task, f"{name} is no UTF-8 text: {error.reason}") from None


def _below(folder: Path, root: Path, task: str, above: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    """Each file's name from `root` through the links on the way, and where it really lies."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name in _LEFT_OUT:
            continue
        shown = ascii(entry.name)
        try:
            entry.name.encode("utf-8")
            real = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError, UnicodeEncodeError) as error:
            raise TaskRefused(Reason.UNSAFE_PATH, task, f"{shown} leads nowhere: {error}") from None
        if not real.is_relative_to(root) or real in (*above, folder):
            raise TaskRefused(Reason.UNSAFE_PATH, task, f"{shown} is a link out of the task's folder, or in a circle")
        mode = real.stat().st_mode
        if stat.S_ISDIR(mode):
            for name, path in _below(real, root, task, (*above, folder)):
                yield f"{entry.name}/{name}", path
        elif stat.S_ISREG(mode):
            yield entry.name, real
        else:
            raise TaskRefused(Reason.UNSAFE_PATH, task, f"{shown} is neither a file nor a folder")
