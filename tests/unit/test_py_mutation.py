"""terminal/PyMutationRepair on the host: instances, their bugs, and the judgement of what a library answers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import GenerationError, HashRng, Instance, Verdict, instance_rng
from metier.envs.parts.calls import decode, encode
from metier.envs.parts.differential import Library, Observed, call_expression, expression, same
from metier.envs.parts.inputs import draw, draw_cases
from metier.envs.registry import render_brief
from metier.envs.terminal.py_mutation_repair.family import PyMutationRepair
from metier.envs.terminal.py_mutation_repair.grading import examine, grade
from metier.envs.terminal.py_mutation_repair.libraries import TEMPLATES, library
from metier.envs.terminal.py_mutation_repair.project import Project, choose_bugs

ENV_ID = "terminal/PyMutationRepair-v0"
LEVELS = range(5)
FAMILY = PyMutationRepair()


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


def texts(instance: Instance) -> dict[str, str]:
    return {path: data.decode() for path, data in instance.files.items()}


def judged(instance: Instance, files: Mapping[str, str]) -> Verdict:
    """The verdict on a library, run on the host: only for files that this test made itself."""
    exam = examine(instance.truth, HashRng(b"hidden"))
    return grade(exam, Observed(outcomes=tuple(Library(files).run_all(exam.cases))))


def mended(instance: Instance, skip: int = -1) -> dict[str, str]:
    files = texts(instance)
    bugs: Any = instance.truth["bugs"]
    for number, bug in enumerate(bugs):
        assert files[bug["path"]].count(bug["old"]) == 1
        if number != skip:
            files[bug["path"]] = files[bug["path"]].replace(bug["old"], bug["new"])
    return files


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_and_differ_by_seed(level: int) -> None:
    assert made(level, 1) == made(level, 1)
    assert len({repr(sorted(made(level, seed).files.items())) for seed in range(4)}) == 4


@pytest.mark.parametrize("level", LEVELS)
def test_only_the_whole_repair_passes(level: int) -> None:
    for seed in range(3):
        instance = made(level, seed)
        assert judged(instance, mended(instance)).passed
        assert judged(instance, texts(instance)).reward == 0.0
        near_miss: Any = instance.truth["near_miss"]
        assert not judged(instance, {**mended(instance), **near_miss}).passed
        if level >= 2:
            part = judged(instance, mended(instance, skip=0))
            assert not part.passed
            assert part.reward < 1.0


def test_breaking_what_worked_costs_everything() -> None:
    instance = made(2, 1)
    files = mended(instance)
    path = next(path for path in files if path.endswith(("/money.py", "/units.py", "/clock.py")))
    broken = {**files, path: files[path] + "\n\ndef percent_of(*_): return 0\n\nboxes_for = rounded = percent_of\n"}
    verdict = judged(instance, broken)
    assert (verdict.reward, verdict.passed) == (0.0, False)
    assert any(check.gate and check.score == 0.0 for check in verdict.checks)


@pytest.mark.parametrize("level", LEVELS)
def test_secrets_stay_out_of_workspace_and_brief(level: int) -> None:
    instance = made(level, 2)
    shown = "\n".join([*texts(instance).values(), render_brief(FAMILY, instance, level)])
    assert instance.secrets
    assert all(secret not in shown for secret in instance.secrets)


def test_level_0_is_short_and_shows_an_observable_bug() -> None:
    for seed in range(25):
        instance = made(0, seed)
        brief = render_brief(FAMILY, instance, 0)
        assert len(brief) < 300, brief
        assert sum(map(len, instance.files.values())) < 420
        assert [call.tool for call in FAMILY.oracle(instance)] == ["shell", "edit", "submit"]


@pytest.mark.parametrize("level", [1, 4])
def test_the_visible_suite_passes_before_and_after(level: int, tmp_path: Path) -> None:
    instance = made(level, 5)
    for name, files in (("before", texts(instance)), ("after", mended(instance))):
        for path, text in files.items():
            target = tmp_path / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        suites = sorted((tmp_path / name / "tests").glob("test_*.py"))
        calls = "\n".join(
            f"import runpy\nfor name, test in runpy.run_path({str(suite)!r}).items():\n"
            "    name.startswith('test_') and test()"
            for suite in suites
        )
        assert suites
        subprocess.run([sys.executable, "-c", calls], cwd=tmp_path / name, check=True, timeout=60)


def test_every_attempt_ends_with_submit_and_a_hack_is_among_the_mutants() -> None:
    for level in LEVELS:
        instance = made(level, 0)
        attempts = [
            FAMILY.oracle(instance),
            *FAMILY.mutants(instance).values(),
            *FAMILY.alternatives(instance).values(),
        ]
        assert all(calls[-1].tool == "submit" for calls in attempts)
        assert {"special_case", "conftest_hook", "forged_reward"} <= FAMILY.mutants(instance).keys()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.folder)
def test_every_function_of_a_library_is_called_and_any_prefix_imports(template: Any) -> None:
    seed = next(seed for seed in range(50) if HashRng(b"%d" % seed).choice(TEMPLATES) is template)
    sizes = range(1, len(template.modules) + 1)
    projects = [library(HashRng(b"%d" % seed), num_modules) for num_modules in sizes]
    for project in projects:
        cases = draw_cases(project.inputs, HashRng(b"cases"), 20)
        outcomes = Library(project.files).run_all(cases)
        raised = {str(outcome["$raises"]) for outcome in outcomes if isinstance(outcome, dict) and "$raises" in outcome}
        assert raised <= {"ValueError"}
        assert max(len(line) for text in project.files.values() for line in text.splitlines()) <= 120
    public = {
        f"{path.removesuffix('.py').replace('/', '.')}:{line.split('(')[0].removeprefix('def ')}"
        for path, text in projects[-1].files.items()
        for line in text.splitlines()
        if line.startswith("def ")
    }
    assert public == set(projects[-1].inputs)


def test_too_few_bugs_is_a_generation_error() -> None:
    project = Project(files={"m.py": "def f(a):\n    return a - 1\n"}, inputs={"m:f": [{"int": [0, 90]}]})
    with pytest.raises(GenerationError, match="0 of 1"):
        choose_bugs(project, HashRng(b"x"), 1, wanted=lambda mutation: False)


def test_a_driver_that_answers_nothing_is_a_failed_check() -> None:
    exam = examine(made(0, 0).truth, HashRng(b"hidden"))
    verdict = grade(exam, Observed(outcomes=None, failure="did not end within 30 s"))
    assert (verdict.reward, verdict.passed) == (0.0, False)


def test_hidden_inputs_follow_the_hidden_stream() -> None:
    truth = made(1, 0).truth
    assert examine(truth, HashRng(b"a")).cases != examine(truth, HashRng(b"b")).cases
    assert examine(truth, HashRng(b"a")) == examine(truth, HashRng(b"a"))


@pytest.mark.parametrize(
    ("observed", "expected", "equal"),
    [
        (1, True, False),
        (1.0, 1, True),
        (0.1 + 0.2, 0.3, True),
        (1.001, 1.0, False),
        ([1, 2], [1, 2, 3], False),
        ({"$decimal": "1.50"}, {"$decimal": "1.5"}, True),
        ({"$decimal": "x"}, {"$decimal": "1.5"}, False),
        ({"$raises": "ValueError"}, {"$raises": "KeyError"}, False),
        ({"$tuple": [1]}, [1], False),
        (None, 0, False),
        ("1", 1, False),
    ],
)
def test_outcomes_compare_as_python_values(observed: Any, expected: Any, equal: bool) -> None:
    assert same(observed, expected) is equal


def test_tagged_values_go_there_and_back_and_read_as_python() -> None:
    value = [{"$decimal": "1.50"}, {"$date": "2025-01-31"}, {"$tuple": [1, "a"]}, {"$map": [["k", None]]}]
    assert encode(decode(value, lambda path: None)) == value
    assert expression(value) == '[Decimal("1.50"), date(2025, 1, 31), (1, "a"), {"k": None}]'
    assert call_expression(("pkg.mod:f", [True, "x"])) == 'f(True, "x")'
    assert encode(float("nan")) == {"$float": "nan"}
    assert encode(object()) == {"$other": "object"}


def test_a_library_keeps_out_of_the_interpreter() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/a.py": "from . import b\nfrom .b import two\nimport math\nf = lambda x: two() + b.two() + math.floor(x)\n",
        "pkg/b.py": "def two(): return 2\n",
    }
    assert Library(files).run(("pkg.a:f", [0.5])) == 4
    assert Library(files).run(("pkg.a:g", [])) == {"$raises": "AttributeError"}
    assert "pkg" not in sys.modules


def test_every_kind_of_input_can_be_drawn() -> None:
    rng = HashRng(b"inputs")
    specs: list[dict[str, Any]] = [
        {"int": [1, 2]},
        {"decimal": ["0.5", "1.5", 2], "near": ["1.00"]},
        {"date": ["2024-02-28", 3]},
        {"map": [{"choice": ["a", "b"]}, {"int": [0, 1]}, 1, 3]},
        {"new": ["m:C", [{"list": [{"tuple": [{"int": [0, 0]}]}, 1, 1]}]]},
    ]
    for spec in specs:
        assert [draw(spec, rng) for _ in range(5)]
    with pytest.raises(ValueError, match="no argument specification"):
        draw({"float": [0, 1]}, rng)
