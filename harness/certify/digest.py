"""The environment digest: what a certificate vouches for, so that a change of any of it makes the certificate stale.

It covers the family's folder (less its certificate), its registry entry, every module of the same tree that the family
imports, directly or not (and files that those name, such as probe sources), and its image's recipe. Imports are read
from the source; nothing is executed.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from metier.envs.core import ConfigError
from metier.envs.entry import Entry
from metier.images import digest as image_digest

CERTIFICATE = "certificate.json"
_FILE_NAME = re.compile(r"^\w[\w-]{0,60}\.\w{1,10}$")


def family_folder(entry: Entry) -> Path:
    """The folder that holds the family's module.

    Raises:
        ConfigError: its module cannot be found.
    """
    module = entry.entry_point.partition(":")[0]
    try:
        spec = importlib.util.find_spec(module)
    except Exception as error:  # finding a module runs the packages around it, which are other people's
        raise ConfigError(f"{entry.id}: no module {module}: {type(error).__name__}: {error}") from error
    if spec is None or spec.origin is None:
        raise ConfigError(f"{entry.id}: no module {module}; correct entry_point in the registry")
    return Path(spec.origin).parent


def environment_digest(entry: Entry) -> str:
    """SHA-256, hexadecimal; independent of where the tree lies."""
    folder = family_folder(entry)
    package = entry.entry_point.split(":")[0].split(".")[:-1]
    prefix = package[:2] if package[:2] == ["metier", "envs"] else package[:1]
    root = folder.parents[len(package) - len(prefix) - 1] if len(package) > len(prefix) else folder
    # `verifier_image` came later: where an entry has none, its digest is the one it had before
    said = entry.model_dump(mode="json", exclude=set() if entry.verifier_image else {"verifier_image"})
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for image in filter(None, (entry.image, entry.verifier_image)):
        digest.update(image_digest(image).encode())
    for path in sorted(_own(folder) | imported(folder, root, prefix)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root)}\0{content}\n".encode())
    return digest.hexdigest()


def _own(folder: Path) -> set[Path]:
    return {
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name != CERTIFICATE and "__pycache__" not in path.parts
    }


def imported(folder: Path, root: Path, prefix: Sequence[str]) -> set[Path]:
    """The files under `root`, the folder of the package `prefix`, that the folder's modules import or name."""
    found: set[Path] = set()
    waiting = [path for path in _own(folder) if path.suffix == ".py"]
    while waiting:
        path = waiting.pop()
        for used in _uses(path, root, list(prefix)):
            if used not in found and used.is_file():
                found.add(used)
                if used.suffix == ".py":
                    waiting.append(used)
    return found


def _uses(path: Path, root: Path, prefix: list[str]) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_bytes(), filename=str(path))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from _absolute(root, prefix, name.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            for name in node.names:
                if node.level:
                    yield from _module_files(path.parents[node.level - 1], [*parts, name.name])
                else:
                    yield from _absolute(root, prefix, [*parts, name.name])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _FILE_NAME.match(node.value):
            yield path.parent / node.value


def _absolute(root: Path, prefix: list[str], parts: list[str]) -> Iterator[Path]:
    if parts[: len(prefix)] == prefix:
        yield from _module_files(root, parts[len(prefix) :])


def _module_files(base: Path, parts: list[str]) -> Iterator[Path]:
    """What importing `parts` from `base` may read: each package on the way, and the module (or a name in it)."""
    where = base
    for part in parts:
        yield where / "__init__.py"
        where = where / part
        yield where.with_suffix(".py")
    yield where / "__init__.py"
