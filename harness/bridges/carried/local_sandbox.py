"""The container that this runs in, as the sandbox that a verifier measures in.

Programs of the agent's run as uid 1000, in a session of their own that is ended as a whole; the verifier's probes run
as whoever runs this, which should be root. Artefacts that no sandbox would have handed on are removed before anything
is measured.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metier.envs.core import Artefact, ExecResult, SandboxSpec

AGENT = 1000
WORKSPACE = Path("/workspace")
_GRACE_S = 2.0


class LocalSandbox:
    """Implements what verifiers use of `Sandbox`."""

    def __init__(self, image: str) -> None:
        self.id = "local"
        self.spec = SandboxSpec(image=image, verifier=True)

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float,
        user: str = "agent",
        session: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_kib: int = 64,
    ) -> ExecResult:
        """As the contract says; there are no sessions."""
        if session is not None:
            raise NotImplementedError("no sessions where this task is graded")
        argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
        return await asyncio.to_thread(_run, argv, timeout_s, user, cwd, env, stdin, output_kib)

    async def read(self, path: str, *, max_bytes: int, user: str = "agent") -> bytes:
        """Follows no link; raises OSError, or ValueError if it is larger."""
        _no_link_on_the_way(path)
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise IsADirectoryError(21, "no regular file", path)
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise ValueError(f"{path}: more than max_bytes={max_bytes}")
        return data

    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: str = "agent") -> None:
        """Makes parents. The agent's files are written by a process of the agent's, with its rights."""
        if user == "agent" and os.geteuid() == 0:
            script = 'mkdir -p "$(dirname "$1")" && cat > "$1" && chmod "$2" "$1"'
            command = ["bash", "-c", script, "bash", path, f"{mode:o}"]
            done = await self.exec(command, timeout_s=60, stdin=data)
            if not done.ok:
                raise OSError(errno.EACCES, done.stderr.decode("utf-8", "replace").strip(), path)
            return
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(mode)

    async def collect(self, artefacts: Sequence[Artefact]) -> Any:
        """Nobody collects from a verifier's sandbox."""
        raise NotImplementedError

    async def unpack(self, tar: bytes, to: str, *, user: str = "agent") -> None:
        """Nothing is brought in but by `write`."""
        raise NotImplementedError

    async def snapshot(self) -> Any:
        """There is nothing to fork."""
        raise NotImplementedError

    async def close(self, *, reuse: bool = True) -> None:
        """Whoever made the container removes it."""

    async def __aenter__(self) -> LocalSandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _run(
    argv: Sequence[str],
    timeout_s: float,
    user: str,
    cwd: str | None,
    env: Mapping[str, str] | None,
    stdin: bytes,
    output_kib: int,
) -> ExecResult:
    who: dict[str, Any] = {}
    if user == "agent" and os.geteuid() == 0:
        who = {"user": AGENT, "group": AGENT, "extra_groups": []}
    home = "/workspace" if user == "agent" else "/tmp"
    given = {name: os.environ[name] for name in os.environ if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    given |= {"HOME": home, "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"), **(env or {})}
    began = time.monotonic()
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        said.write(stdin)
        said.seek(0)
        try:
            process = subprocess.Popen(
                argv, stdin=said, stdout=out, stderr=err, cwd=cwd or WORKSPACE, env=given, start_new_session=True, **who
            )
        except OSError as error:
            return _result(127, b"", str(error).encode(), 0, began, timed_out=False)
        timed_out = False
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            timed_out = True
            _end(process.pid, signal.SIGTERM)
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                pass
        _end(process.pid, signal.SIGKILL)
        code = process.wait()
        stdout, cut_out = _kept(out, output_kib << 10)
        stderr, cut_err = _kept(err, output_kib << 10)
        return _result(code, stdout, stderr, cut_out + cut_err, began, timed_out=timed_out)


def _result(code: int, stdout: bytes, stderr: bytes, cut_bytes: int, began: float, *, timed_out: bool) -> ExecResult:
    return ExecResult(
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        stdout=stdout,
        stderr=stderr,
        cut_bytes=cut_bytes,
        duration_s=time.monotonic() - began,
        timed_out=timed_out,
        oom_killed=False,
        background_open=False,
    )


def _end(session: int, how: signal.Signals) -> None:
    try:
        os.killpg(session, how)
    except ProcessLookupError:
        pass


def _kept(file: Any, each: int) -> tuple[bytes, int]:
    """Head and tail of what was written, and how much of the middle is left out."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= 2 * each:
        return file.read(), 0
    head = file.read(each)
    file.seek(size - each)
    return head + file.read(), size - 2 * each


def _no_link_on_the_way(path: str) -> None:
    for parent in Path(path).parents:
        if parent != WORKSPACE and WORKSPACE in parent.parents and parent.is_symlink():
            raise OSError(40, "a folder on its path is a link", path)


def only_artefacts(artefacts: Sequence[Artefact]) -> dict[str, str]:
    """Leave in /workspace what a sandbox would have handed on; the others by path, with the reason."""
    refused: dict[str, str] = {}
    for artefact in artefacts:
        path = WORKSPACE / artefact.path
        reason = _reason(path, artefact)
        if reason:
            refused[artefact.path] = reason
            _remove(path)
    if os.geteuid() == 0:
        _handed_to_the_agent()
    return refused


def _handed_to_the_agent() -> None:
    """All of /workspace is the agent's, also where it was copied in as root's."""
    for folder, _, files in os.walk(WORKSPACE):
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            if os.lstat(path).st_uid != AGENT:
                os.chown(path, AGENT, AGENT, follow_symlinks=False)


def _reason(path: Path, artefact: Artefact) -> str:
    if not os.path.lexists(path):
        return "missing"
    if path.is_symlink() or path.is_dir() != artefact.tree:
        return "a link, or of another kind than was declared"
    size = 0
    every = [path, *path.rglob("*")] if artefact.tree else [path]
    for one in every:
        mode = one.lstat().st_mode
        if stat.S_ISLNK(mode):
            if not artefact.links or not one.resolve().is_relative_to(WORKSPACE):
                return f"{one.name} is a link"
        elif stat.S_ISREG(mode):
            size += one.lstat().st_size
        elif not stat.S_ISDIR(mode):
            return f"{one.name} is neither a file nor a folder"
    return f"more than {artefact.max_mb} MiB" if size > artefact.max_mb << 20 else ""


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
