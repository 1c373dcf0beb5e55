"""The leaderboard as a process: submissions by the command, kills at any moment, two servers, real sandboxes."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from forgery import ABOUT, CLI, as_passed, forged, members, run, tar
from metier.envs.core import ConfigError
from metier.harness.leaderboard.archive import CONTENT_TYPE
from metier.harness.leaderboard.client import Client, prepared
from metier.harness.leaderboard.contract import About, Board, BoardRow, State
from metier.harness.leaderboard.faults import Refusal
from metier.harness.leaderboard.store import Store
from servers import Server, free_port, running
from waiting import until

pytest_plugins = ("board_fixtures",)

pytestmark = pytest.mark.slow
TOKEN = "METIER_LEADERBOARD_TOKEN"
HEADERS = {"Content-Type": CONTENT_TYPE}


def metier(*arguments: object, code: int = 0, token: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, str(CLI), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "COLUMNS": "200", TOKEN: token},
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


class Served(Server):
    """A leaderboard's server on a store; what it says lies in `log`."""

    def __init__(
        self, place: Path, *more: object, board: str = "echo-v0", backend: str = "fake", name: str = ""
    ) -> None:
        self.place = place
        self.log = place.parent / f"{place.name}{name}.log"
        port = free_port()
        command = [sys.executable, str(CLI), "leaderboard", "serve", "--store", str(place), "--port", str(port)]
        super().__init__([*command, "--board", board, "--backend", backend, *map(str, more)], port, self.log)
        self.url = f"http://127.0.0.1:{port}"

    slow: socket.socket
    """A connection that has begun to ask."""

    def token(self, submitter: str = "Lab") -> str:
        self.place.mkdir(parents=True, exist_ok=True)
        with self.storing() as store:
            return store.add_token(submitter).token

    def storing(self) -> contextlib.closing[Store]:
        return contextlib.closing(Store(f"sqlite:///{self.place / 'board.sqlite'}"))

    def board(self) -> Board:
        return Board.model_validate_json(httpx.get(f"{self.url}/leaderboard.json", timeout=60).content)

    def row(self, submission: str) -> BoardRow:
        answer = httpx.get(f"{self.url}/api/v1/submissions/{submission}", timeout=60)
        return BoardRow.model_validate_json(answer.content)

    def upload(self, body: bytes, token: str) -> httpx.Response:
        headers = {**HEADERS, "Authorization": f"Bearer {token}"}
        return httpx.post(f"{self.url}/api/v1/submissions", content=body, headers=headers, timeout=120)

    def settled(self, submission: str) -> BoardRow:
        with self.storing() as store:

            def ended() -> bool:
                found = store.find(submission)
                return found is not None and found.state is not State.QUEUED

            until(ended, 120, self.log.read_text)
        return self.row(submission)

    def incoming(self) -> list[Path]:
        return list((self.place / "incoming").iterdir())

    def stop(self) -> None:
        """As Ctrl-C does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(timeout=60) == 130, self.log.read_text()
        self._process = None


def submission(folder: Path, url: str, **more: str) -> list[object]:
    words = {**ABOUT, **more}
    options = [part for name, value in words.items() for part in (f"--{name.replace('_', '-')}", value)]
    return ["leaderboard", "submit", folder, "--to", url, *options]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("board") / "store"
    with running(Served(place)) as server:
        assert isinstance(server, Served)
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as server.slow:
            server.slow.sendall(b"GET / HTTP/1.1\r\nHost: board\r\nX-A: ")
            yield server


def forgery(row: dict[str, Any], episode: dict[str, Any]) -> None:
    if not row["passed"]:
        as_passed(row, episode)


def test_from_the_command_to_the_board_and_its_files(served: Served, honest: Path, tmp_path: Path) -> None:
    token = served.token()
    sent = json.loads(metier(*submission(honest, served.url), "--json", token=token).stdout)
    assert sent["new"] and served.settled(sent["id"]).state is State.VERIFIED
    again = metier(*submission(honest, served.url, name="Another"), token=token)
    assert f"{sent['id']}  verified, as it was here already" in again.stdout
    false = forged(honest, tmp_path / "forged", forgery)
    other = json.loads(metier(*submission(false, served.url, name="Forged"), "--json", token=token).stdout)
    assert served.settled(other["id"]).state is State.REFUTED
    (group,) = served.board().groups
    assert [(row.name, row.rank, row.overall.passed) for row in group.rows] == [("Small", 1, 7), ("Forged", None, 12)]
    out = tmp_path / "site"
    shown = metier("leaderboard", "export", out, "--store", served.place, "--board", "echo-v0").stdout
    assert "12/12 agree" in shown and "replays did not end as the submission says" in shown
    live = httpx.get(f"{served.url}/leaderboard.json", timeout=60).content
    assert (out / "leaderboard.json").read_bytes() == live
    assert json.loads(metier("report", out / "submissions" / sent["id"], "--json").stdout)["overall"]["passed"] == 7
    assert token not in served.log.read_text() and token[13:] not in served.log.read_text()


def test_what_is_refused_before_and_after_it_is_sent(served: Served, honest: Path) -> None:
    refused = metier(*submission(honest, served.url), code=2)
    assert TOKEN in refused.stderr
    wrong = metier(*submission(honest, served.url), code=1, token="mlb_00000000_" + "x" * 43)
    assert "refused (token_wrong)" in wrong.stderr and "xxxx" not in wrong.stderr + wrong.stdout
    with pytest.raises(ConfigError, match="use https"):
        Client("http://board.example.org", "")
    with Client(served.url, served.token()) as client:
        about = About.model_validate({**ABOUT, "suite": "all-v0"})
        with pytest.raises(Refusal, match=r"the server ranks echo-v0 \(held-out\), not all-v0"):
            prepared(honest, about, client.info())


def test_two_gigabytes_are_refused_unread(served: Served) -> None:
    token = served.token()
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    connection.putrequest("POST", "/api/v1/submissions")
    for name, value in {**HEADERS, "Authorization": f"Bearer {token}", "Content-Length": str(2 << 30)}.items():
        connection.putheader(name, value)
    connection.endheaders(tar({})[:100])
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["reason"]) == (413, "too_large")
    connection.close()
    assert served.incoming() == []


def test_heads_that_never_end_are_closed(served: Served) -> None:
    assert served.slow.recv(1000) == b""
    with socket.create_connection(("127.0.0.1", served.port), timeout=120) as large:
        with contextlib.suppress(OSError):
            large.sendall(b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * (1 << 20))
        with contextlib.suppress(ConnectionResetError):
            assert b" 200 " not in large.recv(1000)
    assert httpx.get(f"{served.url}/healthz", timeout=60).status_code == 200


def test_a_kill_in_the_middle_of_an_upload_leaves_nothing(tmp_path: Path, honest: Path) -> None:
    body = tar(members(honest))
    with running(Served(tmp_path / "store")) as server:
        assert isinstance(server, Served)
        token = server.token()
        head = (
            f"POST /api/v1/submissions HTTP/1.1\r\nHost: board\r\nContent-Type: {CONTENT_TYPE}\r\n"
            f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", server.port), timeout=120) as half:
            half.sendall(head.encode() + body[: len(body) // 2])
            until(server.incoming, 60)
            server.kill()
        assert server.incoming()
        server.start()
        assert server.incoming() == [] and server.board().groups == ()
        receipt = server.upload(body, token).json()
        assert server.settled(receipt["id"]).state is State.VERIFIED
        server.stop()


def test_a_kill_in_the_middle_of_replays_loses_none(tmp_path: Path) -> None:
    slow = run(tmp_path / "slow", policy="adder:errs_on=3,wait_s=0.3")
    with running(Served(tmp_path / "store", "--concurrency", 1)) as server:
        assert isinstance(server, Served)
        submission = server.upload(tar(members(slow)), server.token()).json()["id"]
        for _ in range(2):
            before = server.row(submission).verification.replayed
            until(
                lambda before=before: server.row(submission).verification.replayed > before, 120, server.log.read_text
            )
            server.kill()
            server.start()
            assert server.row(submission).verification.replayed > before
        assert server.row(submission).state is State.QUEUED
        assert server.row(submission).rank is None
        assert server.settled(submission).verification.agreed == 12


def test_two_servers_share_a_database_and_its_folders(tmp_path: Path, honest: Path) -> None:
    place = tmp_path / "store"
    with running(Served(place, name="one")) as first, running(Served(place, name="two")) as second:
        assert isinstance(first, Served) and isinstance(second, Served)
        token = first.token()
        sent: list[str] = []
        for number, server in enumerate((first, second, first, second)):

            def later(row: dict[str, Any], _: object, number: int = number) -> None:
                row["timings_s"]["queue"] = number

            body = tar(members(forged(honest, tmp_path / str(number), later)))
            sent.append(server.upload(body, token).json()["id"])
        assert [second.settled(one).verification.replayed for one in sent] == [12] * 4
        assert first.board() == second.board()


def test_a_row_of_the_public_secret_is_graded_with_the_hubs_own(tmp_path: Path, honest: Path) -> None:
    with pytest.MonkeyPatch.context() as env:
        env.setenv("METIER_HUB_SECRET", "a secret of the hub")
        server = Served(tmp_path / "store")
        with running(server):
            receipt = server.upload(tar(members(honest)), server.token()).json()
            row = server.settled(receipt["id"])
            (group,) = server.board().groups
    assert row.state is State.VERIFIED
    assert row.verification.secret_fingerprints != (group.terms.secret_fingerprint,)
    assert "a secret of the hub" not in server.log.read_text()


def test_real_sandboxes_tell_the_honest_from_the_forged(tmp_path: Path) -> None:
    right = run(tmp_path / "right", suite="covenants-v0", policy="oracle", backend="auto")
    wrong = run(tmp_path / "wrong", suite="covenants-v0", policy="noop", backend="auto")
    false = forged(wrong, tmp_path / "false", forgery)
    about = {"suite": "covenants-v0", "cost_usd": "0"}
    with running(Served(tmp_path / "store", board="covenants-v0", backend="auto")) as server:
        assert isinstance(server, Served)
        token = server.token()
        sent = [server.upload(tar(members(one, **about)), token).json()["id"] for one in (right, wrong, false)]
        rows = [server.settled(one) for one in sent]
        ranks = {row.id: row.rank for row in server.board().groups[0].rows}
    assert [row.state for row in rows] == [State.VERIFIED, State.VERIFIED, State.REFUTED]
    assert [(ranks[one], row.overall.passed) for one, row in zip(sent, rows, strict=True)] == [
        (1, 3),
        (2, 0),
        (None, 3),
    ]
    assert rows[2].verification.flattered == 3
