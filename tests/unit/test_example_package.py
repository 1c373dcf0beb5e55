"""The example package: built and installed into a folder of its own, without network, it adds its environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "metier-night-shift"
CODE = """
import asyncio, gymnasium, metier
from metier.envs import registry
from metier.harness.policy.scripted import oracle_policy
from metier.harness.testing import FAMILY, Specimen, run_suite

ID = "nightshift/DowntimeReport-v0"
outcomes = asyncio.run(run_suite(FAMILY, Specimen.of(ID)))
assert all(one.held for one in outcomes), [one for one in outcomes if not one.held]
for level in range(3):
    env = gymnasium.make(ID, level=level, backend="fake")
    for seed in range(3):
        observation, info = env.reset(seed=seed)
        assert "outages.csv" in observation["text"]
        for call in oracle_policy(ID, seed, level)._calls:
            _, reward, terminated, _, info = env.step({"tool": call.tool, "arguments": dict(call.arguments)})
        assert (reward, terminated, info["passed"]) == (1.0, True, True), info
        prepared = env.unwrapped.episode.prepared
        for name, calls in prepared.family.mutants(prepared.instance).items():
            env.reset(seed=seed)
            for call in calls:
                _, reward, _, _, info = env.step({"tool": call.tool, "arguments": dict(call.arguments)})
            assert not info["passed"], name
    env.close()
print(registry.get(ID).entry_point)
"""


def test_it_installs_and_its_environment_is_made(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(EXAMPLE, source)  # a build leaves traces beside the source
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    built = subprocess.run(
        [*pip, "--no-warn-conflicts", "--disable-pip-version-check", "--target", str(target), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    environment = os.environ | {"PYTHONPATH": str(target)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "metier_night_shift.downtime.family:DowntimeReport"
    assert "metier_night_shift" not in subprocess.run(
        [sys.executable, "-m", "pip", "list", "-q"], capture_output=True, text=True, check=True
    ).stdout.replace("-", "_")
