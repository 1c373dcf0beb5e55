"""A Harbor task folder (task.toml, schema 1.4 and the keys before it) as a `ForeignTask`."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

from .folder import Held, below, read_folder, text_of
from .foreign import ForeignTask, Form, Reads, Solution, Testing
from .refusal import Reason, TaskRefused

DEFAULT_AGENT_S = 900.0
DEFAULT_MEMORY_MB = 2048
LEAST_MEMORY_MB = 256
PUBLISHED = "/logs/artifacts"
"""What an agent leaves there is always collected."""
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([GMK])I?B?\s*$", re.IGNORECASE)
_CANARY = re.compile(r"^\s*(<!--.*canary.*-->|#.*canary.*)\s*$", re.IGNORECASE)
_ROOT = ("root", 0, "0")
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Lax(BaseModel, extra="allow"):
    """Keys that are not known here are told, not refused: later schemas add some."""


class _Package(_Lax):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][\w.-]*/[a-zA-Z0-9][\w.-]*$")]
    version: str | None = None
    description: str = ""
    authors: list[dict[str, Any]] = []
    keywords: list[str] = []


class _Network(_Lax):
    network_mode: Literal["public", "no-network", "allowlist"] | None = None
    allowed_hosts: list[str] | None = None


class _Agent(_Network):
    timeout_sec: Seconds | None = None
    user: str | int | None = None


class _Environment(_Network):
    build_timeout_sec: Seconds = 600.0
    docker_image: str | None = None
    os: str = "linux"
    cpus: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    memory_mb: Annotated[int, Field(gt=0)] | None = None
    storage_mb: int | None = None
    memory: str | None = None
    storage: str | None = None
    gpus: int | None = None
    gpu_types: list[str] | None = None
    tpu: dict[str, Any] | None = None
    env: dict[str, str] = {}
    skills_dir: str | None = None
    healthcheck: dict[str, Any] | None = None
    workdir: str | None = None
    mcp_servers: list[dict[str, Any]] = []
    allow_internet: bool | None = None

    @field_validator("memory", "storage")
    @classmethod
    def _is_size(cls, value: str | None) -> str | None:
        if value is not None and not _SIZE.match(value):
            raise ValueError(f"{value!r} is no size such as 2G or 512M")
        return value

    def memory_mib(self) -> int:
        """Stated either way, or the default."""
        return self.memory_mb or (_mib(self.memory) if self.memory else DEFAULT_MEMORY_MB)


class _Verifier(_Network):
    timeout_sec: Seconds = 600.0
    env: dict[str, str] = {}
    user: str | int | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: _Environment | None = None
    collect: list[dict[str, Any]] = []


class _Artifact(_Lax):
    source: str
    destination: str | None = None
    exclude: list[str] = []
    service: str | None = None


class _Config(_Lax):
    schema_version: str | float = "1.4"
    version: str | float | None = None
    source: str | None = None
    task: _Package | None = None
    metadata: dict[str, Any] = {}
    agent: _Agent = _Agent()
    verifier: _Verifier = _Verifier()
    environment: _Environment = _Environment()
    solution: dict[str, Any] = {}
    steps: list[dict[str, Any]] = []
    artifacts: list[str | _Artifact] = []
    multi_step_reward_strategy: str | None = None

    @property
    def separate(self) -> bool:
        """Whether the verifier has a container of its own."""
        stated = self.verifier.environment_mode
        return stated == "separate" or (stated is None and self.verifier.environment is not None)


def read_harbor(folder: Path) -> ForeignTask:
    """The task in a folder.

    Raises:
        TaskRefused: it is damaged, or cannot be carried.
    """
    task = folder.resolve().name
    files = read_folder(folder, task)
    config = _config(text_of(files, "task.toml", task), task)
    task = config.task.name if config.task else task
    _refuse(config, files, task)
    instruction = without_canary(text_of(files, "instruction.md", task)).strip()
    if not instruction:
        raise TaskRefused(Reason.DAMAGED, task, "instruction.md says nothing")
    environment = config.environment
    notes = [*_notes(config, files)]
    package = config.task
    authors = [str(one.get("name", "")) for one in package.authors] if package else []
    return ForeignTask(
        form=Form.HARBOR,
        name=task,
        summary=(package.description if package else "") or instruction,
        instruction=instruction,
        dockerfile=_dockerfile(files, "environment", config.environment.docker_image, task),
        docker_image=environment.docker_image,
        context=below(files, "environment"),
        workdir=environment.workdir,
        env=_resolved(environment.env, "environment.env", notes),
        testing=_testing(config, files, task, notes),
        solution=_solution(config, files, notes),
        agent_s=config.agent.timeout_sec or DEFAULT_AGENT_S,
        memory_mb=max(LEAST_MEMORY_MB, environment.memory_mib()),
        cpus=environment.cpus or 1.0,
        tags=tuple(package.keywords) if package else (),
        authors=tuple(name for name in authors if name),
        notes=tuple(notes),
    )


def without_canary(text: str) -> str:
    """The text without the leading lines that mark it against training, which no agent is shown.

    Example:
        >>> without_canary("<!-- a canary GUID 1 -->\\n\\nDo it.")
        'Do it.'
    """
    lines = text.split("\n")
    start = 0
    while start < len(lines) and _CANARY.match(lines[start]):
        start += 1
    return "\n".join(lines[start:]).lstrip("\n") if start else text


def _config(text: str, task: str) -> _Config:
    try:
        return _Config.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise TaskRefused(Reason.DAMAGED, task, f"task.toml is no TOML: {error}") from None
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise TaskRefused(Reason.DAMAGED, task, f"task.toml: {wrong}") from None


def _refuse(config: _Config, files: Mapping[str, Held], task: str) -> None:
    """What makes it meaningless here. Raises TaskRefused."""
    places = [config.environment, *([config.verifier.environment] if config.verifier.environment else [])]
    if config.steps:
        raise TaskRefused(Reason.STEPS, task, f"it has {len(config.steps)} steps; import them as tasks of their own")
    if any(place.os.lower() != "linux" for place in places):
        raise TaskRefused(Reason.PLATFORM, task, "it is for Windows; sandboxes here are Linux")
    if any(place.gpus or place.tpu for place in places):
        raise TaskRefused(Reason.ACCELERATOR, task, "it needs a GPU or TPU, which no sandbox here lends")
    for where, place in (("agent", config.agent), ("verifier", config.verifier), ("environment", config.environment)):
        if place.network_mode == "allowlist":
            hosts = ", ".join(place.allowed_hosts or []) or "none named"
            raise TaskRefused(Reason.NETWORK, task, f"[{where}] needs hosts ({hosts}); sandboxes have no network")
    for folder in ("environment", "tests"):
        for name in ("docker-compose.yaml", "docker-compose.yml", "compose.yaml"):
            if f"{folder}/{name}" in files:
                raise TaskRefused(Reason.SERVICES, task, f"{folder}/{name}: one container is carried, no composition")
    services = [one.service for one in config.artifacts if isinstance(one, _Artifact)]
    if any(service not in (None, "main") for service in services):
        raise TaskRefused(Reason.SERVICES, task, "it collects artifacts of another service")


def _notes(config: _Config, files: Mapping[str, Held]) -> Iterator[str]:
    """What is not carried, or otherwise."""
    environment, verifier = config.environment, config.verifier
    internet = environment.network_mode in (None, "public") and environment.allow_internet is not False
    if (config.agent.network_mode or ("public" if internet else "")) == "public":
        yield "network: the original gives the agent the internet, a sandbox here gives none"
    if config.agent.user is None or config.agent.user in _ROOT:
        yield "user: the original's agent is root, here it is uid 1000 on a read-only system"
    if verifier.user in _ROOT:
        yield "verifier.user: tests run as the sandbox's root, which has no rights over the agent's files"
    elif verifier.user not in (None, "agent"):
        yield f"verifier.user: tests run as uid 1000, not as {verifier.user}"
    if environment.mcp_servers:
        yield f"mcp_servers: {len(environment.mcp_servers)} are not started"
    if environment.healthcheck:
        yield "healthcheck: not run"
    if environment.skills_dir:
        yield "skills_dir: no skills are handed to the agent"
    if environment.storage_mb or environment.storage:
        yield "storage: what may be written lies in memory, a third of its limit"
    if verifier.collect:
        yield f"verifier.collect: {len(verifier.collect)} commands before collecting are not run"
    if "trajectory.json" in files:
        yield "trajectory.json: the agent starts without the prior conversation"
    if any(isinstance(one, _Artifact) and (one.destination or one.exclude) for one in config.artifacts):
        yield "artifacts: destination and exclude are not applied"
    if any(name.rsplit("/", 1)[-1] == ".harborignore" for name in files):
        yield ".harborignore: not applied"
    tables = (("", config), ("agent.", config.agent), ("verifier.", verifier), ("environment.", environment))
    for where, model in tables:
        for name in model.model_extra or {}:
            yield f"{where}{name}: a field that is not known here"


def _testing(config: _Config, files: Mapping[str, Held], task: str, notes: list[str]) -> Testing:
    tests = below(files, "tests")
    own = config.verifier.environment
    if own is not None and own.docker_image:
        raise TaskRefused(Reason.BASE_UNAVAILABLE, task, f"its verifier is the image {own.docker_image}")
    dockerfile = text_of(files, "tests/Dockerfile", task) if config.separate and "Dockerfile" in tests else None
    if dockerfile is None and "test.sh" not in tests:
        raise TaskRefused(Reason.DAMAGED, task, "tests/test.sh is missing")
    kept: tuple[str, ...] | None = None
    if config.separate:
        named = [one if isinstance(one, str) else one.source for one in config.artifacts]
        kept = tuple(dict.fromkeys((PUBLISHED, *(_absolute(one, task) for one in named))))
    else:
        notes.append("shared verifier: tests see what the agent wrote, in a fresh sandbox without its processes")
    return Testing(
        files=tests,
        script="/tests/test.sh",
        reads=Reads.REWARD_FILE,
        timeout_s=config.verifier.timeout_sec,
        env=_resolved(config.verifier.env, "verifier.env", notes),
        kept=kept,
        dockerfile=dockerfile,
        as_root=config.verifier.user in _ROOT,
    )


def _solution(config: _Config, files: Mapping[str, Held], notes: list[str]) -> Solution | None:
    found = below(files, "solution")
    if "solve.sh" not in found:
        notes.append("solution/solve.sh: there is none, so no oracle")
        return None
    env = {str(name): str(value) for name, value in dict(config.solution.get("env") or {}).items()}
    env = _resolved(env, "solution.env", notes)
    return Solution(files=found, script="solve.sh", home="/solution", env=env)


def _dockerfile(files: Mapping[str, Held], folder: str, image: str | None, task: str) -> str | None:
    name = f"{folder}/Dockerfile"
    if name in files:
        return text_of(files, name, task)
    if image is None:
        raise TaskRefused(Reason.DAMAGED, task, f"{name} is missing, and no docker_image is named")
    return None


def _resolved(env: Mapping[str, str], where: str, notes: list[str]) -> dict[str, str]:
    """`${NAME:-default}` by its default: what a machine holds is none of a task's business, nor a secret of its key."""
    found: dict[str, str] = {}
    for name, value in env.items():
        unset = [match[1] for match in _VARIABLE.finditer(value) if match[2] is None]
        if unset:
            notes.append(f"{where}.{name}: {', '.join(unset)} of the host is not handed on")
        found[name] = _VARIABLE.sub(lambda match: match[2] or "", value)
    return found


def _absolute(path: str, task: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or not path.startswith("/") or not parts:
        raise TaskRefused(Reason.DAMAGED, task, f"artifacts: {path!r} is no absolute path of a file or folder")
    return os.path.join("/", *parts)


def _mib(size: str) -> int:
    """Example:
    >>> _mib("2G"), _mib("512M")
    (2048, 512)
    """
    match = _SIZE.match(size)
    assert match is not None
    return max(1, int(float(match[1]) * {"G": 1024.0, "M": 1.0, "K": 1 / 1024}[match[2].upper()]))
