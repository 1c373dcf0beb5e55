"""`reset` of every environment: from a seed to the brief and a sandbox with the work in it, beside a bare container.

    python benchmarks/env_reset.py [--resets 5] [--level 1] [--backend docker] [--only NAME] [--json]

The first reset of an environment starts a sandbox; the later ones, each of another instance, find a warm one. The peer
is the `docker` SDK: a new container of the same image and the instance's files put into it, without the set-up that
some instances need. Generating is timed apart, for it is the host's own work. Images that are not built are named.
"""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import gymnasium
from measure import Clock, Row, parser, report
from ways import DockerSdk, Ours

import metier
from metier.envs import registry
from metier.harness.prepare import Task, generate
from metier.images import docker_tag


def ours(env_id: str, backend: str, level: int, resets: int) -> list[Row]:
    """The first reset, and those after it."""
    env: Any = gymnasium.make(env_id, backend=backend, level=level)
    cold, warm, made = Clock(), Clock(), Clock()
    with cold:
        env.reset(seed=1000)
    for seed in range(1, resets + 1):
        with made:
            generate(Task(env_id=env_id, seed=5000 + seed, level=level))
        with warm:
            env.reset(seed=1000 + seed)
    env.close()
    way = f"metier, {backend}"
    return [
        Row(what=env_id, way=f"{way}, first", values=cold.values),
        Row(what=env_id, way=way, values=warm.values),
        Row(what=env_id, way="of that, generating", values=made.values),
    ]


async def bare(sdk: DockerSdk, env_id: str, level: int, resets: int) -> Row:
    """A new container with the instance's files."""
    clock = Clock()
    for seed in range(resets):
        files = dict(generate(Task(env_id=env_id, seed=1000 + seed, level=level)).instance.files)
        with clock:
            box = await sdk.create()
            await sdk.put(box, files)
        await sdk.remove(box)
    return Row(what=env_id, way="docker SDK, container and files", values=clock.values)


async def built(sdk: DockerSdk) -> bool:
    async with sdk:
        return bool(await asyncio.to_thread(sdk._client.images.list, sdk.image))


async def peer(image: str, env_id: str, level: int, resets: int) -> list[Row]:
    sdk = DockerSdk(image)
    if sdk.gap() or not await built(sdk):
        return [Row(what=env_id, way="docker SDK", note=sdk.gap() or f"metier images build {image}")]
    async with sdk:
        return [await bare(sdk, env_id, level, resets)]


def main() -> None:
    options = parser("Resets of every environment.")
    options.add_argument("--resets", type=int, default=5)
    options.add_argument("--level", type=int, default=1)
    options.add_argument("--backend", default="docker")
    given = options.parse_args()
    metier.register_environments()
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for entry in registry.entries():
        env_id, image = entry.id, entry.image
        if given.only not in env_id:
            continue
        there = (
            asyncio.run(built(DockerSdk(image))) if given.backend == "docker" else not Ours("bubblewrap", image).gap()
        )
        if there:
            rows += ours(env_id, given.backend, given.level, given.resets)
            rows += asyncio.run(peer(image, env_id, given.level, given.resets))
        else:
            rows.append(Row(what=env_id, way=f"metier, {given.backend}", note=f"no image {docker_tag(image)} here"))
    report(f"Resets at level {given.level}", rows, as_json=given.json)


if __name__ == "__main__":
    main()
