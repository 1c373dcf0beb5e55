"""The environment digest moves with everything that a certificate vouches for, and with nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from metier.envs.entry import Entry
from metier.envs.registry import get
from metier.harness.certify.digest import environment_digest, family_folder, imported

FILES = {
    "family.py": "from . import draw\nfrom ..parts import measures\n",
    "draw.py": "X = 1\n",
    "instruction.md": "Do it.\n",
    "assets/names.txt": "a\n",
}
PARTS = {
    "__init__.py": "",
    "measures.py": "from .deeper import Y\nSOURCE = 'probe_source.py'\n",
    "deeper.py": "Y = 2\n",
    "probe_source.py": "print()\n",
    "unused.py": "Z = 3\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "digested"
    for folder, files in ((root / "one", FILES), (root / "parts", PARTS), (root, {"__init__.py": ""})):
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    (root / "one" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "digested"]:
        monkeypatch.delitem(sys.modules, name)
    return root


def entry(summary: str = "x") -> Entry:
    return Entry(
        id="test/Digested-v0",
        entry_point="digested.one.family:F",
        summary=summary,
        image="terminal-python",
        tools=("shell",),
    )


@pytest.mark.parametrize(
    "changed",
    [
        "one/family.py",
        "one/draw.py",
        "one/instruction.md",
        "one/assets/names.txt",
        "parts/measures.py",
        "parts/deeper.py",
        "parts/probe_source.py",
    ],
)
def test_it_moves_with_what_the_family_is_made_of(tree: Path, changed: str) -> None:
    before = environment_digest(entry())
    (tree / changed).write_text((tree / changed).read_text() + "# more\n")
    assert environment_digest(entry()) != before


@pytest.mark.parametrize("changed", ["parts/unused.py", "one/certificate.json", "one/__pycache__/family.pyc"])
def test_it_stays_with_everything_else(tree: Path, changed: str) -> None:
    before = environment_digest(entry())
    (tree / changed).parent.mkdir(exist_ok=True)
    (tree / changed).write_text("whatever")
    assert environment_digest(entry()) == before


def test_it_moves_with_the_registry_entry(tree: Path) -> None:
    assert environment_digest(entry("x")) != environment_digest(entry("y"))


def test_a_real_family_takes_its_parts_along() -> None:
    folder = family_folder(get("terminal/PyMutationRepair-v0"))
    names = {path.name for path in imported(folder, folder.parents[1], ["metier", "envs"])}
    assert {"differential.py", "calls.py", "probe.py", "family.py"} <= names
    assert "unused.py" not in names
