"""What the documents list is what there is, and their examples compile."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from metier.envs.registry import DOMAINS
from metier.harness.certify.gates import GATES

ROOT = Path(__file__).parents[2]


def test_the_index_of_parts_has_the_first_line_of_each() -> None:
    parts = [path for path in (ROOT / "envs" / "parts").glob("*.py") if not path.stem.endswith(("_probe", "__init__"))]
    lines = {path.stem: (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0] for path in parts}
    rows = re.findall(r"^\| (`.*) \|$", (ROOT / "docs" / "parts.md").read_text(), re.MULTILINE)
    assert rows == [f"`{name}` | {line}" for name, line in sorted(lines.items())]


def test_authors_are_told_every_domain_and_every_gate() -> None:
    text = (ROOT / "docs" / "authoring.md").read_text()
    named = re.search(r"domains are\s(.*?), also", text, re.DOTALL)
    assert named and re.findall(r"`(\w+)`", named[1]) == list(DOMAINS)
    table = text.partition("| gate | proves |")[2].partition("\n\n")[0]
    rows = [name for row in re.findall(r"^\| ([a-z ,]+) \|", table, re.MULTILINE) for name in row.split(", ")]
    assert sorted(rows) == sorted(gate.name for gate in GATES)


@pytest.mark.parametrize("name", ["README.md", "docs/authoring.md"])
def test_examples_in_python_compile(name: str) -> None:
    for example in re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL):
        compile(example, name, "exec")
