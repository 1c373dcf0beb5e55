"""What an image is made of: its folder's steps and files, its parent, and the digest of all that.

The digest is that of the recipe, since two builds never have the same bytes. It covers the Dockerfile, every file
beside it and the parent's digest; not `smoke.py`, which proves an image and is no part of it.

A registry of another package may bring images of its own: folders in `images/` beside its file, under names that none
of ours has.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from metier.envs.core import ConfigError
from metier.envs.registry import registry_path, sources

from .dockerfile import Step, expand, parent_of, parse

FOLDER = Path(__file__).parent
BASE = "base"
BASE_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
"""What every image has in its environment before its own ENV steps."""
_NO_CONTEXT = ("smoke.py", "README.md", "Dockerfile")
"""Of a recipe's folder itself; what lies deeper is the image's own."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One folder of `images/`. The base has no steps: `bootstrap.sh` makes it."""

    name: str
    folder: Path
    parent: Recipe | None
    """None for the base, and for what grows from an image that only the engine holds."""
    steps: tuple[Step, ...]

    @property
    def grows_from(self) -> str | None:
        """What a Dockerfile for the engine says after FROM; None for the base, which is imported."""
        if self.parent is not None:
            return self.parent.tag
        return self.steps[0].value if self.steps else None

    @property
    def smoke(self) -> Path | None:
        """The test of a trade's real work, where the folder has one."""
        path = self.folder / "smoke.py"
        return path if path.is_file() else None

    def context(self) -> list[Path]:
        """The files that COPY may take, in a fixed order."""
        files = (path for path in self.folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return sorted(path for path in files if str(path.relative_to(self.folder)) not in _NO_CONTEXT)

    @cached_property
    def digest(self) -> str:
        """SHA-256, hexadecimal."""
        digest = hashlib.sha256((self.parent.digest if self.parent else "").encode())
        for path in [self.folder / "Dockerfile", *self.context()]:
            if path.is_file():
                mode = "x" if path.stat().st_mode & 0o100 else "-"
                content = hashlib.sha256(path.read_bytes()).hexdigest()
                digest.update(f"{path.relative_to(self.folder)}\0{mode}\0{content}\n".encode())
        return digest.hexdigest()

    @property
    def tag(self) -> str:
        """`metier/NAME:<12 digits of the digest>`."""
        return f"metier/{self.name}:{self.digest[:12]}"

    @cached_property
    def environment(self) -> dict[str, str]:
        """The variables that the steps set, in the end, over the parent's."""
        values = dict(self.parent.environment if self.parent else BASE_ENVIRONMENT)
        arguments: dict[str, str] = {}
        for step in self.steps:
            target = {"ENV": values, "ARG": arguments}.get(step.keyword)
            if target is not None:
                known = {**arguments, **values}
                target.update({name: expand(value, known) for name, value in step.assignments().items()})
        return values

    def lineage(self) -> list[Recipe]:
        """From the base down to this."""
        return [*(self.parent.lineage() if self.parent else []), self]


def names() -> list[str]:
    """Every image by name: the base, ours, then those of other registries."""
    return [BASE, *sorted(_folders())]


def _folders() -> dict[str, Path]:
    """The folder of every image but the base."""
    found: dict[str, Path] = {}
    for above in [FOLDER, *(path.parent / "images" for path in sources() if path != registry_path())]:
        for path in sorted(above.glob("*/Dockerfile")):
            found.setdefault(path.parent.name, path.parent)
    return found


def recipe(name: str) -> Recipe:
    """The recipe in `images/<name>/`, here or beside another registry.

    Raises:
        ConfigError: no such folder, a Dockerfile outside the dialect (with file and line), or a circle of FROMs.
    """
    return _recipe(name, ())


def _recipe(name: str, children: tuple[str, ...]) -> Recipe:
    if name in children:
        raise ConfigError(f"images build on each other in a circle: {' → '.join((*children, name))}; change one FROM")
    if name == BASE:
        return Recipe(name=name, folder=FOLDER / name, parent=None, steps=())
    folder = FOLDER / name
    if "/" in name or not (folder / "Dockerfile").is_file():
        others = _folders()
        if name not in others:
            near = difflib.get_close_matches(name, names(), n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names())}"
            raise ConfigError(f"no image named {name!r}; {hint}")
        folder = others[name]
    steps = parse(folder / "Dockerfile")
    above = parent_of(steps)
    parent = None if above is None else _recipe(above, (*children, name))
    return Recipe(name=name, folder=folder, parent=parent, steps=steps)


def digest(name: str) -> str:
    """The digest of the recipe of image `name`."""
    return recipe(name).digest


def docker_tag(name: str) -> str:
    """The tag that image `name` has in the engine: `metier/NAME:<digest12>`."""
    return recipe(name).tag


def environment(name: str) -> dict[str, str]:
    """The variables that commands in image `name` start with."""
    return dict(recipe(name).environment)
