"""The Docker backend against `podman system service`: one of our own, on a socket and a storage that nobody else uses.

The service lives in mount, process and network namespaces of its own, so that with it goes whatever it started or
mounted, also when this test is killed. What Podman and Docker have in common is tested in test_sandbox_docker.py.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from metier.envs.core import SandboxLost, SandboxUnavailable
from metier.harness.sandbox.docker import DockerBackend
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.docker.reaper import reap
from metier.harness.sandbox.owner import RUN
from metier.harness.testing import EXEC, FILES, ISOLATION, LINKS, SESSIONS, SPEC, Claim, Place
from metier.images import docker_tag, environment, rootfs
from process_table import running, saying
from waiting import patience, soon

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]
if shutil.which("podman") is None:
    pytest.skip("podman is not installed", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("a Podman service in namespaces of its own takes root", allow_module_level=True)

CONFIG = """
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
runtime = "{runtime}"
"""
SERVICE = """
for place in /run /dev/shm /var/lib /var/cache "$1/root" "$1/tmp"; do mount -t tmpfs tmpfs "$place" || exit; done
exec podman --root "$1/root" --runroot "$1/run" --tmpdir "$1/tmp" system service --time=0 "unix://$1/podman.sock"
"""
NAMESPACES = ("--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc")
ESSENTIAL = {
    *("success_is_exit_code_zero_with_both_streams", "the_agent_is_who_it_should_be", "root_is_another_user"),
    "agent_has_no_capabilities",
    *("no_descriptor_is_inherited", "a_flood_ends_in_time_and_memory", "timeout_kills_the_whole_tree"),
    *("orphans_are_reaped", "the_agent_cannot_kill_the_steward", "sessions_end_with_a_kill_of_all"),
    *("shell_keeps_directory_variables_functions_and_jobs", "python_is_an_interactive_interpreter"),
    *("what_is_written_is_read", "rights_are_the_named_users", "a_snapshot_is_forked_many_times"),
    *("a_snapshot_keeps_modes_links_and_times", "a_full_tree_is_an_error_that_leaves_nothing_half"),
}
"""Beside all of isolation, those claims that an engine can break; the others are about the steward alone."""
CLAIMS = [
    *ISOLATION.claims,
    *(
        claim
        for suite in (EXEC, SESSIONS, FILES, LINKS)
        for claim in suite.claims
        if claim.name.partition("[")[0] in ESSENTIAL
    ),
]
assert {claim.name.partition("[")[0] for claim in CLAIMS} >= ESSENTIAL


def groups() -> set[Path]:
    """Podman's control groups, on cgroup v1 and v2."""
    tops = [top for pattern in ("libpod_parent", "*/libpod_parent") for top in Path("/sys/fs/cgroup").glob(pattern)]
    return {path for top in tops for path in [top, *top.glob("**/")]}


@pytest.fixture(scope="module")
def service() -> Iterator[int]:
    """Podman's process id; DOCKER_HOST and METIER_HOME are set to what is its alone, and all is gone at the end."""
    try:
        image = rootfs(SPEC.image, build=False)
    except SandboxUnavailable as gap:
        pytest.skip(str(gap))
    there = groups()
    folder = Path(tempfile.mkdtemp(prefix="metier-podman-"))  # Podman takes no path of more than fifty characters
    (folder / "containers.conf").write_text(CONFIG.format(runtime="runc" if shutil.which("runc") else "crun"))
    for name in ("root", "tmp"):  # the images too lie in memory: writing and removing them was half of this test's time
        (folder / name).mkdir()
    log = (folder / "log").open("w")
    process = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", *NAMESPACES, "sh", "-c", SERVICE, "sh", str(folder)],
        env={**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf"), "TMPDIR": str(folder / "tmp")},
        cwd=folder,
        stdout=log,
        stderr=log,
    )
    patch = pytest.MonkeyPatch()
    patch.setenv("DOCKER_HOST", f"unix://{folder}/podman.sock")
    patch.setenv("METIER_HOME", str(folder / "home"))
    try:
        deadline = time.monotonic() + 30
        while not asyncio.run(Engine(socket_path()).ping()):
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.05)
        load(image, socket_path())
        yield first(process)
    finally:
        patch.undo()
        # its end is over only with that of everything in its namespace, and ends what waits for it out here
        if process.poll() is None:
            os.kill(first(process), signal.SIGKILL)
        process.wait()
        log.close()
        swept(there)
        shutil.rmtree(folder)
    assert saying(str(folder)) == []
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()


def first(process: subprocess.Popen[bytes]) -> int:
    """The first process in the namespace below `process`, else that itself."""
    below = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(below[0]) if below else process.pid


def swept(there: set[Path]) -> None:
    """Removes the control groups that Podman leaves when it is not asked to stop; the kernel may need a moment."""
    deadline = time.monotonic() + 5
    while made := groups() - there:
        for path in sorted(made, reverse=True):
            with suppress(OSError):
                path.rmdir()
        assert time.monotonic() < deadline, made
        time.sleep(0.02)


