"""Ctrl-C once, Ctrl-C twice, SIGTERM and then Ctrl-C: wherever it hits a client, it ends soon and leaves nothing.

Each client is a process group of its own with real sandboxes. The command line ends in order, without a traceback; a
script ends as Python does it, and what it has not closed ends with it.
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

from metier.harness.sandbox.docker import answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.docker.reaper import reap
from metier.harness.sandbox.owner import OWNER
from metier.images import docker_tag

pytestmark = [pytest.mark.docker, pytest.mark.slow]

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
env = gymnasium.make("{env}", backend="docker")
while True:
    print("{at}" == "reset" and "now", flush=True)
    env.reset(seed=1)
    print("{at}" == "step" and "now", flush=True)
    env.step({{"tool": "shell", "arguments": {{"command": "sleep 60" if "{at}" == "step" else "ls"}}}})
    print("{at}" == "close" and "now", flush=True)
    env.close()
"""
VECTOR = """
env = gymnasium.make_vec("{env}", num_envs=2, backend="docker")
env.reset(seed=1)
print("now", flush=True)
env.step([{{"tool": "shell", "arguments": {{"command": "sleep 60"}}}}] * 2)
"""
PLAY = ["play", ENV, "--backend", "docker"]
CASES: dict[str, tuple[str | list[str], float]] = {
    "play human": (PLAY, 0.0),
    "play oracle": ([*PLAY, "--policy", "oracle"], 0.0),
    "certify": (["certify", ENV, "--backend", "docker", "--level", "0", "--gate", "oracle"], 0.0),
    "loop in reset": (LOOP.format(env=ENV, at="reset"), 0.1),
    "loop in step": (LOOP.format(env=ENV, at="step"), 0.3),
    "loop in close": (LOOP.format(env=ENV, at="close"), 0.0),
    "vector in step": (VECTOR.format(env=ENV), 0.3),
}
"""What runs, and how long after it says that it is there the signal comes."""


@dataclass(frozen=True, slots=True)
class World:
    """Who makes clients, and what they may write to."""

    clients: subprocess.Popen[str]
    home: Path
    temporary: Path
    engine: Engine

    async def containers(self, pid: int) -> list[str]:
        filters = json.dumps({"label": [OWNER]})
        listed = await self.engine.checked("GET", "/containers/json", query={"all": "1", "filters": filters})
        return [each["State"] for each in listed if each["Labels"][OWNER].startswith(f"{pid}:")]

    def files(self) -> list[str]:
        """All but what a cache is for: the steward's code, the reaper's lock, and folders."""
        kept = {self.home / "reaper.lock", *(self.home / "steward").glob("[0-9a-f]*/**/*")}
        found = [*self.home.rglob("*"), *self.temporary.rglob("*")]
        return [str(path) for path in found if path not in kept and (":" in path.name or not path.is_dir())]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("interrupts")
    home, temporary = folder / "home", folder / "tmp"
    home.mkdir()
    temporary.mkdir()
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


def patience(seconds: float) -> float:
    """More on a machine that is behind."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def group(leader: int) -> list[int]:
    """Processes of this group or session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if fields[0] not in "ZX" and str(leader) in fields[2:4]:
                found.append(int(stat.parent.name))
    return found


@pytest.mark.parametrize("signals", SIGNALS)
@pytest.mark.parametrize("case", CASES)
async def test_nothing_is_left(world: World, case: str, signals: str, tmp_path: Path) -> None:
    if not await answers() or not await world.engine.has_image(docker_tag("terminal-python")):
        pytest.skip("takes a Docker engine, and: metier images build terminal-python")
    work, delay_s = CASES[case]
    command_line = isinstance(work, list)
    out, (keyboard, terminal) = tmp_path / "out", pty.openpty()
    assert world.clients.stdin is not None and world.clients.stdout is not None
    what = {"argv": work} if command_line else {"script": work}
    told = {"out": str(out), "terminal": os.ttyname(terminal) if case == "play human" else "", **what}
    print(json.dumps(told), file=world.clients.stdin, flush=True)
    pid = int(world.clients.stdout.readline())
    try:
        if case == "play human":
            until(lambda: out.exists() and out.read_text().endswith("> "), UP_S)
        elif command_line:
            began = time.monotonic()
            while not await world.containers(pid):
                assert time.monotonic() - began < UP_S, out.read_text()
        else:
            until(lambda: out.exists() and "now\n" in out.read_text(), UP_S)
        time.sleep(delay_s)
        began = time.monotonic()
        for number, each in enumerate(SIGNALS[signals]):
            time.sleep(APART_S if number else 0)
            with suppress(ProcessLookupError, OSError):
                if each is signal.SIGINT and case == "play human":
                    os.write(keyboard, b"\x03")
                else:
                    os.kill(pid, each)
        within_s = patience(ENDS_S if command_line else SCRIPT_ENDS_S)
        until(lambda: not _alive(pid), within_s)
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
    began = time.monotonic()
    while left := await world.containers(pid):
        assert time.monotonic() - began < patience(GONE_S), left
        if not command_line and left == ["created"] * len(left):
            await reap(world.engine)  # what a client killed in between has not started, the next one's reaper takes
        time.sleep(0.02)
    assert group(pid) == []
    assert world.files() == []


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
