"""What an environment's own code may do on the host, where no sandbox holds what an agent wrote: read it, never run it.

Modules that are sent into a sandbox as source (probes, players, assets) are left out: there they may do anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ENVS = Path(__file__).parents[2] / "envs"
RUNS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "builtins.__import__",
    "importlib.import_module",
    "os.system",
    "os.popen",
}
OURS_TO_RUN = {
    "finance/three_statement/expressions.py": "formulas of our own, of names and arithmetic only",
    "parts/differential.py": "libraries of our own making, for what is expected",
    "registry.py": "the family's module, by the registry's entry",
}
UNPICKLES_OR_REACHES_OUT = {
    *("pickle", "marshal", "shelve", "dill", "subprocess", "multiprocessing", "runpy", "ctypes"),
    *("socket", "http", "urllib.request", "requests", "httpx", "ftplib", "smtplib", "ssl"),
}


def host_modules() -> Iterator[tuple[str, ast.Module]]:
    """Path below `envs/` and syntax tree."""
    trees = {path: ast.parse(path.read_text()) for path in ENVS.rglob("*.py") if "assets" not in path.parts}
    sent: set[Path] = set()
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.endswith(".py"):
                sent.add(path.parent / node.value)  # read as text, from the family's own folder
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "inspect.getsource":
                sent |= {other for other in trees if other.stem == ast.unparse(node.args[0])}
    for path, tree in trees.items():
        if path not in sent and not path.stem.endswith("_probe"):
            yield path.relative_to(ENVS).as_posix(), tree


def test_nothing_runs_what_an_agent_may_have_written() -> None:
    found = {
        (path, node.lineno)
        for path, tree in host_modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in RUNS
    }
    assert {path for path, _ in found} <= set(OURS_TO_RUN), found


def test_nothing_unpickles_and_nothing_reaches_out() -> None:
    found = {
        (path, name)
        for path, tree in host_modules()
        for node in ast.walk(tree)
        for name in imported(node)
        if {name, name.partition(".")[0]} & UNPICKLES_OR_REACHES_OUT
    }
    assert not found, found


def imported(node: ast.AST) -> list[str]:
    """The modules of other packages that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
