"""The registry: what is wrong is named with its file and line, and near misses are suggested."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import gymnasium
import jsonschema
import pytest
import yaml

import metier
from metier.envs import registry, registry_file
from metier.envs.core import Artefact, ConfigError, Family, GenerationError, Instance, instance_rng
from metier.harness.blame import blamed

GOOD = """\
- id: terminal/Good-v0
  entry_point: metier.envs.terminal.good:Good
  summary: A good one
  image: terminal-python
  tools: [shell]
"""


def entries(tmp_path: Path, text: str) -> dict[str, registry.RawEntry]:
    path = tmp_path / "registry.yaml"
    path.write_text(text)
    return registry.read(path)


def test_every_entry_is_valid_and_registered_with_gymnasium() -> None:
    ours = registry.sources()[registry.registry_path()]  # other tests may have added theirs, and not registered them
    assert ours
    for env_id in ours:
        assert registry.get(env_id).id == env_id
        assert env_id in gymnasium.registry


def test_unknown_id_suggests_the_near_miss() -> None:
    with pytest.raises(ConfigError, match="did you mean terminal/PyMutationRepair-v0"):
        registry.get("terminal/PyMutationRepare-v0")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- id: nonsense\n", "registry.yaml:1.*must look like"),
        (GOOD + "- id: terminal/good-v0\n", "registry.yaml:6.*must look like"),
        (GOOD + GOOD, r"registry.yaml:6: terminal/Good-v0 is already defined at .*registry.yaml:1"),
        ("a: b\n", "is a list"),
        ("- [\n", "registry.yaml:2: not YAML"),
        (GOOD + "- terminal/Good-v1\n", "registry.yaml:6.*must look like"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        entries(tmp_path, text)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("  levls: 5\n", r"registry.yaml:6: test/Wrong-v0: levls: no such field \(did you mean levels"),
        ("  limits: {stepz: 5}\n", r"registry.yaml:6: test/Wrong-v0: limits.stepz: no such field \(did you mean steps"),
        ("  license: !mine x\n", r"registry.yaml:1: test/Wrong-v0: .*'!mine'"),
        ("  license: 2026-13-45\n", r"registry.yaml:1: test/Wrong-v0: month must be"),
        ("  levels: none\n", r"registry.yaml:6.*levels.*integer"),
        ("  tags: [a]\n  limits:\n    agent_s: 5\n    steps: 0\n", r"registry.yaml:9.*limits.steps"),
        ("  tools: [shell, hammer]\n", r"registry.yaml:5.*tools.1"),
        ("  requires: [teleport]\n", r"registry.yaml:6.*requires.0"),
        ("  summary: Twice\n", r"registry.yaml:6.*summary is given twice"),
        ("  levls: 5\n  levels: 0\n", r"registry.yaml:6.*levls.*; .*registry.yaml:7.*levels"),
    ],
)
def test_a_wrong_field_is_refused_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    text = GOOD.replace("  tools: [shell]\n", "") if line.startswith("  tools") else GOOD
    raw = entries(tmp_path, text.replace("terminal/Good", "test/Wrong") + line)["test/Wrong-v0"]
    # a field that is wrong is found among the problems, wherever pydantic lists it
    with pytest.raises(ConfigError) as caught:
        registry.validated(raw)
    parts = sorted(str(caught.value).split("; "))
    assert re.search(words, "; ".join(parts)), parts


def test_a_missing_field_is_named_at_its_entry(tmp_path: Path) -> None:
    raw = entries(tmp_path, GOOD.replace("  image: terminal-python\n", ""))["terminal/Good-v0"]
    with pytest.raises(ConfigError, match=r"registry.yaml:1: terminal/Good-v0: image: Field required"):
        registry.validated(raw)


def test_our_own_file_keeps_to_the_known_domains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "registry.yaml"
    monkeypatch.setattr(registry_file, "registry_path", lambda: own)
    own.write_text(GOOD.replace("terminal/", "terminl/"))
    with pytest.raises(ConfigError, match=r"registry.yaml:1: terminl/Good-v0 has no known domain"):
        registry.read(own)
    other = tmp_path / "other.yaml"
    other.write_text(GOOD.replace("terminal/", "acme/"))
    assert list(registry.read(other)) == ["acme/Good-v0"]


def test_the_schema_takes_our_registry_and_refuses_what_we_refuse() -> None:
    file = yaml.safe_load(registry.registry_path().read_text())
    entry, suite = file["environments"][0], file["suites"][0]
    validator = jsonschema.Draft202012Validator(registry.schema())
    for right in (file, file["environments"], {"suites": file["suites"]}, []):
        assert list(validator.iter_errors(right)) == []
    for change in ({"levls": 5}, {"levels": 0}, {"tools": ["hammer"]}, {"id": "nonsense"}, {"limits": {"steps": 0}}):
        assert list(validator.iter_errors([entry | change])), change
        assert list(validator.iter_errors({"environments": [entry | change]})), change
    for change in ({"levles": "all"}, {"levels": []}, {"suite": "nonsense"}, {"public_seeds": 5}, {"domains": "some"}):
        assert list(validator.iter_errors({"suites": [suite | change]})), change
    assert list(validator.iter_errors({"environment": []}))


def test_every_field_of_every_place_is_found() -> None:
    path = registry.registry_path()
    lines = path.read_text().splitlines()
    for env_id, raw in registry.read(path).items():
        assert raw.place() == f"registry.yaml:{lines.index(f'- id: {env_id}') + 1}"
        for name in raw.fields():
            line = int(raw.place(name).rpartition(":")[2])
            assert f"{name}:" in lines[line - 1]


def test_a_taken_id_is_refused_from_another_file(tmp_path: Path) -> None:
    path = tmp_path / "more.yaml"
    path.write_text(GOOD.replace("terminal/Good-v0", registry.ids()[0]))
    with pytest.raises(ConfigError, match="already defined at registry"):
        metier.register_environments(path)


def test_unknown_options_and_levels_are_refused_before_any_sandbox() -> None:
    env_id = registry.ids()[0]
    with pytest.raises(ConfigError, match="unknown option"):
        gymnasium.make(env_id, colour="red")
    with pytest.raises(ConfigError, match="has levels 0 to 4, not 9"):
        gymnasium.make(env_id, level=9)
    with pytest.warns(UserWarning, match="hologram"), pytest.raises(ConfigError, match="render_mode"):
        gymnasium.make(env_id, render_mode="hologram")


PLUGIN = """\
- id: acme/Plugged-v0
  entry_point: acme_tasks.plugged.family:Plugged
  summary: From another package
  image: terminal-python
  tools: [shell]
