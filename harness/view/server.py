"""A site on this machine: read-only, on the loopback interface, for who asks it by that name.

Another page in the same browser may send requests here under a name of its own that leads to 127.0.0.1; so the name
that was asked for must be this machine's. Every answer carries the page's policy: nothing but our own files is run.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from pydantic_core import to_json

from metier.envs.core import ConfigError

from .site import CSP, JSON, Answer, Site

ADDRESS = "127.0.0.1"
USUAL_PORT = 8450
"""Tried first, so that an address of yesterday works today."""
_HEADERS = {
    "Content-Security-Policy": f"{CSP}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@contextmanager
def serving(site: Site, port: int | None = None) -> Iterator[str]:
    """The address of the page, for as long as it is served.

    Args:
        site: what is served.
        port: None for the usual one, or any that is free where it is taken.

    Raises:
        ConfigError: the port is taken.
    """
    server = _bound(site, port)
    thread = threading.Thread(target=server.serve_forever, name="metier-view", daemon=True)
    thread.start()
    try:
        yield f"http://{ADDRESS}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _bound(site: Site, port: int | None) -> _Server:
    if port is None:
        try:
            return _Server(site, USUAL_PORT)
        except OSError:
            return _Server(site, 0)
    try:
        return _Server(site, port)
    except OSError as error:
        raise ConfigError(f"port {port} cannot be had ({error.strerror}): name another --port, or none") from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        super().__init__((ADDRESS, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Of a connection: a browser that went away, or words that are no HTTP; neither is ours to tell."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "metier-view"
    sys_version = ""
    timeout = 60
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]  # this is the one that makes it

    def do_GET(self) -> None:
        self._send(self._asked())

    def do_HEAD(self) -> None:
        self._send(self._asked())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal is the command's."""

    def _asked(self) -> Answer:
        port = self.server.server_port
        if self.headers.get("Host") not in {f"{ADDRESS}:{port}", f"localhost:{port}"}:
            return Answer(body=to_json({"error": f"ask for http://{ADDRESS}:{port}/"}), media=JSON, status=403)
        try:
            return self.server.site.answer(urlsplit(self.path).path.removeprefix("/"))
        except Exception as error:  # the boundary: a folder that breaks us breaks one request
            said = f"{type(error).__name__}: {error}"[:500]
            return Answer(body=to_json({"error": said.encode("utf-8", "replace").decode()}), media=JSON, status=500)

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Cache-Control", "private, max-age=86400, immutable" if answer.lasting else "no-store")
        self.send_header("Content-Type", answer.media)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
