"""Sends a results folder to a leaderboard's server: checked here first, so that nobody uploads for nothing."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import httpx
import pydantic

from metier.envs.core import ConfigError, RecordError

from ..evaluate import folder as results_folder
from .archive import CONTENT_TYPE, Packed, packing
from .contract import About, BoardRow, Problem, Receipt, ServerInfo
from .faults import Reason, Refusal
from .tokens import ENV, PATTERN

M = TypeVar("M", bound=pydantic.BaseModel)
_TIMEOUT = httpx.Timeout(60.0, read=900.0)
"""A server reads, checks and publishes before it answers."""


class NotSent(RecordError):
    """The server could not be reached, or is none of ours."""


class Client:
    """A connection to one server. A context manager."""

    def __init__(self, url: str, token: str) -> None:
        """Raises ConfigError: no URL, no token, or one that would go through the network for everybody to read."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"--to {url!r}: give the server's address, such as https://board.example.org")
        if parts.username or parts.password:
            raise ConfigError(f"--to: no password belongs into the address; the token is read from {ENV}")
        if parts.scheme == "http" and not _on_this_machine(parts.hostname):
            raise ConfigError(f"--to {url!r}: a token would be readable on its way: use https")
        if token and not PATTERN.fullmatch(token):
            raise ConfigError(f"what {ENV} holds is no token of a leaderboard")
        self._client = httpx.Client(
            base_url=url, timeout=_TIMEOUT, headers={"Authorization": f"Bearer {token}"} if token else {}
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def info(self) -> ServerInfo:
        """What the server takes. Raises Refusal, NotSent."""
        return _modelled(ServerInfo, self._asked("GET", "api/v1/server"))

    def row(self, submission: str) -> BoardRow:
        """How far a submission is. Raises Refusal, NotSent."""
        return _modelled(BoardRow, self._asked("GET", f"api/v1/submissions/{submission}"))

    def send(self, packed: Packed, told: Callable[[int], None]) -> Receipt:
        """Upload; `told` is called with the bytes that were sent so far. Raises Refusal, NotSent."""

        def body() -> Iterator[bytes]:
            sent = 0
            for piece in packed.pieces():
                yield piece
                sent += len(piece)
                told(sent)

        headers = {"Content-Type": CONTENT_TYPE, "Content-Length": str(packed.size)}
        return _modelled(Receipt, self._asked("POST", "api/v1/submissions", content=body(), headers=headers))

    def _asked(self, method: str, path: str, **how: object) -> bytes:
        try:
            answer = self._client.request(method, path, **how)  # pyright: ignore[reportArgumentType]
        except httpx.HTTPError as error:
            raise NotSent(f"{self._client.base_url} could not be reached: {error or type(error).__name__}") from error
        if answer.is_success:
            return answer.content
        try:
            said = Problem.model_validate_json(answer.content)
            raise Refusal(Reason(said.reason), said.message)
        except pydantic.ValidationError as error:
            raise NotSent(f"{self._client.base_url} answers {answer.status_code}, and not as a leaderboard") from error


def prepared(folder: Path, about: About, info: ServerInfo) -> Packed:
    """What will be sent.

    Raises:
        ResultsError: it is no results folder.
        Refusal: the server would refuse it, as far as can be told here.
    """
    results = results_folder.load(folder)
    offered = {(one.suite, one.split): one for one in info.boards}
    board = offered.get((about.suite, about.split))
    if board is None:
        there = ", ".join(f"{suite} ({split})" for suite, split in offered)
        raise Refusal(Reason.UNKNOWN_BOARD, f"the server ranks {there or 'nothing'}, not {about.suite} ({about.split})")
    missing = results_folder.missing(results)
    if missing:
        raise Refusal(
            Reason.MISSING_TRIALS,
            f"{len(missing)} of {results.plan.num_trials} trials have no row: the same `metier eval` command runs them",
        )
    packed = packing(results, about)
    if packed.size > info.limits.upload_bytes or len(packed.episodes) + 3 > info.limits.files:
        raise Refusal(
            Reason.TOO_LARGE,
            f"{packed.size} bytes in {len(packed.episodes) + 3} files; the server takes {info.limits.upload_bytes} in "
            f"{info.limits.files}",
        )
    return packed


def _modelled(kind: type[M], data: bytes) -> M:
    try:
        return kind.model_validate_json(data)
    except pydantic.ValidationError as error:
        raise NotSent("the answer is none of a leaderboard of this version of Metier") from error


def _on_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
