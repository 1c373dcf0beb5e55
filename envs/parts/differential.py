"""Hidden-input differential testing of a Python library: the agent's files against the right source.

The right source is our own generated text, so the host runs it in namespaces of its own, without files, and the
expected values never enter a sandbox. The agent's files run in one process in the sandbox, as the agent; it only
learns the inputs, so whatever it prints has to be computed.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

from ..core import Json, Sandbox
from . import calls
from .probe import run_probe

Case = tuple[str, list[Json]]
"""("package.module:function", tagged arguments)."""

_DRIVER = (
    inspect.getsource(calls)
    + """
import importlib, os, sys
def _find(path):
    module, _, name = path.partition(":")
    value = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value
sys.path.insert(0, payload["root"])
os.chdir(payload["root"])
sys.dont_write_bytecode = True
_real, sys.stdout = sys.stdout, open(os.devnull, "w")
_answer([outcome(case, _find) for case in payload["cases"]])
_real.flush()
"""
)


class Library:
    """Modules run from trusted source text alone: `path of file` → text, "a/b.py" being module `a.b`.

    Relative and absolute imports between the modules work; others go to the interpreter. Nothing enters `sys.modules`.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._sources = {_module_name(path): text for path, text in files.items() if path.endswith(".py")}
        self._packages = {_module_name(path) for path in files if path.endswith("__init__.py")}
        self._modules: dict[str, ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def run(self, case: Case) -> Json:
        """The encoded outcome of one call."""
        return calls.outcome(case, self.find)

    def run_all(self, cases: Sequence[Case]) -> list[Json]:
        """The encoded outcomes, in order."""
        return [self.run(case) for case in cases]

    def find(self, path: str) -> Any:
        """The object at "module:name"."""
        module, _, name = path.partition(":")
        value: Any = self._load(module)
        for part in name.split("."):
            value = getattr(value, part)
        return value

    def _load(self, name: str) -> ModuleType:
        if name in self._modules:
            return self._modules[name]
        module = ModuleType(name)
        module.__package__ = name if name in self._packages else name.rpartition(".")[0]
        module.__dict__["__builtins__"] = self._builtins
        self._modules[name] = module
        if parent := name.rpartition(".")[0]:
            setattr(self._load(parent), name.rpartition(".")[2], module)
        exec(_compiled(name, self._sources[name]), module.__dict__)
        return module

    def _import(self, name: str, scope: Any = None, local: Any = None, names: Any = (), level: int = 0) -> Any:
        if level:
            parts = scope["__package__"].split(".")
            name = ".".join(parts[: len(parts) - level + 1] + ([name] if name else []))
        if name.partition(".")[0] not in {known.partition(".")[0] for known in self._sources}:
            return builtins.__import__(name, scope, local, names, level)
        module = self._load(name)
        for wanted in names or ():
            if f"{name}.{wanted}" in self._sources:
                self._load(f"{name}.{wanted}")
        return module if names else self._load(name.partition(".")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What the agent's library answered: one outcome for each case, or none and why."""

    outcomes: tuple[Json, ...] | None
    failure: str = ""


async def run_in_sandbox(sandbox: Sandbox, cases: Sequence[Case], *, timeout_s: float) -> Observed:
    """Call the library under /workspace on every case, in one process, as the agent."""
    payload: Json = {"root": "/workspace", "cases": [[path, arguments] for path, arguments in cases]}
    result = await run_probe(sandbox, _DRIVER, payload, timeout_s=timeout_s, user="agent")
    if result.failure:
        return Observed(outcomes=None, failure=result.failure)
    if not isinstance(result.value, list) or len(result.value) != len(cases):
        return Observed(outcomes=None, failure="the driver's answer was replaced")
    return Observed(outcomes=tuple(result.value))


async def is_same_program(sandbox: Sandbox, right: Mapping[str, str]) -> bool:
    """Whether every right file lies under /workspace with the same syntax tree: then its behaviour needs no run.

    Reads and parses only. Most right repairs restore the very line that was broken, and a verifier sandbox in which
    nothing of the agent's ran can be reset instead of thrown away.
    """
    for path, text in right.items():
        try:
            found = await sandbox.read(f"/workspace/{path}", max_bytes=2 * len(text.encode()) + 1024)
            if ast.dump(ast.parse(found)) != ast.dump(ast.parse(text)):
                return False
        except ConnectionError:
            raise
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return False  # whatever it is, it is not the same program
    return True


def same(observed: Json, expected: Json) -> bool:
    """Whether two outcomes are equal as Python values are, floats to a relative 1e-9, `True` not being 1."""
    if isinstance(expected, bool) or isinstance(observed, bool):
        return observed is expected
    if isinstance(expected, int | float) and isinstance(observed, int | float):
        return math.isclose(observed, expected, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(expected, list) and isinstance(observed, list):
        return len(observed) == len(expected) and all(map(same, observed, expected))
    if isinstance(expected, dict) and isinstance(observed, dict):
        return list(observed) == list(expected) and all(
            _same_tagged(tag, observed[tag], value) for tag, value in expected.items()
        )
    return type(observed) is type(expected) and observed == expected


def _same_tagged(tag: str, observed: Json, expected: Json) -> bool:
    if tag != "$decimal":
        return same(observed, expected)
    try:
        return Decimal(str(observed)) == Decimal(str(expected))
    except InvalidOperation:
        return False


def expression(value: Json) -> str:
    """Python source of an encoded value, for a report or a test; what has none stands in angle brackets."""
    if isinstance(value, list):
        return "[" + ", ".join(expression(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value)
    if not isinstance(value, dict):
        return repr(value)
    tag, inner = next(iter(value.items()))
    match tag, inner:
        case "$decimal", str():
            return f'Decimal("{inner}")'
        case "$date", str():
            year, month, day = inner.split("-")
            return f"date({year}, {int(month)}, {int(day)})"
        case "$tuple", list():
            return "(" + ", ".join(expression(item) for item in inner) + ("," if len(inner) == 1 else "") + ")"
        case "$map", list():
            pairs = [(item[0], item[1]) for item in inner if isinstance(item, list)]
            return "{" + ", ".join(f"{expression(key)}: {expression(item)}" for key, item in pairs) + "}"
        case "$new", [str(path), list(arguments)]:
            return path.partition(":")[2] + "(" + ", ".join(expression(item) for item in arguments) + ")"
        case _:
            return f"<{inner}>"


def call_expression(case: Case) -> str:
    """Python source of one call."""
    path, arguments = case
    return path.partition(":")[2] + "(" + ", ".join(expression(item) for item in arguments) + ")"


@lru_cache(maxsize=512)
def _compiled(name: str, text: str) -> CodeType:
    return compile(text, f"<{name}>", "exec")


def _module_name(path: str) -> str:
    parts = path.removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
