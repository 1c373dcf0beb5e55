"""Tunnels: a port inside leads to a coroutine of the host's, whoever is inside, and to nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from metier.envs.core import Capability, ConfigError, ExecResult, Sandbox, SandboxLost

from ..sandbox.tunnel import Connection, tunnel
from .claims import raises
from .places import SOON_S, Place, SandboxSuite

TUNNELS = SandboxSuite("tunnels")
"""What needs no program inside."""
TUNNELLED = SandboxSuite("tunnelled")
"""What does."""
MOST_GROWTH_KIB = 16 * 1024
"""Of the steward, whatever it is sent: more than its windows take together, and less than one flood."""


async def echo(connection: Connection) -> None:
    """Says what is said."""
    while data := await connection.receive():
        await connection.send(data)


@TUNNELS.of_sandbox()
async def a_port_is_free_again_when_its_tunnel_is_closed(box: Sandbox) -> None:
    async with tunnel(box, 0, echo) as first, tunnel(box, 0, echo) as second:
        assert first != second
        with raises(OSError, match="in use"):
            async with tunnel(box, first, echo):
                pass
    async with tunnel(box, first, echo) as again:
        assert again == first


@TUNNELS.of_sandbox(cases=[80, -1, 65536])
async def what_is_no_port_is_refused(box: Sandbox, port: int) -> None:
    with raises(ConfigError, match="1024"):
        async with tunnel(box, port, echo):
            pass


@TUNNELS.of_backend()
async def with_its_sandbox_it_is_gone(place: Place) -> None:
    box = await place.backend.acquire(place.spec, deadline=place.soon())
    async with tunnel(box, 0, echo):
        await box.close()
    with raises(SandboxLost):
        async with tunnel(box, 0, echo):
            pass


CLIENT = """
import socket, sys, threading
port, size, count = map(int, sys.argv[1:])
def talk(number, told):
    data = bytes([65 + number % 26]) * size
    with socket.create_connection(("127.0.0.1", port)) as sock:
        got = bytearray()
        def hear():
            while part := sock.recv(65536):
                got.extend(part)
        hearing = threading.Thread(target=hear)
        hearing.start()
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        hearing.join()
    told.append(got == data)
told = []
talks = [threading.Thread(target=talk, args=(number, told)) for number in range(count)]
for one in talks: one.start()
for one in talks: one.join()
print(sum(told), "of", count)
"""


async def run(box: Sandbox, source: str, *words: object, timeout_s: float = SOON_S) -> ExecResult:
    return await box.exec(["python3", "-c", source, *map(str, words)], timeout_s=timeout_s)


@TUNNELLED.of_sandbox(cases={"nothing": (0, 1), "a byte": (1, 1), "much": (5_000_000, 1), "many at once": (20_000, 20)})
async def what_is_said_comes_back_whole(box: Sandbox, size: int, count: int) -> None:
    async with tunnel(box, 0, echo) as port:
        said = await run(box, CLIENT, port, size, count)
    assert said.stdout == f"{count} of {count}\n".encode(), said


@TUNNELLED.of_sandbox()
async def nobody_is_there_before_and_after(box: Sandbox) -> None:
    async with tunnel(box, 0, echo) as port:
        pass
    assert b"refused" in (await run(box, CLIENT, port, 1, 1)).stderr


@TUNNELLED.of_sandbox()
async def a_handler_that_fails_costs_its_connection_only(box: Sandbox) -> None:
    async def answer(connection: Connection) -> None:
        if await connection.receive() == b"A":
            raise ConnectionError("not today")
        await connection.send(b"B")

    async with tunnel(box, 0, answer) as port:
        said = await run(box, CLIENT, port, 1, 2)
    assert b"1 of 2" in said.stdout or b"reset" in said.stderr, said


HOLD = """
import socket, sys, time
port = int(sys.argv[1])
held = []
for _ in range(300):
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(("127.0.0.1", port))
    held.append(sock)
print("held", flush=True)
time.sleep(600)
"""
UNREAD = """
import socket, sys, time
held = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(20)]
for sock in held: sock.send(b"say on")
print("held", flush=True)
time.sleep(600)
"""
POUR = """
import socket, sys, threading, time
def pour(size):
    sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True: sock.send(b"x" * size)
