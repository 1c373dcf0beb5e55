"""Step latency of one sandbox, and steps a second of 1, 8 and 32 at once, beside the peers.

    python benchmarks/sandbox_step.py [--steps 200] [--at-once 1 8 32] [--only NAME] [--json]

Ours: the resident steward (persistent shell, persistent Python, plain exec). Peers: `docker exec` by the SDK and by the
command line into the very same container, and SWE-ReX's bash session.
"""

from __future__ import annotations

import asyncio
import shutil
from functools import partial

from measure import Row, parser, rate, report, timed
from ways import Ours, Way, ways

PEER_STEPS = 50


async def latencies(way: Way, steps: int) -> list[Row]:
    """One sandbox, one step after another."""
    box = await way.create()
    rows = [
        Row(what="a step: true", way=way.name, values=await timed(lambda: way.step(box, "true"), steps)),
        Row(what="an exec: true", way=way.name, values=await timed(lambda: way.exec(box, "true"), steps)),
    ]
    if isinstance(way, Ours):

        async def python() -> None:
            assert (await box.exec("1 + 1", timeout_s=60, session="python")).ok

        rows.append(Row(what="a Python step: 1 + 1", way=way.name, values=await timed(python, steps)))
        if way.backend == "docker" and shutil.which("docker"):

            async def command_line() -> None:
                process = await asyncio.create_subprocess_exec("docker", "exec", box.id, "true")
                assert await process.wait() == 0

            values = await timed(command_line, min(steps, PEER_STEPS))
            rows.append(Row(what="an exec: true", way="docker exec, command line", values=values))
    await way.remove(box)
    return rows


async def throughput(way: Way, at_once: int, rounds: int) -> Row:
    """Steps a second of many sandboxes together."""
    boxes = await asyncio.gather(*(way.create() for _ in range(at_once)))
    try:
        per_s = await rate([partial(way.step, box, "true") for box in boxes], rounds)
    finally:
        await asyncio.gather(*(way.remove(box) for box in boxes))
    return Row(what=f"{at_once} at once, steps of true", way=way.name, values=[per_s], unit="per s")


async def main() -> None:
    options = parser("Sandbox steps beside docker exec and SWE-ReX.")
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--at-once", type=int, nargs="*", default=[1, 8, 32])
    given = options.parse_args()
    rows: list[Row] = []
    for way in ways(given.image):
        if given.only not in way.name:
            continue
        if missing := way.gap():
            rows.append(Row(what="a step: true", way=way.name, note=missing))
            continue
        async with way:
            rows += await latencies(way, given.steps)
            for at_once in given.at_once:
                rounds = given.steps if isinstance(way, Ours) else max(5, min(PEER_STEPS, 4 * PEER_STEPS // at_once))
                rows.append(await throughput(way, at_once, rounds))
    order = {what: number for number, what in enumerate(dict.fromkeys(row.what for row in rows))}
    rows.sort(key=lambda row: order[row.what])
    report("Sandbox steps", rows, as_json=given.json)


if __name__ == "__main__":
    asyncio.run(main())
