"""Images by a Docker engine: the steps as an ordinary `docker build`, over the engine's API.

Certificates come into the build by a COPY of our own and leave by a last RUN; everything else that steps need of the
host are build arguments, which no image keeps.
"""

from __future__ import annotations

import contextlib
import io
import re
import tarfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from metier.envs.core import SandboxUnavailable

from .bootstrap import base_tar
from .builder import SMOKE_MEMORY_MB, SMOKE_PATH, SMOKE_TIMEOUT_S, SMOKE_TMPFS_MB, Ran
from .host import BUILD_CA, ca_bundle, step_variables
from .recipe import Recipe
from .reporter import Reporter
from .stopping import Stop

_STEP = re.compile(r"Step (\d+)/(\d+) : (.*)", re.DOTALL)
_STAGED_CA = ".metier-build/ca.pem"
_READ_TIMEOUT_S = 1800
_LOOK_S = 1.0
"""How often it is looked whether a running container's build was stopped."""
_LABEL = "metier.image"


def engine_answers() -> bool:
    """Whether a Docker engine answers on this machine."""
    import docker
    import requests
    from docker import errors

    try:
        client = docker.from_env(timeout=5)
    except errors.DockerException:
        return False
    try:
        return bool(client.ping())
    except (errors.DockerException, requests.exceptions.RequestException):
        return False
    finally:
        client.close()


def dockerfile_text(recipe: Recipe) -> tuple[str, int]:
    """The Dockerfile handed to the engine, and how many steps of ours follow its FROM."""
    assert recipe.grows_from is not None
    ours = [f"COPY {_STAGED_CA} {BUILD_CA}", *(f"ARG {name}" for name in sorted(step_variables()))]
    own = [f"{step.keyword} {step.value}" for step in recipe.steps[1:]]
    lines = [f"FROM {recipe.grows_from}", *ours, *own, f"RUN rm -rf {Path(BUILD_CA).parent}"]
    return "\n".join(lines) + "\n", len(ours)


