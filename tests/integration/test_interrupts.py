"""Ctrl-C once, Ctrl-C twice, SIGTERM and then Ctrl-C: wherever it hits a client, it ends soon and leaves nothing.

Each client is a process group of its own with real sandboxes, on each backend. The command line ends in order, without
a traceback; a script ends as Python does it, and what it has not closed ends with it.
"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from metier.envs.core import SandboxUnavailable
from metier.harness.sandbox.bubblewrap import cgroups
from metier.harness.sandbox.budget import HostBudget
from metier.harness.sandbox.docker import answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.docker.reaper import reap
from metier.harness.sandbox.owner import OWNER
from metier.images import cache_dir, docker_tag, rootfs
from process_table import alive, descendants, running, saying
from waiting import patience

pytestmark = pytest.mark.slow

IMAGE = "terminal-python"
ENV = "finance/CovenantTest-v0"
CLIENTS = Path(__file__).parents[1] / "fixtures" / "interrupted.py"
UP_S = 60.0
ENDS_S = 2.0
SCRIPT_ENDS_S = 4.0
"""A script's interpreter first joins its threads, and then closes what the script did not."""
GONE_S = 2.0

SIGNALS = {
    "once": [signal.SIGINT],
    "twice": [signal.SIGINT, signal.SIGINT],
    "terminated": [signal.SIGTERM, signal.SIGINT],
}
APART_S = 0.2

