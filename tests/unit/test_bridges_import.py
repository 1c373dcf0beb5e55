"""Importing: what a package of tasks is, when it is another one, and what a dataset's manifest decides."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from metier.envs.bridges import Reason, TaskRefused
from metier.envs.core import ConfigError
from metier.harness.bridges import Imported, ImportSettings, import_tasks, looks_like_tasks
from metier.harness.bridges.dataset import content_digest
from metier.harness.bridges.naming import camel
from metier.images.dockerfile import parse

FOREIGN = Path(__file__).parents[1] / "fixtures" / "foreign"
ALONE = ImportSettings(present=lambda _: None)
"""Whatever the engine of this machine holds."""


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("METIER_HOME", str(tmp_path / "home"))
    return Path(shutil.copytree(FOREIGN, tmp_path / "dataset"))


def entries(imported: Imported) -> list[dict[str, Any]]:
    return yaml.safe_load(imported.registry.read_text())


def test_a_dataset_becomes_a_package_of_environments(dataset: Path) -> None:
    imported = import_tasks(dataset, None, ALONE)
    ids = ["harbor/AcmeHelloFile-v0", "harbor/AcmeSumColumn-v0", "terminal-bench/WordCount-v0"]
    assert list(imported.environments) == ids == [entry["id"] for entry in entries(imported)]
    assert not imported.refused and len(imported.images) == 5
    for image in imported.images:
        steps = parse(imported.registry.parent / "images" / image / "Dockerfile")
        assert steps[0].value.startswith("metier/")
    module = entries(imported)[0]["entry_point"].partition(".")[0]
    assert (imported.registry.parents[1] / module / "tests" / "test.sh").is_file()
    assert list((imported.registry.parent / "images").rglob("test.sh")), "of the verifier that has its own image"
    agents = [entry["image"] for entry in entries(imported)]
    for image in agents:
        held = list((imported.registry.parent / "images" / image).rglob("*"))
        assert not [path for path in held if path.name in ("test.sh", "solve.sh", "solution.sh", "run-tests.sh")]
    assert all(notes for notes in imported.environments.values())


def test_the_same_tasks_are_imported_once_and_edited_ones_are_others(dataset: Path) -> None:
    first = import_tasks(dataset, None, ALONE)
    assert import_tasks(dataset, None, ALONE).registry == first.registry
    images = {entry["id"]: entry["image"] for entry in entries(first)}
    test = dataset / "harbor" / "hello-file" / "tests" / "test.sh"
    test.write_text(test.read_text() + "# edited\n")
    second = import_tasks(dataset, None, ALONE)
    assert second.registry != first.registry
    assert {entry["id"]: entry["image"] for entry in entries(second)} == images, "tests are in no agent's image"
    (dataset / "harbor" / "hello-file" / "environment" / "README.md").write_text("other")
    third = {entry["id"]: entry["image"] for entry in entries(import_tasks(dataset, None, ALONE))}
    assert {env_id for env_id, image in third.items() if image != images[env_id]} == {"harbor/AcmeHelloFile-v0"}


PLANNED = """
import json, sys
from metier.harness.evaluate.selection import Asked, select
from metier.envs.registry import NAMED
import os
chosen = select(Asked(names=[sys.argv[1]]))
print(json.dumps({
    "digests": {one.id: one.digest for one in chosen.environments}, "notes": chosen.notes, "images": chosen.images,
    "seeds": [one.seeds.total for one in chosen.environments], "named": os.environ[NAMED],
}))
"""
USED = """
import gymnasium, metier
from metier.harness.certify import environment_digest
from metier.envs import registry
env = gymnasium.make("harbor/AcmeHelloFile-v0", backend="fake")
print(env.spec.id, environment_digest(registry.get("harbor/AcmeHelloFile-v0")))
"""


def test_a_folder_is_planned_by_its_content_and_later_processes_find_it(dataset: Path) -> None:
    def planned() -> dict[str, Any]:
        command = [sys.executable, "-c", PLANNED, str(dataset / "harbor")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    first = planned()
    assert first["seeds"] == [1, 1] and any("internet" in note for note in first["notes"])
    environment = os.environ | {"METIER_REGISTRIES": first["named"]}
    done = subprocess.run([sys.executable, "-c", USED], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["harbor/AcmeHelloFile-v0", first["digests"]["harbor/AcmeHelloFile-v0"]]
    solution = dataset / "harbor" / "sum-column" / "solution" / "solve.sh"
    solution.write_text(solution.read_text() + "# edited\n")
    second = planned()["digests"]
    assert {env_id for env_id in second if second[env_id] != first["digests"][env_id]} == {"harbor/AcmeSumColumn-v0"}


def test_what_is_refused_leaves_the_others(dataset: Path) -> None:
    config = dataset / "harbor" / "hello-file" / "task.toml"
    config.write_text(config.read_text().replace("[environment]", "[environment]\ngpus = 2", 1))
    dockerfile = dataset / "terminal-bench" / "word-count" / "Dockerfile"
    dockerfile.write_text("FROM python:3.13-slim\n")
    imported = import_tasks(dataset, None, ALONE)
    assert list(imported.environments) == ["harbor/AcmeSumColumn-v0"]
    assert {one.task: one.reason for one in imported.refused} == {
        "acme/hello-file": Reason.ACCELERATOR,
        "word-count": Reason.BASE_UNAVAILABLE,
    }
    assert any("docker pull python:3.13-slim" in line for line in imported.told())
    with pytest.raises(TaskRefused, match="GPU"):
        import_tasks(dataset / "harbor" / "hello-file", None, ALONE)
    chosen = ImportSettings(substitutes={"python:3.13-slim": "terminal-python"}, present=lambda _: None)
    assert "terminal-bench/WordCount-v0" in import_tasks(dataset, None, chosen).environments


def test_tests_that_fetch_are_refused(dataset: Path) -> None:
    script = dataset / "terminal-bench" / "word-count" / "run-tests.sh"
    script.write_text("wget https://example.org/expected.json\npytest\n")
    with pytest.raises(TaskRefused, match=r"expected\.json") as refused:
        import_tasks(dataset / "terminal-bench", None, ALONE)
    assert refused.value.reason is Reason.NETWORK


def test_a_manifest_decides_which_content_is_meant(dataset: Path) -> None:
    folder = dataset / "harbor"
    digests = {name: content_digest(folder / name) for name in ("hello-file", "sum-column")}
    lines = ['[dataset]\nname = "acme/all"\n']
    for name, digest in (*digests.items(), ("gone", "0" * 64)):
        lines.append(f'[[tasks]]\nname = "acme/{name}"\ndigest = "sha256:{digest}"\n')
    (folder / "dataset.toml").write_text("\n".join(lines))
    imported = import_tasks(folder, None, ALONE)
    assert len(imported.environments) == 2 and any("acme/gone: named by" in note for note in imported.notes)
    (folder / "hello-file" / "instruction.md").write_text("Do nothing.")
    imported = import_tasks(folder, None, ALONE)
    assert list(imported.environments) == ["harbor/AcmeSumColumn-v0"]
    assert [one.reason for one in imported.refused] == [Reason.DIGEST]
    for broken in ("[[tasks]]\nname = 1", "tasks = 3", "not toml", "[[tasks]]\n"):
        (folder / "dataset.toml").write_text(broken)
        if broken != "[[tasks]]\nname = 1":
            with pytest.raises(ConfigError, match=r"dataset\.toml"):
                import_tasks(folder, None, ALONE)


def test_two_tasks_never_share_an_id(dataset: Path) -> None:
    shutil.copytree(dataset / "harbor" / "hello-file", dataset / "harbor" / "z-copy")
    imported = import_tasks(dataset / "harbor", None, ALONE)
    assert len(imported.environments) == 2
    assert ["AcmeHelloFile" in one.message for one in imported.refused] == [True]


def test_a_package_of_ones_own_is_made_once(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    imported = import_tasks(dataset, out, ALONE)
    assert imported.registry.is_relative_to(out) and (out / "pyproject.toml").is_file()
    with pytest.raises(ConfigError, match="is there already"):
        import_tasks(dataset, out, ALONE)


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_a_folder_without_tasks_is_a_mistake_told_in_words(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"no folder|no task in it"):
        import_tasks(tmp_path / name, None, ALONE)


def test_names_of_environments_are_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terminal").mkdir()
    (tmp_path / "smoke-v0").mkdir()
    assert not looks_like_tasks("terminal/PyMutationRepair-v0") and not looks_like_tasks("smoke-v0")
    assert looks_like_tasks(str(FOREIGN)) and looks_like_tasks("./terminal")


@pytest.mark.parametrize("name", ["a/b-c", "9-lives", "x", "A.b_C/d"])
def test_ids_follow_the_grammar(name: str) -> None:
    import re

    from metier.envs.registry_file import ID_PATTERN

    assert re.match(ID_PATTERN, f"harbor/{camel(name)}-v0")


def metier(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "metier.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)


def test_the_commands_say_what_is_not_carried(dataset: Path, tmp_path: Path) -> None:
    (dataset / "harbor" / "sum-column" / "tests" / "test.sh").unlink()
    (dataset / "harbor" / "sum-column" / "tests" / "Dockerfile").unlink()
    done = metier("bridge", "import", str(dataset), "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [(one["task"], one["reason"]) for one in said["refused"]] == [("acme/sum-column", "damaged")]
    assert all(said["environments"].values()) and Path(said["registry"]).is_file()
    shown = metier("info", "harbor/AcmeHelloFile-v0", "--json", METIER_REGISTRIES=said["registry"])
    assert shown.returncode == 0 and "/app/greeting.txt" in json.loads(shown.stdout)["brief"], shown.stderr
    out = tmp_path / "task"
    done = metier("bridge", "export", "terminal/PyMutationRepair-v0", "--out", str(out), "--org", "acme", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["name"].startswith("acme/") and said["notes"]
    assert (out / "tests" / "bundle" / "metier" / "envs" / "core" / "family.py").is_file()
    assert not list(out.rglob("certificate.json")), "what vouches for us is not theirs"
    held = b"".join(path.read_bytes() for path in (out / "environment").rglob("*") if path.is_file())
    assert b"instance.json" not in held and b"family" not in held


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("import", "nowhere"), "nowhere is no folder"),
        (("import", str(FOREIGN), "--base", "python"), "write it as"),
        (("export", "terminal/PyMutationRepare-v0", "--out", "nowhere"), "did you mean"),
        (("export", "terminal/PyMutationRepair-v0", "--out", "nowhere", "--org", "a b"), "--org"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = metier("bridge", *arguments, METIER_HOME=str(tmp_path))
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done.stderr
