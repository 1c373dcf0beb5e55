"""`metier demo` interrupted in each of its phases, on a model that is tiny and random: it says so, and leaves nothing.

With everything real: vLLM, Ray and its workers, sandboxes, training threads.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from metier.harness.sandbox.docker import answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.owner import OWNER
from metier.images import docker_tag
from metier.trainer import models
from process_table import alive, descendants
from waiting import patience, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.docker,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("vllm", "ray", "torch")), reason="takes vLLM and Ray"
    ),
]

ENV = "finance/CovenantTest-v0"
PLAN: dict[str, Any] = {
    "tour": [{"id": ENV}],
    "tasks": [{"id": ENV}],
    "seeds": {"sft": 0, "grpo": 100000, "control": 200000, "held_out": 300000},
    "evaluation": {"episodes": 1, "base_episodes": 1},
    "sft": {"episodes": 400, "batch": 2},
    "grpo": {"steps": 15, "prompts": 4, "samples": 2},
    "backend": "docker",
    "in_flight": 4,
    "context_tokens": 1024,
    "max_turn_tokens": 16,
}
UP_S = 240.0
ENDS_S = 15.0
GONE_S = 3.0
SHM = "/dev/shm/"

WORD = {
    "tour": "Oracle episodes in five trades",
    "engine": "Starting the engine",
    "evaluation": "Evaluation on held-out seeds",
    "sft": "SFT updates",
    "grpo": "GRPO: 15 steps",
}


@dataclass(frozen=True, slots=True)
class Demo:
    """One run of the command, and what only it has."""

    process: subprocess.Popen[bytes]
    out: Path
    temporary: Path

    def said(self) -> str:
        return (self.out / "said").read_text()

    def left(self) -> list[Path]:
        """All but torch's own cache, one for all runs of a user, which no setting puts elsewhere."""
        return [path for path in self.temporary.iterdir() if not path.name.startswith("torchinductor_")]

    def reached(self, where: str) -> bool:
        if where == "restart":  # in the tuned environment, where it first imports for seconds
            return b"METIER_TUNED" in Path(f"/proc/{self.process.pid}/environ").read_bytes()
        if where == "Ray":
            return any(self.temporary.glob("metier-ray-*"))
        return WORD[where] in self.said()


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    model = models.tiny(folder / "model")
    (folder / "plan.yaml").write_text(yaml.safe_dump({**PLAN, "model": str(model)}))
    return folder / "plan.yaml"


@pytest.fixture
def temporary() -> Iterator[Path]:
    """With a short name, since Ray's sockets in it have long ones."""
    with tempfile.TemporaryDirectory(prefix="mt-") as folder:
        yield Path(folder)


def start(plan: Path, folder: Path, temporary: Path) -> Demo:
    home = folder / "home"
    for each in (home, folder / "out"):
        each.mkdir()
    settings = {"METIER_HOME": str(home), "TMPDIR": str(temporary), "COLUMNS": "200"}
    with (folder / "out" / "said").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "metier.cli", "demo", "--plan", str(plan), "--out", str(folder / "out")],
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    return Demo(process, folder / "out", temporary)


def shared_memory(pids: Collection[int]) -> list[Path]:
    """Files of it that those processes have mapped or open."""
    found: set[str] = set()
    for pid in pids:
        with suppress(OSError):  # it has ended meanwhile
            found |= {line.split()[-1] for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if SHM in line}
            found |= {path for each in Path(f"/proc/{pid}/fd").iterdir() if SHM in (path := os.readlink(each))}
    return [Path(path) for path in found if Path(path).exists()]


async def containers(pids: Collection[int]) -> list[str]:
    """What those processes own."""
    filters = json.dumps({"label": [OWNER]})
    listed = await Engine(socket_path()).checked("GET", "/containers/json", query={"all": "1", "filters": filters})
    return [each["Id"] for each in listed if int(each["Labels"][OWNER].partition(":")[0]) in pids]


SIGNALS = {"Ctrl-C": [signal.SIGINT], "Ctrl-C twice": [signal.SIGINT, signal.SIGINT], "SIGTERM": [signal.SIGTERM]}
CASES = [
    ("restart", 0.0, "SIGTERM"),
    ("restart", 5.0, "Ctrl-C"),
    ("tour", 0.0, "Ctrl-C"),
    ("engine", 5.0, "Ctrl-C twice"),
    ("Ray", 1.0, "Ctrl-C"),
    ("Ray", 0.0, "SIGTERM"),
    ("evaluation", 1.0, "Ctrl-C twice"),
    ("sft", 0.5, "Ctrl-C"),
    ("grpo", 1.0, "SIGTERM"),
]
"""Where it is, for how long, and what comes then."""


@pytest.mark.parametrize(("where", "for_s", "signals"), CASES)
async def test_an_interrupted_demo_leaves_nothing(
    plan: Path, tmp_path: Path, temporary: Path, where: str, for_s: float, signals: str
) -> None:
    if not await answers() or not await Engine(socket_path()).has_image(docker_tag("terminal-python")):
        pytest.skip("takes a Docker engine, and: metier images build terminal-python")
    demo = start(plan, tmp_path, temporary)
    try:
        until(lambda: demo.process.poll() is not None or demo.reached(where), UP_S, demo.said)
        assert demo.process.poll() is None, demo.said()
        time.sleep(for_s)
        family = descendants(demo.process.pid)
        shared = shared_memory({demo.process.pid, *family})
        began = time.monotonic()
        for number, each in enumerate(SIGNALS[signals]):
            time.sleep(0.3 if number else 0)
            os.killpg(demo.process.pid, each)
        until(lambda: demo.process.poll() is not None, ENDS_S, demo.said)
        took_s = time.monotonic() - began
    finally:
        if demo.process.poll() is None:
            os.killpg(demo.process.pid, signal.SIGKILL)
        demo.process.wait()
    said = demo.said()
    print(f"{where}, {signals}: ended after {took_s:.1f} s with {demo.process.returncode}\n{said}")
    assert demo.process.returncode == 128 + SIGNALS[signals][0]
    assert "Traceback" not in said
    words = "".join(said.splitlines())
    # after the restart it imports for a while: how far it has come in a given time is the machine's affair
    assert "stopped; what was found until then is in" in words or (
        where == "restart" and "metier: interrupted" in words
    )
    until(lambda: alive(family) == [], GONE_S, lambda: alive(family))
    began = time.monotonic()
    while left := await containers({demo.process.pid, *family}):
        assert time.monotonic() - began < GONE_S * patience(), left
    until(lambda: demo.left() == [], GONE_S, demo.left)
    assert [path for path in shared if path.exists()] == []
