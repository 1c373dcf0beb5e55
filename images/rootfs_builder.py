"""Images without an engine: the same steps by bubblewrap, in a copy of the parent's root file system.

Needs root, since packages own files as many users. The steps see their own root, pids and IPC, the host's network
(archives are fetched), and a read-only /proc/sys. The result is a directory, `store.rootfs_path`, made under another
name and renamed when whole.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from metier.envs.core import ConfigError, SandboxUnavailable

from .bootstrap import base_tar
from .builder import SMOKE_PATH, SMOKE_TIMEOUT_S, SMOKE_TMPFS_MB, Ran
from .dockerfile import Step, expand
from .host import BUILD_CA, ca_bundle, step_variables
from .recipe import Recipe
from .reporter import Reporter
from .stopping import Stop
from .store import remove_tree, rootfs_path

MOUNT_POINTS = ("dev", "metier", "proc", "run", "sys", "tmp", "workspace")


class RootfsBuilder:
    """A `Builder` that leaves root file systems in the cache."""

    name = "bubblewrap"

    def __init__(self, stop: Stop | None = None) -> None:
        self._stop = stop or Stop()
        if shutil.which("bwrap") is None:
            raise SandboxUnavailable("building without a Docker engine takes bubblewrap: apt-get install bubblewrap")

    def has(self, recipe: Recipe) -> bool:
        """Whether its root file system is whole in the cache."""
        return rootfs_path(recipe).is_dir()

    def make(self, recipe: Recipe, reporter: Reporter) -> None:
        """Unpack the base, or copy the parent and run the steps in it. Raises also Stopped."""
        if os.geteuid() != 0:
            raise SandboxUnavailable(
                f"image {recipe.name} is not built, and building it without a Docker engine takes root; run "
                f"`metier images build {recipe.name}` once as root, or start dockerd"
            )
        target = rootfs_path(recipe)
        draft = target.with_name(target.name + ".part")
        remove_tree(draft)
        draft.parent.mkdir(parents=True, exist_ok=True)
        try:
            if recipe.grows_from is not None and recipe.parent is None:
                raise SandboxUnavailable(
                    f"image {recipe.name} grows from {recipe.grows_from[:19]}, which only a Docker engine holds: start "
                    f"it and run `metier images build {recipe.name}`"
                )
            if recipe.parent is None:
                draft.mkdir()
                tar = str(base_tar(recipe, reporter))
                reporter.run(["tar", "-xpf", tar, "--numeric-owner", "-C", str(draft)], what="unpacking the base")
            else:
                reporter.say(f"copying {recipe.parent.name}")
                copy = ["cp", "-a", "--reflink=auto", str(rootfs_path(recipe.parent)), str(draft)]
                reporter.run(copy, what=f"copying image {recipe.parent.name}")
                _steps(recipe, draft, reporter)
            finish(draft)
            draft.rename(target)
        except BaseException:
            remove_tree(draft)
            raise

    def run(self, recipe: Recipe, command: Sequence[str], *, smoke: Path | None = None) -> Ran:
        """As uid 1000 of a user namespace of its own."""
        places = [word for path, mb in SMOKE_TMPFS_MB.items() for word in ("--size", str(mb << 20), "--tmpfs", path)]
        places += ["--ro-bind", str(smoke), SMOKE_PATH] if smoke else []
        argv = ["bwrap", "--unshare-all", "--uid", "1000", "--gid", "1000", "--die-with-parent", "--new-session"]
        argv += ["--ro-bind", str(rootfs_path(recipe)), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/metier"]
        argv += [*places, "--remount-ro", "/metier", "--chdir", "/workspace"]
        argv += [*_environment({**recipe.environment, "HOME": "/workspace"}), "--", *command]
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with self._stop.child(argv, **streams) as process:
            try:
                output, _ = process.communicate(timeout=SMOKE_TIMEOUT_S)
            except subprocess.TimeoutExpired as late:
                process.kill()
                shown = (late.stdout or b"").decode(errors="replace")
                return Ran(124, f"did not end within {SMOKE_TIMEOUT_S:.0f} s\n{shown}")
        return Ran(process.returncode, output.decode(errors="replace"))

    def size_mb(self, recipe: Recipe) -> int:
        """The directory's blocks."""
        used = subprocess.run(["du", "-sxm", str(rootfs_path(recipe))], capture_output=True, check=True)
        return int(used.stdout.split()[0])

    def discard(self, recipe: Recipe) -> None:
        """Remove the directory."""
        remove_tree(rootfs_path(recipe))


