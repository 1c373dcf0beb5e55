"""Where a server keeps submissions: folders that appear whole or not at all.

    lock                held while submissions become visible or are cleared away
    incoming/<random>/  an upload: its own lock, what arrived, and what will be published
    held/<id>/          what arrived, until its replays are done: only then are its texts no longer needed as they were
    public/<id>/        a results folder without secrets, from which everybody may compute the figures
    claims/<id>         held by the process that replays it

Locks are the kernel's: they end with their process, however that ends and whatever the clock says. Several servers may
share one such folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from metier.envs.core import ConfigError

from ..evaluate.files import sync_folder

_LOCK = "lock"
_PARTS = ("incoming", "held", "public", "claims")


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """An upload's folder; gone at the end of its `with`, unless it was admitted."""

    path: Path
    arrived: Path
    """What arrived, as it arrived."""
    public: Path
    """What will be published."""


class Folders:
    """The folders of a server, made if they are not there."""

    def __init__(self, root: Path) -> None:
        """Raises ConfigError: they cannot be made."""
        self.root = root
        try:
            for part in _PARTS:
                (root / part).mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise ConfigError(
                f"{root} cannot hold submissions: {error.strerror or error}; give another --store"
            ) from error

    def held(self, submission: str) -> Path:
        """What arrived; not there once its replays are done."""
        return self.root / "held" / submission

    def public(self, submission: str) -> Path:
        """The published results folder."""
        return self.root / "public" / submission

    def all_public(self) -> list[Path]:
        """The published results folders."""
        return list((self.root / "public").iterdir())

    def free_bytes(self) -> int:
        """Of the disk."""
        return shutil.disk_usage(self.root).free

    @contextmanager
    def incoming(self) -> Generator[Incoming, None, None]:
        """A folder for an upload. Raises OSError: the disk is full."""
        path = self.root / "incoming" / secrets.token_hex(16)
        made = Incoming(path=path, arrived=path / "arrived", public=path / "public")
        try:
            with ExitStack() as lock:
                with self.changing():  # so that nobody clears it away before it has its lock
                    path.mkdir(mode=0o700)
                    lock.enter_context(_held(path / _LOCK))
                made.arrived.mkdir()
                made.public.mkdir()
                yield made
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def changing(self) -> Generator[None, None, None]:
        """The right to make submissions visible, one process at a time."""
        with _held(self.root / _LOCK, wait=True):
            yield

    def admit(self, incoming: Incoming, submission: str) -> None:
        """Put an upload in its place; whoever holds `changing` writes it into the database afterwards."""
        for source, target in ((incoming.arrived, self.held(submission)), (incoming.public, self.public(submission))):
            shutil.rmtree(target, ignore_errors=True)  # of a server that was killed before its database knew
            os.rename(source, target)
            sync_folder(target.parent)

    def forget(self, submission: str) -> None:
        """Take a submission's folders away again."""
        for path in (self.held(submission), self.public(submission)):
            shutil.rmtree(path, ignore_errors=True)

    def release(self, submission: str) -> None:
        """What arrived is not needed any more."""
        shutil.rmtree(self.held(submission), ignore_errors=True)

    @contextmanager
    def claim(self, submission: str) -> Generator[bool, None, None]:
        """Whether this process may replay it: no other one does, as long as this lasts."""
        path = self.root / "claims" / submission
        with _held(path) as got:
            yield got
            if got:
                path.unlink(missing_ok=True)

    def clear(self, known: frozenset[str], waiting: frozenset[str]) -> int:
        """Take away what killed processes left, while holding `changing`; gives how many folders.

        Args:
            known: every submission of the database.
            waiting: those whose replays are not done.
        """
        gone = 0
        for path in (self.root / "incoming").iterdir():
            with _held(path / _LOCK) as got:
                if got:
                    shutil.rmtree(path, ignore_errors=True)
                    gone += 1
        for part, kept in (("held", waiting), ("public", known)):
            for path in (self.root / part).iterdir():
                if path.name not in kept:
                    shutil.rmtree(path, ignore_errors=True)
                    gone += 1
        return gone


@contextmanager
def _held(path: Path, *, wait: bool = False) -> Generator[bool, None, None]:
    """Whether the lock was had; a file that was removed by its last holder is no lock any more."""
    fd = -1
    try:
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
                return
            with contextlib.suppress(FileNotFoundError):
                if os.stat(path).st_ino == os.fstat(fd).st_ino:
                    break
            os.close(fd)
            fd = -1
        yield True
    except FileNotFoundError:  # its folder went away
        if fd >= 0:
            raise
        yield False
    finally:
        if fd >= 0:
            os.close(fd)