class DockerBuilder:
    """A `Builder` on the Docker engine of this machine."""

    name = "docker"

    def __init__(self, stop: Stop | None = None) -> None:
        import docker
        from docker import errors

        self._stop = stop or Stop()
        try:
            self._client: Any = docker.from_env(timeout=_READ_TIMEOUT_S)
        except errors.DockerException as error:
            raise SandboxUnavailable(
                f"no Docker engine answers ({error}); start dockerd or use --engine bubblewrap"
            ) from error

    def is_podman(self) -> bool:
        """Whether Podman answers: its Docker API loses an import's tag, and takes no owner of a tmpfs (`run`)."""
        return any(part.get("Name") == "Podman Engine" for part in self._client.version().get("Components") or [])

    def present(self, reference: str) -> tuple[str, list[str], str] | None:
        """The id, environment and working directory of any image that the engine holds; None where it has none."""
        from docker import errors

        try:
            found = self._client.images.get(reference)
        except (errors.ImageNotFound, errors.NullResource, errors.APIError):
            return None
        config: dict[str, Any] = found.attrs.get("Config") or {}
        return str(found.id), [str(one) for one in config.get("Env") or []], str(config.get("WorkingDir") or "")

    def has(self, recipe: Recipe) -> bool:
        """Whether the engine has the recipe's tag."""
        from docker import errors

        try:
            self._client.images.get(recipe.tag)
        except errors.ImageNotFound:
            return False
        return True

    def make(self, recipe: Recipe, reporter: Reporter) -> None:
        """Build and tag."""
        if recipe.grows_from is None:
            self._import_base(recipe, reporter)
        else:
            self._build(recipe, reporter)

    def _import_base(self, recipe: Recipe, reporter: Reporter) -> None:
        tar = base_tar(recipe, reporter)
        self._stop.check()
        reporter.say("importing")
        changes = ['CMD ["/bin/bash"]', f"LABEL {_LABEL}=base"]
        changes += [f"ENV {name}={value}" for name, value in recipe.environment.items()]
        repository, tag = recipe.tag.split(":")
        self._client.api.import_image_from_file(str(tar), repository=repository, tag=tag, changes=changes)
        self._client.images.get(recipe.tag).tag(repository, "latest")

    def _build(self, recipe: Recipe, reporter: Reporter) -> None:
        from docker.types import CancellableStream

        text, skipped = dockerfile_text(recipe)
        answers: list[Any] = []
        self._client.api.hooks["response"] = [lambda response, **_: answers.append(response)]
        stream = self._client.api.build(
            fileobj=_context(recipe, text),
            custom_context=True,
            tag=recipe.tag,
            buildargs=step_variables(),
            labels={_LABEL: recipe.name},
            rm=True,
            forcerm=True,
            decode=True,
        )
        self._client.api.hooks["response"] = []
        # an engine whose client hangs up ends the step and removes its container
        with self._stop.cut_by(CancellableStream(stream, answers[-1]).close), contextlib.closing(answers[-1]):
            self._follow(stream, recipe, skipped, reporter)

    def _follow(self, stream: Iterable[dict[str, Any]], recipe: Recipe, skipped: int, reporter: Reporter) -> None:
        """Tell what a build says. Raises SandboxUnavailable."""
        current = recipe.steps[0]
        for part in stream:
            if "error" in part:
                place = f"{recipe.folder / 'Dockerfile'}:{current.line}"
                raise SandboxUnavailable(f"{place}: {part['error'].strip()}\n{reporter.tail()}")
            output = part.get("stream", "")
            if match := _STEP.match(output):
                index = int(match[1]) - 1 - skipped
                if 0 < index < len(recipe.steps):
                    current = recipe.steps[index]
                    reporter.say(f"step {index}/{len(recipe.steps) - 1} {current.keyword} {current.value}")
            else:
                reporter.output(output)

    def run(self, recipe: Recipe, command: Sequence[str], *, smoke: Path | None = None) -> Ran:
        """In a container as a sandbox is, removed afterwards."""
        container = self._client.containers.create(
            recipe.tag,
            list(command),
            user="1000:1000",
            working_dir="/workspace",
            environment={"HOME": "/workspace"},
            network_mode="none",
            read_only=True,
            tmpfs={path: f"size={mb}m,exec,uid=1000,gid=1000" for path, mb in SMOKE_TMPFS_MB.items()},
            volumes={str(smoke.resolve()): {"bind": SMOKE_PATH, "mode": "ro"}} if smoke else {},
            mem_limit=f"{SMOKE_MEMORY_MB}m",
            memswap_limit=f"{SMOKE_MEMORY_MB}m",
            pids_limit=512,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            labels={_LABEL + "-check": recipe.name},
        )
        try:
            container.start()
            code = self._waited(container)
            if code is None:
                shown = container.logs(tail=40).decode(errors="replace")
                return Ran(124, f"did not end within {SMOKE_TIMEOUT_S:.0f} s\n{shown}")
            return Ran(code, container.logs().decode(errors="replace"))
        finally:
            container.remove(force=True)

    def _waited(self, container: Any) -> int | None:
        """Its exit code; None where it took too long. Raises Stopped."""
        import requests

        deadline = time.monotonic() + SMOKE_TIMEOUT_S
        while time.monotonic() < deadline:
            self._stop.check()
            try:
                return int(container.wait(timeout=_LOOK_S)["StatusCode"])
            except requests.exceptions.RequestException as error:
                # over a Unix socket, a read that takes too long is a connection error
                if not isinstance(error, requests.exceptions.Timeout) and "timed out" not in str(error):
                    raise
        return None

    def size_mb(self, recipe: Recipe) -> int:
        """All layers together."""
        return round(self._client.images.get(recipe.tag).attrs["Size"] / 2**20)

    def discard(self, recipe: Recipe) -> None:
        """Remove the tag; the engine keeps its layers as a build cache."""
        self._client.images.remove(recipe.tag)

    def export(self, recipe: Recipe, sink: io.BufferedIOBase | Any) -> None:
        """Write the image's root file system to `sink` as a tar."""
        container = self._client.containers.create(
            recipe.tag, ["true"], network_mode="none", labels={_LABEL + "-check": recipe.name}
        )
        try:
            for chunk in container.export():
                sink.write(chunk)
        finally:
            container.remove(force=True)

    def stale(self, current: set[str]) -> list[str]:
        """Tags of ours that are not in `current`."""
        images = self._client.images.list(filters={"label": _LABEL})
        tags = {
            tag for image in images for tag in image.tags if tag.startswith("metier/") and not tag.endswith(":latest")
        }
        return sorted(tags - current)

    def remove_tag(self, tag: str) -> None:
        """Remove one tag, and the image if it was the last."""
        self._client.images.remove(tag)


def _context(recipe: Recipe, dockerfile: str) -> io.BytesIO:
    """The build context: the folder's files as root's, our Dockerfile and the certificates."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in recipe.context():
            tar.add(path, arcname=str(path.relative_to(recipe.folder)), filter=_as_root)
        for name, content in (("Dockerfile", dockerfile.encode()), (_STAGED_CA, ca_bundle())):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return packed


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    entry.mtime = 0
    return entry
