"""Ways to have a sandbox, behind one small interface: ours on both backends, and the peers.

The peers: the `docker` SDK with one `exec` for each step, as many harnesses do it; and SWE-ReX's own Docker deployment
(a server in the container, one HTTP request for each step), in an image with its server installed. Peers get no
hardening, and no more work than their own documentation asks for. `gap` says what a way lacks on this machine.
"""
# pyright: reportMissingImports=false
# SWE-ReX is in no lock of ours: who measures against it installs it

from __future__ import annotations

import asyncio
import importlib.util
import io
import logging
import os
import shutil
import tarfile
from collections.abc import Sequence
from typing import Any, Self

from metier.envs.core import Deadline, Sandbox, SandboxBackend, SandboxSpec, Snapshot
from metier.harness.sandbox import open_backend
from metier.images import docker_tag, recipe
from metier.images.host import BUILD_CA, ca_bundle, step_variables
from metier.images.store import rootfs_path


class Way:
    """One way. An async context manager, since some keep pools or engines."""

    name: str

    def gap(self) -> str:
        """What is missing here; empty where nothing is."""
        return ""

    async def create(self) -> Any:
        """From nothing to a sandbox that answers."""
        raise NotImplementedError

    async def exec(self, box: Any, *command: str) -> None:
        """One command in a process of its own."""
        raise NotImplementedError

    async def step(self, box: Any, command: str) -> None:
        """One line of shell as an agent's step is meant to run; in a session where the way has them."""
        await self.exec(box, "bash", "-c", command)

    async def reset(self, box: Any) -> Any:
        """A clean sandbox in place of a used one."""
        await self.remove(box)
        return await self.create()

    async def freeze(self, box: Any) -> Any:
        """What can be forked; None where nothing can."""
        return None

    async def expect_fork(self) -> None:
        """What is done ahead of a fork, in time that nobody waits for."""

    async def fork(self, frozen: Any) -> Any:
        """A further sandbox with the same files."""
        raise NotImplementedError

    async def remove(self, box: Any) -> None:
        """Until nothing is left of it."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None


class Ours(Way):
    """A backend of ours: resets in place, forks into a warm sandbox."""

    def __init__(self, backend: str, image: str) -> None:
        self.name = f"metier, {backend}"
        self.backend = backend
        self.spec = SandboxSpec(image=image)
        self._opening = open_backend(backend)
        self._open: SandboxBackend | None = None

    def gap(self) -> str:
        if self.backend == "docker":
            return "" if os.path.exists("/var/run/docker.sock") or os.environ.get("DOCKER_HOST") else "no Docker engine"
        if shutil.which("bwrap") is None:
            return "apt-get install bubblewrap"
        there = rootfs_path(recipe(self.spec.image)).is_dir()
        return "" if there else f"metier images build {self.spec.image} --engine bubblewrap"

    async def __aenter__(self) -> Self:
        self._open = await self._opening.__aenter__()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._opening.__aexit__(*exception)

    async def create(self, snapshot: Snapshot | None = None) -> Sandbox:
        assert self._open is not None
        deadline = Deadline.after(120, limit="benchmark", set_by="ways")
        return await self._open.acquire(self.spec, deadline=deadline, snapshot=snapshot)

    async def expect_fork(self) -> None:
        await (await self.create()).close()  # a warm one

    async def exec(self, box: Sandbox, *command: str) -> None:
        assert (await box.exec(command, timeout_s=60)).ok

    async def step(self, box: Sandbox, command: str) -> None:
        assert (await box.exec(command, timeout_s=60, session="shell")).ok

    async def reset(self, box: Sandbox) -> Sandbox:
        await box.close()
        return await self.create()

    async def freeze(self, box: Sandbox) -> Snapshot:
        return await box.snapshot()

    async def fork(self, frozen: Snapshot) -> Sandbox:
        return await self.create(frozen)

    async def remove(self, box: Sandbox) -> None:
        await box.close(reuse=False)


class DockerSdk(Way):
    """`docker` SDK: a container that sleeps, an exec for each step, a commit for a fork."""

    name = "docker SDK, exec per step"

    def __init__(self, image: str) -> None:
        self.image = docker_tag(image)
        self._images: list[str] = []

    def gap(self) -> str:
        return "" if importlib.util.find_spec("docker") else "pip install docker"

    async def __aenter__(self) -> Self:
        import docker

        self._client: Any = docker.from_env(max_pool_size=64)
        return self

    async def __aexit__(self, *_: object) -> None:
        for image in self._images:
            await asyncio.to_thread(self._client.images.remove, image, force=True)
        self._client.close()

    async def create(self, image: str = "") -> Any:
        return await asyncio.to_thread(
            self._client.containers.run,
            image or self.image,
            ["sleep", "infinity"],
            detach=True,
            network_mode="none",
            working_dir="/workspace",
        )

    async def exec(self, box: Any, *command: str) -> None:
        assert (await asyncio.to_thread(box.exec_run, list(command))).exit_code == 0

    async def put(self, box: Any, files: dict[str, bytes]) -> None:
        """Files below /workspace."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for path, data in files.items():
                member = tarfile.TarInfo(path)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        assert await asyncio.to_thread(box.put_archive, "/workspace", buffer.getvalue())

    async def freeze(self, box: Any) -> Any:
        return box

    async def fork(self, frozen: Any) -> Any:
        image = await asyncio.to_thread(frozen.commit)
        self._images.append(image.id)
        return await self.create(image.id)

    async def remove(self, box: Any) -> None:
        await asyncio.to_thread(box.remove, force=True, v=True)


