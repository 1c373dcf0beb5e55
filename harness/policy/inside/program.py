"""The agent's program: its folder as it is brought into a sandbox, and what it is told there."""

from __future__ import annotations

import errno
import hashlib
import io
import shlex
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metier.envs.core import ConfigError, Sandbox

PLACE = "/tmp/metier"
FOLDER = f"{PLACE}/agent"
BRIEF_FILE = f"{PLACE}/brief.txt"
TASK = (
    "{brief}\n\nYou work on the machine on which you run, in the folder /workspace. Where the task asks for an answer, "
    "write it into the file /workspace/answer. Your work is graded as it lies there when you end.\n"
)
MOST_BYTES = 64 << 20
MOST_FILES = 20_000
_LEFT_OUT = {".git", "__pycache__", ".venv", "node_modules"}
_START_S = 30.0


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder's files, as a tar that is the same for the same files."""

    tar: bytes
    sha256: str


def folder_of(value: Any) -> Folder | None:
    """The folder of this name. Raises ValueError for what is none, or cannot be brought in."""
    if value is None or isinstance(value, Folder):
        return value
    root = Path(str(value))
    if not root.is_dir():
        raise ValueError(f"{root} is no folder; name the one that holds the agent's program")
    buffer = io.BytesIO()
    try:
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in _files(root):
                member = tarfile.TarInfo(str(path.relative_to(root)))
                member.size = path.stat().st_size
                member.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
                with path.open("rb") as file:
                    tar.addfile(member, file)
    except OSError as error:
        raise ValueError(f"{error.filename or root} cannot be read: {error.strerror or error}") from None
    return Folder(buffer.getvalue(), hashlib.sha256(buffer.getvalue()).hexdigest())


def _files(root: Path) -> Iterator[Path]:
    """Its regular files, in order. Raises ValueError."""
    total = count = 0
    for path in sorted(root.rglob("*")):
        if _LEFT_OUT & set(path.relative_to(root).parts):
            continue
        if path.is_symlink():
            raise ValueError(f"{path} is a link, which is not brought in: put the file itself there")
        if path.is_file():
            total, count = total + path.stat().st_size, count + 1
            if total > MOST_BYTES or count > MOST_FILES:
                most = f"{MOST_BYTES >> 20} MiB and {MOST_FILES} files"
                raise ValueError(f"{root} has more than {most}: put what is large into an image")
            yield path


async def bring(sandbox: Sandbox, folder: Folder | None, brief: str) -> None:
    """Puts the program and its task into the sandbox. Raises ConfigError where they have no room there; SandboxLost."""
    try:
        await sandbox.write(BRIEF_FILE, TASK.format(brief=brief).encode("utf-8", "replace"))
        if folder is not None:
            await sandbox.unpack(folder.tar, FOLDER)
    except ConnectionError:
        raise
    except (OSError, ValueError) as error:
        why = "there is no room for them" if getattr(error, "errno", None) == errno.ENOSPC else str(error)
        raise ConfigError(
            f"the agent's files cannot be put into {PLACE} of image {sandbox.spec.image}: {why}"
        ) from None


async def check(sandbox: Sandbox, program: str) -> None:
    """Whether the image has the program, before anything of the agent runs: from then on all is the agent's doing.

    Raises:
        ConfigError: It has not. SandboxLost.
    """
    looked = await sandbox.exec(f"command -v -- {shlex.quote(program)}", timeout_s=_START_S)
    if looked.exit_code == 1:
        raise ConfigError(
            f"image {sandbox.spec.image} has no program {program!r}: bring it in the agent's folder (it lies at "
            "{folder} then, a placeholder of the command), or choose environments whose image has it"
        )
