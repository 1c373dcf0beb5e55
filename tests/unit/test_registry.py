"""The registry: what is wrong is named with its file and line, and near misses are suggested."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

import metier
from metier.envs import registry
from metier.envs.core import ConfigError

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
    assert registry.ids()
    for env_id in registry.ids():
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
        (GOOD + GOOD, "registry.yaml:6: terminal/Good-v0 is already defined at registry.yaml:1"),
        ("a: b\n", "is a list"),
        ("- [\n", "not YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        entries(tmp_path, text)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("  levls: 5\n", r"registry.yaml:1.*levls.*did you mean levels"),
        ("  levels: none\n", r"registry.yaml:1.*levels.*integer"),
        ("  limits: {steps: 0}\n", r"limits.steps"),
        ("  tools: [shell, hammer]\n", r"tools.1"),
        ("  requires: [teleport]\n", r"requires.0"),
    ],
)
def test_a_wrong_field_is_refused_with_its_name(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "registry.yaml"
    text = GOOD.replace("  tools: [shell]\n", "") if line.startswith("  tools") else GOOD
    path.write_text(text.replace("terminal/Good", "test/Wrong") + line)
    with pytest.raises(ConfigError, match=words):
        registry._validated(registry.read(path)["test/Wrong-v0"])  # pyright: ignore[reportPrivateUsage]


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


def test_importing_metier_brings_no_heavy_module() -> None:
    heavy = "torch ray vllm docker transformers"
    code = f"import sys, metier; sys.exit(' '.join(m for m in '{heavy}'.split() if m in sys.modules) or None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
