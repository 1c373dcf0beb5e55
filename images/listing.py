"""`ls` and `prune`: what is here, and removing what no recipe names any more."""

from __future__ import annotations

import time
from dataclasses import dataclass

from .build import to_stderr
from .docker_builder import DockerBuilder, engine_answers
from .recipe import names, recipe
from .rootfs_builder import remove_tree
from .store import Progress, cache_dir, load_record, rootfs_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One image as `metier images ls` shows it; sizes and age are None where it is not built."""

    name: str
    tag: str
    digest: str
    docker_mb: int | None
    rootfs_mb: int | None
    age_s: float | None


def ls() -> list[Listed]:
    """Every image, built or not."""
    docker = DockerBuilder() if engine_answers() else None
    found: list[Listed] = []
    for name in names():
        each = recipe(name)
        records = [load_record(each, engine) for engine in ("docker", "bubblewrap")]
        built_at = [record.built_at for record in records if record]
        in_rootfs = rootfs_path(each).is_dir()
        known = next((record.size_mb for record in reversed(records) if record), None)
        found.append(
            Listed(
                name=name,
                tag=each.tag,
                digest=each.digest,
                docker_mb=docker.size_mb(each) if docker and docker.has(each) else None,
                rootfs_mb=known if in_rootfs else None,
                age_s=time.time() - max(built_at) if built_at else None,
            )
        )
    return found


def prune(*, progress: Progress = to_stderr) -> list[str]:
    """Remove images, root file systems and records of recipes that are no more; returns what went."""
    current = {each.tag: each for each in map(recipe, names())}
    removed: list[str] = []
    if engine_answers():
        docker = DockerBuilder()
        for tag in docker.stale(set(current)):
            docker.remove_tag(tag)
            removed.append(tag)
    keep = {f"{each.name}-{each.digest[:12]}" for each in current.values()}
    for path in sorted(cache_dir().glob("rootfs/*")):
        if path.name not in keep:
            remove_tree(path)
            removed.append(str(path))
    for path in sorted(cache_dir().glob("records/*.json")):
        if path.stem.rsplit("-", 1)[0] not in keep:
            path.unlink()
    base = recipe("base")
    for path in sorted(cache_dir().glob("base/*.tar")):
        if path.stem != base.digest:
            path.unlink()
            removed.append(str(path))
    for what in removed:
        progress(f"removed {what}")
    return removed
