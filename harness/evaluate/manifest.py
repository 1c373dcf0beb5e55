"""`manifest.json`: what a results folder is about; from it alone follows which trials were asked for."""

from __future__ import annotations

import datetime
import platform
import socket
import subprocess
from pathlib import Path
from typing import Annotated, Literal

import pydantic

from .faults import ResultsError, another_schema
from .files import MIB, read
from .plan import Plan

NAME = "manifest.json"
KIND = "metier evaluation"
SCHEMA_VERSION = 1
_MOST_BYTES = 64 * MIB


class Session(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A process that ran trials of the folder, and where."""

    started_at: str
    host: str
    python: str
    platform: str
    commit: str
    """Of the checkout; empty where it is none. A plus marks changes that were not committed."""
    executor: str
    concurrency: int

    @classmethod
    def here(cls, *, executor: str, concurrency: int) -> Session:
        """This process, from now on."""
        return cls(
            started_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            host=socket.gethostname(),
            python=platform.python_version(),
            platform=platform.platform(),
            commit=_commit(),
            executor=executor,
            concurrency=concurrency,
        )


class Manifest(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What a results folder is about."""

    kind: Literal["metier evaluation"] = KIND
    schema_version: Literal[1] = SCHEMA_VERSION
    id: Annotated[str, pydantic.Field(pattern=r"^([0-9a-f]{32})?$")] = ""
    """Of the folder, drawn when it is begun; records name it. Empty in folders from before there were ids."""
    plan: Plan
    earlier: tuple[str, ...] = ()
    """Digests of the plans that the folder had before, each in `earlier/<digest>.json`."""
    sessions: tuple[Session, ...] = ()

    def written(self) -> bytes:
        """The file's bytes."""
        return (self.model_dump_json(indent=1) + "\n").encode()


def load(folder: Path) -> Manifest:
    """The manifest of a folder.

    Raises:
        FileNotFoundError: it has none.
        ResultsSchema: another version wrote it.
        ResultsError: it is none.
    """
    path = folder / NAME
    data = read(path, _MOST_BYTES)
    try:
        head = _Head.model_validate_json(data)
    except pydantic.ValidationError as error:
        raise ResultsError(f"{path} is no manifest of an evaluation: name another folder") from error
    if head.kind != KIND:
        raise ResultsError(f"{path} is a {head.kind!r}, not a {KIND!r}: name another folder")
    if head.schema_version != SCHEMA_VERSION:
        raise another_schema(str(path), head.schema_version, SCHEMA_VERSION)
    try:
        return Manifest.model_validate_json(data)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise ResultsError(f"{path}: {at}: {first['msg']}; restore it, or name another folder") from error


class _Head(pydantic.BaseModel, extra="ignore"):
    """What says whether the rest can be read."""

    kind: str
    schema_version: int


def _commit() -> str:
    """The commit of the checkout this code lies in, if it is one."""
    here = str(Path(__file__).parent)
    try:
        said = subprocess.run(
            ["git", "-C", here, "describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
