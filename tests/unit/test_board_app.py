"""The HTTP surface, in this process: who may upload what, how fast and how much; and what everybody may read."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from board_hub import LIMITS, Hub
from forgery import members, tar
from metier.harness.leaderboard.app import Manner, Service, make_app
from metier.harness.leaderboard.archive import CONTENT_TYPE
from metier.harness.leaderboard.boards import Boards
from metier.harness.leaderboard.contract import Board, BoardRow, Receipt, ServerInfo
from metier.harness.leaderboard.guard import Guard
from metier.harness.leaderboard.sample import SampleRule

pytest_plugins = ("board_fixtures",)

UPLOAD = "/api/v1/submissions"


@pytest.fixture(scope="module")
def body(honest: Path) -> bytes:
    return tar(members(honest))


class Served:
    """A hub's surface, its client and a token."""

    def __init__(self, hub: Hub, **manner: Any) -> None:
        usual: dict[str, Any] = {"limits": LIMITS, "rule": SampleRule(), "spare_bytes": 0}
        self.hub = hub
        self.service = Service(hub.store, hub.folders, hub.boards, Manner(**{**usual, **manner}), asyncio.Event())
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(make_app(self.service)), base_url="http://board", timeout=60
        )
        self.token = hub.store.add_token("Lab").token

    async def upload(self, content: Any, token: str | None = None, **headers: str) -> httpx.Response:
        said = {"Content-Type": CONTENT_TYPE, "Authorization": f"Bearer {token or self.token}", **headers}
        return await self.client.post(UPLOAD, content=content, headers={k: v for k, v in said.items() if v})


@pytest.fixture
async def served(tmp_path: Path, boards: Boards) -> AsyncIterator[Callable[..., Served]]:
    made: list[Served] = []

    def serve(**manner: Any) -> Served:
        made.append(Served(Hub(tmp_path, boards), **manner))
        return made[-1]

    yield serve
    for one in made:
        await one.client.aclose()
        assert list((one.hub.folders.root / "incoming").iterdir()) == []


def reason(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"reason", "message"}
    return answer.json()["reason"]


async def test_an_upload_is_received_shown_and_published(served: Callable[..., Served], body: bytes) -> None:
    at = served()
    answer = await at.upload(body)
    assert answer.status_code == 202
    receipt = Receipt.model_validate_json(answer.content)
    row = BoardRow.model_validate_json((await at.client.get(f"{UPLOAD}/{receipt.id}")).content)
    (group,) = Board.model_validate_json((await at.client.get("/leaderboard.json")).content).groups
    assert row == group.rows[0]
    published = (await at.client.get(f"/submissions/{receipt.id}/submission.json")).content
    assert BoardRow.model_validate_json(published) == row
    listed = await at.client.get(f"/submissions/{receipt.id}/results.jsonl")
    assert listed.content == (at.hub.folders.public(receipt.id) / "results.jsonl").read_bytes()
    assert (
        listed.headers["x-content-type-options"] == "nosniff"
        and "script-src 'self'" in listed.headers["content-security-policy"]
    )
    info = ServerInfo.model_validate_json((await at.client.get("/api/v1/server")).content)
    assert info.boards[0].trials == 12 and info.limits == LIMITS
    assert (await at.client.get("/healthz")).json() == {"ok": True}
    schema = (await at.client.get("/api/v1/openapi.json")).json()
    assert schema["paths"][UPLOAD]["post"]["responses"]["413"]["description"]
    assert all(part.get("summary") for path in schema["paths"].values() for part in path.values())


@pytest.mark.parametrize(
    "path",
    [
        "/submissions/../board.sqlite",
        "/submissions/{id}/../../../board.sqlite",
        "/submissions/{id}/%2e%2e/%2e%2e/lock",
        "/submissions/{id}/episodes/../manifest.json%00",
        "/submissions/{id}//etc/passwd",
        "/submissions/{id}/about.json",
        "/submissions/{id}/lock",
        "/submissions/{id}",
        "/api/v1/submissions/%27%20OR%201=1",
        "/api/v1/submissions/" + "0" * 32,
        "/docs",
    ],
)
async def test_only_published_files_are_served(served: Callable[..., Served], body: bytes, path: str) -> None:
    at = served()
    receipt = (await at.upload(body)).json()
    answer = await at.client.get(path.replace("{id}", receipt["id"]))
    assert answer.status_code in (404, 422)
    # of the interface, or of the page, which answers at any other address
    assert set(answer.json()) in ({"reason", "message"}, {"error"})
    assert str(at.hub.folders.root) not in answer.text


