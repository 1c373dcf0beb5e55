"""Real episodes in clients that are killed at random moments: nothing of the dead is left, counted kind by kind.

Four clients at a time, until 200 episodes were graded and 40 clients killed; each gets SIGKILL at a moment drawn from
a seeded stream, from before its first sandbox on. What ran for it must be gone within two seconds, more on a machine
that is busier than it has processors; what an engine had created and not yet started, within one start of the next
client. In the end everything is counted that a client or its engine could leave: containers and what the engine keeps
for them, volumes, networks, processes, mounts, control groups, files in temporary and cache folders, connections. Run
it alone with `pytest -s tests/integration/test_sandbox_leaks.py` to read the table.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import SandboxUnavailable
from metier.envs.registry import get
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.bubblewrap import cgroups
from metier.harness.sandbox.docker import answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.owner import OWNER
from metier.images import cache_dir, docker_tag, rootfs
from process_table import grouped, processes
from waiting import patience

pytestmark = pytest.mark.slow

CLIENT = Path(__file__).parents[1] / "fixtures" / "episode_client.py"
EPISODES = int(os.environ.get("METIER_TEST_EPISODES", "200"))
KILLS = EPISODES // 5
LANES = 4
PATIENCE_S = 180.0
"""After so long no further client is started: a machine that is behind sees fewer of them."""
LONGEST_S = 12.0
WITHIN_S = 2.0
ENVS = ("finance/CovenantTest-v0", "terminal/SqliteIndexPlan-v0")
"""The second one's set-up takes a snapshot for every instance."""
_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def subreaper() -> Iterator[None]:
    """Orphans of the killed become children of this process, so that each of them can be found."""
    libc = ctypes.CDLL(None)
    libc.prctl(_SET_CHILD_SUBREAPER, 1)
    yield
    libc.prctl(_SET_CHILD_SUBREAPER, 0)


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"])
async def backend(request: pytest.FixtureRequest) -> str:
    """A backend that this machine has, with the images of `ENVS`."""
    if request.param == "docker" and not await answers():
        pytest.skip("no Docker engine answers")
    for image in (get(env_id).image for env_id in ENVS):
        if request.param == "bubblewrap":
            try:
                rootfs(image, build=False)
            except SandboxUnavailable as gap:
                pytest.skip(str(gap))
        elif (await Engine(socket_path()).request("GET", f"/images/{docker_tag(image)}/json")).status != 200:
            pytest.skip(f"run: metier images build {image}")
    return request.param


@contextmanager
def own_home(folder: Path) -> Iterator[dict[str, Path]]:
    """A cache folder and a temporary folder that only the clients of this test use; images are the machine's."""
    places = {"METIER_HOME": folder / "home", "TMPDIR": folder / "tmp"}
    for place in places.values():
        place.mkdir()
    for shared in ("base", "records", "rootfs"):
        (places["METIER_HOME"] / shared).symlink_to(cache_dir() / shared)
    before = {name: os.environ.get(name) for name in places}
    os.environ |= {name: str(place) for name, place in places.items()}
    try:
        yield places
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# what is there


