"""A scene that cannot be rendered is a wrong one: graded 0, in the denominator, and no average of an earlier render."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from metier.envs.core import Outcome, SandboxBackend, ToolCall
from metier.harness.evaluate import Rate, pass_rate
from metier.harness.policy.scripted import ScriptedPolicy, oracle_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.runner import run_episode
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers
from waiting import soon

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers"),
]

TASK = Task(env_id="blender/MaterialRenderMatch-v0", seed=4, level=0)
PASSES = (
    "print('PASSED'); print('score: 1.0'); open('/workspace/match.png', 'wb').write(open('goal_a.png', 'rb').read())\n"
)
"""What a grader that reads standard output, or an earlier picture, would believe."""
BROKEN = {
    "no file": "",
    "no scene": "open('/workspace/match.blend', 'wb').write(b'BLENDER-v' + b'x' * 5000)",
    "half a file": (
        "data = open('/workspace/scene.blend', 'rb').read()\n"
        "open('/workspace/match.blend', 'wb').write(data[: len(data) // 2])"
    ),
    "nothing to render": (
        "import bpy\nbpy.ops.wm.read_factory_settings(use_empty=True)\n"
        "bpy.ops.wm.save_as_mainfile(filepath='/workspace/match.blend')"
    ),
    "a material without a surface": (
        "import bpy\nbpy.ops.wm.open_mainfile(filepath='/workspace/scene.blend')\n"
        "bpy.data.materials['Finish'].node_tree.nodes.clear()\n"
        "bpy.ops.wm.save_as_mainfile(filepath='/workspace/match.blend')"
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend() -> AsyncIterator[SandboxBackend]:
    async with open_backend("docker") as opened:
        yield opened


async def test_each_is_graded_and_stays_in_the_denominator(backend: SandboxBackend) -> None:
    preparer = Preparer(backend)
    right = oracle_policy(TASK.env_id, TASK.seed, TASK.level)
    results = [await run_episode(TASK, right, backend, preparer, deadline=soon(600))]
    for code in BROKEN.values():
        calls = [ToolCall(tool="python", arguments={"code": PASSES + code}), ToolCall(tool="submit")]
        results.append(await run_episode(TASK, ScriptedPolicy(calls), backend, preparer, deadline=soon(600)))
    for how, result in zip(["right", *BROKEN], results, strict=True):
        expected = (Outcome.COMPLETED, float(how == "right"), how == "right")
        assert (result.outcome, result.reward, result.passed) == expected, (how, result.failure, result.checks)
    assert pass_rate(results) == Rate(passed=1, valid=1 + len(BROKEN), requested=1 + len(BROKEN))