class SweRex(Way):
    """SWE-ReX's `DockerDeployment`: its server in the container, a bash session, one request for each step."""

    name = "SWE-ReX, DockerDeployment"

    def __init__(self, image: str) -> None:
        self.base = docker_tag(image)
        self.image = f"metier-benchmark/swe-rex:{self.base.replace('/', '-').replace(':', '-')}"

    def gap(self) -> str:
        return "" if importlib.util.find_spec("swerex") else "pip install swe-rex"

    async def __aenter__(self) -> Self:
        os.environ.setdefault("SWE_REX_LOG_STREAM_LEVEL", "CRITICAL")
        await asyncio.to_thread(self._build)
        logging.disable(logging.WARNING)
        return self

    async def __aexit__(self, *_: object) -> None:
        logging.disable(logging.NOTSET)

    def _build(self) -> None:
        """The image with the server in it, once; steps reach package archives as our own builds do."""
        import docker

        client: Any = docker.from_env(timeout=900)
        if not client.images.list(self.image):
            steps = [f"FROM {self.base}", "USER root", f"COPY ca.pem {BUILD_CA}"]
            steps += [f"ARG {name}" for name in step_variables()]
            steps += ["RUN apt-get update && apt-get install -y --no-install-recommends python3-pip"]
            steps += ["RUN python3 -m pip install swe-rex && swerex-remote --version"]
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w") as tar:
                for path, data in (("Dockerfile", "\n".join(steps).encode()), ("ca.pem", ca_bundle())):
                    member = tarfile.TarInfo(path)
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
            buffer.seek(0)
            client.images.build(
                fileobj=buffer, custom_context=True, tag=self.image, buildargs=step_variables(), rm=True, forcerm=True
            )
        client.close()

    async def create(self) -> Any:
        from swerex.deployment.docker import DockerDeployment
        from swerex.runtime.abstract import CreateBashSessionRequest

        made: Any = DockerDeployment(image=self.image, pull="never")
        await made.start()
        await made.runtime.create_session(CreateBashSessionRequest(startup_timeout=30))
        return made

    async def exec(self, box: Any, *command: str) -> None:
        from swerex.runtime.abstract import Command

        assert (await box.runtime.execute(Command(command=list(command), timeout=60))).exit_code == 0

    async def step(self, box: Any, command: str) -> None:
        from swerex.runtime.abstract import BashAction

        assert (await box.runtime.run_in_session(BashAction(command=command, timeout=60))).exit_code == 0

    async def remove(self, box: Any) -> None:
        await box.stop()


def ways(image: str) -> Sequence[Way]:
    """All of them, ours first."""
    return [Ours("docker", image), Ours("bubblewrap", image), DockerSdk(image), SweRex(image)]