def orphans(living: set[int]) -> list[int]:
    """What runs below this process and is neither a living client nor below one; the ended among them are reaped."""
    table, found, waiting = processes(), [], [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for pid in [pid for pid, one in table.items() if one.parent == parent and pid not in living]:
            if table[pid].ended:
                if parent == os.getpid():
                    try:
                        os.waitpid(pid, os.WNOHANG)
                    except ChildProcessError:
                        pass
                continue
            found.append(pid)
            waiting.append(pid)
    return found


def mounts() -> set[str]:
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def half_open(socket: str) -> list[str]:
    """Connections to the engine of which only the engine's end is left."""
    if shutil.which("ss") is None:
        return []
    said = subprocess.run(["ss", "-xnH", "src", f"unix:{socket}"], capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if "ESTAB" in line and line.split()[-1] == "0"]


def files(places: dict[str, Path]) -> list[str]:
    """All but what a cache is for: the steward's code, whole snapshots, the reaper's lock."""
    home = places["METIER_HOME"]
    made = [*home.iterdir(), *places["TMPDIR"].rglob("*")]
    made += [*home.glob("steward/*"), *home.glob("snapshots/*"), *home.glob("claims/*")]
    kept = {home / name for name in ("base", "records", "rootfs", "reaper.lock", "seccomp", "steward", "snapshots")}
    kept.add(home / "claims")
    kept |= {*home.glob("snapshots/*.tar"), *(path for path in home.glob("steward/*") if path.name.isalnum())}
    return [str(path) for path in made if path not in kept]


class World:
    """The engine's side of the count, and what was there before."""

    def __init__(self, engine: Engine | None) -> None:
        self.engine = engine
        self.began = int(time.time())
        self.mounts = mounts()
        self.shared = set(os.listdir("/dev/shm"))
        self.half_open = half_open(engine.path) if engine else []
        self.kept: dict[str, set[str]] = {}
        self.made: dict[str, int] = {}

    async def ask(self, path: str, **query: str) -> Any:
        return await self.engine.checked("GET", path, query=query) if self.engine else []

    async def names(self, kind: str) -> set[str]:
        """All volumes or networks."""
        answer = await self.ask(f"/{kind}")
        listed = answer.get("Volumes") if isinstance(answer, dict) else answer
        return {each["Name"] for each in listed or []}

    async def containers(self, dead: set[int], *states: str) -> list[str]:
        """Containers of dead owners, in these states or in any."""
        listed = await self.ask("/containers/json", all="1", filters=json.dumps({"label": [OWNER]}))
        return [
            each["Id"]
            for each in listed
            if int(each["Labels"][OWNER].partition(":")[0]) in dead and (not states or each["State"] in states)
        ]

    async def running(self, dead: set[int], living: set[int]) -> list[object]:
        """Whatever still runs for the dead."""
        await self.note()
        ran = await self.containers(dead, "running", "removing", "exited", "dead", "paused", "restarting")
        return [*ran, *orphans(living), *groups(dead)]

    async def note(self) -> None:
        """Who made which container, by the engine's own journal, which does not reach back far."""
        if self.engine is None:
            return
        filters = json.dumps({"event": ["create"], "label": [OWNER]})
        query = {"since": str(self.began), "until": f"{time.time():.6f}", "filters": filters}
        for line in (await self.engine.request("GET", "/events", query=query)).body.splitlines():
            actor = json.loads(line)["Actor"]
            self.made[actor["ID"]] = int(actor["Attributes"][OWNER].partition(":")[0])

    def ever(self, dead: set[int]) -> set[str]:
        """Every container that the dead ever had."""
        return {name for name, pid in self.made.items() if pid in dead}

    async def foreign_mounts(self) -> set[str]:
        """Mounts of containers that are somebody else's, whichever backend is tested."""
        found: set[str] = set()
        engine = Engine(socket_path())
        if not await engine.ping():
            return found
        for each in await engine.checked("GET", "/containers/json", query={"all": "1"}):
            seen = await engine.request("GET", f"/containers/{each['Id']}/json")
            if seen.status == 200:
                told = json.loads(seen.body)
                layers = told["GraphDriver"]["Data"] or {}  # none of one that is just being removed
                found |= {told["NetworkSettings"]["SandboxKey"], layers.get("MergedDir", "")}
        return {os.path.realpath(place) for place in found}

    async def settled(self, dead: set[int], places: dict[str, Path]) -> dict[str, list[Any]]:
        """What is left in every one of a few looks: somebody else's come and go, between two questions of one look."""
        left = await self.left(dead, places)
        for _ in range(10):
            if not any(left.values()):
                break
            await asyncio.sleep(0.3)
            again = await self.left(dead, places)
            left = {kind: [each for each in found if each in again[kind]] for kind, found in left.items()}
        return left

    async def left(self, dead: set[int], places: dict[str, Path]) -> dict[str, list[Any]]:
        """Everything that is left of the dead, by kind."""
        await self.note()
        ids = self.ever(dead)
        root = Path((await self.ask("/info"))["DockerRootDir"]) if self.engine else Path("/nonexistent")
        stores = [root / "containers", *root.glob("image/*/layerdb/mounts"), Path("/run/docker/runtime-runc/moby")]
        return {
            "containers": await self.containers(dead),
            "engine's files": [str(store / name) for store in stores for name in ids if (store / name).exists()],
            "volumes": sorted(await self.names("volumes") - self.kept["volumes"]),
            "networks": sorted(await self.names("networks") - self.kept["networks"]),
            "processes": orphans(set()) + grouped(ids),
            "mounts": sorted(mounts() - self.mounts - await self.foreign_mounts()),
            "control groups": groups(dead),
            "files": files(places) + sorted(set(os.listdir("/dev/shm")) - self.shared),
            "connections": [line for line in half_open(self.engine.path) if line not in self.half_open]
            if self.engine
            else [],
        }


def groups(dead: set[int]) -> list[str]:
    return [str(each) for each in cgroups._clients() if int(each.name.partition(":")[0]) in dead]


# the killing


class Herd:
    """Clients that live and die in lanes, until enough episodes were graded and enough clients killed."""

    def __init__(self, backend: str, world: World) -> None:
        self.until = time.monotonic() + PATIENCE_S
        self.backend = backend
        self.world = world
        self.draw = random.Random(f"leaks {backend}")
        self.living: set[int] = set()
        self.dead: set[int] = set()
        self.graded = 0
        self.seconds: list[float] = []

    async def lane(self, number: int) -> None:
        """One client after another."""
        for life in range(10_000):
            enough = self.graded >= EPISODES and len(self.dead) >= KILLS
            if enough or time.monotonic() > self.until:
                return
            way, env_id = ("gym", "work")[(number + life) % 2], ENVS[life % len(ENVS)]
            seed = 10_000 * number + 100 * life
            client = await asyncio.create_subprocess_exec(
                *(sys.executable, str(CLIENT), way, self.backend, env_id, str(seed)), stdout=asyncio.subprocess.PIPE
            )
            self.living.add(client.pid)
            try:
                await self.live(client, self.draw.uniform(0, LONGEST_S))
                assert client.returncode is None, f"{way} {env_id} {seed} ended by itself; its words are above"
            finally:
                if client.returncode is None:
                    client.kill()
                await client.wait()
            self.living.discard(client.pid)
            self.dead.add(client.pid)
            await self.gone({client.pid})

    async def live(self, client: asyncio.subprocess.Process, seconds: float) -> None:
        """Count its episodes until its time is up, which begins when it is ready."""
        assert client.stdout is not None
        async with asyncio.timeout(120):
            assert await client.stdout.readline() == b"ready\n"
        try:
            async with asyncio.timeout(seconds):
                while await client.stdout.readline() == b"graded\n":
                    self.graded += 1
                await client.wait()
        except TimeoutError:
            return

    async def gone(self, pids: set[int]) -> None:
        """Wait until nothing runs for these any more, and note how long it took."""
        began = time.monotonic()
        bound = WITHIN_S * patience()
        while left := await self.world.running(pids, self.living):
            assert time.monotonic() - began < bound, left
            await asyncio.sleep(0.05)
        self.seconds.append(time.monotonic() - began)


@pytest.mark.usefixtures("subreaper")
async def test_clients_killed_at_random_leave_nothing(backend: str, tmp_path: Path) -> None:
    world = World(Engine(socket_path()) if backend == "docker" else None)
    world.kept = {kind: await world.names(kind) for kind in ("volumes", "networks")}
    with own_home(tmp_path) as places:
        herd = Herd(backend, world)
        began = time.monotonic()
        async with asyncio.TaskGroup() as lanes:
            for number in range(LANES):
                lanes.create_task(herd.lane(number))
        took = time.monotonic() - began
        created = len(await world.containers(herd.dead, "created"))
        swept = time.monotonic()
        async with open_backend(backend):
            while await world.containers(herd.dead):
                assert time.monotonic() - swept < 30, "the next client's reaper left containers"
                await asyncio.sleep(0.05)
        swept = time.monotonic() - swept
        left = await world.settled(herd.dead, places)
    seconds = sorted(herd.seconds)
    print(
        f"\n{backend}: {herd.graded} episodes graded in {took:.0f} s by {len(herd.dead)} clients, all killed; "
        f"nothing ran for one any more after {seconds[len(seconds) // 2]:.2f} s (median), {seconds[-1]:.2f} s (worst); "
        f"{len(world.ever(herd.dead))} containers made, {created} of them left for the reaper, "
        f"gone {swept:.1f} s after it started"
    )
    print("left:", ", ".join(f"{kind} {len(found)}" for kind, found in left.items()))
    # a known gap, told in docs/sandbox.md: the engine may keep its end of a connection of a client killed early
    del left["connections"]
    assert left == {kind: [] for kind in left}
    assert herd.graded > 0


ORDERLY = """
import sys, gymnasium, metier
env = gymnasium.make("finance/CovenantTest-v0", backend=sys.argv[1])
env.reset(seed=1)
env.step({"tool": "shell", "arguments": {"command": "setsid sh -c 'trap \\"\\" TERM HUP INT; sleep 900' &"}})
if sys.argv[2] == "closed":
    env.close()
"""


@pytest.mark.usefixtures("subreaper")
@pytest.mark.parametrize("last", ["closed", "forgotten"])
async def test_a_client_that_ends_in_order_says_nothing_and_leaves_nothing(
    backend: str, last: str, tmp_path: Path
) -> None:
    world = World(Engine(socket_path()) if backend == "docker" else None)
    world.kept = {kind: await world.names(kind) for kind in ("volumes", "networks")}
    with own_home(tmp_path) as places:
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ORDERLY, backend, last), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        said, _ = await client.communicate()
        assert (client.returncode, said.decode()) == (0, "")
        left = await world.settled({client.pid}, places)
    del left["connections"]  # as above
    assert left == {kind: [] for kind in left}