def load(image: Path, path: str) -> None:
    """Gives the service an image, from its root file system."""
    import docker

    changes = [f"ENV {name}={value}" for name, value in environment(SPEC.image).items()]
    client = docker.DockerClient(base_url=f"unix://{path}", timeout=120)
    command = ["tar", "-C", str(image), "--numeric-owner", "-c", "."]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE) as packing:
            client.api.import_image_from_stream(packing.stdout, repository=docker_tag(SPEC.image), changes=changes)
    finally:
        client.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend(service: int) -> AsyncIterator[DockerBackend]:
    async with DockerBackend() as opened:
        yield opened


@pytest.fixture
def engine(service: int) -> Engine:
    return Engine(socket_path())


async def containers(engine: Engine, run: str) -> list[dict[str, Any]]:
    filters = json.dumps({"label": [f"{RUN}={run}"]})
    return await engine.checked("GET", "/containers/json", query={"all": "1", "filters": filters})


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
async def test_the_conformance_suites_hold(backend: DockerBackend, claim: Claim[Place]) -> None:
    place = Place(backend)
    assert not claim.unmet(place)
    await claim.holds(place)


async def test_the_container_is_what_was_asked_for(backend: DockerBackend, engine: Engine) -> None:
    async with await backend.acquire(SPEC, deadline=soon()) as sandbox:
        host = (await engine.checked("GET", f"/containers/{sandbox.id}/json"))["HostConfig"]
        status = (await sandbox.exec("cat /proc/self/status /proc/self/limits", timeout_s=5)).stdout.decode()
    assert (host["Memory"], host["MemorySwap"]) == (SPEC.memory_mb << 20, SPEC.memory_mb << 20)
    assert (host["PidsLimit"], host["CpuQuota"] / host["CpuPeriod"]) == (SPEC.pids, SPEC.cpus)
    assert host["ReadonlyRootfs"] and host["AutoRemove"]
    assert (host["NetworkMode"], host["LogConfig"]["Type"]) == ("none", "none")
    words = [" ".join(line.split()) for line in status.splitlines()]
    for wanted in ("Seccomp: 2", "NoNewPrivs: 1", "Max open files 1024 1024 files", "Max core file size 0 0 bytes"):
        assert wanted in words


async def test_a_container_removed_from_outside_is_a_loss_at_once(backend: DockerBackend, engine: Engine) -> None:
    sandbox = await backend.acquire(SPEC, deadline=soon())
    call = asyncio.create_task(sandbox.exec("sleep 30", timeout_s=30))
    await asyncio.sleep(0.2)
    began = time.monotonic()
    await engine.request("DELETE", f"/containers/{sandbox.id}", query={"force": "1"})
    with pytest.raises(SandboxLost):
        await call
    assert time.monotonic() - began < 3 * patience()
    await sandbox.close()


async def test_what_cannot_be_made_or_started_says_so(
    backend: DockerBackend, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SandboxUnavailable, match="metier images build"):
        await backend.acquire(dataclasses.replace(SPEC, image="metier/nothing:0"), deadline=soon())
    monkeypatch.setattr("metier.harness.sandbox.docker.container.NOFILE", 1 << 40)
    with pytest.raises(SandboxUnavailable, match=r"did not start.*rlimit"):
        await backend.acquire(dataclasses.replace(SPEC, cpus=0.5), deadline=soon())


CLIENT = """
import asyncio, sys
from metier.envs.core import Deadline
from metier.harness.sandbox.docker import DockerBackend
from metier.harness.testing import SPEC
async def main():
    async with DockerBackend(run=sys.argv[1]) as backend:
        box = await backend.acquire(SPEC, deadline=Deadline.after(60, limit="t", set_by="t"))
        await box.exec("setsid sh -c 'trap \\"\\" TERM HUP; sleep 500' & true", timeout_s=10)
        print("up", flush=True)
        await box.exec("sleep 60", timeout_s=60)
asyncio.run(main())
"""


@asynccontextmanager
async def client(run: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process of its own that holds a sandbox."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENT, run, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_sigkill_of_the_client_leaves_nothing(service: int, engine: Engine) -> None:
    def there() -> set[str | int | Path]:
        mounts = {line.split()[4] for line in Path(f"/proc/{service}/mountinfo").read_text().splitlines()}
        # numbered as in there; what ended stays a zombie, since Podman is no init
        return {*mounts, *groups(), *running(Path(f"/proc/{service}/root/proc"))}

    before = there()
    run = f"test-podman-{os.getpid()}"
    async with client(run) as process:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"up\n"
        [container] = await containers(engine, run)
        made = there() - before
        assert {type(each) for each in made} >= {str, int, type(Path())}
        assert any(container["Id"] in str(each) for each in made)
        process.kill()
    began = time.monotonic()
    while await containers(engine, run) or made & there():
        assert time.monotonic() - began < 2 * patience(), (await containers(engine, run), made & there())
        await asyncio.sleep(0.05)


async def test_sigkill_while_it_starts_leaves_what_the_reaper_takes(service: int, engine: Engine) -> None:
    run = f"test-podman-start-{os.getpid()}"
    async with client(run) as process:
        began = time.monotonic()
        while not await containers(engine, run):
            assert process.returncode is None and time.monotonic() - began < 20 * patience()
            await asyncio.sleep(0.01)
        process.kill()
    began = time.monotonic()
    while await containers(engine, run):
        await reap(engine)
        assert time.monotonic() - began < 5 * patience()
        await asyncio.sleep(0.05)
