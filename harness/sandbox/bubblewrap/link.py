"""The client's end of its launcher: start a sandbox, wait until one is gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from metier.envs.core import SandboxUnavailable

_LAUNCHER = Path(__file__).with_name("launcher.py")
_MESSAGE_BYTES = 1 << 18
_END_S = 5.0
_LOOK_S = 0.002
_WORDS_BYTES = 4096


_NO_NAMESPACES = (
    "this user may make no namespaces: ask for user.max_user_namespaces above 0 (and, where there are such settings, "
    "kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0), or use a Docker engine"
)


class Gone(NamedTuple):
    """What a sandbox left behind: the last words on its standard error, and its memory counters."""

    said: str = ""
    oom: str = ""


class Link:
    """A running launcher. Made by `open`, ended by `close`; its sandboxes end with it."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, words: int) -> None:
        self._process = process
        self._control = control
        self._words = words
        self._started: dict[str, asyncio.Future[None]] = {}
        self._gone: dict[str, asyncio.Future[Gone]] = {}
        self.alive = True
        asyncio.get_running_loop().add_reader(control, self._receive)

    @classmethod
    def open(cls) -> Link:
        """Start a launcher, as the init of a pid namespace of its own.

        Raises:
            SandboxUnavailable: no bubblewrap, or no namespaces for this user.
        """
        for program in ("bwrap", "unshare"):
            if shutil.which(program) is None:
                raise SandboxUnavailable(f"{program} is missing; apt-get install bubblewrap util-linux")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        apart = ["--pid", "--mount", "--mount-proc", "--fork", "--kill-child=SIGKILL"]
        if os.geteuid() != 0:
            apart = ["--user", "--map-current-user", *apart]
        command = ["unshare", *apart, sys.executable, "-I", str(_LAUNCHER), str(theirs.fileno())]
        words = os.memfd_create("metier-launcher")
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
                pass_fds=[theirs.fileno()],
                env={"PATH": os.environ.get("PATH", os.defpath)},
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            os.close(words)
            raise SandboxUnavailable(f"the launcher of bubblewrap cannot be started: {error}") from error
        finally:
            theirs.close()
        ours.setblocking(False)
        return cls(process, ours, words)

    async def start(self, request: dict[str, Any], fds: list[int]) -> None:
        """Start a sandbox; it is up as far as bubblewrap's own work.

        Raises:
            SandboxUnavailable: it did not come up; everything of it is gone.
        """
        name = request["id"]
        loop = asyncio.get_running_loop()
        self._started[name], self._gone[name] = loop.create_future(), loop.create_future()
        try:
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)
        except OSError as error:
            self._fail()
            raise SandboxUnavailable(
                f"the launcher of bubblewrap is gone ({self._why() or error}); try again"
            ) from error
        done, _ = await asyncio.wait([self._started[name], self._gone[name]], return_when=asyncio.FIRST_COMPLETED)
        if self._gone[name] in done:
            raise SandboxUnavailable(f"bubblewrap did not start the sandbox: {self._gone[name].result().said}")

    async def remove(self, name: str) -> Gone:
        """Kill a sandbox and wait until all of it is away. One that is gone already is fine."""
        gone = self._gone.get(name)
        if gone is None:
            return Gone()
        if not gone.done():
            with contextlib.suppress(OSError):
                self._control.send(json.dumps({"op": "kill", "id": name}).encode())
        result = await asyncio.shield(gone)
        self._started.pop(name, None)
        self._gone.pop(name, None)
        return result

    async def gone(self, name: str) -> Gone:
        """Wait until a sandbox has ended by itself."""
        future = self._gone.get(name)
        return Gone() if future is None else await asyncio.shield(future)

    def _receive(self) -> None:
        while True:
            try:
                message = self._control.recv(_MESSAGE_BYTES)
            except BlockingIOError:
                return
            except OSError:
                message = b""
            if not message:
                self._fail()
                return
            answer = json.loads(message)
            if answer["event"] == "started":
                _settle(self._started.get(answer["id"]), None)
            else:
                _settle(self._gone.get(answer["id"]), Gone(answer["said"], answer["oom"]))

    def _fail(self) -> None:
        """The launcher is gone, and so is every sandbox of it."""
        if not self.alive:
            return
        self.alive = False
        asyncio.get_running_loop().remove_reader(self._control)
        for future in self._gone.values():
            why = self._why()
            _settle(future, Gone(f"the launcher of bubblewrap ended{why and ': ' + why}"))

    def _why(self) -> str:
        """The launcher's last words, and what to do where namespaces were refused."""
        if self._words < 0:
            return ""
        size = os.fstat(self._words).st_size
        said = os.pread(self._words, _WORDS_BYTES, max(0, size - _WORDS_BYTES)).decode("utf-8", "replace").strip()
        return f"{said}; {_NO_NAMESPACES}" if said.startswith("unshare:") else said

    async def close(self) -> None:
        """End the launcher and all it started. Idempotent."""
        self._fail()
        self._control.close()
        if self._words >= 0:
            os.close(self._words)
            self._words = -1
        deadline = time.monotonic() + _END_S
        # looked at from the loop, since an interpreter that ends gives out no threads any more
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                self._process.kill()
            await asyncio.sleep(_LOOK_S)


def _settle(future: asyncio.Future[Any] | None, result: Any) -> None:
    if future is not None and not future.done():
        future.set_result(result)
