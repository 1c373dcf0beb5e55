"""Runs the family's verifier on what the agent left in /workspace, and writes the reward where Harbor looks for it.

The instance is generated again from the seed, so nothing of its truth is in the agent's image. A verifier that breaks
leaves no reward at all, which is no reward of 0.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE / "bundle"), "/opt/metier-grader"]
LOGS = Path(os.environ.get("METIER_LOGS", "/logs/verifier"))


def main() -> None:
    """Grade."""
    local: Any = importlib.import_module("local_sandbox")
    core: Any = importlib.import_module("metier.envs.core")
    said: dict[str, Any] = json.loads((HERE / "instance.json").read_text(encoding="utf-8"))
    kind: Any = getattr(importlib.import_module(said["module"]), said["kind"])
    family = kind(**said["options"])
    seed, level = said["seed"], said["level"]
    instance = family.generate(core.instance_rng(said["id"], said["options"], seed, level), level)
    refused = local.only_artefacts(instance.artefacts)
    hidden = core.hidden_rng(said["secret"].encode(), said["id"], seed)
    began = time.time()

    async def graded() -> Any:
        async with asyncio.timeout(said["verify_s"]):
            return await family.verify(local.LocalSandbox(said["image"]), instance, hidden)

    verdict = asyncio.run(graded())
    if not verdict.checks:
        raise ValueError("a verdict needs one check or more")
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / "ctrf.json").write_text(json.dumps(_report(verdict, began, time.time())), encoding="utf-8")
    rewards = {"reward": verdict.reward, "passed": float(verdict.passed)}
    (LOGS / "reward.json").write_text(json.dumps(rewards), encoding="utf-8")
    for path, reason in refused.items():
        print(f"{path}: {reason}")
    for check in verdict.checks:
        print(f"{check.score:.2f} {check.name}: {check.evidence}")


def _report(verdict: Any, began: float, ended: float) -> dict[str, Any]:
    """The checks as a CTRF report."""
    tests = [
        {
            "name": check.name,
            "status": "passed" if check.score == 1.0 else "failed",
            "duration": 0,
            "message": f"{check.score:g}: {check.evidence}",
        }
        for check in verdict.checks
    ]
    passed = sum(test["status"] == "passed" for test in tests)
    summary = {"tests": len(tests), "passed": passed, "failed": len(tests) - passed, "pending": 0, "skipped": 0}
    summary |= {"other": 0, "start": int(began * 1000), "stop": int(ended * 1000)}
    return {"results": {"tool": {"name": "metier"}, "summary": summary, "tests": tests}}


if __name__ == "__main__":
    main()
