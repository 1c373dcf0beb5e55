"""What a sandbox's life costs: create, exec, a step, reset, fork, teardown, beside the peers.

    python benchmarks/sandbox_life.py [--lives 20] [--steps 100] [--only NAME] [--json]

A *step* runs in a session where the way has them (ours, SWE-ReX). *Reset* is the time from a used sandbox with 200
files to a clean one that can be used: in place for ours, a new one for the peers. A *fork* is one more sandbox with
those files: ours into a warm sandbox, docker's by commit and run; SWE-ReX has none.
"""

from __future__ import annotations

import asyncio

from measure import Clock, Row, parser, report, timed
from ways import Way, ways

FILES = "for i in $(seq 200); do echo $i > f$i; done"
OPERATIONS = ("create", "exec true", "step true", "step ls -l /etc", "reset, 200 files", "fork, 200 files", "teardown")


async def life(way: Way, lives: int, steps: int) -> list[Row]:
    """All operations of one way."""
    clocks = {name: Clock() for name in OPERATIONS}
    for number in range(lives + 1):
        if number == 1:  # the first one warms caches
            clocks |= {name: Clock() for name in ("create", "teardown")}
        with clocks["create"]:
            box = await way.create()
        with clocks["teardown"]:
            await way.remove(box)
    box = await way.create()
    clocks["exec true"].values = await timed(lambda: way.exec(box, "true"), steps)
    clocks["step true"].values = await timed(lambda: way.step(box, "true"), steps)
    clocks["step ls -l /etc"].values = await timed(lambda: way.step(box, "ls -l /etc"), steps)
    for _ in range(lives):
        await way.exec(box, "bash", "-c", FILES)
        with clocks["reset, 200 files"]:
            box = await way.reset(box)
    await way.exec(box, "bash", "-c", FILES)
    if (frozen := await way.freeze(box)) is not None:
        for _ in range(lives):
            await way.expect_fork()
            with clocks["fork, 200 files"]:
                other = await way.fork(frozen)
            await way.remove(other)
    await way.remove(box)
    return [
        Row(what=name, way=way.name, values=clock.values, note="" if clock.values else "it has none")
        for name, clock in clocks.items()
    ]


async def main() -> None:
    options = parser("The costs of a sandbox's life.")
    options.add_argument("--lives", type=int, default=20)
    options.add_argument("--steps", type=int, default=100)
    given = options.parse_args()
    rows: list[Row] = []
    for way in ways(given.image):
        if given.only not in way.name:
            continue
        if missing := way.gap():
            rows += [Row(what=name, way=way.name, note=missing) for name in OPERATIONS]
            continue
        async with way:
            rows += await life(way, given.lives, given.steps)
    rows.sort(key=lambda row: OPERATIONS.index(row.what))
    report("A sandbox's life", rows, as_json=given.json)


if __name__ == "__main__":
    asyncio.run(main())