async def test_who_has_no_token_uploads_nothing_and_guesses_slowly(
    served: Callable[..., Served], body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    at = served()
    caplog.set_level(logging.DEBUG)
    at.hub.store.revoke(at.hub.store.tokens()[-1].id)
    assert reason(await at.upload(body), 401) == "token_wrong"
    assert reason(await at.upload(body, Authorization=""), 401) == "token_missing"
    assert reason(await at.upload(body, Authorization="Basic YTpi"), 401) == "token_missing"
    answers = [await at.upload(b"", token="mlb_00000000_" + "x" * 43) for _ in range(20)]
    last = answers[-1]
    assert reason(last, 429) == "rate_limited" and int(last.headers["retry-after"]) > 0
    assert at.token not in caplog.text and at.token[13:] not in caplog.text and "xxxx" not in caplog.text


async def test_what_is_too_large_is_refused_before_it_is_stored(served: Callable[..., Served]) -> None:
    at = served()
    sent = 0

    async def endless(what: bytes = b"\1") -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1 << 20
            yield what * (1 << 20)

    assert reason(await at.upload(b"", **{"Content-Length": str(2 << 30)}), 413) == "too_large"
    assert reason(await at.upload(endless()), 400) == "archive_format"  # at the first byte that is none of a tar's
    head = tar({"results.jsonl": bytes(127 << 20)})[:512]

    async def in_a_tar() -> AsyncIterator[bytes]:
        nonlocal sent
        sent = 0
        yield head
        async for piece in endless():
            yield piece

    assert reason(await at.upload(in_a_tar()), 413) == "too_large"
    assert sent <= LIMITS.upload_bytes + (2 << 20)


async def test_who_sends_slowly_or_something_else_is_refused(served: Callable[..., Served], body: bytes) -> None:
    at = served(idle_s=0.05)

    async def stalls() -> AsyncIterator[bytes]:
        yield body[:1000]
        await asyncio.sleep(3600)

    assert reason(await at.upload(stalls()), 408) == "too_slow"
    for headers in ({"Content-Type": "application/zip"}, {"Content-Type": ""}, {"Content-Encoding": "gzip"}):
        assert reason(await at.upload(body, **headers), 415) == "wrong_type"
    assert reason(await at.upload(body[: len(body) // 2]), 400) == "cut_off"


async def test_uploads_of_a_token_are_limited(served: Callable[..., Served], body: bytes) -> None:
    at = served(limits=LIMITS.model_copy(update={"uploads_per_hour": 2}))
    assert [(await at.upload(body[:100])).status_code, (await at.upload(body)).status_code] == [400, 202]
    last = await at.upload(body)
    assert reason(last, 429) == "rate_limited" and 0 < int(last.headers["retry-after"]) <= 3600
    other = at.hub.store.add_token("Other").token
    assert reason(await at.upload(body, token=other), 409) == "taken"


async def test_uploads_at_once_are_limited(served: Callable[..., Served], body: bytes) -> None:
    at = served(uploads_at_once=2)
    going = asyncio.Event()

    async def waits() -> AsyncIterator[bytes]:
        yield body[:1000]
        await going.wait()
        yield body[1000:]

    others = [at.hub.store.add_token("Lab").token for _ in range(2)]
    first = [asyncio.create_task(at.upload(waits(), token=token)) for token in (at.token, others[0])]
    while len(list((at.hub.folders.root / "incoming").iterdir())) < 2:
        await asyncio.sleep(0.01)
    assert reason(await at.upload(body), 503) == "busy"  # of this token there is one already
    assert reason(await at.upload(body, token=others[1]), 503) == "busy"
    going.set()
    assert sorted([(await one).json()["new"] for one in first]) == [False, True]


@pytest.mark.parametrize("full", ["arrived", "public", "store"])
async def test_a_full_disk_is_told_and_leaves_nothing_half_made(
    served: Callable[..., Served], body: bytes, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = served()
    before = at.hub.everything()
    with monkeypatch.context() as context:
        if full == "store":
            at.service.manner = Manner(limits=LIMITS, rule=SampleRule(), spare_bytes=1 << 60)
        else:
            real = os.open if full == "arrived" else os.fsync

            def fails(path: Any, *rest: Any, **more: Any) -> int | None:
                if full == "public" or ("episodes" in str(path) and rest[0] & os.O_CREAT):
                    raise OSError(errno.ENOSPC, "No space left on device")
                return real(path, *rest, **more)

            context.setattr(os, "open" if full == "arrived" else "fsync", fails)
        answer = await at.upload(body)
    assert reason(answer, 507) == "no_room" and int(answer.headers["retry-after"]) > 0
    assert at.hub.everything() == before and at.hub.store.submissions() == []
    at.service.manner = Manner(limits=LIMITS, rule=SampleRule(), spare_bytes=0)
    assert (await at.upload(body)).status_code == 202


async def test_an_address_may_not_ask_without_end(boards: Boards) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def answers(host: str, number: int) -> list[int]:
        transport = httpx.ASGITransport(guard, client=(host, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://board") as client:
            return [(await client.get("/")).status_code for _ in range(number)]

    guard = Guard(app, rate_per_s=0.001, burst=3)
    assert await answers("1.2.3.4", 5) == [200, 200, 200, 429, 429]
    assert await answers("2001:db8::1", 2) + await answers("2001:db8::2", 3) == [200, 200, 200, 429, 429]


async def test_a_fault_of_the_server_is_told_without_what_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("oh")

    transport = httpx.ASGITransport(Guard(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://board") as client:
        answer = await client.get("/x%0ay?token=mlb_secret")
    assert (answer.status_code, "oh" in answer.text, "mlb_secret" in caplog.text) == (500, False, False)
    assert "GET /x?y failed: RuntimeError" in caplog.text
