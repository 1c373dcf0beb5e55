"""`rootfs(name)`: an image's root file system as a directory, for sandboxes without an engine."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from pathlib import Path

from metier.envs.core import SandboxUnavailable

from .build import build as build_images
from .build import to_stderr
from .docker_builder import DockerBuilder, engine_answers
from .recipe import Recipe, recipe
from .reporter import Reporter
from .rootfs_builder import finish, remove_tree
from .store import Progress, locked, making_room, rootfs_path

_WORDS_BYTES = 4096


def rootfs(name: str, *, build: bool = True, progress: Progress = to_stderr) -> Path:
    """The root file system of image `name`: from the cache, else out of the Docker image, else built without an engine.

    Raises:
        ConfigError: no such image.
        SandboxUnavailable: it cannot be made here, or is not there and `build` is false; the message says what to do.
    """
    wanted = recipe(name)
    path = rootfs_path(wanted)
    if path.is_dir():
        return path
    if engine_answers():
        docker = DockerBuilder()
        if docker.has(wanted):
            with making_room(path.parent, f"image {name}"), locked(wanted.name, progress):
                if not path.is_dir():
                    _export(docker, wanted, path, progress)
            return path
    if not build:
        raise SandboxUnavailable(f"image {name} is not built; run `metier images build {name} --engine bubblewrap`")
    build_images([name], engine="bubblewrap", progress=progress)
    return path


def _export(docker: DockerBuilder, wanted: Recipe, path: Path, progress: Progress) -> None:
    reporter = Reporter(wanted.name, progress)
    reporter.say("unpacking the Docker image to a root file system")
    draft = path.with_name(path.name + ".part")
    remove_tree(draft)
    draft.mkdir(parents=True)
    try:
        command = ["env", "LC_ALL=C", "tar", "-xpf", "-", "--numeric-owner", "-C", str(draft)]
        with os.fdopen(os.memfd_create("words"), "w+b") as words:
            with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=words) as unpack:
                assert unpack.stdin is not None
                with contextlib.suppress(BrokenPipeError):  # tar ended, and says why
                    docker.export(wanted, unpack.stdin)
            words.seek(0)
            said = words.read(_WORDS_BYTES).decode("utf-8", "replace").strip()
        if os.strerror(errno.ENOSPC) in said:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if unpack.returncode != 0:
            why = said.splitlines()[0] if said else f"tar ended with {unpack.returncode}"
            raise SandboxUnavailable(f"unpacking image {wanted.name} failed: {why}")
        finish(draft)
        draft.rename(path)
    except BaseException:
        remove_tree(draft)
        raise
    reporter.say("unpacked")
