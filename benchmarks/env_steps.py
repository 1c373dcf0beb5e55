"""Environment steps a second through `gymnasium.make_vec`, with 1, 8 and 32 members, beside the peers' bare steps.

    python benchmarks/env_steps.py [--env ID] [--rounds 50] [--at-once 1 8 32] [--only NAME] [--json]

Ours is the whole environment: the action checked against its schema, the tool, the observation, the limits. The peers
only run the command: a step of theirs has no environment around it.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial

import gymnasium
from measure import Row, parser, rate, report
from ways import DockerSdk, Ours, SweRex, Way

import metier
from metier.envs.registry import get

COMMAND = "true"


def ours(env_id: str, backend: str, at_once: int, rounds: int) -> float:
    """Steps a second of all members together."""
    envs = gymnasium.make_vec(env_id, num_envs=at_once, backend=backend)
    actions = [{"tool": "shell", "arguments": {"command": COMMAND}}] * at_once
    # fewer than the environment's own limit of steps, at which an episode is graded
    rounds = min(rounds, get(env_id).limits.steps - 3)
    taken = 0.0
    for seed in range(3):
        envs.reset(seed=seed)
        envs.step(actions)
        began = time.perf_counter()
        for _ in range(rounds):
            envs.step(actions)
        taken += time.perf_counter() - began
    envs.close()
    return 3 * rounds * at_once / taken


async def theirs(way: Way, at_once: int, rounds: int) -> float:
    """The same command in as many containers, as fast as they go."""
    boxes = await asyncio.gather(*(way.create() for _ in range(at_once)))
    try:
        return await rate([partial(way.step, box, COMMAND) for box in boxes], rounds)
    finally:
        await asyncio.gather(*(way.remove(box) for box in boxes))


async def peers(way: Way, all_at_once: list[int]) -> list[Row]:
    async with way:
        return [
            row(at_once, f"{way.name}, no environment", await theirs(way, at_once, max(5, 100 // at_once)))
            for at_once in all_at_once
        ]


def row(at_once: int, way: str, per_s: float) -> Row:
    return Row(what=f"{at_once} at once", way=way, values=[per_s], unit="steps per s")


def main() -> None:
    options = parser("Environment steps a second.")
    options.add_argument("--env", default="finance/CovenantTest-v0")
    options.add_argument("--rounds", type=int, default=50)
    options.add_argument("--at-once", type=int, nargs="*", default=[1, 8, 32])
    given = options.parse_args()
    metier.register_environments()
    image = get(given.env).image
    rows: list[Row] = []
    for backend in ("docker", "bubblewrap"):
        way = Ours(backend, image)
        if given.only not in way.name:
            continue
        for at_once in given.at_once:
            if missing := way.gap():
                rows.append(Row(what=f"{at_once} at once", way=way.name, note=missing))
            else:
                rows.append(row(at_once, way.name, ours(given.env, backend, at_once, given.rounds)))
    for peer in (DockerSdk(image), SweRex(image)):
        if given.only not in peer.name:
            continue
        if missing := peer.gap():
            rows += [Row(what=f"{at_once} at once", way=peer.name, note=missing) for at_once in given.at_once]
        else:
            rows += asyncio.run(peers(peer, given.at_once))
    rows.sort(key=lambda row: int(row.what.split()[0]))
    report(f"Steps of {given.env}", rows, as_json=given.json)


if __name__ == "__main__":
    main()
