"""The steward's end of the zygote: started once, asked for sessions, started anew if it ever ends."""

from __future__ import annotations

import array
import json
import os
import signal
import socket
from typing import TYPE_CHECKING, Any

from . import processes
from .loop import READ
from .rights import THREAD_VARIABLES, own_home

if TYPE_CHECKING:
    from .main import Steward


class Zygote:
    """A running zygote. Raises NotStarted from the constructor when no process can be had."""

    def __init__(self, steward: Steward, modules: str) -> None:
        self._steward = steward
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zygote.py")
        environ = {name: value for name, value in os.environ.items() if not name.startswith("METIER_")}
        environ.update({name: str(max(1, steward.settings.cpus)) for name in THREAD_VARIABLES})
        environ.update({"HOME": own_home(), "TMPDIR": own_home()})
        try:
            self.pid = steward.spawner.start(
                ["python3", "-s", script, str(steward.settings.agent or 0), modules],
                uid=None,
                cwd="/",
                environ=environ,
                fds={0: null, 1: null, 2: 2, 3: theirs.fileno()},
            )
        except processes.NotStarted:
            ours.close()
            raise
        finally:
            theirs.close()
            os.close(null)
        self._link = ours
        self.modules = modules
        steward.owners.exempt.add(self.pid)
        steward.running[self.pid] = self._died
        self.ready = False
        steward.loop.watch(ours.fileno(), READ, self._hear)

    def _hear(self, fd: int) -> None:
        """Its only word: the imports are done. What it hangs up is told by its death."""
        if self._link.recv(64):
            self.ready = True
            self._steward.greet()
        else:
            self._steward.loop.unwatch(fd)

    def fork(self, fields: dict[str, Any], fds: list[int]) -> None:
        """Asks for a session over these descriptors; it says `ready PID` on the last one. Raises NotStarted."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        try:
            self._link.sendmsg([json.dumps(fields).encode()], rights)
        except OSError as error:
            raise processes.NotStarted(processes.NOT_STARTED, f"no Python session: {error}") from None

    def drop(self) -> None:
        """Ends it; the next session starts another."""
        processes.send({self.pid}, signal.SIGKILL)

    def _died(self, _status: int) -> None:
        self._steward.owners.exempt.discard(self.pid)
        self._steward.loop.unwatch(self._link.fileno())
        self._link.close()
        self._steward.zygote_ended(self)
