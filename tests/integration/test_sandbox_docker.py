"""The Docker backend against a world that breaks: containers removed, paused, clients killed, engines away."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from metier.envs.core import Artefact, Limit, SandboxLost, SandboxSpec, SandboxUnavailable
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.client import SETTLED_S
from metier.harness.sandbox.docker import DockerBackend, answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.docker.reaper import reap
from metier.harness.sandbox.owner import DEADLINE, OWNER, RUN, Owner
from metier.harness.sandbox.protocol import PING_S
from metier.images import docker_tag
from waiting import patience, soon

pytestmark = [pytest.mark.docker, pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers")]

SPEC = SandboxSpec(image="terminal-python", memory_mb=256, pids=64, writable_mb={"/workspace": 64, "/tmp": 32})


@pytest.fixture
def engine() -> Engine:
    return Engine(socket_path())


@pytest_asyncio.fixture()
async def backend() -> AsyncIterator[DockerBackend]:
    async with DockerBackend() as opened:
        yield opened


async def ours(engine: Engine, run: str) -> list[dict[str, Any]]:
    """All containers of one run, running or not."""
    filters = json.dumps({"label": [f"{RUN}={run}"]})
    return await engine.checked("GET", "/containers/json", query={"all": "1", "filters": filters})


async def gone_within(engine: Engine, run: str, seconds: float) -> float:
    """How long until no container of the run is left; fails after `seconds`."""
    began = time.monotonic()
    while left := await ours(engine, run):
        assert time.monotonic() - began < seconds, [(c["Names"], c["State"]) for c in left]
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def test_a_container_removed_from_outside_is_a_typed_loss_for_all_calls(
    backend: DockerBackend, engine: Engine
) -> None:
    sandbox = await backend.acquire(SPEC, deadline=soon())
    calls = [asyncio.create_task(sandbox.exec("sleep 30", timeout_s=30)) for _ in range(3)]
    await asyncio.sleep(0.3)
    began = time.monotonic()
    await engine.request("DELETE", f"/containers/{sandbox.id}", query={"force": "1"})
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(outcome, SandboxLost)
        assert sandbox.id in str(outcome)
        assert outcome.agent_caused is None
    assert time.monotonic() - began < 3
    with pytest.raises(SandboxLost):
        await sandbox.read("/workspace/x", max_bytes=1)
    await sandbox.close()


async def test_a_killed_steward_is_a_loss(backend: DockerBackend, engine: Engine) -> None:
    async with await backend.acquire(SPEC, deadline=soon()) as sandbox:
        await engine.request("POST", f"/containers/{sandbox.id}/kill")
        with pytest.raises(SandboxLost):
            await sandbox.exec("sleep 5", timeout_s=5)


async def test_a_paused_container_is_given_up_and_removed(
    backend: DockerBackend, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metier.harness.sandbox.sandbox.HOST_GRACE_S", 1.0)
    async with await backend.acquire(SPEC, deadline=soon()) as sandbox:
        await engine.request("POST", f"/containers/{sandbox.id}/pause")
        with pytest.raises(SandboxLost, match="no answer"):
            await sandbox.exec("true", timeout_s=0.5)
    assert (await engine.request("GET", f"/containers/{sandbox.id}/json")).status == 404


async def test_a_loss_with_evidence_names_the_limit(backend: DockerBackend, engine: Engine) -> None:
    sandbox = await backend.acquire(SPEC, deadline=soon())
    hog = await sandbox.exec(["python3", "-c", "bytearray(1 << 31)"], timeout_s=20)
    assert hog.oom_killed
    await engine.request("POST", f"/containers/{sandbox.id}/kill")
    with pytest.raises(SandboxLost) as caught:
        await sandbox.exec("sleep 5", timeout_s=5)
    assert caught.value.agent_caused is Limit.MEMORY
    await sandbox.close()


@pytest.mark.parametrize(
    "limit",
    ["python3 -c 'bytearray(1 << 31)'", "dd if=/dev/zero of=/tmp/full bs=1M", "for i in $(seq 99); do sleep 2 & done"],
)
async def test_a_limit_that_was_survived_is_no_evidence(backend: DockerBackend, engine: Engine, limit: str) -> None:
    """Else an engine that restarts would put a zero on every episode that ever saw a process killed for memory."""
    sandbox = await backend.acquire(SPEC, deadline=soon())
    await sandbox.exec(limit, timeout_s=20)
    await asyncio.sleep(PING_S + SETTLED_S + 1)
    assert (await sandbox.exec("true", timeout_s=5)).ok
    await engine.request("DELETE", f"/containers/{sandbox.id}", query={"force": "1"})
    with pytest.raises(SandboxLost) as caught:
        await sandbox.exec("sleep 5", timeout_s=5)
    assert caught.value.agent_caused is None
    await sandbox.close()


async def test_a_sandbox_given_back_during_a_command_is_not_handed_on(backend: DockerBackend) -> None:
    sandbox = await backend.acquire(SPEC, deadline=soon())
    running = asyncio.create_task(sandbox.exec("sleep 30", timeout_s=30))
    await asyncio.sleep(0.2)
    began = time.monotonic()
    await sandbox.close()
    with pytest.raises(SandboxLost):
        await running
    assert time.monotonic() - began < 3 * patience()
    async with await backend.acquire(SPEC, deadline=soon()) as other:
        assert other.id != sandbox.id
        assert (await other.exec("true", timeout_s=5)).ok


async def test_a_sandbox_ends_by_itself_after_its_lease(backend: DockerBackend, engine: Engine) -> None:
    spec = SandboxSpec(image=SPEC.image, memory_mb=256, writable_mb=SPEC.writable_mb, ttl_s=2)
    sandbox = await backend.acquire(spec, deadline=soon())
    with pytest.raises(SandboxLost):
        await sandbox.exec("sleep 20", timeout_s=20)
    await sandbox.close()


async def test_leaving_a_backend_removes_everything(engine: Engine) -> None:
    run = f"test-leave-{os.getpid()}"
    async with DockerBackend(run=run) as backend:
        await backend.prewarm(SPEC, 3, deadline=soon())
        await backend.acquire(SPEC, deadline=soon())
        assert len(await ours(engine, run)) == 3
    assert await ours(engine, run) == []


CLIENT = """
import asyncio, sys
from metier.envs.core import Deadline, SandboxSpec
from metier.harness.sandbox.docker import DockerBackend
spec = SandboxSpec(image="terminal-python", memory_mb=256, writable_mb={"/workspace": 64, "/tmp": 32})
async def main():
    async with DockerBackend(run=sys.argv[1]) as backend:
        deadline = Deadline.after(60, limit="t", set_by="t")
        boxes = await asyncio.gather(*(backend.acquire(spec, deadline=deadline) for _ in range(int(sys.argv[2]))))
        for box in boxes:
            await box.exec("setsid sh -c 'trap \\"\\" TERM; sleep 500' & true", timeout_s=10)
        print("up", flush=True)
        await asyncio.gather(*(box.exec("sleep 60", timeout_s=60) for box in boxes))
