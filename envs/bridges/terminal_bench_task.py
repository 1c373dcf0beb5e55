"""A Terminal-Bench task folder (task.yaml) as a `ForeignTask`.

Its verdict is what a parser reads from the tests' output: exit codes say nothing, and all tests have to pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError

from .folder import Held, below, read_folder, text_of
from .foreign import ForeignTask, Form, Reads, Solution, Testing
from .harbor_task import DEFAULT_MEMORY_MB
from .refusal import Reason, TaskRefused

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COMPOSE = ("docker-compose.yaml", "docker-compose.yml")
_BESIDE = frozenset({"task.yaml", "run-tests.sh", "solution.sh", "solution.yaml", "Dockerfile", *_COMPOSE})
"""Of the folder's own level, what is no file for the image."""
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Task(BaseModel, extra="allow"):
    instruction: Annotated[str, Field(min_length=1)]
    author_name: str = "unknown"
    author_email: str = "unknown"
    difficulty: str = "unknown"
    category: str = "software_engineering"
    tags: list[str] = []
    parser_name: Literal["pytest", "swebench", "swelancer", "mlebench", "sweperf"] = "pytest"
    max_agent_timeout_sec: Seconds = 360.0
    max_test_timeout_sec: Seconds = 60.0
    run_tests_in_same_shell: bool = False
    disable_asciinema: bool = False
    estimated_duration_sec: float | None = None
    expert_time_estimate_min: float | None = None
    junior_time_estimate_min: float | None = None


def read_terminal_bench(folder: Path) -> ForeignTask:
    """The task in a folder.

    Raises:
        TaskRefused: it is damaged, or cannot be carried.
    """
    name = folder.resolve().name
    files = read_folder(folder, name)
    stated = _task(text_of(files, "task.yaml", name), name)
    if stated.parser_name != "pytest":
        raise TaskRefused(Reason.PARSER, name, f"its verdict is read by the parser {stated.parser_name}")
    _check_composition(files, name)
    notes = [*_notes(stated, files)]
    script = Held(data=text_of(files, "run-tests.sh", name).encode(), executable=True)
    return ForeignTask(
        form=Form.TERMINAL_BENCH,
        name=name,
        summary=stated.instruction,
        instruction=stated.instruction.strip(),
        dockerfile=text_of(files, "Dockerfile", name),
        docker_image=None,
        context={path: held for path, held in files.items() if path not in _BESIDE and not path.startswith("tests/")},
        workdir=None,
        env={},
        testing=Testing(
            files={**below(files, "tests"), "run-tests.sh": script},
            script="/tests/run-tests.sh",
            reads=Reads.PYTEST_SUMMARY,
            timeout_s=stated.max_test_timeout_sec,
            env={"TEST_DIR": "/tests"},
        ),
        solution=_solution(files, name, notes),
        agent_s=stated.max_agent_timeout_sec,
        memory_mb=DEFAULT_MEMORY_MB,
        cpus=1.0,
        tags=(stated.category, *stated.tags),
        authors=(stated.author_name,) if stated.author_name != "unknown" else (),
        notes=tuple(notes),
    )


def _task(text: str, name: str) -> _Task:
    try:
        said = yaml.load(text, Loader=_LOADER)
        return _Task.model_validate(said)
    except yaml.YAMLError as error:
        raise TaskRefused(Reason.DAMAGED, name, f"task.yaml is no YAML: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'task'}: {one['msg']}" for one in error.errors())
        raise TaskRefused(Reason.DAMAGED, name, f"task.yaml: {wrong}") from None


def _notes(stated: _Task, files: Mapping[str, Held]) -> Iterator[str]:
    yield "network: the original gives the agent and the tests the internet, a sandbox here gives none"
    yield "user: the original's agent is root, here it is uid 1000 on a read-only system"
    yield "tests see what the agent wrote, in a fresh sandbox without its processes"
    if stated.run_tests_in_same_shell:
        yield "run_tests_in_same_shell: tests run in a shell of their own, so what was set in the agent's is gone"
    if not any(path.startswith("tests/") for path in files):
        yield "tests/: there is none beside run-tests.sh"
    for field in stated.model_extra or {}:
        yield f"task.yaml: {field} is a field that is not known here"


def _check_composition(files: Mapping[str, Held], name: str) -> None:
    """Raises TaskRefused where there is more than the one service, or it asks for what no sandbox has."""
    found = next((path for path in _COMPOSE if path in files), None)
    if found is None:
        return
    try:
        said: Any = yaml.load(text_of(files, found, name), Loader=_LOADER)
        services: dict[str, Any] = dict(said["services"])
        client: dict[str, Any] = dict(services["client"])
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise TaskRefused(Reason.DAMAGED, name, f"{found}: no service named client can be read: {error}") from None
    if len(services) > 1:
        others = ", ".join(sorted(set(services) - {"client"}))
        raise TaskRefused(Reason.SERVICES, name, f"{found} has services beside the client ({others}); one is carried")
    limits: Any = client.get("deploy") or {}
    if "devices" in str(limits) or client.get("runtime") == "nvidia":
        raise TaskRefused(Reason.ACCELERATOR, name, f"{found} asks for devices, which no sandbox here lends")
    if client.get("privileged"):
        raise TaskRefused(Reason.BUILD, name, f"{found} asks for a privileged container")


def _solution(files: Mapping[str, Held], name: str, notes: list[str]) -> Solution | None:
    if "solution.sh" in files:
        script = files["solution.sh"]
    elif "solution.yaml" in files:
        script = Held(data=_commands(text_of(files, "solution.yaml", name), name, notes).encode())
    else:
        notes.append("solution: there is none, so no oracle")
        return None
    return Solution(files={"solution.sh": script}, script="solution.sh", home="/oracle")


def _commands(text: str, name: str, notes: list[str]) -> str:
    """A solution that types into a terminal, as a script of its command lines."""
    try:
        said: Any = yaml.load(text, Loader=_LOADER)
        commands = [str(one["command"]) for one in said]
        typed = [one for one in said if not one.get("append_enter", True)]
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise TaskRefused(Reason.DAMAGED, name, f"solution.yaml is no list of commands: {error}") from None
    if typed:
        notes.append(f"solution.yaml: {len(typed)} of its lines are keys for a program, run as commands here")
    return "\n".join(commands) + "\n"
