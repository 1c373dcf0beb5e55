"""Frames, rings, links and paths: the pure parts of the steward, and the client against a hostile one."""

from __future__ import annotations

import asyncio
import os
import pickle
import random
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metier.envs.core import Limit, SandboxError, SandboxLost, SandboxSpec
from metier.harness.sandbox import RequestRefused
from metier.harness.sandbox import client as client_module
from metier.harness.sandbox.client import StewardClient
from metier.harness.sandbox.owner import Owner
from metier.harness.sandbox.protocol import (
    CANCEL,
    DATA,
    HELLO,
    MAX_PAYLOAD,
    PING,
    PONG,
    REPLY,
    VERSION,
    Decoder,
    FrameError,
    control,
    encode,
    steward_argv,
    steward_folder,
)
from metier.harness.sandbox.steward.files import split
from metier.harness.sandbox.steward.loop import Channel, Loop
from metier.harness.sandbox.steward.rings import HeadTail
from metier.harness.sandbox.steward.trees import escapes

HELLO_FRAME = control(HELLO, 0, version=VERSION, nonce="n")


def test_frames_survive_any_cutting() -> None:
    dice = random.Random(7)
    sent = [
        (dice.choice([DATA, REPLY, PONG]), dice.randrange(1 << 32), dice.randbytes(dice.randrange(300)))
        for _ in range(200)
    ]
    wire = b"".join(encode(*frame) for frame in sent)
    decoder, got = Decoder(), []
    while wire:
        size = dice.randrange(1, 64)
        got += decoder.feed(wire[:size])
        wire = wire[size:]
    assert [tuple(frame) for frame in got] == sent


NO_FRAMES = [b"\0\0\0\1\x63\0\0\0\0x", (MAX_PAYLOAD + 1).to_bytes(4, "big") + b"\3\0\0\0\0", b"GET / HTTP/1.1\r\n"]


@pytest.mark.parametrize("wire", NO_FRAMES)
def test_what_is_no_frame_is_refused(wire: bytes) -> None:
    with pytest.raises(FrameError):
        Decoder().feed(wire)


@pytest.mark.parametrize("payload", [b"", b"[1]", b"\xff", b"{"])
def test_control_must_be_a_json_object(payload: bytes) -> None:
    (frame,) = Decoder().feed(encode(REPLY, 1, payload))
    with pytest.raises(FrameError):
        frame.json()


def test_a_control_frame_is_never_too_long() -> None:
    room = MAX_PAYLOAD - len(control(REPLY, 1, text="")) + 9  # 9 bytes are the frame's head
    assert [frame.kind for frame in Decoder().feed(control(REPLY, 1, text="x" * room))] == [REPLY]
    with pytest.raises(FrameError, match="more than"):
        control(REPLY, 1, text="x" * (room + 1))


def test_a_ring_keeps_head_and_tail_whatever_the_pieces() -> None:
    dice = random.Random(3)
    data = dice.randbytes(5000)
    for limit in (0, 1, 100, 2499, 2500, 6000):
        ring, at = HeadTail(limit), 0
        while at < len(data):
            size = dice.randrange(1, 700)
            ring.add(data[at : at + size])
            at += size
        cut = max(0, len(data) - 2 * limit)
        assert ring.cut_bytes == cut
        if cut:
            assert ring.kept() == data[:limit] + b"\n[... %d bytes cut ...]\n" % cut + data[len(data) - limit :]
        else:
            assert ring.kept() == data


@pytest.mark.parametrize(
    ("folder", "target", "leaves"),
    [
        ([], "a", False),
        (["d"], "../a", False),
        (["d"], "../../a", True),
        ([], "/a", True),
        ([], "a/../../b", True),
        (["d"], "e/../../a/..", False),
    ],
)
def test_links_that_leave_are_known(folder: list[str], target: str, leaves: bool) -> None:
    assert escapes(folder, target) is leaves


def test_paths_are_split_and_never_climb() -> None:
    assert split("/a//./b/") == ["a", "b"]
    for path in ("a/../b", "..", "a\0b"):
        with pytest.raises(ValueError):
            split(path)


def test_the_steward_refuses_to_run_outside_a_sandbox(tmp_path: Path) -> None:
    folder = steward_folder(tmp_path)
    assert steward_folder(tmp_path) == folder
    spec = SandboxSpec(image="any")
    argv = [sys.executable, "-I", str(folder), steward_argv(spec)[-1]]
    done = subprocess.run(argv, input=b"", capture_output=True, timeout=20, check=False)
    assert done.returncode == 1
    assert b"pid 1" in done.stderr


def test_owners_tell_the_living_from_the_dead() -> None:
    me = Owner.current()
    assert Owner.parse(me.label()) == me
    assert not me.dead()
    assert me._replace(started=me.started + 1).dead()
    assert me._replace(pid=(1 << 22) + 1).dead()
    assert not me._replace(boot="other", started=1).dead()
    assert Owner.parse("rubbish") is None


def test_a_loss_crosses_processes_with_its_evidence() -> None:
    error = SandboxLost("gone")
    error.agent_caused = Limit.MEMORY
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.agent_caused) == ("gone", Limit.MEMORY)