asyncio.run(main())
"""


async def client(run: str, count: int) -> asyncio.subprocess.Process:
    """A process of its own that holds sandboxes."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, run, str(count), stdout=asyncio.subprocess.PIPE
    )


async def test_sigkill_of_the_client_leaves_no_container_within_two_seconds(engine: Engine) -> None:
    run = f"test-kill-{os.getpid()}"
    process = await client(run, 4)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    assert len(await ours(engine, run)) == 4
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await gone_within(engine, run, 2.0 * patience())


@pytest.mark.parametrize("after_s", [0.5, 0.7, 0.9, 1.1, 1.3])
async def test_sigkill_during_create_leaves_nothing_for_the_reaper_to_miss(engine: Engine, after_s: float) -> None:
    run = f"test-create-{os.getpid()}-{after_s}"
    process = await client(run, 4)
    await asyncio.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    began = time.monotonic()
    while [c for c in await ours(engine, run) if c["State"] != "created"]:
        assert time.monotonic() - began < 2.0 * patience()
        await asyncio.sleep(0.05)
    # an engine may finish a request after its client's end, so that one look can be too early
    while await ours(engine, run):
        await reap(engine)
        assert time.monotonic() - began < 4.0 * patience()


async def labelled(engine: Engine, name: str, labels: dict[str, str]) -> None:
    """A container that nobody attends to."""
    body = {"Image": docker_tag(SPEC.image), "Cmd": ["sleep", "60"], "Labels": labels}
    body["HostConfig"] = {"NetworkMode": "none"}
    await engine.checked("POST", "/containers/create", query={"name": name}, body=body)
    await engine.checked("POST", f"/containers/{name}/start")


