"""An engine behind a socket behaves as the engine itself, and its death is a PolicyError that says what to do."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import ConfigError, PolicyError
from metier.harness.policy.contract import Stop
from metier.scheduler import Needs, WorkItem, open_executor
from metier.trainer.rollout.remote import EngineClient, EngineServer, serving
from remote_tasks import Scripted, request
from waiting import patience, soon

FIXTURES = Path(__file__).parents[1] / "fixtures"


async def until(condition: Any, within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("tcp", [False, True])
async def test_a_generation_crosses_unchanged(tcp: bool) -> None:
    engine = Scripted()
    sent = request("r1", 5, 6, 7, images=(b"\x89PNG\x00",))
    async with EngineServer(engine, tcp=tcp) as server, EngineClient(server.address) as client:
        remote = await client.generate(sent, deadline=soon())
    assert engine.seen == [sent]
    assert remote == await engine.generate(sent, deadline=soon())
    assert remote.stop is Stop.END


async def test_requests_share_a_connection_without_waiting_for_each_other() -> None:
    async with EngineServer(Scripted()) as server, EngineClient(server.address) as client:
        slow = asyncio.create_task(client.generate(request("slow", 3000), deadline=soon()))
        quick = await asyncio.gather(*(client.generate(request(f"q{n}", 1, n), deadline=soon()) for n in range(50)))
        assert [generation.output_ids for generation in quick] == [(n, 1) for n in range(50)]
        assert not slow.done()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow


async def test_cancelling_aborts_in_the_engine_and_spares_the_others() -> None:
    engine = Scripted()
    async with EngineServer(engine) as server, EngineClient(server.address) as client:
        cancelled = asyncio.create_task(client.generate(request("cancelled", 60_000), deadline=soon()))
        spared = asyncio.create_task(client.generate(request("spared", 300), deadline=soon()))
        await until(lambda: len(engine.started) == 2)
        cancelled.cancel()
        await until(lambda: engine.aborted == ["cancelled"])
        assert (await spared).output_ids == (300,)


async def test_the_deadline_crosses_and_is_named() -> None:
    engine = Scripted()
    async with EngineServer(engine) as server, EngineClient(server.address) as client:
        with pytest.raises(PolicyError, match=r"decoding: test_s \(set by test\)"):
            await client.generate(request("late", 60_000), deadline=soon(0.3))
        with pytest.raises(PolicyError, match="test_s"):
            await client.generate(request("never", 1), deadline=soon(0))
    assert engine.started == ["late"]


async def test_errors_keep_their_kind() -> None:
    async with EngineServer(Scripted()) as server, EngineClient(server.address) as client:
        with pytest.raises(PolicyError, match="RuntimeError: the forward pass broke"):
            await client.generate(request("empty"), deadline=soon())
        with pytest.raises(ConfigError, match="max_tokens is 0"):
            await client.generate(request("none", 1, max_tokens=0), deadline=soon())


async def test_weights_are_updated_by_path_only(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"")
    async with EngineServer(Scripted()) as server, EngineClient(server.address) as client:
        await client.update_weights(path, 7)
        assert (await client.generate(request("r", 1), deadline=soon())).versions == ((7, 1),)
        with pytest.raises(ConfigError, match="by path only"):
            await client.update_weights([], 8)
        with pytest.raises(ConfigError, match="no weights"):
            await client.update_weights(tmp_path / "absent", 8)


async def test_the_token_is_needed() -> None:
    async with EngineServer(Scripted()) as server:
        where = server.address.partition("#")[0]
        async with EngineClient(where + "#wrong") as client:
            with pytest.raises(ConfigError, match="wrong token"):
                await client.generate(request("r", 1), deadline=soon())
    for address in ("", "unix:/tmp/x", "http://host#t", "tcp:#t"):
        with pytest.raises(ConfigError, match="address"):
            EngineClient(address)


async def test_rubbish_on_the_socket_closes_that_connection_only() -> None:
    async with EngineServer(Scripted()) as server, EngineClient(server.address) as client:
        path = server.address.removeprefix("unix:").partition("#")[0]
        for rubbish in (b"GET / HTTP/1.1\r\n\r\n", b"\x00\x00\x00\x02[]", b"\x00\x00\x00\x02{}", b"\xff\xff\xff\xff"):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(rubbish)
            writer.write_eof()
            answer = await reader.read()
            assert b"value" not in answer
            writer.close()
        assert (await client.generate(request("r", 1), deadline=soon())).output_ids == (1,)


async def test_a_dropped_connection_is_made_again_once() -> None:
    engine = Scripted()
    async with EngineServer(engine) as server, EngineClient(server.address) as client:
        asking = asyncio.create_task(client.generate(request("r", 500), deadline=soon()))
        await until(lambda: engine.started == ["r"])
        for connection in list(server._connections):  # the one way to cut it without a proxy
            connection.cancel()
        assert (await asking).output_ids == (500,)
        assert engine.started == ["r", "r"]
        assert engine.aborted == ["r"]


async def test_a_closed_server_is_a_policy_error_that_says_what_to_do() -> None:
    async with EngineServer(Scripted()) as server:
        client = EngineClient(server.address)
        asking = asyncio.create_task(client.generate(request("r", 60_000), deadline=soon()))
        await asyncio.sleep(0.2)
    with pytest.raises(PolicyError, match="start it again"):
        await asking
    with pytest.raises(PolicyError, match="start it again"):
        await client.generate(request("r2", 1), deadline=soon())
    await client.close()
    await client.close()


def _process(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(FIXTURES / "remote_tasks.py"), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


async def _first_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return (await asyncio.to_thread(process.stdout.readline)).decode().strip()


async def test_a_killed_server_process_is_a_policy_error() -> None:
    with _process("serve") as owner:
        address = await _first_line(owner)
        async with EngineClient(address) as client:
            assert (await client.generate(request("r", 1), deadline=soon())).output_ids == (1,)
            asking = asyncio.create_task(client.generate(request("long", 60_000), deadline=soon()))
            await asyncio.sleep(0.2)
            owner.kill()
            killed = time.monotonic()
            with pytest.raises(PolicyError, match="start it again"):
                await asking
            assert time.monotonic() - killed < 2
    folder = Path(address.removeprefix("unix:").partition("#")[0]).parent
    await until(lambda: not folder.exists(), within_s=5 * patience())  # its tether has, what a killed owner cannot


async def test_a_killed_client_process_aborts_its_requests() -> None:
    engine = Scripted()
    async with EngineServer(engine) as server:
        with _process("ask", server.address) as other:
            assert await _first_line(other) == "asked"
            await until(lambda: engine.started == ["vanishing"])
            other.kill()
            await until(lambda: engine.aborted == ["vanishing"], within_s=2)


async def test_it_can_be_served_from_a_thread_while_the_owner_is_busy() -> None:
    with serving(Scripted()) as address, _process("ask", address) as other:
        assert other.stdout is not None
        os.set_blocking(other.stdout.fileno(), False)
        said, began = None, time.monotonic()
        while said is None and time.monotonic() - began < 60:
            time.sleep(0.2)  # the owner's own loop stands still all the while
            said = other.stdout.read()
        assert said == b"asked\n"
        other.kill()


@pytest.mark.slow
async def test_work_on_ray_reaches_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FIXTURES))
    async with (
        EngineServer(Scripted()) as server,
        open_executor("ray", workers=1, cpus=2, env={"PYTHONPATH": str(FIXTURES)}) as executor,
    ):
        item = WorkItem(
            key="k",
            task="remote_tasks:generate_from_worker",
            payload={"address": server.address},
            needs=Needs(),
            timeout_s=30,
        )
        assert (await executor.run(item)).value == [7, 6, 5]
    gone = await _run_locally(item)
    assert gone == "PolicyError"


async def _run_locally(item: WorkItem) -> str | None:
    async with open_executor("local", cpus=1) as executor:
        return (await executor.run(item)).failure