class Wire:
    """Both ends of a connection whose far end the test plays."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.sent = bytearray()
        self.closed = False

    async def read(self, n: int, /) -> bytes:
        return await self.reader.read(n)

    def write(self, data: bytes, /) -> None:
        self.sent += data

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
async def wire() -> Wire:
    return Wire()


async def connected(wire: Wire) -> StewardClient:
    """A client that has been greeted."""
    wire.reader.feed_data(HELLO_FRAME)
    return await StewardClient.connect("metier-test", wire, wire, timeout_s=2)


HOSTILE: dict[str, Callable[[Wire], None]] = {
    "rubbish": lambda wire: wire.reader.feed_data(os.urandom(64).replace(b"\0", b"\xff")),
    "end": lambda wire: wire.reader.feed_eof(),
    "a second hello": lambda wire: wire.reader.feed_data(HELLO_FRAME),
    "a reply that is no object": lambda wire: wire.reader.feed_data(encode(REPLY, 1, b"7")),
    "facts that are none": lambda wire: wire.reader.feed_data(control(PONG, 0, oom="x")),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_broken_connection_fails_all_calls_at_once(wire: Wire, name: str) -> None:
    client = await connected(wire)
    calls = [asyncio.create_task(client.call("exec", timeout_s=30)) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0.01)
    HOSTILE[name](wire)
    for outcome in await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 2):
        assert isinstance(outcome, SandboxLost)
        assert "metier-test" in str(outcome)
    with pytest.raises(SandboxLost):
        await client.call("exec", timeout_s=1)
    assert wire.closed
    await client.close()


async def test_an_answer_without_end_is_refused(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_MAX_ANSWER_BYTES", 1000)
    client = await connected(wire)
    call = asyncio.create_task(client.call("read", timeout_s=30))
    await asyncio.sleep(0.01)
    for _ in range(20):
        wire.reader.feed_data(encode(DATA, 1, b"x" * 100))
    with pytest.raises(SandboxLost, match="rubbish"):
        await call
    await client.close()


async def test_no_hello_or_a_strange_one_is_a_loss(wire: Wire) -> None:
    with pytest.raises(SandboxLost, match="did not answer"):
        await StewardClient.connect("metier-test", wire, wire, timeout_s=0.05)
    other = Wire()
    other.reader.feed_data(control(HELLO, 0, version=99))
    with pytest.raises(SandboxLost, match="version"):
        await StewardClient.connect("metier-test", other, other, timeout_s=2)


async def test_late_answers_and_strange_streams_are_ignored(wire: Wire) -> None:
    client = await connected(wire)
    wire.reader.feed_data(control(REPLY, 99) + encode(DATA, 99, b"x"))
    call = asyncio.create_task(client.call("facts", timeout_s=5))
    await asyncio.sleep(0.01)
    wire.reader.feed_data(control(REPLY, 1, fine=True))
    assert (await call).fields == {"fine": True}
    await client.close()


@pytest.mark.parametrize("path", ["x" * MAX_PAYLOAD, "é" * (MAX_PAYLOAD // 6), "a\ud800"])
async def test_what_cannot_be_sent_is_refused_and_nothing_is_lost(wire: Wire, path: str) -> None:
    client = await connected(wire)
    with pytest.raises(RequestRefused) as refused:
        await client.call("write", {"path": path}, timeout_s=5, body=b"data")
    assert isinstance(refused.value, SandboxError) and isinstance(refused.value, ValueError)
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (type(copy), str(copy)) == (RequestRefused, str(refused.value))
    assert (bytes(wire.sent), client.lost, client._calls) == (b"", None, {})
    await client.close()


async def test_a_silent_steward_is_given_up(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PING_S", 0.02)
    monkeypatch.setattr(client_module, "HEARTBEAT_S", 0.1)
    client = await connected(wire)
    with pytest.raises(SandboxLost, match="silent"):
        await client.call("exec", timeout_s=30)
    assert wire.sent.count(b"\x07\0\0\0\0") >= 2
    await client.close()


async def test_an_error_inside_keeps_its_type(wire: Wire) -> None:
    client = await connected(wire)
    kinds = {"FileNotFoundError": FileNotFoundError, "ValueError": ValueError, "OSError": OSError, "Strange": OSError}
    for number, (name, kind) in enumerate(kinds.items(), start=1):
        call = asyncio.create_task(client.call("read", timeout_s=5))
        await asyncio.sleep(0.01)
        wire.reader.feed_data(control(REPLY, number, error={"type": name, "errno": 2, "text": "why"}))
        with pytest.raises(kind, match="why"):
            await call
    await client.close()


async def test_cancelling_tells_the_steward(wire: Wire) -> None:
    client = await connected(wire)
    call = asyncio.create_task(client.call("exec", timeout_s=30))
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert wire.sent.endswith(control(CANCEL, 1))
    await client.close()


def test_what_is_long_in_the_making_lets_the_steward_listen() -> None:
    loop, sent = Loop(), os.pipe()
    heard: list[int] = []
    host, steward = os.pipe(), sent[1]
    channel = Channel(loop, host[0], steward, lambda frame: heard.append(frame.kind))

    def making() -> Iterator[bytes]:
        while not heard:
            yield b""
        yield control(REPLY, 1)

    os.write(host[1], control(PING, 0))
    channel.stream(making())
    while not select.select([sent[0]], [], [], 0)[0]:
        loop.turn()
    assert [frame.kind for frame in Decoder().feed(os.read(sent[0], 1000))] == [REPLY]
    for fd in (*host, *sent):
        os.close(fd)