for number in range(20): threading.Thread(target=pour, args=(1 if number % 2 else 1 << 20,), daemon=True).start()
print("held", flush=True)
time.sleep(600)
"""
COME_AND_GO = """
import socket, struct, sys, time
print("held", flush=True)
while True:
    sock = socket.socket()
    sock.settimeout(1)
    try:
        sock.connect(("127.0.0.1", int(sys.argv[1])))
        sock.send(b"x" * 1000)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError: pass
    sock.close()
"""


async def says_on(connection: Connection) -> None:
    """Never stops."""
    await connection.receive()
    while True:
        await connection.send(b"x" * 100_000)


async def deaf(connection: Connection) -> None:
    """Never reads."""
    await asyncio.Event().wait()


CROWDS: dict[str, tuple[str, Callable[[Connection], Awaitable[None]]]] = {
    "who hold more than are taken": (HOLD, echo),
    "who do not read": (UNREAD, says_on),
    "who pour where nobody reads": (POUR, deaf),
    "who come and go": (COME_AND_GO, echo),
    "who come and go where nobody reads": (COME_AND_GO, deaf),
}


async def steward_kib(box: Sandbox) -> int:
    status = (await box.exec("cat /proc/1/status", timeout_s=SOON_S, user="root")).stdout.split()
    return int(status[status.index(b"VmRSS:") + 1])


@TUNNELLED.of_sandbox(cases=CROWDS)
async def a_crowd_holds_nobody_up(box: Sandbox, source: str, handler: Callable[[Connection], Awaitable[None]]) -> None:
    before = await steward_kib(box)
    async with tunnel(box, 0, handler) as port:
        crowd = f"python3 -c '{source}' {port} > said 2>&1 & until grep -qs held said; do sleep 0.02; done; sleep 0.4"
        assert (await box.exec(crowd, timeout_s=SOON_S)).exit_code == 0
        began = time.monotonic()
        for _ in range(5):
            assert (await box.exec("echo here", timeout_s=SOON_S)).stdout == b"here\n"
            assert (await box.read("/workspace/said", max_bytes=100_000)).startswith(b"held")
        assert time.monotonic() - began < SOON_S
        assert await steward_kib(box) - before < MOST_GROWTH_KIB
        async with tunnel(box, 0, echo) as other:
            assert b"1 of 1" in (await run(box, CLIENT, other, 1000, 1)).stdout
    assert b"refused" in (await run(box, CLIENT, port, 1, 1)).stderr


@TUNNELLED.of_backend(needs=Capability.RESET_IN_PLACE, cases={"held": HOLD, "poured into": POUR})
async def nothing_of_it_reaches_the_next_lease(place: Place, source: str) -> None:
    box = await place.backend.acquire(place.spec, deadline=place.soon())
    async with tunnel(box, 0, deaf) as port:
        crowd = f"python3 -c '{source}' {port} > said 2>&1 & until grep -qs held said; do sleep 0.02; done"
        assert (await box.exec(crowd, timeout_s=SOON_S)).exit_code == 0
        first = box.id
        await box.close()
    async with place.box() as box:
        assert box.id == first, "it was proven empty"
        open_ = "tail -n +2 -q /proc/net/tcp /proc/net/tcp6 | awk '$4 != \"06\"' | wc -l"
        assert (await box.exec(open_, timeout_s=SOON_S)).stdout == b"0\n"
        async with tunnel(box, port, echo):
            assert b"1 of 1" in (await run(box, CLIENT, port, 1000, 1)).stdout


@TUNNELLED.of_sandbox()
async def a_tunnel_that_is_given_up_is_closed(box: Sandbox) -> None:
    ports: list[int] = []
    began, ended = asyncio.Event(), asyncio.Event()

    async def waits(connection: Connection) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def holds() -> None:
        async with tunnel(box, 0, waits) as port:
            ports.append(port)
            await run(box, CLIENT, port, 1, 1, timeout_s=600)

    holding = asyncio.create_task(holds())
    async with asyncio.timeout(SOON_S):
        await began.wait()
    holding.cancel()
    await asyncio.gather(holding, return_exceptions=True)
    assert ended.is_set()
    assert b"refused" in (await run(box, CLIENT, ports[0], 1, 1)).stderr


@TUNNELLED.of_sandbox()
async def there_are_only_so_many(box: Sandbox) -> None:
    async with tunnel(box, 0, echo), tunnel(box, 0, echo), tunnel(box, 0, echo), tunnel(box, 0, echo):
        with raises(ValueError, match="at most"):
            async with tunnel(box, 0, echo):
                pass
