"""A results folder: a manifest, one line a trial in an append-only file, one file an episode.

    manifest.json                   what it is about; replaced as a whole
    results.jsonl                   a row a line, each flushed to the disk before the trial counts as done
    episodes/<key>-<round>.json.gz  the whole episode, written before its row
    earlier/<digest>.json           manifests of other settings, whose rows are kept and not counted
    report.json, report.md          made from the above, and to be made again from them
    lock                            held by the one process that writes

A process may be killed at any moment. Then the last line may be torn, which whoever writes next removes: that trial was
not done. Anything else that is wrong in the folder was not our doing, and is refused with nothing changed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pydantic

from ..result import EpisodeResult
from . import manifest
from .faults import ResultsError, ResultsInUse, another_schema
from .files import MIB, not_kept, opened, packed, read, replace, sync_folder, unpacked
from .manifest import Manifest, Session
from .plan import Plan, Trial
from .row import SCHEMA_VERSION, EpisodeFile, Row

ROWS = "results.jsonl"
EPISODES = "episodes"
EARLIER = "earlier"
LOCK = "lock"
REPORTS = ("report.json", "report.md")
_MOST_LINE = 64 * MIB
_BEGINNING = f'{{"schema_version":{SCHEMA_VERSION},"key":"'.encode()
"""Of every line."""
_MOST_EPISODE = 512 * MIB


class _Lines(NamedTuple):
    rows: list[Row]
    whole_bytes: int
    """Up to the end of the last whole line."""
    unended: bool
    """Whether that line is whole but for its line feed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a folder holds, as it was when it was read."""

    path: Path
    plan: Plan
    rows: Mapping[str, Row]
    """The row that counts of each trial of the plan that has one, by key."""
    num_other: int
    """Rows of other settings."""

    def episode(self, row: Row) -> EpisodeResult:
        """The whole episode of a row.

        Raises:
            ResultsError: its file is missing, damaged or another one.
        """
        return read_episode(self.path, row)


def load(path: Path) -> Results:
    """A folder's results; of one that is being written, those so far.

    Raises:
        ResultsError: it is no results folder, of another version, or damaged.
    """
    try:
        plan = manifest.load(path).plan
    except FileNotFoundError:
        raise ResultsError(f"{path} is no results folder: it has no {manifest.NAME}") from None
    except NotADirectoryError:
        raise ResultsError(f"{path} is no folder") from None
    return _results(path, plan, _read_rows(path / ROWS).rows)


def results_for(path: Path, plan: Plan) -> tuple[Results, Plan | None]:
    """What a folder, if it is there, holds of another plan; and the plan that it has. Nothing is written.

    Raises:
        ResultsError: as `load`.
    """
    if not path.is_dir():
        return _results(path, plan, []), None
    try:
        before = manifest.load(path).plan
    except FileNotFoundError:
        _check_free(path)
        before = None
    return _results(path, plan, _read_rows(path / ROWS).rows), before


def read_episode(path: Path, row: Row) -> EpisodeResult:
    """See `Results.episode`."""
    file = path / EPISODES / _episode_name(row)
    if row.file is None:
        raise ResultsError(f"{path}: nothing is left of the episode of {row.env_id}, seed {row.seed}: {row.failure}")
    try:
        data = read(file, _MOST_EPISODE)
    except FileNotFoundError:
        raise ResultsError(f"{file} is missing: restore it") from None
    if hashlib.sha256(data).hexdigest() != row.file.sha256:
        raise ResultsError(f"{file} is not the file that its row in {ROWS} names: restore it")
    try:
        return EpisodeResult.model_validate_json(unpacked(data, _MOST_EPISODE, str(file)))
    except pydantic.ValidationError as error:
        raise ResultsError(f"{file} holds no episode: {error.errors()[0]['msg']}") from error


def _results(path: Path, plan: Plan, rows: list[Row]) -> Results:
    """Raises ResultsError: a row that cannot be of its trial, or a second one of a trial that was graded."""
    trials = {trial.key: trial for trial in plan.trials()}
    counting: dict[str, Row] = {}
    num_other = 0
    for number, row in enumerate(rows, 1):
        trial = trials.get(row.key)
        if trial is None:
            num_other += 1
            continue
        named = (row.env_id, row.level, row.seed, row.sample)
        if named != (trial.env_id, trial.level, trial.seed, trial.sample):
            raise ResultsError(f"{path / ROWS}:{number}: the row is not of the trial that its key names: restore it")
        before = counting.get(row.key)
        if row.round != (0 if before is None else before.round + 1) or (before is not None and before.valid):
            raise ResultsError(f"{path / ROWS}:{number}: the trial was done already, by an earlier row: restore it")
        counting[row.key] = row
    return Results(path=path, plan=plan, rows=counting, num_other=num_other)


def _read_rows(path: Path) -> _Lines:
    """Every whole line. Raises ResultsError."""
    rows: list[Row] = []
    whole = 0
    try:
        with opened(path) as file:
            while line := file.readline(_MOST_LINE + 1):
                if len(line) > _MOST_LINE:
                    raise ResultsError(
                        f"{path}:{len(rows) + 1}: a line of more than {_MOST_LINE >> 20} MiB: restore it"
                    )
                ended = line.endswith(b"\n")
                try:
                    rows.append(Row.model_validate_json(line))
                except pydantic.ValidationError as error:
                    if not ended and _begun(line):  # whoever wrote it was killed
                        return _Lines(rows, whole, False)
                    raise _wrong_line(path, len(rows) + 1, line, error) from error
                whole += len(line)
                if not ended:
                    return _Lines(rows, whole, True)
    except FileNotFoundError:
        pass
    return _Lines(rows, whole, False)


def _begun(line: bytes) -> bool:
    """Whether it can be the beginning of a row; a disk that lost its power leaves zeros."""
    said = line.rstrip(b"\0")
    return said[: len(_BEGINNING)] == _BEGINNING[: len(said)]


def _wrong_line(path: Path, number: int, line: bytes, error: pydantic.ValidationError) -> ResultsError:
    with contextlib.suppress(ValueError, RecursionError):
        said = json.loads(line)
        version = said.get("schema_version") if isinstance(said, dict) else None
        if isinstance(version, int) and version != SCHEMA_VERSION:
            return another_schema(f"{path}:{number}", version, SCHEMA_VERSION)
    first = error.errors(include_url=False, include_input=False)[0]
    at = ".".join(map(str, first["loc"])) or "the line"
    return ResultsError(
        f"{path}:{number} is no row of results ({at}: {first['msg'][:200]}); restore the file, or evaluate into a new "
        f"folder: nothing was changed"
    )


class Writer:
    """The one process that writes into a folder; made by `writing`."""

    def __init__(self, path: Path, found: Manifest | None) -> None:
        self.path = path
        self._found = found
        self._fd = -1
        self._size = 0
        self._rows: list[Row] = []

    @property
    def found(self) -> Plan | None:
        """The plan that the folder had."""
        return self._found.plan if self._found else None

    @property
    def id(self) -> str:
        """Of the folder; it has one once `begin` was called."""
        assert self._found is not None
        return self._found.id

    def begin(self, plan: Plan) -> Results:
        """Make the folder one of this plan; gives what it already holds of it.

        Raises:
            ResultsError: its rows cannot be used.
            ResultsNotKept: it cannot be written to.
        """
        lines = _read_rows(self.path / ROWS)
        results = _results(self.path, plan, lines.rows)
        self._clear_away()
        if self._found is None or self._found.plan != plan or not self._found.id:
            self._take(plan)
        self._open(lines)
        return results

    def note(self, session: Session) -> None:
        """Record who runs trials from now on. Raises ResultsNotKept."""
        assert self._found is not None
        self._save(self._found.model_copy(update={"sessions": (*self._found.sessions, session)}))

    def keep(self, row: Row, episode: EpisodeResult | None) -> Row:
        """Write a trial's end, durably; gives the row with its file. Blocks for some milliseconds.

        Raises:
            ResultsNotKept: it could not be written; the folder is as it was.
        """
        if episode is not None:
            data = packed(episode.model_dump_json().encode())
            replace(self.path / EPISODES / _episode_name(row), data)
            file = EpisodeFile(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
            row = row.model_copy(update={"file": file})
        self._append(row.model_dump_json().encode() + b"\n")
        return row

    def report(self, name: str, data: bytes) -> None:
        """Write one of `REPORTS`. Raises ResultsNotKept."""
        assert name in REPORTS
        replace(self.path / name, data)

    def close(self) -> None:
        """Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self, plan: Plan) -> None:
        """Another plan from now on; the manifest of the one before is kept."""
        found = self._found or Manifest(plan=plan)
        earlier = found.earlier
        if found.plan.digest != plan.digest:
            self._make_folder(EARLIER)
            replace(self.path / EARLIER / f"{found.plan.digest}.json", found.written())
            earlier = tuple(dict.fromkeys((*earlier, found.plan.digest)))
        name = found.id or uuid.uuid4().hex
        self._save(Manifest(id=name, plan=plan, earlier=earlier, sessions=found.sessions))

    def _save(self, made: Manifest) -> None:
        replace(self.path / manifest.NAME, made.written())
        self._found = made

    def _make_folder(self, name: str) -> None:
        path = self.path / name
        try:
            path.mkdir(exist_ok=True)
            sync_folder(self.path)
        except OSError as error:
            raise not_kept(path, error) from error
        if path.is_symlink():
            raise ResultsError(f"{path} is a link: restore it")

    def _clear_away(self) -> None:
        """What a process that was killed had begun to write; only names that `replace` makes."""
        for folder in (self.path, self.path / EPISODES, self.path / EARLIER):
            if folder.is_dir() and not folder.is_symlink():
                for left in folder.glob(".*.tmp"):
                    with contextlib.suppress(OSError):
                        left.unlink()

    def _open(self, lines: _Lines) -> None:
        path = self.path / ROWS
        self._make_folder(EPISODES)
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(path, flags, 0o644)
            self._size = lines.whole_bytes
            os.ftruncate(self._fd, self._size)
            sync_folder(self.path)
        except OSError as error:
            raise not_kept(path, error) from error
        if lines.unended:
            self._append(b"\n")

    def _append(self, data: bytes) -> None:
        """A line, or nothing of it."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
            os.fsync(self._fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise not_kept(self.path / ROWS, error) from error
        self._size += len(data)


@contextmanager
def writing(path: Path) -> Iterator[Writer]:
    """The right to write into a folder, which is made if there is none; held until the end, or the process's.

    Raises:
        ResultsInUse: another process has it.
        ResultsError: something else is there.
        ResultsNotKept: it cannot be made.
    """
    _check_free(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_kept(path, error) from error
    with _locked(path):
        try:
            found = manifest.load(path)
        except FileNotFoundError:
            _check_free(path)
            found = None
        writer = Writer(path, found)
        try:
            yield writer
        finally:
            writer.close()


def _check_free(path: Path) -> None:
    """Raises ResultsError: what is there is neither a results folder nor empty."""
    if path.exists() and not path.is_dir():
        raise ResultsError(f"{path} is a file: name a folder")
    if not path.is_dir() or (path / manifest.NAME).exists():
        return
    left = {LOCK, EPISODES, f".{manifest.NAME}.tmp"}  # of a process that was killed before it had a manifest
    others = sorted(one.name for one in path.iterdir() if one.name not in left)
    if others or any((path / EPISODES).glob("*")):
        shown = ", ".join((others or [EPISODES])[:3])
        raise ResultsError(f"{path} holds other things ({shown}) and no {manifest.NAME}: name a new folder")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The kernel gives the lock up with the process, however that ends; so the file itself says nothing."""
    lock = path / LOCK
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise not_kept(lock, error) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(fd, 200, 0).decode("utf-8", "replace").strip()
            raise ResultsInUse(
                f"{path} is being written by another process ({who or 'unknown'}): wait for it, or name another folder"
            ) from None
        with contextlib.suppress(OSError):  # a courtesy, which a full disk may not hold
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"pid {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def _episode_name(row: Row) -> str:
    return f"{row.key}-{row.round}.json.gz"


def missing(results: Results, *, again: bool = False) -> list[Trial]:
    """The trials of the plan that are not done; `again` takes those for not done that have no valid result."""

    def is_done(trial: Trial) -> bool:
        row = results.rows.get(trial.key)
        return row is not None and (row.valid or not again)

    return [trial for trial in results.plan.trials() if not is_done(trial)]
