"""What a sandbox withstands and what it leaves behind: resets, limits, losses. On every real backend."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from metier.envs.core import Artefact, Capability, ConfigError, Sandbox, SandboxSpec

from .claims import raises
from .places import SOON_S, Place, SandboxSuite

ISOLATION = SandboxSuite("isolation")

IPC = "import ctypes; c = ctypes.CDLL(None); c.shmget(12, 4096, 0o1666); c.msgget(77, 0o1666); c.semget(78, 1, 0o1666)"
QUEUE = "import ctypes; ctypes.CDLL('librt.so.1').mq_open(b'/q', 0o102, 0o666, None)"
DEEP = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')"
MESS = {
    "files": "mkdir -p a /tmp/b /dev/shm/c; echo x > a/f; echo y > /tmp/b/g; echo z > /dev/shm/c/h",
    "locked folders": "mkdir -p a/b/c; echo x > a/b/c/f; chmod 000 a/b/c a/b a; mkdir t; chmod 000 /workspace",
    "a deep tree": f'python3 -c "{DEEP}"',
    "processes": "setsid sleep 500 & setsid sh -c 'trap \"\" TERM INT HUP; while true; do sleep 1; done' & disown -a",
    "System V IPC": f'python3 -c "{IPC}"',
    "message queues": f'python3 -c "{QUEUE}"',
    "names": "touch -- -rf $'new\\nline' '*' ' '; mkdir -p 'sub dir/…'",
}
TRACES = (
    "ls -A /workspace /dev/shm /dev/mqueue; ls -A /tmp; tail -n +2 -q /proc/sysvipc/*; "
    "seen=$(ps -eo uid,comm); echo \"$seen\" | grep -c '^ *1000'; stat -c '%a %u' /workspace /tmp"
)


@ISOLATION.of_backend(cases=MESS)
async def nothing_of_one_agent_reaches_the_next(place: Place, mess: str) -> None:
    async with place.box() as sandbox:
        clean = (await sandbox.exec(TRACES, timeout_s=10)).stdout
    async with place.box() as sandbox:
        assert (await sandbox.exec(mess, timeout_s=20)).exit_code == 0
        # the one that locked its working directory can start nothing there any more
        assert (await sandbox.exec("echo x", timeout_s=5, session="shell")).exit_code in (0, 126)
    async with place.box() as sandbox:
        assert (await sandbox.exec(TRACES, timeout_s=10)).stdout == clean


@ISOLATION.of_backend(needs=Capability.RESET_IN_PLACE)
async def a_reset_sandbox_is_used_again(place: Place) -> None:
    async with place.box() as sandbox:
        await sandbox.exec(MESS["files"], timeout_s=5)
        first = sandbox.id
    async with place.box() as sandbox:
        assert sandbox.id == first


@ISOLATION.of_backend()
async def a_verifier_that_ran_the_agents_program_is_not_used_again(place: Place) -> None:
    verifier = SandboxSpec(image=place.spec.image, memory_mb=256, writable_mb=place.spec.writable_mb, verifier=True)
    async with place.box(verifier) as sandbox:
        await sandbox.exec("true", timeout_s=5)
        first = sandbox.id
    async with place.box(verifier) as sandbox:
        assert sandbox.id != first


@ISOLATION.of_sandbox()
async def there_is_no_network(box: Sandbox) -> None:
    # looked at, not tried: no interface but loopback, no route to anywhere
    source = (
        "import socket\n"
        "print(sorted(name for _, name in socket.if_nameindex() if not name.startswith(('tunl', 'sit', 'ip6tnl'))))\n"
        "print(len(open('/proc/net/route').read().splitlines()) - 1)\n"
    )
    result = await box.exec(["python3", "-c", source], timeout_s=20)
    assert result.stdout.split() in ([b"['lo']", b"0"], [b"['lo']", b"-1"])


@ISOLATION.of_sandbox()
async def the_system_is_read_only(box: Sandbox) -> None:
    result = await box.exec(
        "for d in / /etc /usr/bin /run /var/tmp /opt /proc/sys/kernel; do touch $d/x 2>/dev/null && echo $d; done",
        timeout_s=5,
    )
    assert result.stdout == b""


@ISOLATION.of_sandbox()
async def what_the_agent_must_not_do_is_refused(box: Sandbox) -> None:
    limits = "import resource as r; r.prlimit(1, r.RLIMIT_NOFILE, (1, 1))"
    for command in ("mount -t tmpfs x /mnt", "unshare -U true", "chroot / true", f"python3 -c '{limits}'"):
        assert (await box.exec(command, timeout_s=5)).exit_code != 0, command


@ISOLATION.of_sandbox()
async def the_stewards_side_is_out_of_reach(box: Sandbox) -> None:
    if (await box.exec("id -u", timeout_s=5, user="root")).stdout != b"0\n":
        return
    for path in ("/proc/1/environ", "/proc/1/mem", "/run/metier-home", "/proc/1/fd"):
        result = await box.exec(f"cat {path}/* || cat {path}", timeout_s=5)
        assert result.exit_code != 0, path


@ISOLATION.of_sandbox(needs=Capability.MEMORY_LIMIT)
async def a_memory_hog_is_an_observation(box: Sandbox) -> None:
    result = await box.exec(["python3", "-c", "x = bytearray(1 << 31); print('had it')"], timeout_s=30)
    assert b"had it" not in result.stdout
    assert result.signal == 9
    assert result.oom_killed
    assert (await box.exec("echo alive", timeout_s=10)).stdout == b"alive\n"


@ISOLATION.of_sandbox(needs=Capability.MEMORY_LIMIT)
async def a_memory_hog_in_a_session_costs_the_session_only(box: Sandbox) -> None:
    result = await box.exec("x = bytearray(1 << 31)", timeout_s=30, session="python")
    assert result.oom_killed
    assert (await box.exec("1 + 1", timeout_s=20, session="python")).stdout == b"2\n"


@ISOLATION.of_backend(needs=Capability.MEMORY_LIMIT)
async def a_memory_hog_in_the_background_is_killed_and_its_sandbox_not_used_again(place: Place) -> None:
    hog = "(python3 -c 'bytearray(1 << 31)'; echo $? > ended) >/dev/null 2>&1 &"
    async with place.box() as sandbox:
        assert (await sandbox.exec(hog, timeout_s=10)).exit_code == 0
        ended = await sandbox.exec("until [ -s ended ]; do sleep 0.1; done; cat ended", timeout_s=SOON_S)
        assert ended.stdout == b"137\n"
        assert (await sandbox.exec("1 + 1", timeout_s=20, session="python")).stdout == b"2\n"
        first = sandbox.id
    async with place.box() as sandbox:
        assert sandbox.id != first


@ISOLATION.of_backend(needs=Capability.MEMORY_LIMIT)
async def memory_filled_with_files_is_an_observation_and_cleared(place: Place) -> None:
    fill = "for d in /dev/shm /tmp /workspace; do head -c 500M /dev/zero > $d/f || echo full $d; done 2>/dev/null"
    async with place.box() as sandbox:
        filled = await sandbox.exec(fill, timeout_s=60)
        assert filled.stdout.split() == [b"full", b"/dev/shm", b"full", b"/tmp", b"full", b"/workspace"]
        # there is room beside it for programs, and for what they ask too much
        assert (await sandbox.exec("1 + 1", timeout_s=20, session="python")).stdout == b"2\n"
        assert (await sandbox.exec(["python3", "-c", "bytearray(1 << 31)"], timeout_s=30)).oom_killed
        assert (await sandbox.exec("echo alive", timeout_s=10, session="shell")).stdout == b"alive\n"
        with raises(OSError):
            await sandbox.write("/workspace/more", b"x" * (1 << 20))
    async with place.box() as sandbox:
        assert (await sandbox.exec("head -c 16M /dev/zero > /dev/shm/f && echo room", timeout_s=20)).stdout == b"room\n"


@ISOLATION.of_backend(needs=Capability.PIDS_LIMIT)
async def a_fork_bomb_is_contained_and_cleared(place: Place) -> None:
    async with place.box() as sandbox:
        bomb = "import os, time\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(0.01)\n"
        result = await sandbox.exec(["python3", "-c", bomb], timeout_s=1)
        assert result.timed_out
        assert result.duration_s < SOON_S
        await sandbox.exec(f"setsid python3 -c '{bomb}' >/dev/null 2>&1 &", timeout_s=5)
        await asyncio.sleep(0.5)
        full = await sandbox.exec("true", timeout_s=5)
        assert full.exit_code in (0, 126)
        if full.exit_code == 126:
            assert b"process limit" in full.stderr
        began = time.monotonic()
    assert time.monotonic() - began < SOON_S
    async with place.box() as sandbox:
        assert b"os.fork" not in (await sandbox.exec("ps -u 1000 -o args=", timeout_s=5)).stdout


@ISOLATION.of_sandbox()
async def a_full_disk_is_an_observation(box: Sandbox) -> None:
    result = await box.exec("head -c 200M /dev/zero > f || echo full; ls -s f | cut -d' ' -f1", timeout_s=20)
    assert b"full" in result.stdout
    assert (await box.exec("rm f; echo alive", timeout_s=5)).stdout == b"alive\n"


@ISOLATION.of_backend(needs=Capability.MEMORY_LIMIT, cases=["/workspace", "/tmp", "/dev/shm"])
async def too_many_files_are_an_observation_and_cleared(place: Place, where: str) -> None:
    """A tree is out of inodes before it is out of bytes; where it has no limit of them, an empty file takes memory."""
    fill = "for i in range(300_000):\n  try: open(f'n{i}', 'x').close()\n  except OSError: break\n"
    small = SandboxSpec(image=place.spec.image, memory_mb=64, writable_mb={"/workspace": 16, "/tmp": 8})
    async with place.box(small) as sandbox:
        await sandbox.exec("echo kept > answer", timeout_s=5)
        filled = await sandbox.exec(["python3", "-c", fill], timeout_s=60, cwd=where)
        assert filled.ok or filled.oom_killed, filled
        assert (await sandbox.exec("echo alive", timeout_s=5)).stdout == b"alive\n"
        if filled.ok:
            with raises(OSError, match="space"):
                await sandbox.write(f"{where}/one-more", b"")
        collected = await sandbox.collect([Artefact(path="answer")])
        assert collected.refused == {}
    async with place.box(small) as sandbox:
        left = await sandbox.exec(f"ls -A {where} | grep -c n; touch {where}/n && echo room", timeout_s=5)
        assert left.stdout == b"0\nroom\n"


@ISOLATION.of_backend(
    cases=[
        ({"requires": frozenset({Capability.GPU})}, "gpu"),
        ({"gpus": 1}, "gpu"),
        ({"allow_hosts": ("example.invalid",)}, "allowlist"),
        ({"writable_mb": {"/workspace": 400}}, "half"),
        ({"writable_mb": {}}, "half"),
    ]
)
async def what_cannot_be_promised_is_refused(place: Place, change: dict[str, object], word: str) -> None:
    fields = {"image": place.spec.image, "memory_mb": 256, "writable_mb": place.spec.writable_mb, **change}
    with raises(ConfigError, match=word):
        await place.backend.acquire(SandboxSpec(**fields), deadline=place.soon())  # type: ignore[arg-type]


@ISOLATION.of_backend()
async def closing_twice_is_fine_and_a_closed_sandbox_is_lost(place: Place) -> None:
    sandbox = await place.backend.acquire(place.spec, deadline=place.soon())
    await asyncio.gather(sandbox.close(reuse=False), sandbox.close())
    await sandbox.close()
    with raises(ConnectionError):
        await sandbox.exec("true", timeout_s=5)


@ISOLATION.of_backend()
async def a_sandbox_given_back_reaches_nothing_of_the_next_lease(place: Place) -> None:
    first = await place.backend.acquire(place.spec, deadline=place.soon())
    await first.close()
    async with place.box(place.spec) as second:
        await second.write("/workspace/mine", b"as it was")
        attempts: list[Callable[[], Awaitable[object]]] = [
            lambda: first.exec("echo changed > /workspace/mine", timeout_s=5),
            lambda: first.write("/workspace/mine", b"changed"),
            lambda: first.read("/workspace/mine", max_bytes=100),
            lambda: first.collect([Artefact(path="mine", max_mb=1)]),
            lambda: first.snapshot(),
        ]
        for attempt in attempts:
            with raises(ConnectionError):
                await attempt()
        assert await second.read("/workspace/mine", max_bytes=100) == b"as it was"


@ISOLATION.of_backend()
async def cancelling_an_acquire_leaves_nothing(place: Place) -> None:
    spec = SandboxSpec(image=place.spec.image, memory_mb=250, pids=61, writable_mb={"/workspace": 16})
    mark = f'"pids":{spec.pids},'.encode()
    for wait_s in (0.0, 0.01, 0.05, 0.1, 0.2, 0.4):
        task = asyncio.create_task(place.backend.acquire(spec, deadline=place.soon()))
        await asyncio.sleep(wait_s)
        if task.done():  # a quick backend: this one was had
            await task.result().close(reuse=False)
            continue
        task.cancel()
        with raises(asyncio.CancelledError):
            await task
    began = time.monotonic()
    while left := _running(mark):
        assert time.monotonic() - began < SOON_S, f"still there: {left}"
        await asyncio.sleep(0.05)
    async with place.box(spec) as sandbox:
        assert (await sandbox.exec("true", timeout_s=5)).ok


def _running(mark: bytes) -> list[int]:
    """Processes with this in their command line, as far as this machine sees them: stewards name their limits there."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark in place.read_bytes():
                found.append(int(place.parent.name))
    return found
