"""The command line: what a person types wrong is answered in one line with exit code 2, and `--json` is JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from metier.envs import registry


def metier(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from metier.cli import main; sys.argv[0] = 'metier'; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_ls_lists_every_environment_as_json() -> None:
    done = metier("ls", "--all", "--json")
    assert done.returncode == 0, done.stderr
    ours = registry.sources()[registry.registry_path()]  # tests add registries of their own to this process
    assert [entry["id"] for entry in json.loads(done.stdout)][: len(ours)] == ours


def test_info_shows_the_brief_of_an_instance() -> None:
    done = metier("info", "finance/CovenantTest-v0", "--level", "1", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["brief"]
    assert shown["artefacts"] == ["answer"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("info", "finance/CovenantTset-v0"), "did you mean finance/CovenantTest-v0"),
        (("info", "finance/CovenantTest-v0", "--level", "7"), "has levels 0 to 4, not 7"),
        (("info", "finance/CovenantTest-v0", "--seed", "-1"), "a seed is an integer from 0"),
        (("play", "finance/CovenantTest-v0", "--policy", "oracel"), "did you mean oracle"),
        (("play", "finance/CovenantTest-v0", "--policy", "oracle", "--backend", "dokcer"), "did you mean 'docker'"),
        (("demo", "--plan", "nowhere.yaml"), "cannot read the plan nowhere.yaml"),
        (("models", "get", "smollm3"), "smollm2-135m"),
        (("images", "build", "blendr"), "blender"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(arguments: tuple[str, ...], words: str) -> None:
    done = metier(*arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_new_family_keeps_the_contract_and_the_style(tmp_path: Path) -> None:
    package = tmp_path / "acme_tasks"
    package.mkdir()
    (package / "__init__.py").touch()
    done = metier("new", "acme/InvoiceMatch", "--into", str(package), "--json")
    assert done.returncode == 0, done.stderr
    assert (package / "invoice_match" / "instruction.md").is_file()
    again = metier("new", "acme/InvoiceMatch", "--into", str(package))
    assert again.returncode == 2 and "is there already" in again.stderr
    code = """
import asyncio, metier
from metier.harness.testing import FAMILY, Specimen, run_suite
metier.register_environments("acme_tasks/registry.yaml")
outcomes = asyncio.run(run_suite(FAMILY, Specimen.of("acme/InvoiceMatch-v0")))
assert all(one.held for one in outcomes), [one for one in outcomes if not one.held]
"""
    held = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert held.returncode == 0, held.stderr
    settings = Path(__file__).parents[2] / "pyproject.toml"
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--config", str(settings), str(package)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_help_has_examples() -> None:
    for command in (("ls",), ("info",), ("play",), ("certify",), ("demo",), ("images", "build"), ("models", "get")):
        done = metier(*command, "--help")
        assert done.returncode == 0
        assert "Example" in done.stdout, command
