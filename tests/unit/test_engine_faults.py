"""The Docker backend on an engine that fails: typed errors in time, nothing left, and a close that ends."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import SandboxLost, SandboxUnavailable
from metier.harness.sandbox import open_backend, pool
from metier.harness.sandbox.docker import DockerBackend, reaper
from metier.harness.sandbox.docker.engine import Engine, EngineError
from metier.harness.sandbox.owner import DEADLINE, OWNER, Owner
from metier.harness.testing import SPEC
from stub_engine import FAULTS, StubEngine
from waiting import soon

REQUEST_S = 0.2
SOON_S = 5.0
"""Long beside what is waited for here, short beside the engine's usual half minute."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder of these tests' own: the reaper's lock is in it."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
async def engine(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    monkeypatch.setenv("METIER_HOME", str(home))
    monkeypatch.setattr(pool, "REMOVE_S", 0.6)
    async with StubEngine(tmp_path / "engine.sock") as stub:
        yield stub


def opened(**options: Any) -> DockerBackend:
    backend = DockerBackend(**options)
    backend.engine.request_s = REQUEST_S
    return backend


async def until_empty(engine: Any) -> None:
    async with asyncio.timeout(SOON_S):
        while engine.containers or engine.attached:
            await asyncio.sleep(0.01)


async def test_the_stub_is_an_engine_to_the_backend(engine: Any) -> None:
    async with opened() as backend:
        async with await backend.acquire(SPEC, deadline=soon()) as sandbox:
            assert list(engine.containers) == [sandbox.id]
        async with await backend.acquire(SPEC, deadline=soon()) as again:
            assert again.id == sandbox.id
    assert engine.containers == {}


@pytest.mark.parametrize("how", FAULTS)
@pytest.mark.parametrize("stage", ["create", "attach", "start"])
async def test_an_engine_that_fails_while_a_sandbox_is_made_is_a_typed_error_and_leaves_nothing(
    engine: Any, stage: str, how: str
) -> None:
    engine.fail(stage, how, times=1)
    began = time.monotonic()
    async with opened() as backend:
        with pytest.raises(SandboxUnavailable):
            await backend.acquire(SPEC, deadline=soon())
        await until_empty(engine)
        async with await backend.acquire(SPEC, deadline=soon()):  # the next one is as good as ever
            pass
    assert time.monotonic() - began < SOON_S
    assert engine.containers == {}


@pytest.mark.parametrize("stage", ["create", "attach", "start"])
async def test_the_callers_deadline_is_nearer_than_the_engines(engine: Any, stage: str) -> None:
    engine.fail(stage, "hangs", times=1)
    began = time.monotonic()
    async with opened() as backend:
        backend.engine.request_s = 0.9
        with pytest.raises(SandboxUnavailable, match=r"test_s \(set by test\) fired after"):
            await backend.acquire(SPEC, deadline=soon(0.3))
    assert engine.asked[stage] == 1
    assert engine.containers == {}  # the late result is waited for, and removed
    assert time.monotonic() - began < SOON_S


async def test_a_cancelled_acquire_removes_what_comes_late(engine: Any) -> None:
    engine.fail("attach", "hangs", times=1)
    async with opened() as backend:
        acquiring = asyncio.create_task(backend.acquire(SPEC, deadline=soon()))
        async with asyncio.timeout(SOON_S):
            while not engine.asked["attach"]:
                await asyncio.sleep(0.01)
        acquiring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acquiring
        assert len(engine.containers) == 1
        await until_empty(engine)


@pytest.mark.parametrize("how", FAULTS)
async def test_an_engine_that_will_not_delete_holds_nobody_up_and_is_told(
    engine: Any, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    began = time.monotonic()
    async with opened() as backend:
        sandbox = await backend.acquire(SPEC, deadline=soon())
        engine.fail("delete", how)
        await sandbox.close(reuse=False)
        assert time.monotonic() - began < SOON_S
        # a sandbox ends with its connection, whatever the engine says
        await until_empty(engine)
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 1, told
    assert sandbox.id in told[0]
    assert "the reaper will take it" in told[0]


@pytest.mark.parametrize("how", ["500", "409"])
async def test_a_refused_delete_is_asked_for_again(engine: Any, how: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as backend:
        sandbox = await backend.acquire(SPEC, deadline=soon())
        engine.fail("delete", how, times=2)
        await sandbox.close(reuse=False)
        assert (engine.containers, engine.asked["delete"]) == ({}, 3)
    assert not caplog.records


async def test_closing_with_a_dead_engine_ends_for_all_at_once(engine: Any) -> None:
    async with opened() as backend:
        await backend.prewarm(SPEC, 3, deadline=soon())
        held = await backend.acquire(SPEC, deadline=soon())
        engine.fail("delete", "hangs")
        began = time.monotonic()
    assert time.monotonic() - began < REQUEST_S + 2
    await until_empty(engine)
    with pytest.raises(SandboxLost):
        await held.exec("true", timeout_s=1)


@pytest.mark.parametrize("how", ["hangs up", "hangs", "500", "no HTTP", "a huge body"])
async def test_an_engine_that_does_not_answer_is_not_opened(engine: Any, how: str) -> None:
    engine.fail("ping", how)
    began = time.monotonic()
    with pytest.raises(SandboxUnavailable, match="bubblewrap"):
        async with open_backend("docker"):
            pass
    assert time.monotonic() - began < SOON_S


@pytest.mark.parametrize("wire", [b"\1\0\0\0\0\0\0\x0fhello, hello...", b"Not Found, sorry", b"\7\0\0\0\0\0\0\1x"])
async def test_a_stream_that_is_none_is_given_up_at_once(
    engine: Any, monkeypatch: pytest.MonkeyPatch, wire: bytes
) -> None:
    async def rubbish(_: Any, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 UPGRADED\r\n\r\n" + wire)
        await reader.read()
        engine.containers.pop(name, None)

    monkeypatch.setattr(StubEngine, "_steward", rubbish)
    async with opened() as backend:
        began = time.monotonic()
        with pytest.raises(SandboxUnavailable, match="rubbish"):
            await backend.acquire(SPEC, deadline=soon())
        assert time.monotonic() - began < 1
    await until_empty(engine)


@pytest.mark.parametrize("how", ["a huge body", "a body without end"])
async def test_no_answer_fills_this_sides_memory(engine: Any, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr("metier.harness.sandbox.docker.engine._MAX_BODY_BYTES", 1 << 20)
    engine.fail("list", how)
    with pytest.raises(SandboxUnavailable, match="a body of"):
        await Engine(str(engine.path)).request("GET", "/containers/json")


async def test_an_answer_that_is_no_json_is_a_typed_error(engine: Any) -> None:
    engine.fail("list", "rubbish JSON")
    with pytest.raises(EngineError, match="no JSON"):
        await Engine(str(engine.path)).checked("GET", "/containers/json")


# the reaper


def orphan(engine: Any, name: str) -> None:
    dead = Owner.current()._replace(started=1).label()
    engine.containers[name] = {"Id": name, "Names": [f"/{name}"], "Labels": {OWNER: dead, DEADLINE: "99999999999"}}


async def test_one_container_that_resists_does_not_keep_the_reaper_from_the_others(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("first", "second", "third"):
        orphan(engine, name)
    engine.fail("delete", "hangs", times=1)
    with pytest.raises(SandboxUnavailable, match="DELETE /containers/first"):
        await reaper.reap(Engine(str(engine.path), request_s=REQUEST_S))
    assert list(engine.containers) == ["first"]


@pytest.mark.parametrize("how", FAULTS)
async def test_the_reaper_outlives_an_engine_that_fails(engine: Any, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(reaper, "EVERY_S", 0.02)
    engine.fail("list", how, times=2)
    orphan(engine, "left")
    async with opened():
        await until_empty(engine)
    assert engine.asked["list"] >= 3


async def test_an_answer_that_is_no_list_is_a_typed_error(engine: Any) -> None:
    engine.containers["odd"] = {"Names": []}
    with pytest.raises(Exception, match="no list of containers") as caught:
        await reaper.reap(Engine(str(engine.path)))
    assert type(caught.value).__name__ == "SandboxError"


# the pool, on the same engine


def warm(backend: DockerBackend) -> list[str]:
    """Who waits."""
    return [launched.client.name for launched in backend._warm]


async def use(backend: DockerBackend, **change: Any) -> str:
    """One lease and a return; who it was."""
    async with await backend.acquire(dataclasses.replace(SPEC, **change), deadline=soon()) as sandbox:
        return sandbox.id


async def test_a_sandbox_serves_fifty_times_and_no_more(engine: Any) -> None:
    assert pool.MAX_USES == 50
    async with opened() as backend:
        served = [await use(backend) for _ in range(51)]
        assert (len(set(served[:50])), served[50] in served[:50]) == (1, False)
        await asyncio.sleep(0)
        assert list(engine.containers) == [served[50]]


UNPROVEN: dict[str, dict[str, Any] | None] = {
    "something is left": {"left": ["/workspace/x"], "oom": 0},
    "a process was killed for memory": {"left": [], "oom": 1},
    "an error": {"error": {"type": "OSError", "errno": 5, "text": "read-only"}},
    "an error of another kind": {"error": {"type": "ValueError", "text": "bad"}},
    "an answer without proof": {},
    "no answer": None,
}


@pytest.mark.parametrize("how", UNPROVEN)
async def test_what_is_not_proven_empty_is_not_used_again(
    engine: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(pool, "RESET_S", 0.2)
    engine.answers["reset"] = lambda _: UNPROVEN[how]
    async with opened() as backend:
        first = await use(backend)
        assert (warm(backend), engine.containers) == ([], {})
        assert await use(backend) != first


@pytest.mark.parametrize("answer", [{}, {"error": {"type": "OSError", "errno": 5, "text": "no"}}, None])
async def test_a_lease_that_is_not_answered_as_agreed_is_a_typed_error(
    engine: Any, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any] | None
) -> None:
    monkeypatch.setattr(pool, "LEASE_S", 0.2)
    engine.answers["lease"] = lambda _: answer
    async with opened() as backend:
        with pytest.raises((SandboxUnavailable, SandboxLost)):
            await backend.acquire(SPEC, deadline=soon())
        assert engine.containers == {}


async def test_an_oom_of_an_earlier_lease_does_not_count_against_a_later_one(engine: Any) -> None:
    engine.answers["lease"] = lambda _: {"oom": 3, "refused_forks": 0}
    engine.answers["reset"] = lambda _: {"left": [], "oom": 3}
    async with opened() as backend:
        assert await use(backend) == await use(backend)


async def test_no_more_wait_than_were_asked_for_and_the_oldest_gives_way(engine: Any) -> None:
    async with opened(max_warm=2) as backend:
        held = [await backend.acquire(SPEC, deadline=soon()) for _ in range(4)]
        for sandbox in held:
            await sandbox.close()
        assert warm(backend) == [held[2].id, held[3].id]
        await backend.prewarm(SPEC, 2, deadline=soon())  # they are there
        assert (engine.asked["create"], warm(backend)) == (4, [held[2].id, held[3].id])
        other = await use(backend, memory_mb=512)
        assert warm(backend) == [held[3].id, other]
        async with asyncio.timeout(SOON_S):
            while len(engine.containers) > 2:
                await asyncio.sleep(0.01)
        assert set(engine.containers) == set(warm(backend))


async def test_one_that_died_while_it_waited_is_not_handed_out(engine: Any) -> None:
    async with opened() as backend:
        first = await use(backend)
        engine.attached[first].close()
        assert await use(backend) != first


async def test_one_that_is_too_old_for_a_whole_lease_is_not_handed_out(engine: Any) -> None:
    async with opened() as backend:
        first = await use(backend)
        backend._warm[0].at -= SPEC.ttl_s + 601
        assert await use(backend) != first
        async with asyncio.timeout(SOON_S):
            while first in engine.containers:
                await asyncio.sleep(0.01)


async def test_two_pools_of_one_run_keep_to_themselves(engine: Any) -> None:
    async with opened(run="r") as one:
        mine = await one.acquire(SPEC, deadline=soon())
        waits = await one.acquire(SPEC, deadline=soon())
        await waits.close()
        async with opened(run="r") as other:
            theirs = [await other.acquire(SPEC, deadline=soon()) for _ in range(2)]
            assert {mine.id, waits.id}.isdisjoint(box.id for box in theirs)
            assert len(engine.containers) == 4
        assert set(engine.containers) == {mine.id, waits.id}
        assert (await mine.client.call("facts", timeout_s=1)).fields["pids"] == 1
        assert await use(one) == waits.id