async def test_the_reaper_takes_orphans_and_spares_the_rest(engine: Engine) -> None:
    me = Owner.current()
    dead = me._replace(started=me.started + 1).label()
    run = f"test-reap-{os.getpid()}"
    far, past = str(int(time.time()) + 3600), str(int(time.time()) - 3600)
    try:
        await labelled(engine, f"{run}-dead", {RUN: run, OWNER: dead, DEADLINE: far})
        await labelled(engine, f"{run}-past", {RUN: run, OWNER: me.label(), DEADLINE: past})
        await labelled(engine, f"{run}-mine", {RUN: run, OWNER: me.label(), DEADLINE: far})
        foreign = me._replace(pid_namespace="1", started=0).label()
        await labelled(engine, f"{run}-foreign", {RUN: run, OWNER: foreign, DEADLINE: far})
        await labelled(engine, f"{run}-unlabelled", {RUN: run})
        await reap(engine)  # or another client's reaper, which may have been quicker
        left = {c["Names"][0].lstrip("/") for c in await ours(engine, run)}
        assert left == {f"{run}-mine", f"{run}-foreign", f"{run}-unlabelled"}
    finally:
        for container in await ours(engine, run):
            await engine.request("DELETE", f"/containers/{container['Id']}", query={"force": "1"})


async def test_a_missing_image_says_how_to_get_it(backend: DockerBackend) -> None:
    spec = SandboxSpec(image="metier/nothing:0", writable_mb={"/workspace": 16})
    with pytest.raises(SandboxUnavailable, match="metier images build"):
        await backend.acquire(spec, deadline=soon())


async def test_no_engine_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(SandboxUnavailable, match="bubblewrap"):
        async with open_backend("docker"):
            pass
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2375")
    with pytest.raises(SandboxUnavailable, match="unix://"):
        async with open_backend("docker"):
            pass


Without = Callable[[str], str]


@pytest.fixture
def without() -> Iterator[Without]:
    """Makes our image less some program, which is there as long as the test runs."""
    made: list[tuple[str, str]] = []

    def make(program: str) -> str:
        tag, maker = f"metier-test/no-{program}:{os.getpid()}", f"metier-test-{program}-{os.getpid()}"
        run = ["docker", "run", "--network=none", f"--name={maker}", "--entrypoint=/bin/sh", docker_tag(SPEC.image)]
        subprocess.run([*run, "-c", f"rm -f /bin/{program} /usr/bin/{program}"], check=True)
        made.append(("rm", maker))
        subprocess.run(["docker", "commit", maker, tag], check=True, capture_output=True)
        made.append(("rmi", tag))
        return tag

    yield make
    for remove, name in made:
        subprocess.run(["docker", remove, name], check=True, capture_output=True)


async def test_an_image_without_bash_says_so_and_does_the_rest(without: Without, backend: DockerBackend) -> None:
    spec = dataclasses.replace(SPEC, image=without("bash"))
    async with await backend.acquire(spec, deadline=soon()) as sandbox:
        for session in (None, "shell"):
            refused = await sandbox.exec("echo hi", timeout_s=5, session=session)  # type: ignore[arg-type]
            assert (refused.exit_code, refused.stdout) == (127, b"")
            assert b"cannot start bash" in refused.stderr
        assert (await sandbox.exec(["sh", "-c", "echo hi"], timeout_s=5)).stdout == b"hi\n"
        assert (await sandbox.exec("1 + 1", timeout_s=20, session="python")).stdout == b"2\n"
        await sandbox.write("/workspace/a", b"x")
        assert (await sandbox.collect([Artefact(path="a")])).refused == {}


async def test_limits_of_time_need_no_program_of_the_image(without: Without, backend: DockerBackend) -> None:
    spec = dataclasses.replace(SPEC, image=without("timeout"))
    async with await backend.acquire(spec, deadline=soon()) as sandbox:
        assert (await sandbox.exec("type -P timeout", timeout_s=5)).exit_code == 1
        for session in (None, "shell"):
            began = time.monotonic()
            stopped = await sandbox.exec("echo early; sleep inf", timeout_s=1, session=session)  # type: ignore[arg-type]
            assert stopped.timed_out and stopped.stdout == b"early\n"
            assert time.monotonic() - began < 4 * patience()
        assert (await sandbox.exec("pgrep sleep", timeout_s=5)).exit_code == 1