"""


def plug(folder: Path, text: str, value: str = "acme_tasks") -> dict[str, str]:
    """A package on the path, installed as far as its metadata goes; the environment variables to see it."""
    package, info = folder / "acme_tasks", folder / "acme_tasks-1.dist-info"
    for made in (package, info):
        made.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('reading a registry imports nothing')")
    (package / "registry.yaml").write_text(text)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tasks\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\nacme = {value}\n")
    return os.environ | {"PYTHONPATH": str(folder)}


def run(code: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)


def test_installed_packages_add_their_registries(tmp_path: Path) -> None:
    code = (
        "import gymnasium, metier; from metier.envs import registry; "
        "print('acme/Plugged-v0' in registry.ids(), 'acme/Plugged-v0' in gymnasium.registry)"
    )
    done = run(code, plug(tmp_path, PLUGIN))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True True\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("text", "value", "words"),
    [
        (
            PLUGIN.replace("acme/Plugged-v0", "finance/CovenantTest-v0"),
            "acme_tasks",
            "already defined at registry.yaml",
        ),
        ("nonsense", "acme_tasks", r"acme_tasks/registry.yaml:1: a registry is a list"),
        (PLUGIN, "acme_tusks", "no package acme_tusks"),
        (PLUGIN, "acme_tasks:other.yaml", "cannot read the registry .*other.yaml"),
    ],
)
def test_a_wrong_registry_of_another_package_is_left_out(tmp_path: Path, text: str, value: str, words: str) -> None:
    code = (
        "import metier; from metier.envs import registry; "
        "print(*registry.sources()[registry.registry_path()], registry.problems())"
    )
    done = run(code, plug(tmp_path, text, value))
    assert done.returncode == 0, done.stderr
    ours = list(registry.read(registry.registry_path()))
    assert done.stdout.split()[: len(ours)] == ours and "acme/Plugged-v0" not in done.stdout
    assert re.search(words, done.stdout), done.stdout
    assert "UserWarning" in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [("  levls: 5\n", "registry.yaml:6: acme/Plugged-v0: levls: no such field"), ("  license: !x y\n", "'!x'")],
)
def test_a_wrong_entry_of_another_package_leaves_the_others_listed(tmp_path: Path, line: str, words: str) -> None:
    good = PLUGIN.replace("acme/Plugged", "acme/Good")
    environment = plug(tmp_path, PLUGIN + line + good)
    command = "import sys; from metier.cli import main; sys.argv[1:] = {}; main()"
    listed = run(command.format(["ls", "--all", "--json"]), environment)
    assert listed.returncode == 0, listed.stderr
    ids = [entry["id"] for entry in json.loads(listed.stdout)]
    assert "acme/Good-v0" in ids and "acme/Plugged-v0" not in ids
    assert set(registry.read(registry.registry_path())) < set(ids)
    assert "UserWarning" in listed.stderr and words in listed.stderr
    asked = run(command.format(["info", "acme/Plugged-v0"]), environment)
    assert asked.returncode == 2 and words in asked.stderr
    seen = "import importlib; found = next(importlib.import_module('metier.cli.doctor')._registries())"
    told = run(f"{seen}; print(found.state, found.seen)", environment)
    assert told.stdout.startswith("warning") and words in told.stdout, told.stderr


def test_a_wrong_entry_of_ours_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "registry.yaml"
    own.write_text(GOOD + "  levls: 5\n")
    known = registry._Known(registry.read(own), [])
    monkeypatch.setattr(registry, "registry_path", lambda: own)
    monkeypatch.setattr(registry, "_known", lambda: known)
    with pytest.raises(ConfigError, match=r"registry.yaml:6.*no such field"):
        registry.entries()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Add {{ numbr }}.", "instruction.md:1: 'numbr' is undefined; it may use level, number"),
        ("Add\n{% if %}", "instruction.md:2: Expected an expression"),
        ("Add\n\n{{ 1 / 0 }}", "instruction.md:3: division by zero"),
        (None, "cannot read the brief .*instruction.md: No such file"),
    ],
)
def test_a_wrong_brief_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, words: str
) -> None:
    family, instance = broken_family(tmp_path, monkeypatch)
    if text is not None:
        (tmp_path / "instruction.md").write_text(text)
    with pytest.raises(GenerationError, match=words):
        registry.render_brief(family, instance, 0)


def test_a_broken_family_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family, _ = broken_family(tmp_path, monkeypatch)
    with pytest.raises(ZeroDivisionError) as caught:
        family.generate(instance_rng("x", {}, 0, 0), 0)
    assert blamed(family, caught.value) == f"ZeroDivisionError: division by zero ({tmp_path}/broken.py:5, in half)"
    assert blamed(family, KeyError("x")) == "KeyError: 'x'"


def broken_family(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Family, Instance]:
    """A family in a module of its own, whose generator divides by zero, and an instance for its brief."""
    source = """\
