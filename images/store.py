"""Where images lie on this machine: the cache folder, one lock and one record an image.

<cache>/base/<digest>.tar            the bootstrapped base
<cache>/rootfs/<name>-<digest12>/    an unpacked image, for sandboxes without an engine
<cache>/records/<name>-<digest12>.json   what was built, when, what is in it, which smoke test it passed
<cache>/locks/<name>                 held while that image is built, by any process
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from metier.envs.core import SandboxUnavailable

from .recipe import Recipe
from .stopping import Stop

Progress = Callable[[str], None]
"""Takes one finished line of progress."""
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One build of one recipe by one engine."""

    name: str
    digest: str
    engine: str
    built_at: float
    """Seconds since the epoch."""
    seconds: float
    size_mb: int
    smoke: str
    """SHA-256 of the smoke test that passed; empty where there is none."""
    manifest: tuple[str, ...]
    """`package version` of Debian and Python packages."""


def cache_dir() -> Path:
    """`$METIER_HOME`, else `$XDG_CACHE_HOME/metier`, else `~/.cache/metier`; not made here."""
    if home := os.environ.get("METIER_HOME"):
        return Path(home).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "metier"


@contextlib.contextmanager
def making_room(folder: Path, what: str) -> Iterator[None]:
    """For a block that writes `what` into `folder`, of the cache: says what is full, and what to do.

    Raises:
        SandboxUnavailable: it could not be written.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, ConnectionError):
            raise
        raise no_room(folder, what, error) from error


def no_room(folder: Path, what: str, error: OSError) -> SandboxUnavailable:
    """The words for an `error` at writing `what` into `folder`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SandboxUnavailable(
            f"no room for {what}: the disk of {folder} is full; run `metier images prune`, remove what else is there, "
            "or set METIER_HOME to a folder on a larger disk"
        )
    return SandboxUnavailable(
        f"{what} cannot be written to {folder} ({error}); set METIER_HOME to a folder that you may write"
    )


def remove_tree(path: Path) -> None:
    """Remove a tree whose directories may be unreadable to a plain user; absent is fine.

    Not what is mounted in it, and to its end: in a session of its own, a terminal's Ctrl-C does not reach it.
    """
    if path.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", str(path)], check=True, start_new_session=True)


def rootfs_path(recipe: Recipe) -> Path:
    """Where the root file system of `recipe` lies, made or not."""
    return cache_dir() / "rootfs" / f"{recipe.name}-{recipe.digest[:12]}"


def _record_path(recipe: Recipe, engine: str) -> Path:
    return cache_dir() / "records" / f"{recipe.name}-{recipe.digest[:12]}-{engine}.json"


def load_record(recipe: Recipe, engine: str) -> Record | None:
    """The record of this recipe's build by `engine`; None where there is none that can be read."""
    try:
        fields = json.loads(_record_path(recipe, engine).read_text())
        return Record(**{**fields, "manifest": tuple(fields["manifest"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def previous_record(recipe: Recipe, engine: str) -> Record | None:
    """The newest record of another recipe under the same name, to compare what got installed."""
    found = sorted(cache_dir().glob(f"records/{recipe.name}-*-{engine}.json"), key=lambda path: path.stat().st_mtime)
    for path in reversed(found):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            fields = json.loads(path.read_text())
            if fields["name"] == recipe.name:
                return Record(**{**fields, "manifest": tuple(fields["manifest"])})
    return None


def save_record(recipe: Recipe, record: Record) -> None:
    """Written whole or not at all."""
    path = _record_path(recipe, record.engine)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        draft.write_text(json.dumps(asdict(record), indent=1))
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def locked(name: str, progress: Progress, stop: Stop | None = None) -> Iterator[None]:
    """One builder of image `name` at a time on this host; the lock dies with its process.

    Raises:
        Stopped: `stop` was asked for, at the latest while this waited.
    """
    stop = stop or Stop()
    stop.check()
    path = cache_dir() / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        started = time.monotonic()
        if not _taken(handle):
            progress(f"[{name}] another process is building it: waiting")
            while not _taken(handle):
                stop.check()
                time.sleep(_LOOK_S)
            progress(f"[{name}] waited {time.monotonic() - started:.0f} s")
        yield


def _taken(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
