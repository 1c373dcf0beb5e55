"""The Ray cluster of an executor: one started here and taken down again, or one that is connected to.

A cluster started here leaves no process and no file behind. Ray's own processes die with the driver, by a kernel signal
that is tied to the thread which started them (so that thread is kept until the end), except for two agents that linger
for about a minute after the driver was killed: a tether ends whoever works in the cluster's folder as soon as the
driver is gone, and removes the folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from metier.envs.core import ClusterError, ConfigError

from .tether import Tether

T = TypeVar("T")

_CONNECT_S = 5.0
_REARM_S = 0.02
"""So long, at the most, what Ray does at SIGTERM is in force."""
_STARTS = 3
"""Ray gives its own processes 30 seconds to come up, which a busy machine may need more than once."""

_AFTER_DRIVER = """\
for _ in 1 2 3 4 5; do
    folders=$(find /proc/[0-9]*/fd -lname "$1/*" -printf '%h\\n' 2>/dev/null | sort -u)
    [ -n "$folders" ] || break
    for folder in $folders; do
        pid=${folder%/fd}
        grep -qaE 'ray::|/ray/' "$pid/cmdline" && kill -9 "${pid#/proc/}"
    done
    sleep 0.2
done
rm -rf "$1"
"""
"""Ray's processes have their logs in the folder open; one that was just being started has none yet. Who reads them is
somebody else."""


class RayCluster:
    """Ray's driver side in this process; only one is open at a time."""

    def __init__(self, *, address: str | None, num_cpus: float, object_store_mb: int) -> None:
        self._address = address
        self._num_cpus = num_cpus
        self._object_store_mb = object_store_mb
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ray driver")
        self._folder: str | None = None
        self._tether: Tether | None = None
        self._started = False
        self.keep_logs = False
        """Set when a worker was lost: its log is then left where the error said."""

    @property
    def logs(self) -> str:
        """Where the workers' logs are."""
        return f"{self._folder or '/tmp/ray'}/session_latest/logs"

    async def start(self) -> None:
        """Start or join; some seconds.

        Raises:
            ConfigError: nobody listens at the address, or this process has another cluster.
            ClusterError: Ray did not start here, in several tries.
        """
        await self._call(self._start)

    async def stop(self) -> None:
        """Idempotent."""
        await self._call(self._stop)
        self._thread.shutdown()

    async def _call(self, function: Callable[[], T]) -> T:
        called = asyncio.get_running_loop().run_in_executor(self._thread, function)
        try:
            while not called.done():
                await asyncio.wait({called}, timeout=_REARM_S)
                _keep_handlers()
        except asyncio.CancelledError:
            called.cancel()
            raise
        return called.result()

    def _start(self) -> None:
        import ray

        if ray.is_initialized():
            if self._address is not None:
                raise ConfigError(f"this process has a Ray cluster already: close it before joining {self._address}")
            return  # somebody else's: used, and left running
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if self._address is not None:
            _check_listening(self._address)
            self._init(address=self._address)
            return
        for attempt in range(1, _STARTS + 1):
            folder = self._make_folder()
            try:
                self._init(
                    num_cpus=self._num_cpus,
                    include_dashboard=False,
                    object_store_memory=self._object_store_mb * 2**20,
                    _temp_dir=folder,
                )
                break
            except ClusterError:
                _end_processes(os.getpid(), folder)
                self._remove_folder()
                if attempt == _STARTS:
                    raise

    def _init(self, **settings: Any) -> None:
        import ray

        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
        except Exception as error:  # Ray has no class of its own for this; an overloaded machine is the usual reason
            ray.shutdown()
            raise ClusterError(f"Ray did not start ({error}): free the machine, or use the local executor") from error
        self._started = True

    def _make_folder(self) -> str:
        """Tethered before it is there, and before anything of Ray is: a start takes long, and may be cut short."""
        folder = self._folder = f"{tempfile.gettempdir()}/metier-ray-{secrets.token_hex(4)}"
        self._tether = Tether(_AFTER_DRIVER, folder)
        os.mkdir(folder, 0o700)
        return folder

    def _remove_folder(self) -> None:
        if self._folder is not None and not self.keep_logs:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._tether is not None:
            self._tether.cut()
            self._tether = None

    def _stop(self) -> None:
        import ray

        if self._started:
            self._started = False
            ray.shutdown()
        self._remove_folder()


def _keep_handlers() -> None:
    """Ray replaces whatever this process does at SIGTERM by an abort with a stack trace, behind Python's back."""
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGTERM)
        if handler is not None:
            signal.signal(signal.SIGTERM, handler)


def _check_listening(address: str) -> None:
    """Ray itself waits for minutes before it says that nobody is there."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return  # "auto" and the like: Ray looks them up
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except OSError as error:
        raise ConfigError(
            f"no Ray cluster listens at {address!r} ({error}): start one, or leave the address out"
        ) from error


def _agents(driver_pid: int) -> list[int]:
    """The agents that the raylet of this driver started: its grandchildren that are no workers."""
    parents = _parents()
    raylets = {pid for pid, parent in parents.items() if parent == driver_pid and "raylet" in _command(pid)}
    return [pid for pid, parent in parents.items() if parent in raylets and "Agent" in _command(pid)]


def _end_processes(driver_pid: int, folder: str) -> None:
    """End what a start that failed left behind: this process's children that work in `folder`, and their agents."""
    agents = _agents(driver_pid)
    ours = [pid for pid, parent in _parents().items() if parent == driver_pid and folder in _command(pid)]
    for pid in [*ours, *agents]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in ours:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _parents() -> Mapping[int, int]:
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended while we looked
    return parents


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
