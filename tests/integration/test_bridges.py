"""Bridges in the real world: other people's tasks in real containers, and ours before other people's programs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from metier.envs.bridges.rewards import summarised
from metier.envs.core import GenerationError
from metier.harness.bridges import ExportSettings, Unfit, export_task
from metier.harness.bridges.dataset import content_digest
from metier.images import recipe
from peers import TERMINAL_BENCH, files_of, harbor

FIXTURES = Path(__file__).parents[1] / "fixtures"
FOREIGN = FIXTURES / "foreign"
EXPORTED = (
    "terminal/PyMutationRepair-v0",
    "finance/CovenantTest-v0",
    "terminal/GitSecretPurge-v0",
    "cad/BracketFromSpec-v0",
    "blender/SceneFromBrief-v0",
)


def played(folder: Path, *policies: str) -> dict[str, Any]:
    """What `play_folder.py` says of the tasks in a folder."""
    command = [sys.executable, str(FIXTURES / "play_folder.py"), str(folder), *policies]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.docker
def test_harbor_tasks_are_solved_by_their_solution_and_by_nothing_else() -> None:
    said = played(FOREIGN / "harbor", "oracle", "noop", "mutants", "echo 13 > /sums/total.txt", "echo 12 >/sums/x")
    hello, total = said["played"]["harbor/AcmeHelloFile-v0"], said["played"]["harbor/AcmeSumColumn-v0"]
    for one in (hello, total):
        assert {name: (each["outcome"], each["failure"]) for name, each in one.items()} == dict.fromkeys(
            one, ("completed", "")
        )
        assert (one["oracle"]["reward"], one["oracle"]["passed"]) == (1.0, True), one["oracle"]
        assert [name for name, each in one.items() if each["passed"]] == ["oracle"]
    assert {name for name, each in hello.items() if each["reward"] > 0} == {"oracle"}
    assert total["echo 13 > /sums/total.txt"]["reward"] == 0.25, "tests decide the reward, and see the artefact only"
    assert any("Ubuntu" in note for note in said["notes"]) and any("internet" in note for note in said["notes"])


@pytest.mark.slow
@pytest.mark.docker
def test_a_terminal_bench_task_is_graded_by_its_parser_without_the_network_it_asks_for() -> None:
    endless = "mkdir -p /app && ln -s /dev/zero /app/count.txt"
    said = played(FOREIGN / "terminal-bench", "oracle", "noop", "mutants", "echo 5 > /app/count.txt", endless)
    words = said["played"]["terminal-bench/WordCount-v0"]
    assert (words["oracle"]["reward"], words["oracle"]["passed"]) == (1.0, True), words["oracle"]
    assert [name for name, each in words.items() if each["passed"]] == ["oracle"]
    assert {each["outcome"] for each in words.values()} == {"completed"}, "nothing of it is a failure of ours"
    wrong = words["echo 5 > /app/count.txt"]
    assert wrong["reward"] == 0.0 and "1 of 2 tests passed" in wrong["checks"][0]
    assert any("pytest==8.4.1" in note for note in said["notes"])


@pytest.mark.slow
@pytest.mark.docker
def test_a_base_that_the_engine_holds_is_used_as_it_is(tmp_path: Path) -> None:
    held = recipe("terminal-python").tag
    task = Path(shutil.copytree(FOREIGN / "harbor" / "hello-file", tmp_path / "hello-file"))
    dockerfile = task / "environment" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("ubuntu:24.04", held))
    said = played(task, "oracle", "noop", "python3 -c 'import pytest' && cp /app/wanted.txt /app/greeting.txt")
    ((_, each),) = said["played"].items()
    assert [one["passed"] for one in each.values()] == [True, False, False], each
    assert not any("FROM" in note for note in said["notes"]), "nothing was replaced"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An instance of several families each, as task folders."""
    folder = tmp_path_factory.mktemp("exported")
    for env_id in EXPORTED:
        settings = ExportSettings(env_id=env_id, seed=3, level=1)
        assert export_task(settings, folder / env_id.replace("/", "-")).notes
    return folder


LOAD = """
import json, sys
from pathlib import Path
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition
from harbor.publisher.packager import Packager
said = {}
for path in map(Path, sys.argv[1:]):
    task = Task(path)
    tests = resolve_verifier_environment_definition(task.config, task.paths)
    said[path.name] = {
        "valid": Task.is_valid_dir(path), "name": task.name, "user": task.config.agent.user,
        "network": task.config.environment.network_mode.value, "bundled": bool(tests and tests.bundled_tests),
        "memory": task.config.environment.memory_mb, "instruction": task.instruction,
        "digest": Packager.compute_content_hash(path)[0],
    }
print(json.dumps(said))
"""