import json
from metier.envs.core import Family
class Broken(Family):
    def generate(self, rng, level): return json.loads("1", parse_int=self.half)
    def half(self, text): return int(text) / 0
    def oracle(self, instance): return []
    def mutants(self, instance): return {}
    async def verify(self, sandbox, instance, hidden): raise NotImplementedError
"""
    (folder / "broken.py").write_text(source)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    family = importlib.import_module("broken").Broken()
    return family, Instance(variables={"number": 1}, files={}, artefacts=(Artefact(path="answer"),), truth={})


def test_importing_metier_registers_and_does_nothing_else() -> None:
    heavy = "torch ray vllm docker transformers pydantic jsonschema jinja2 PIL rich typer asyncio"
    code = f"""
import os, signal, sys, threading, gymnasium
before = dict(os.environ), os.getcwd(), signal.getsignal(signal.SIGINT), sys.path[:], set(sys.modules)
ids = set(gymnasium.registry)
import metier
after = dict(os.environ), os.getcwd(), signal.getsignal(signal.SIGINT), sys.path[:]
assert after == before[:4], (before[:4], after)
assert threading.active_count() == 1
new = sorted(set(sys.modules) - before[4])
assert not [m for m in '{heavy}'.split() if m in new], new
rooms = [m for m in new if m.split('.')[:1] == ['metier'] and m.split('.')[1:2] not in ([], ['envs'])]
assert not rooms, rooms
from metier.envs import registry
assert set(gymnasium.registry) - ids == set(registry.ids())
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""
