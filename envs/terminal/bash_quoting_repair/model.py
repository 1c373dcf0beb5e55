"""What a right script leaves behind, step by step: the same duties as in `steps`, on trees of bytes instead of a
disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .script import Plan

Tree = dict[bytes, bytes]
"""Relative path → content."""
LOCKED = 75


@dataclass(slots=True, kw_only=True)
class World:
    """The trees before the script, and after it; `expect` turns one into the other."""

    source: Tree = field(default_factory=dict[bytes, bytes])
    folders: set[bytes] = field(default_factory=set[bytes])
    """Below SOURCE, parents included."""
    target: Tree = field(default_factory=dict[bytes, bytes])
    locked: bool = False
    """Another run holds the lock."""
    tool_lines: tuple[bytes, ...] = ()
    tool_status: int = 0
    signal: int = 0
    """Sent while the tool runs; the tool would not end by itself."""
    printed: bytes = b""
    status: int = 0


def expect(plan: Plan, world: World) -> World:
    """The world after a right script."""
    if world.locked:
        world.status = LOCKED
        return world
    for step in plan.steps:
        _DUTIES[step.name](world, plan.words)
        if world.status:
            break
    return world


def parent(path: bytes) -> bytes:
    """The folder of a path, empty for the top."""
    return path.rpartition(b"/")[0]


def listed(data: bytes) -> list[bytes]:
    """The non-empty lines of a list file, literally."""
    return [line for line in data.split(b"\n") if line]


def _drop(world: World, words: Mapping[str, str]) -> None:
    for name in listed(world.source[words["LIST"].encode()]):
        world.source.pop(name, None)


def _purge(world: World, words: Mapping[str, str]) -> None:
    kept = set(listed(world.source[words["KEEP"].encode()]))
    folder = words["FOLDER"].encode()
    for path in [path for path in world.source if parent(path) == folder]:
        if path[len(folder) + 1 :] not in kept:
            del world.source[path]


def _spool(world: World, words: Mapping[str, str]) -> None:
    for path in [path for path in world.source if parent(path) == words["SPOOL"].encode()]:
        del world.source[path]


def _rename(world: World, words: Mapping[str, str]) -> None:
    old, new = b"." + words["OLD"].encode(), b"." + words["NEW"].encode()
    for path in [path for path in world.source if path.endswith(old)]:
        renamed = path[: -len(old)] + new
        if renamed not in world.source and renamed not in world.folders:
            world.source[renamed] = world.source.pop(path)


def _collect(world: World, words: Mapping[str, str]) -> None:
    for path in [path for path in world.source if path.endswith(b"." + words["EXT"].encode())]:
        world.target[words["SUB"].encode() + b"/" + path] = world.source.pop(path)


def _feed(world: World, words: Mapping[str, str]) -> None:
    world.status = 128 + world.signal if world.signal else world.tool_status
    if not world.status:
        world.target[words["FEED"].encode()] = b"".join(line + b"\n" for line in sorted(set(world.tool_lines)))


def _manifest(world: World, words: Mapping[str, str]) -> None:
    below = words["SUB"].encode() + b"/"
    files = sorted((path[len(below) :], data) for path, data in world.target.items() if path.startswith(below))
    records = [b"%d %s\0" % (len(data), path) for path, data in files]
    world.target[words["MANIFEST"].encode()] = b"".join(records)


def _prune(world: World, words: Mapping[str, str]) -> None:
    while empty := {
        folder
        for folder in world.folders
        if not any(parent(path) == folder for path in [*world.source, *world.folders])
    }:
        world.folders -= empty


def _count(world: World, words: Mapping[str, str]) -> None:
    world.printed = b"left: %d\n" % len(world.source)


_DUTIES: Mapping[str, Callable[[World, Mapping[str, str]], None]] = {
    "drop": _drop,
    "purge": _purge,
    "spool": _spool,
    "rename": _rename,
    "collect": _collect,
    "feed": _feed,
    "manifest": _manifest,
    "prune": _prune,
    "count": _count,
}
