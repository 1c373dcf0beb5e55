"""What an image is made of: its folder's steps and files, its parent, and the digest of all that.

The digest is that of the recipe, since two builds never have the same bytes. It covers the Dockerfile, every file
beside it and the parent's digest; not `smoke.py`, which proves an image and is no part of it.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from metier.envs.core import ConfigError

from .dockerfile import Step, expand, parent_of, parse

FOLDER = Path(__file__).parent
BASE = "base"
BASE_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
"""What every image has in its environment before its own ENV steps."""
_NO_CONTEXT = ("__pycache__", "smoke.py", "README.md")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One folder of `images/`. The base has no steps: `bootstrap.sh` makes it."""

    name: str
    folder: Path
    parent: Recipe | None
    steps: tuple[Step, ...]

    @property
    def smoke(self) -> Path | None:
        """The test of a trade's real work, where the folder has one."""
        path = self.folder / "smoke.py"
        return path if path.is_file() else None

    def context(self) -> list[Path]:
        """The files that COPY may take, in a fixed order."""
        files = (path for path in self.folder.rglob("*") if path.is_file() and path.name != "Dockerfile")
        return sorted(path for path in files if not set(path.relative_to(self.folder).parts) & set(_NO_CONTEXT))

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
    """Every image, the base included, by name."""
    return [BASE, *sorted(path.parent.name for path in FOLDER.glob("*/Dockerfile"))]


def recipe(name: str) -> Recipe:
    """The recipe in `images/<name>/`.

    Raises:
        ConfigError: no such folder, a Dockerfile outside the dialect (with file and line), or a circle of FROMs.
    """
    return _recipe(name, ())


def _recipe(name: str, children: tuple[str, ...]) -> Recipe:
    folder = FOLDER / name
    if name in children:
        raise ConfigError(f"images build on each other in a circle: {' → '.join((*children, name))}; change one FROM")
    if name == BASE:
        return Recipe(name=name, folder=folder, parent=None, steps=())
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names())}"
        raise ConfigError(f"no image named {name!r}; {hint}")
    steps = parse(folder / "Dockerfile")
    return Recipe(name=name, folder=folder, parent=_recipe(parent_of(steps), (*children, name)), steps=steps)


def digest(name: str) -> str:
    """The digest of the recipe of image `name`."""
    return recipe(name).digest


def docker_tag(name: str) -> str:
    """The tag that image `name` has in the engine: `metier/NAME:<digest12>`."""
    return recipe(name).tag


def environment(name: str) -> dict[str, str]:
    """The variables that commands in image `name` start with."""
    return dict(recipe(name).environment)
