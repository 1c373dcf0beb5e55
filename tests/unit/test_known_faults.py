"""The table of known faults names tests, claims and gates that there are, and every fault has one."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from metier.harness.certify.gates import GATES

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "known-faults.md"
ROWS = [
    row for row in re.findall(r"^\| (.+) \|$", TABLE.read_text(), re.MULTILINE) if " | `" in row or " | gate" in row
]


@functools.cache
def functions(path: Path) -> set[str]:
    """The functions of a module that there is."""
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_table_is_read_whole() -> None:
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    assert len(ROWS) == len(lines) - len([line for line in lines if line.endswith("| tests |")]) > 60


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.partition(" | ")[0][:60])
def test_what_stands_for_a_fault_exists(row: str) -> None:
    fault, _, named = row.partition(" | ")
    tests = re.findall(r"`([\w/]+\.py)::(\w+)`", named)
    gates = re.findall(r"gate `([a-z ]+)`", named)
    assert tests or gates, f"nothing stands for {fault}"
    assert len(tests) + len(gates) == len(named.split(", ")), f"not understood: {named}"
    assert set(gates) <= {gate.name for gate in GATES}
    for file, name in tests:
        path = ROOT / file if file.startswith("harness/") else ROOT / "tests" / file
        assert path.is_file() and name in functions(path), f"{file} has no {name}; it is in {homes(name) or 'no file'}"


def homes(name: str) -> list[str]:
    """Where a test has moved."""
    return [str(path) for path in (ROOT / "tests").rglob("test_*.py") if f"def {name}(" in path.read_text()]
