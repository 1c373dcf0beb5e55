"""What every request passes: a limit by address, headers that keep browsers strict, a line in the log.

The log has the method, the path without its query, the status and the time: nothing that anybody could take for a
token.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .contract import Problem
from .faults import Reason
from .limiter import Limiter

_log = logging.getLogger("metier.leaderboard")
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)
_PLAIN = re.compile(r"[^A-Za-z0-9/._-]")


def address_of(scope: Scope) -> str:
    """Who asks; a network of 64 bits for IPv6, since one machine has all of it."""
    client = scope.get("client")
    host = str(client[0]) if client else ""
    try:
        return str(ipaddress.ip_network((host, 64), strict=False)) if ":" in host else host
    except ValueError:
        return host


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, *, rate_per_s: float = 20.0, burst: int = 400) -> None:
        self._app = app
        self._limiter = Limiter(rate_per_s=rate_per_s, burst=burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                known = {name for name, _ in message["headers"]}
                message = {**message, "headers": [*message["headers"], *(h for h in _HEADERS if h[0] not in known)]}
            await send(message)

        wait = self._limiter.wait_s(address_of(scope))
        try:
            if wait > 0:
                await _refuse(told, 429, Reason.RATE_LIMITED, "too many requests from this address", round(wait) + 1)
            else:
                await self._app(scope, receive, told)
        except Exception as error:
            # its class only: what it says may hold what was sent
            _log.error("%s %s failed: %s", scope["method"], _path(scope), type(error).__name__, exc_info=True)
            if not status:
                await _refuse(told, 500, Reason.BAD_REQUEST, "the server failed; its maintainer sees why", None)
        finally:
            took = 1000 * (time.monotonic() - began)
            _log.info("%s %s %s %d %.0f ms", address_of(scope), scope["method"], _path(scope), status, took)


def _path(scope: Scope) -> str:
    """In one line, and not endless."""
    return _PLAIN.sub("?", str(scope["path"]))[:200]


async def _refuse(send: Any, status: int, reason: Reason, message: str, retry_after_s: int | None) -> None:
    body = json.dumps(Problem(reason=reason.value, message=message).model_dump()).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if retry_after_s is not None:
        headers.append((b"retry-after", str(retry_after_s).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