LOOP = """
env = gymnasium.make("{env}", backend="{backend}")
while True:
    print("{at}" == "reset" and "now", flush=True)
    env.reset(seed=1)
    print("{at}" == "step" and "now", flush=True)
    env.step({{"tool": "shell", "arguments": {{"command": "sleep 60" if "{at}" == "step" else "ls"}}}})
    print("{at}" == "close" and "now", flush=True)
    env.close()
"""
VECTOR = """
env = gymnasium.make_vec("{env}", num_envs=2, backend="{backend}")
env.reset(seed=1)
print("now", flush=True)
env.step([{{"tool": "shell", "arguments": {{"command": "sleep 60"}}}}] * 2)
"""
PLAY = ["play", ENV]
CASES: dict[str, tuple[str | list[str], str, float]] = {
    "play human": (PLAY, "", 0.0),
    "play oracle": ([*PLAY, "--policy", "oracle"], "", 0.0),
    "certify": (["certify", ENV, "--level", "0", "--gate", "oracle"], "", 0.0),
    "loop in reset": (LOOP, "reset", 0.1),
    "loop in step": (LOOP, "step", 0.3),
    "loop in close": (LOOP, "close", 0.0),
    "vector in step": (VECTOR, "", 0.3),
}
"""What runs, where it is to be, and how long after it says that it is there the signal comes."""
BACKENDS = [pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"]


@dataclass(frozen=True, slots=True)
class World:
    """Who makes clients, and what they may write to."""

    clients: subprocess.Popen[str]
    home: Path
    temporary: Path
    engine: Engine

    async def sandboxes(self, backend: str, pid: int) -> list[str]:
        """What that client has: the states of its containers, or its control groups and what runs in its sandboxes."""
        if backend == "bubblewrap":
            groups = [str(each) for each in cgroups._clients() if each.name.startswith(f"{pid}:")]
            family = descendants(pid)
            return groups + [f"process {each}" for each in saying("bwrap") if each in family]
        filters = json.dumps({"label": [OWNER]})
        listed = await self.engine.checked("GET", "/containers/json", query={"all": "1", "filters": filters})
        return [each["State"] for each in listed if each["Labels"][OWNER].startswith(f"{pid}:")]

    def files(self) -> list[str]:
        """All but what a cache is for: the steward's code, the reaper's lock, and folders."""
        kept = {self.home / "reaper.lock", *(self.home / "steward").glob("[0-9a-f]*/**/*")}
        found = [path for path in (*self.home.rglob("*"), *self.temporary.rglob("*")) if not path.is_symlink()]
        return [str(path) for path in found if path not in kept and (":" in path.name or not path.is_dir())]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("interrupts")
    home, temporary = folder / "home", folder / "tmp"
    home.mkdir()
    temporary.mkdir()
    for shared in ("base", "records", "rootfs"):
        (home / shared).symlink_to(cache_dir() / shared)
    settings = {"METIER_HOME": str(home), "TMPDIR": str(temporary), "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"}
    with subprocess.Popen(
        [sys.executable, str(CLIENTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **settings},
    ) as clients:
        yield World(clients, home, temporary, Engine(socket_path()))
        assert clients.stdin is not None
        clients.stdin.close()


def until(told: Callable[[], object], within_s: float) -> None:
    began = time.monotonic()
    while not told():
        assert time.monotonic() - began < within_s, f"not within {within_s:g} s"
        time.sleep(0.005)


async def missing(world: World, backend: str) -> str:
    """What this backend lacks here."""
    if backend == "docker":
        there = await answers() and await world.engine.has_image(docker_tag(IMAGE))
        return "" if there else f"takes a Docker engine, and: metier images build {IMAGE}"
    try:
        rootfs(IMAGE, build=False)
    except SandboxUnavailable as gap:
        return str(gap)
    return ""


@pytest.mark.parametrize("signals", SIGNALS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backend", BACKENDS)
async def test_nothing_is_left(world: World, backend: str, case: str, signals: str, tmp_path: Path) -> None:
    if gap := await missing(world, backend):
        pytest.skip(gap)
    work, at, delay_s = CASES[case]
    command_line = isinstance(work, list)
    out, (keyboard, terminal) = tmp_path / "out", pty.openpty()
    assert world.clients.stdin is not None and world.clients.stdout is not None
    if isinstance(work, list):
        what: dict[str, object] = {"argv": [*work, "--backend", backend]}
    else:
        what = {"script": work.format(env=ENV, backend=backend, at=at)}
    told = {"out": str(out), "terminal": os.ttyname(terminal) if case == "play human" else "", **what}
    print(json.dumps(told), file=world.clients.stdin, flush=True)
    pid = int(world.clients.stdout.readline())
    try:
        if case == "play human":
            until(lambda: out.exists() and out.read_text().endswith("> "), UP_S)
        elif command_line:
            began = time.monotonic()
            while not await world.sandboxes(backend, pid):
                assert time.monotonic() - began < UP_S, out.read_text()
        else:
            until(lambda: out.exists() and "now\n" in out.read_text(), UP_S)
        time.sleep(delay_s)
        family = descendants(pid)
        began = time.monotonic()
        for number, each in enumerate(SIGNALS[signals]):
            time.sleep(APART_S if number else 0)
            with suppress(ProcessLookupError, OSError):
                if each is signal.SIGINT and case == "play human":
                    os.write(keyboard, b"\x03")
                else:
                    os.kill(pid, each)
        within_s = (ENDS_S if command_line else SCRIPT_ENDS_S) * patience()
        until(lambda: pid not in running(), within_s)
    finally:
        os.close(keyboard)
        os.close(terminal)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        status = int(world.clients.stdout.readline())
    print(f"{case}, {signals}: ended after {time.monotonic() - began:.2f} s with {status}\n{out.read_text()}")
    code = os.waitstatus_to_exitcode(status)
    assert code in {-signal.SIGINT, 128 + signal.SIGINT, -signal.SIGTERM, 128 + signal.SIGTERM}
    if command_line:
        assert code in {128 + number for number in SIGNALS[signals][:1]}
        assert "Traceback" not in out.read_text()
        assert "stopped" in out.read_text()
    await gone(world, backend, pid, reaped=not command_line)
    until(lambda: alive(family) == [], GONE_S * patience())
    assert [each for each, one in running().items() if pid in (one.group, one.session)] == []
    if not command_line:
        HostBudget(world.home / "claims").sweep()  # the dead hold nothing, and whoever counts next removes it
    assert world.files() == []


async def gone(world: World, backend: str, pid: int, *, reaped: bool) -> None:
    """Wait until no sandbox of it is left; `reaped`: by whoever comes next, where nobody else can."""
    began = time.monotonic()
    while left := await world.sandboxes(backend, pid):
        assert time.monotonic() - began < GONE_S * patience(), left
        if reaped and left == ["created"] * len(left):
            await reap(world.engine)  # what a client killed in between has not started, the next one's reaper takes
        time.sleep(0.02)
