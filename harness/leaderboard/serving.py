"""The server as a process: the HTTP surface, and beside it whoever replays what is queued."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import sys
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from metier.envs.core import ConfigError, MetierError

from ..backends import Backends
from ..telemetry.logs import JsonFormatter
from .app import Manner, Service, make_app
from .boards import Boards
from .contract import State
from .folders import Folders
from .store import Store
from .verification import Bench, Verifier

_log = logging.getLogger("metier.leaderboard")
_HEAD_S = 10.0
"""For a request's headers, from its first byte; and for a connection's first request."""
_LOOK_S = 2.0
"""Between looks for what another server has taken in."""
_PAUSES_S = (30.0, 60.0, 120.0, 300.0, 600.0)
"""After failures of ours, one after another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaying:
    """Where a server replays."""

    backend: str
    concurrency: int


class _Patient(H11Protocol):
    """Closes connections that take longer for a request's headers than anybody needs."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._due = self.loop.call_later(_HEAD_S, self._give_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._at_work():
            self._let()
        elif self._due is None:
            self._due = self.loop.call_later(_HEAD_S, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._let()
        super().connection_lost(exc)

    def _at_work(self) -> bool:
        """Whether a request was read whole, less its body, and has no answer yet."""
        cycle: Any = self.cycle  # None before the first one, which its annotation does not say
        return cycle is not None and not cycle.response_complete

    def _let(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _give_up(self) -> None:
        self._due = None
        if not self._at_work():
            self.transport.close()


class _Server(uvicorn.Server):
    """Leaves the signals of the process to those who own it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def listening(host: str, port: int) -> socket.socket:
    """A socket on which to serve; port 0 takes a free one. Raises ConfigError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise ConfigError(
            f"{host} port {port} cannot be had: {error.strerror or error}; give another --port"
        ) from error
    return made


def begin(store: Store, folders: Folders) -> int:
    """Take away what a process that was killed left; gives how many folders."""
    with folders.changing():
        every = store.submissions()
        waiting = frozenset(one.id for one in every if one.state in (State.QUEUED, State.UNVERIFIED))
        return folders.clear(frozenset(one.id for one in every), waiting)


async def serve(
    sock: socket.socket,
    store: Store,
    folders: Folders,
    boards: Boards,
    manner: Manner,
    *,
    replaying: Replaying | None,
    behind_proxy: bool = False,
) -> None:
    """Serve until cancelled; then requests under way have some seconds to end, and replays go on another time."""
    gone = await asyncio.to_thread(begin, store, folders)
    if gone:
        _log.info("%d folders of uploads that were cut short are cleared away", gone)
    wake = asyncio.Event()
    service = Service(store, folders, boards, manner, wake)
    config = uvicorn.Config(
        make_app(service),
        http=_Patient,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,  # ours has no query
        proxy_headers=behind_proxy,
        server_header=False,
        limit_concurrency=256,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=16 << 10,
    )
    server = _Server(config)
    tasks = [asyncio.create_task(server.serve(sockets=[sock]))]
    if replaying is not None:
        tasks.append(asyncio.create_task(follow(store, folders, replaying, wake)))
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        server.should_exit = True
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def follow(store: Store, folders: Folders, replaying: Replaying, wake: asyncio.Event) -> None:
    """Replay whatever is queued, for as long as it lasts."""
    verifier = Verifier(store, folders)
    failures = 0
    backends = Backends()
    try:
        while True:
            wake.clear()
            ended: dict[str, State] = {}
            failed = False
            try:
                if await asyncio.to_thread(store.submissions, State.QUEUED):
                    ended = await verifier.drain(await bench(backends, replaying))
                    failed = State.QUEUED in ended.values()
            except MetierError as error:
                failed = True
                _log.warning("replays cannot be had: %s: %s", type(error).__name__, error)
            for submission, state in ended.items():
                _log.info("submission %s: %s", submission, state)
            failures = failures + 1 if failed else 0
            pause = _PAUSES_S[min(failures, len(_PAUSES_S)) - 1] if failures else _LOOK_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await (asyncio.Event().wait() if failures else wake.wait())
    finally:
        await backends.close()


async def bench(backends: Backends, replaying: Replaying) -> Bench:
    """Sandboxes for replays. Raises ConfigError, SandboxUnavailable."""
    backend, preparer = await backends.get(replaying.backend)
    return Bench(backend=backend, preparer=preparer, concurrency=replaying.concurrency)


def log_to_stderr() -> None:
    """One line an event, on the standard error; as JSON where everything is logged as that."""
    logging.getLogger("metier.leaderboard").setLevel(logging.INFO)
    if any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers):
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    for name in ("metier.leaderboard", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