def finish(root: Path) -> None:
    """The places that a sandbox mounts over must be there: a read-only root cannot grow them. Build leftovers go."""
    for name in MOUNT_POINTS:
        (root / name).mkdir(exist_ok=True)
    remove_tree(root / BUILD_CA.lstrip("/").rsplit("/", 1)[0])
    for name in ("etc/resolv.conf", "etc/hosts", "etc/hostname"):
        (root / name).unlink(missing_ok=True)
        (root / name).touch()


def _steps(recipe: Recipe, root: Path, reporter: Reporter) -> None:
    """Run the recipe's own steps in `root`."""
    assert recipe.parent is not None
    environment, arguments = dict(recipe.parent.environment), {}
    ca = root / BUILD_CA.lstrip("/")
    ca.parent.mkdir(parents=True, exist_ok=True)
    ca.write_bytes(ca_bundle())  # as the Docker builder has it: in the image until it is finished
    for index, step in enumerate(recipe.steps[1:], 1):
        reporter.say(f"step {index}/{len(recipe.steps) - 1} {step.keyword} {step.value}")
        known = {**arguments, **environment}
        if step.keyword == "ENV":
            environment |= {name: expand(value, known) for name, value in step.assignments().items()}
        elif step.keyword == "ARG":
            arguments |= {name: expand(value, known) for name, value in step.assignments().items()}
        elif step.keyword == "COPY":
            _copy(recipe, root, step, known)
        else:
            variables = {"HOME": "/root", **step_variables(), **known}
            place = f"{recipe.folder / 'Dockerfile'}:{step.line}: the step"
            reporter.run(_step_argv(root, variables, step.value), what=place)


def _step_argv(root: Path, variables: Mapping[str, str], line: str) -> list[str]:
    """The step as root with every capability, in namespaces of its own, the host's settings out of reach."""
    argv = ["bwrap", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent", "--new-session"]
    argv += ["--cap-add", "ALL", "--bind", str(root), "/", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    argv += ["--dev", "/dev", "--chdir", "/"]
    argv += ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf", *_environment(variables)]
    return [*argv, "--", "/bin/sh", "-c", line]


def _environment(variables: Mapping[str, str]) -> list[str]:
    return ["--clearenv", *(word for name, value in variables.items() for word in ("--setenv", name, value))]


def _copy(recipe: Recipe, root: Path, step: Step, known: Mapping[str, str]) -> None:
    """COPY as Docker does it: a directory's contents, a file under its name where the target is a directory."""
    place = f"{recipe.folder / 'Dockerfile'}:{step.line}"
    *patterns, target = [expand(word, known) for word in step.words()]
    context = [path.relative_to(recipe.folder) for path in recipe.context()]
    for pattern in patterns:
        matches = [Path(match) for match in glob.glob(pattern, root_dir=recipe.folder)]
        taken = [(path, source) for source in matches for path in context if source in (path, *path.parents)]
        if not taken:
            raise ConfigError(f"{place}: COPY {pattern}: no such file in {recipe.folder}")
        goal = _inside(root, target, place)
        into = target.endswith("/") or goal.is_dir()
        for path, source in taken:
            whole_file = goal / path.name if into else goal
            copied = whole_file if path == source else goal / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(recipe.folder / path, copied)
            copied.chmod(0o755 if (recipe.folder / path).stat().st_mode & 0o100 else 0o644)


def _inside(root: Path, target: str, place: str) -> Path:
    """`target` of the image as a path of the host; links in the image must not lead out of it."""
    path = root / target.lstrip("/")
    existing = next(parent for parent in [path, *path.parents] if parent.exists())
    if not existing.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"{place}: COPY to {target}: a link leads out of the image there; name the real directory")
    return path
