"""The image of an imported task: its own Dockerfile in our dialect, and the links that make its folders writable."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metier.envs.bridges.folder import Held
from metier.envs.bridges.folder_task import LINKED, ROOT, SEED
from metier.envs.bridges.foreign import ForeignTask
from metier.envs.bridges.refusal import Reason, TaskRefused
from metier.images.foreign import Bases, NotTranslated, Translated, translate

from .naming import BRIDGED
from .trees import is_file

CONTEXT = "context"
_PYTHON = (
    "command -v python3 >/dev/null || (apt-get update && apt-get install -y --no-install-recommends python3 && "
    "rm -rf /var/lib/apt/lists/*)"
)
"""A sandbox's steward is a Python program, so an image of others may need one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageDraft:
    """A recipe's folder that is not yet written."""

    dockerfile: str
    files: Mapping[str, Held]
    """Beside the Dockerfile."""
    workdir: str
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """As the image is called: by its content, so that edited tests leave the agent's image as it is."""
        digest = hashlib.sha256(self.dockerfile.encode())
        feed(digest, self.files)
        return f"{BRIDGED}{digest.hexdigest()[:16]}"

    def write(self, images: Path) -> None:
        """Into its folder below `images`; tasks with the same image share it."""
        folder = images / self.name
        if folder.exists():
            return
        folder.mkdir(parents=True)
        (folder / "Dockerfile").write_text(self.dockerfile, encoding="utf-8")
        write_files(folder, self.files)


def feed(digest: Any, files: Mapping[str, Held]) -> None:
    """Adds names, modes and contents to a hash."""
    for name, held in sorted(files.items()):
        content = hashlib.sha256(held.data).hexdigest()
        digest.update(f"{name}\0{held.executable}\0{content}\n".encode())


def write_files(folder: Path, files: Mapping[str, Held]) -> None:
    """Files below a folder."""
    for name, held in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(held.data)
        path.chmod(0o755 if held.executable else 0o644)


def agents_image(task: ForeignTask, trees: Sequence[str], bases: Bases) -> ImageDraft:
    """Where the agent acts. Raises TaskRefused."""
    return _image(task, task.dockerfile, task.docker_image, task.context, trees, bases, with_tests=False)


def verifiers_image(task: ForeignTask, trees: Sequence[str], bases: Bases) -> ImageDraft:
    """Where the tests run, for a task whose tests have a Dockerfile. Raises TaskRefused."""
    return _image(task, task.testing.dockerfile, None, task.testing.files, trees, bases, with_tests=True)


def _image(
    task: ForeignTask,
    dockerfile: str | None,
    prebuilt: str | None,
    context: Mapping[str, Held],
    trees: Sequence[str],
    bases: Bases,
    *,
    with_tests: bool,
) -> ImageDraft:
    text = f"FROM {prebuilt}\n" if prebuilt and bases.present(prebuilt) else dockerfile
    if text is None:
        raise TaskRefused(
            Reason.BASE_UNAVAILABLE,
            task.name,
            f"its image {prebuilt} is not in the engine, and it has no Dockerfile: docker pull {prebuilt}",
        )
    names = [name for name in context if name != ".dockerignore"]
    try:
        made = translate(text, context=names, folder=CONTEXT, bases=bases)
    except NotTranslated as error:
        reason = Reason.BASE_UNAVAILABLE if error.base else Reason.BUILD
        raise TaskRefused(reason, task.name, str(error)) from None
    notes = list(made.notes)
    if ".dockerignore" in context:
        notes.append(".dockerignore: not applied")
    workdir = task.workdir if task.workdir and not with_tests else made.workdir
    lines = [*made.lines, *_environment(task, with_tests), _finish(trees, with_tests)]
    files = {f"{CONTEXT}/{name}": context[name] for name in names if _is_copied(made)}
    files |= {name: Held(data=text.encode()) for name, text in made.files.items()}
    return ImageDraft(dockerfile="\n".join(lines) + "\n", files=files, workdir=workdir, notes=tuple(notes))


def _is_copied(made: Translated) -> bool:
    return any(line.startswith("COPY context/") for line in made.lines)


def _environment(task: ForeignTask, with_tests: bool) -> list[str]:
    env = {} if with_tests else task.env
    return [f"ENV {name}={shlex.quote(value)}" for name, value in env.items() if "\n" not in value]


def _finish(trees: Sequence[str], with_tests: bool) -> str:
    """One step, since each costs a layer: what is writable moves to the seed, and links stand where it was."""
    parts = [_PYTHON, f"mkdir -p {SEED} /workspace", f"cp -a /workspace/. {SEED}/"]
    for place, real in LINKED.items():
        if not (with_tests and place == "/tests"):
            parts += [f"rm -rf {place}", f"ln -s {real} {place}"]
    for tree in trees:
        real, kept = shlex.quote(ROOT + tree), shlex.quote(SEED + ROOT.removeprefix("/workspace") + tree)
        made = f"mkdir -p $(dirname {kept}) $(dirname {shlex.quote(tree)})"
        if not is_file(tree):
            made += f" {shlex.quote(tree)}"
        moved = f"[ ! -e {shlex.quote(tree)} ] || cp -a {shlex.quote(tree)} {kept}"
        parts += [made, moved, f"rm -rf {shlex.quote(tree)}", f"ln -s {real} {shlex.quote(tree)}"]
    return "RUN " + " && ".join(f"({part})" if "||" in part else part for part in [*parts, f"chmod -R a+rX {SEED}"])
