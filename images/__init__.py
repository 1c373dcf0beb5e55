"""Where the work happens: one folder an image, the base they grow from, and the build (README.md)."""

from .build import Engine, build, to_stderr
from .docker_builder import engine_answers
from .listing import Listed, ls, prune
from .recipe import Recipe, digest, docker_tag, environment, names, recipe
from .rootfs import rootfs
from .stopping import Stop, Stopped
from .store import Progress, Record, cache_dir, making_room, no_room

__all__ = [
    "Engine",
    "Listed",
    "Progress",
    "Recipe",
    "Record",
    "Stop",
    "Stopped",
    "build",
    "cache_dir",
    "digest",
    "docker_tag",
    "engine_answers",
    "environment",
    "ls",
    "making_room",
    "names",
    "no_room",
    "prune",
    "recipe",
    "rootfs",
    "to_stderr",
]