async def test_an_image_without_python_is_refused_by_name_and_leaves_nothing(without: Without, engine: Engine) -> None:
    run = f"test-no-python-{os.getpid()}"
    async with DockerBackend(run=run) as backend:
        with pytest.raises(SandboxUnavailable, match=r"no-python3.*python3"):
            await backend.acquire(dataclasses.replace(SPEC, image=without("python3")), deadline=soon())
        await gone_within(engine, run, 5.0 * patience())


async def test_acquires_cut_off_at_any_moment_leave_no_container(engine: Engine) -> None:
    run = f"test-cancel-{os.getpid()}"
    async with DockerBackend(run=run) as backend:
        for wait_s in (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
            acquiring = asyncio.create_task(backend.acquire(SPEC, deadline=soon()))
            await asyncio.sleep(wait_s)
            acquiring.cancel()
            outcome = (await asyncio.gather(acquiring, return_exceptions=True))[0]
            if not isinstance(outcome, BaseException):
                await outcome.close(reuse=False)
        await gone_within(
            engine, run, 5.0 * patience()
        )  # while the backend is open, which would remove them at its end
        # a deadline that fires is another way to be cut off
        with pytest.raises(SandboxUnavailable, match="test_s"):
            await backend.acquire(SPEC, deadline=soon(0.05))
        await gone_within(engine, run, 5.0 * patience())


async def test_pools_of_one_run_keep_to_themselves(engine: Engine) -> None:
    run = f"test-twins-{os.getpid()}"
    async with DockerBackend(run=run) as one:
        async with await one.acquire(SPEC, deadline=soon()) as waits:
            await waits.write("/workspace/a", b"of the first")
        held = await one.acquire(SPEC, deadline=soon())
        await held.write("/workspace/b", b"held")
        async with DockerBackend(run=run) as other:
            async with await other.acquire(SPEC, deadline=soon()) as theirs:
                assert theirs.id not in (waits.id, held.id)
            await reap(engine)
        assert [c["Names"] for c in await ours(engine, run)] == [[f"/{held.id}"]]
        assert await held.read("/workspace/b", max_bytes=99) == b"held"


async def test_containers_may_come_and_go_while_they_are_listed_and_reaped(
    backend: DockerBackend, engine: Engine
) -> None:
    async def come_and_go() -> None:
        for _ in range(4):
            await (await backend.acquire(SPEC, deadline=soon())).close(reuse=False)

    churn = [asyncio.create_task(come_and_go()) for _ in range(4)]
    looks = 0
    while not all(each.done() for each in churn):
        await reap(engine)
        await ours(engine, "any")
        looks += 1
    await asyncio.gather(*churn)
    assert looks > 4


@pytest.mark.slow
async def test_sixty_four_started_at_once_all_come_up(engine: Engine) -> None:
    run = f"test-many-{os.getpid()}"
    small = dataclasses.replace(SPEC, memory_mb=64, pids=16, writable_mb={"/workspace": 16})
    async with DockerBackend(run=run) as backend:
        boxes = await asyncio.gather(*(backend.acquire(small, deadline=soon(300)) for _ in range(64)))
        said = await asyncio.gather(*(box.exec(f"echo {number}", timeout_s=60) for number, box in enumerate(boxes)))
        assert [one.stdout for one in said] == [b"%d\n" % number for number in range(64)]
    assert await ours(engine, run) == []


async def test_sixteen_sandboxes_step_at_once(backend: DockerBackend) -> None:
    boxes = await asyncio.gather(*(backend.acquire(SPEC, deadline=soon(120)) for _ in range(16)))

    async def steps(number: int) -> None:
        for step in range(10):
            result = await boxes[number].exec(f"echo {step}", timeout_s=30, session="shell")
            assert result.stdout == b"%d\n" % step

    await asyncio.gather(*(steps(number) for number in range(16)))
    await asyncio.gather(*(box.close() for box in boxes))


async def test_training_may_reset_a_verifier_that_ran_the_agents_program() -> None:
    verifier = dataclasses.replace(SPEC, verifier=True)
    async with DockerBackend(recycle_verifiers=False) as backend:
        async with await backend.acquire(verifier, deadline=soon()) as sandbox:
            await sandbox.exec("echo left > /tmp/left; sleep 60 &", timeout_s=5)
            first = sandbox.id
        async with await backend.acquire(verifier, deadline=soon()) as sandbox:
            assert sandbox.id == first
            seen = await sandbox.exec("ls /tmp; pgrep sleep", timeout_s=5)
            assert b"left" not in seen.stdout
            assert seen.exit_code == 1  # pgrep finds nobody