@pytest.mark.slow
def test_harbor_itself_loads_and_lints_what_is_exported(exported: Path) -> None:
    python = harbor()
    if python is None:
        pytest.skip("harbor needs Python 3.12, and there is none on this machine")
    folders = sorted(map(str, exported.iterdir()))
    others = [str(FOREIGN / "harbor" / name) for name in ("hello-file", "sum-column")]
    environment = {**os.environ, "HARBOR_TELEMETRY": "0"}
    run: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "env": environment}
    done = subprocess.run([str(python), "-c", LOAD, *folders, *others], **run)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert len(said) == len(EXPORTED) + 2
    for path in folders:
        task = said[Path(path).name]
        assert (task["valid"], task["user"], task["network"], task["bundled"]) == (True, "agent", "no-network", True)
        assert task["name"].startswith("metier/") and task["name"].endswith("-level-1-seed-3")
        assert "/workspace" in task["instruction"]
    for path in (*folders, *others):
        assert content_digest(Path(path)) == said[Path(path).name]["digest"], "as a dataset's manifest names it"
    lint = [str(python), "-c", "import typer; from harbor.cli.lint import lint_command; typer.run(lint_command)"]
    linted = subprocess.run([*lint, *folders], **run)
    assert (linted.returncode, linted.stdout.strip()) == (0, ""), linted.stdout + linted.stderr
    spoilt = shutil.copytree(folders[0], exported.parent / "spoilt")
    (spoilt / "instruction.md").unlink()
    linted = subprocess.run([*lint, str(spoilt)], **run)
    assert linted.returncode == 1 and "instruction" in linted.stdout, "it does look"


PARSE = """
import json, sys, types
for name in ("terminal_bench", "terminal_bench.utils"):  # without what their own __init__ imports: every agent
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [f"{sys.argv[1]}/{name.replace('.', '/')}"]
from terminal_bench.parsers.pytest_parser import PytestParser
said = PytestParser().parse(sys.stdin.read())
print(json.dumps({name: status.value == "passed" for name, status in said.items()}))
"""
OUTPUT = """\
=========================== short test summary info ============================
PASSED ../tests/t.py::test_a
PASSED ../tests/t.py::test_d[a b]
FAILED ../tests/t.py::test_b[1-2] - AssertionError: assert 1 == 2
FAILED ../tests/t.py::test_e
ERROR ../tests/t.py::test_c
XFAIL ../tests/t.py::test_f
XPASS ../tests/t.py::test_g
========================= 1 failed, 1 passed in 0.1s ==========================
"""


@pytest.mark.slow
def test_terminal_benchs_own_parser_reads_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARSE, str(files_of(TERMINAL_BENCH))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, input=OUTPUT)
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = json.loads(done.stdout.splitlines()[-1])
    assert summarised(OUTPUT) == theirs and len(theirs) == 7


@pytest.mark.slow
@pytest.mark.docker
def test_an_exported_instance_comes_back_and_is_graded_as_before(tmp_path: Path) -> None:
    settings = ExportSettings(env_id="finance/CovenantTest-v0", seed=5, level=1)
    export_task(settings, tmp_path / "covenant")
    said = played(tmp_path, "oracle", "noop", "echo 'ratio=1.00 pass' > /workspace/answer")
    ((env_id, each),) = said["played"].items()
    assert env_id == "harbor/MetierFinanceCovenantTestV0Level1Seed5-v0"
    assert (each.pop("oracle")["passed"], [one["passed"] for one in each.values()]) == (True, [False, False])
    assert {one["outcome"] for one in each.values()} == {"completed"}
    assert any("missing" in check or "answer" in check for check in each["noop"]["checks"]), each["noop"]


def test_what_cannot_be_exported_honestly_is_refused(tmp_path: Path) -> None:
    from metier.harness.bridges import CannotExport
    from metier.harness.bridges.exporting import _refuse
    from metier.harness.prepare import Task, generate

    made = generate(Task(env_id="finance/CovenantTest-v0", seed=0))
    image = recipe("terminal-python")
    changed = made.entry.model_copy(update={"requires": ("allowlist",)})
    with pytest.raises(CannotExport) as refused:
        _refuse(changed, made.family, made.instance, image)
    assert refused.value.reason is Unfit.REQUIRES
    with pytest.raises((ValueError, GenerationError), match="levels 0 to 4"):
        export_task(ExportSettings(env_id="finance/CovenantTest-v0", level=9), tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(ValueError, match="is there already"):
        export_task(ExportSettings(env_id="finance/CovenantTest-v0"), tmp_path)
