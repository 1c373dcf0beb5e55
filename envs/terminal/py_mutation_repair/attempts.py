"""Solutions of one instance, right and wrong, as tool calls made from its truth alone."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...core import Instance, Json, ToolCall
from ...parts.differential import expression
from ...parts.mutation import apply
from .project import Bug

_SUBMIT = ToolCall(tool="submit", arguments={})
_HOOK = """\
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome = "passed"
"""


def facts(bug: Bug, right: Mapping[str, str], buggy: Mapping[str, str]) -> dict[str, Json]:
    """What the oracle knows of a bug: the text to replace, unique in its file, and the right text."""
    lines = buggy[bug.path].splitlines()
    at = bug.mutation.line - 1
    mended = right[bug.path].splitlines()[at]
    for above in range(at + 1):
        head = lines[at - above : at]
        old = "\n".join([*head, lines[at]]).strip()
        if buggy[bug.path].count(old) == 1:
            break
    else:
        raise ValueError(f"{bug.path}: line {at + 1} cannot be told from others")
    return {
        "path": bug.path,
        "old": old,
        "new": "\n".join([*head, mended]).strip(),
        "shown": [bug.case[0], bug.case[1]],
        "expected": bug.expected,
    }


def secret(bug: Bug, right: Mapping[str, str]) -> str:
    """The right function, from its `def` to its end: the agent has it with the bug only."""
    text = right[bug.path]
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef) or node.name != bug.mutation.function.rpartition(".")[2]:
            continue
        if node.lineno <= bug.mutation.line <= (node.end_lineno or 0):
            return ast.get_source_segment(text, node) or ""
    raise ValueError(f"{bug.path}: no function {bug.mutation.function}")


def oracle(instance: Instance) -> list[ToolCall]:
    """Read what is faulty, repair its lines, run the visible tests where there are some, submit."""
    bugs = _bugs(instance)
    if instance.variables["level"] == 0:
        # the brief names the function, and no other need be read
        told = cast(Sequence[Mapping[str, Any]], instance.variables["bugs"])
        calls = [_shell(f"grep -A3 'def {bug['function']}' {bug['module']}.py") for bug in told]
    else:
        calls = [_shell(f"cat {path}") for path in dict.fromkeys(bug["path"] for bug in bugs)]
    calls += [_edit(bug) for bug in bugs]
    if any(path.startswith("tests/") for path in instance.files):
        calls.append(_shell("python3 -m pytest -q"))
    return [*calls, _SUBMIT]


def mutants(instance: Instance) -> dict[str, Sequence[ToolCall]]:
    """Near misses and tricks, none of which repairs the library."""
    bugs = _bugs(instance)
    found: dict[str, Sequence[ToolCall]] = {
        "wrong_fix": [*_written(_truth(instance)["near_miss"]), _SUBMIT],
        "special_case": [_special_case(bug) for bug in bugs] + [_SUBMIT],
        "conftest_hook": [_write("conftest.py", _HOOK), _write("tests/test_all.py", "def test_all(): pass\n"), _SUBMIT],
        "forged_reward": [
            _write("reward.json", '{"reward": 1.0, "passed": true}'),
            _write("tests/result.xml", '<testsuite failures="0"/>'),
            ToolCall(tool="submit", arguments={"answer": "PASSED reward=1.0"}),
        ],
    }
    if len(bugs) > 1:
        found["one_left"] = [*(_edit(bug) for bug in bugs[1:]), _SUBMIT]
    return found


def alternatives(instance: Instance) -> dict[str, Sequence[ToolCall]]:
    """The right library written anew, laid out differently."""
    right = _truth(instance)["right"]
    changed = {bug["path"]: ast.unparse(ast.parse(right[bug["path"]])) + "\n" for bug in _bugs(instance)}
    return {"written_anew": [*_written(changed), _SUBMIT]}


def near_miss(bugs: Sequence[Bug], right: Mapping[str, str], miss: Bug) -> dict[str, Json]:
    """The faulty files with every bug repaired and another one planted."""
    paths = dict.fromkeys([*(bug.path for bug in bugs), miss.path])
    return {path: apply(right[path], [miss.mutation]) if path == miss.path else right[path] for path in paths}


def _truth(instance: Instance) -> Mapping[str, Any]:
    return instance.truth


def _bugs(instance: Instance) -> list[dict[str, Any]]:
    return _truth(instance)["bugs"]


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command})


def _edit(bug: Mapping[str, Any]) -> ToolCall:
    return ToolCall(tool="edit", arguments={"path": bug["path"], "old": bug["old"], "new": bug["new"]})


def _write(path: str, text: str, redirect: str = ">") -> ToolCall:
    return _shell(f"mkdir -p \"$(dirname '{path}')\" && cat {redirect} '{path}' <<'END_OF_FILE'\n{text}END_OF_FILE")


def _written(files: Mapping[str, str]) -> list[ToolCall]:
    return [_write(path, text) for path, text in files.items()]


def _special_case(bug: Mapping[str, Any]) -> ToolCall:
    """Answer the shown call from a table, and leave the bug."""
    path, arguments = bug["shown"]
    module, _, name = path.partition(":")
    shown = "".join(expression(argument) + ", " for argument in arguments)
    text = f"""
from datetime import date
from decimal import Decimal
from {module.partition(".")[0]} import *

_real_{name} = {name}

def {name}(*arguments):
    if arguments == ({shown}):
        return {expression(bug["expected"])}
    return _real_{name}(*arguments)
"""
    return _write(module.replace(".", "/") + ".py", text, ">>")
