"""The kernel's views of small parts against what one draws by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from typing import Any, cast

import pytest
import pytest_asyncio

from metier.envs.core import Deadline, Json, Sandbox, SandboxSpec, VerifierError
from metier.envs.parts.drawing_views import Curve, Line, Seen, Stroke, View, views
from metier.envs.parts.prismatic import Block, Bore, Wedge
from metier.harness.sandbox.docker import DockerBackend, answers

pytestmark = [
    pytest.mark.docker,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers"),
]

SPEC = SandboxSpec(image="cad", memory_mb=1024, pids=64, writable_mb={"/workspace": 64, "/tmp": 32})
PLATE = Block(low=(0.0, 0.0, 0.0), high=(20.0, 30.0, 5.0))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with DockerBackend() as backend:
        yield await backend.acquire(SPEC, deadline=Deadline.after(120, limit="test_s", set_by="test"))


def rows(block: Block, *cuts: Block | Bore | Wedge) -> list[Json]:
    signed: list[tuple[int, Any]] = [(1, block), *((-1, cut) for cut in cuts)]
    return [[sign, type(element).__name__, cast("Json", asdict(element))] for sign, element in signed]


def stroke(x0: float, y0: float, x1: float, y1: float) -> Stroke:
    return Stroke((x0, y0), (x1, y1))


def shown(seen: Seen) -> tuple[set[Line], set[Line]]:
    """Visible lines, and the hidden ones that are not the same as a visible one."""
    visible, hidden = (
        {line if isinstance(line, Stroke) else Curve(line.centre, line.radius, 0.0, line.sweep_deg) for line in lines}
        for lines in seen
    )
    return visible, hidden - visible


async def looked_at(sandbox: Sandbox, *part: Any) -> Mapping[View, Seen]:
    return await views(sandbox, rows(*part), timeout_s=60)


async def test_a_bored_plate(sandbox: Sandbox) -> None:
    seen = await looked_at(sandbox, PLATE, Bore(axis=2, centre=(6.0, 9.0), radii=(2.25, 2.25), span=(0.0, 5.0)))
    around = {stroke(0, 0, 20, 0), stroke(0, 0, 0, 30), stroke(20, 0, 20, 30), stroke(0, 30, 20, 30)}
    assert shown(seen[View.TOP]) == (around | {Curve((6.0, 9.0), 2.25, 0.0, 360.0)}, set())
    visible, hidden = shown(seen[View.FRONT])
    assert visible == {stroke(0, 0, 20, 0), stroke(0, 0, 0, 5), stroke(20, 0, 20, 5), stroke(0, 5, 20, 5)}
    assert {stroke(3.75, 0, 3.75, 5), stroke(8.25, 0, 8.25, 5)} <= hidden
    assert {line.start[0] for line in hidden if isinstance(line, Stroke) and line.start[1] != line.end[1]} == {
        3.75,
        8.25,
    }


async def test_tangent_edges_show_only_as_outlines(sandbox: Sandbox) -> None:
    ends = [Bore(axis=2, centre=(10.0, y), radii=(3.0, 3.0), span=(0.0, 5.0)) for y in (9.0, 21.0)]
    seen = await looked_at(sandbox, PLATE, Block(low=(7.0, 9.0, 0.0), high=(13.0, 21.0, 5.0)), *ends)
    upright = {
        view: {
            line.start[0] for line in shown(seen[view])[1] if isinstance(line, Stroke) and line.start[0] == line.end[0]
        }
        for view in (View.FRONT, View.RIGHT)
    }
    assert upright == {View.FRONT: {7.0, 13.0}, View.RIGHT: {6.0, 24.0}}


async def test_the_end_of_a_blind_hole_is_as_wide_as_the_hole(sandbox: Sandbox) -> None:
    block = Block(low=(0.0, 0.0, 0.0), high=(20.0, 10.0, 30.0))
    seen = await looked_at(sandbox, block, Bore(axis=1, centre=(8.0, 17.0), radii=(3.25, 3.25), span=(0.0, 6.0)))
    assert Curve((8.0, 17.0), 3.25, 0.0, 360.0) in shown(seen[View.FRONT])[0]
    for view, (along, across) in {View.TOP: (8.0, 1), View.RIGHT: (17.0, 0)}.items():
        bottom = [
            line
            for line in shown(seen[view])[1]
            if isinstance(line, Stroke) and line.start[across] == line.end[across] == 6.0
        ]
        reach = [point[1 - across] for line in bottom for point in (line.start, line.end)]
        assert (min(reach), max(reach)) == pytest.approx((along - 3.25, along + 3.25), abs=1e-6)


async def test_a_chamfer_is_two_lines_where_it_faces_the_eye(sandbox: Sandbox) -> None:
    chamfer = Wedge(axis=0, corner=(0.0, 5.0), signs=(1, -1), legs=(2.0, 2.0), span=(0.0, 20.0))
    seen = await looked_at(sandbox, PLATE, chamfer)
    assert {stroke(0, 3, 20, 3), stroke(0, 5, 20, 5)} <= shown(seen[View.FRONT])[0]
    assert stroke(0, 3, 2, 5) in shown(seen[View.RIGHT])[0]


async def test_what_the_kernel_cannot_tell_is_our_own_fault(sandbox: Sandbox) -> None:
    cone = Bore(axis=2, centre=(6.0, 9.0), radii=(2.0, 3.0), span=(0.0, 5.0))
    with pytest.raises(VerifierError):
        await looked_at(sandbox, PLATE, cone)
