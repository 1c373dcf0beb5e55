"""Exporting: one instance of any family as a Harbor task folder that grades as the family does.

    instruction.md                 the brief, and how to hand in where there is no `submit`
    task.toml                      limits; a verifier of its own (`separate`) that gets the declared artefacts only
    environment/                   the trade's image from Debian, the workspace's files, its set-up
    solution/solve.sh              performs the author's tool calls
    tests/                         the same image, the family's verifier with what it imports, and the instance's seed

The verifier is not translated but carried: `tests/bundle` has the family's own modules, and `grade.py` runs them in
Harbor's verifier container as they run in a verifier's sandbox. What cannot be carried is a note, or a refusal.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path

from metier.envs.core import ConfigError, Family, Instance, Json
from metier.envs.entry import Entry
from metier.images import Recipe, recipe
from metier.images.dockerfile import Step

from ..certify.digest import CERTIFICATE, family_folder, imported
from ..grading import PUBLIC_DEFAULT
from ..prepare import Task, generate
from .naming import is_bridged

DEBIAN = "debian:bookworm-slim"
_CARRIED = Path(__file__).parent / "carried"
_GRADER = "/opt/metier-grader"
_MARGIN_S = 60
_SWITCHES = "PIP_BREAK_SYSTEM_PACKAGES=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore DEBIAN_FRONTEND=noninteractive"
_BASE_PACKAGES = (
    "RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates procps python3 && "
    "rm -rf /var/lib/apt/lists/*"
)
_AGENT = (
    "RUN id agent >/dev/null 2>&1 || useradd --uid 1000 --user-group --no-create-home --home-dir /workspace "
    "--shell /bin/bash agent"
)
_AS_AGENT = (
    "RUN setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/workspace bash /opt/metier-setup.sh && "
    "rm -f /opt/metier-setup.sh"
)
_LOADED = """
import importlib, json, sys
sys.path.insert(0, sys.argv[2])
sys.dont_write_bytecode = True
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
"""


class Unfit(StrEnum):
    """Why an instance cannot be exported honestly."""

    OWN_TOOLS = auto()
    """The family has tools of its own trade, which a shell cannot stand in for."""
    SERVICES = auto()
    """It starts services in every sandbox."""
    REQUIRES = auto()
    """It needs a promise of the sandbox that a container elsewhere may not keep."""
    FOREIGN_BASE = auto()
    """Its image grows from one that only this machine's engine holds."""
    IMPORTED = auto()
    """It came from a task folder; that one is the better copy."""


class CannotExport(ConfigError):
    """The instance cannot be exported; `reason` says why."""

    def __init__(self, reason: Unfit, message: str) -> None:
        super().__init__(reason, message)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.args[1]} ({self.reason})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What came of it."""

    folder: Path
    name: str
    """As the task calls itself, `org/name`."""
    notes: tuple[str, ...]
    """What was not carried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """Which instance, and under which name."""

    env_id: str
    seed: int = 0
    level: int = 0
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    organisation: str = "metier"


def export_task(settings: ExportSettings, folder: Path) -> Exported:
    """Write the instance as a task folder, which must not be there yet.

    Raises:
        ConfigError: an unknown id, level or option, or the folder is taken.
        CannotExport: it cannot be carried honestly.
        GenerationError: the generator broke.
    """
    if folder.exists():
        raise ConfigError(f"{folder} is there already; choose another folder, or remove it")
    if not re.fullmatch(r"[a-zA-Z0-9][\w.-]*", settings.organisation):
        raise ConfigError(f"--org {settings.organisation!r}: letters, digits, hyphens, dots and underscores")
    task = Task(env_id=settings.env_id, seed=settings.seed, level=settings.level, options=dict(settings.options))
    prepared = generate(task)
    entry, family, instance = prepared.entry, prepared.family, prepared.instance
    image, verifier_image = recipe(entry.image), recipe(entry.verifier_image or entry.image)
    _refuse(entry, family, instance, image, verifier_image)
    name = f"{settings.organisation}/{_slug(task)}"
    folder.mkdir(parents=True)
    try:
        _write(folder / "instruction.md", _instruction(prepared.brief, instance))
        _write(folder / "task.toml", _toml(name, task, entry, instance))
        _write_environment(folder / "environment", image, instance)
        _write_solution(folder / "solution", family, instance)
        _write_tests(folder / "tests", task, entry, verifier_image)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Exported(folder=folder, name=name, notes=tuple(_notes(entry, instance)))


def _refuse(entry: Entry, family: Family, instance: Instance, *images: Recipe) -> None:
    if type(family).trade_tools is not Family.trade_tools:
        raise CannotExport(Unfit.OWN_TOOLS, f"{entry.id} has tools of its own trade")
    if instance.services:
        raise CannotExport(Unfit.SERVICES, f"{entry.id} starts {len(instance.services)} services in each sandbox")
    if entry.requires:
        raise CannotExport(Unfit.REQUIRES, f"{entry.id} requires {', '.join(entry.requires)}")
    if is_bridged(entry.image):
        raise CannotExport(Unfit.IMPORTED, f"{entry.id} was imported; copy its own task folder")
    for image in images:
        if image.lineage()[0].steps:
            raise CannotExport(Unfit.FOREIGN_BASE, f"image {image.name} grows from an image of this machine's engine")


def _notes(entry: Entry, instance: Instance) -> Iterator[str]:
    yield "hidden inputs: they come from the public development secret, not from a hub's own"
    yield "the seed: one instance is exported; tests/instance.json has its seed, tests/bundle the generator of others"
    yield f"limits.steps: {entry.limits.steps} tool calls; Harbor counts none"
    yield f"the sandbox: a read-only system, {_writable_mb(entry)} MiB of workspace and 256 processes are not enforced"
    if entry.observation != "text":
        yield "pictures: `view` is not carried, so an agent sees no picture unless its own tools show files"
    if "python" in entry.tools:
        yield "python: no persistent interpreter; python3 in a shell has the same packages"
    if any(artefact.path == "answer" for artefact in instance.artefacts):
        yield "submit: its answer is a file, /workspace/answer, as the instruction says"
    if any(artefact.metadata for artefact in instance.artefacts):
        yield "metadata of artefacts (owner, mode): as Harbor copies them"


def _instruction(brief: str, instance: Instance) -> str:
    lines = [brief, "", "## Handing in", "", "You work in `/workspace`, as the user `agent`, without network."]
    paths = [artefact.path for artefact in instance.artefacts]
    if "answer" in paths:
        lines.append(
            "There is no `submit` tool: write the text that you would submit into the file `/workspace/answer`."
        )
    files = [f"`/workspace/{path}`" for path in paths if path != "answer"]
    if files:
        lines.append(f"What is graded: {', '.join(files)}.")
    return "\n".join(lines) + "\n"


def _slug(task: Task) -> str:
    """Names the instance: two instances never share it.

    Example:
        >>> _slug(Task(env_id="finance/CovenantTest-v0", seed=3))
        'finance-covenant-test-v0-level-0-seed-3'
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", task.env_id.replace("/", "-")).lower()
    chosen = ""
    if task.options:
        said = json.dumps(task.options, sort_keys=True)
        chosen = f"-{hashlib.sha256(said.encode()).hexdigest()[:8]}"
    return f"{words}-level-{task.level}-seed-{task.seed}{chosen}"


def _toml(name: str, task: Task, entry: Entry, instance: Instance) -> str:
    limits = entry.limits
    artifacts = [f"/workspace/{artefact.path}".removesuffix("/.") for artefact in instance.artefacts]
    box = [f"memory_mb = {limits.memory_mb}", f"cpus = {limits.cpus:g}", 'network_mode = "no-network"']
    authors = [f"{{ name = {_string(author)} }}" for author in entry.authors]
    made = {
        "environment": entry.id,
        "seed": task.seed,
        "level": task.level,
        "options": json.dumps(task.options, sort_keys=True),
        "license": entry.license,
    }
    metadata = [f"{key} = {value if isinstance(value, int) else _string(str(value))}" for key, value in made.items()]
    lines = [
        'schema_version = "1.4"',
        f"artifacts = [{', '.join(map(_string, artifacts))}]",
        "",
        "[task]",
        f"name = {_string(name)}",
        f"description = {_string(entry.summary)}",
        f"authors = [{', '.join(authors)}]",
        f"keywords = [{', '.join(map(_string, entry.tags))}]",
        "",
        "[metadata.metier]",
        *metadata,
        "",
        "[agent]",
        f"timeout_sec = {limits.agent_s:.1f}",
        'user = "agent"',
        "",
        "[verifier]",
        f"timeout_sec = {limits.verify_s + _MARGIN_S:.1f}",
        'user = "root"',
        'environment_mode = "separate"',
        "",
        "[verifier.environment]",
        *box,
        "",
        "[environment]",
        "build_timeout_sec = 1800.0",
        'workdir = "/workspace"',
        *box,
    ]
    return "\n".join(lines) + "\n"


def _string(text: str) -> str:
    """A TOML basic string, which escapes as JSON does."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_environment(folder: Path, image: Recipe, instance: Instance) -> None:
    lines = _image_lines(image, folder)
    for path, data in instance.files.items():
        target = folder / "workspace" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755 if path in instance.executable else 0o644)
    if instance.files:
        lines += ["COPY workspace/ /workspace/", "RUN chown -R 1000:1000 /workspace"]
    if instance.setup:
        script = "".join(f"bash -c {shlex.quote(line)}\n" for line in instance.setup)
        _write(folder / "setup.sh", f"set -e\ncd /workspace\n{script}")
        lines += ["COPY setup.sh /opt/metier-setup.sh", _AS_AGENT]
    _write(folder / "Dockerfile", "\n".join([*lines, "WORKDIR /workspace"]) + "\n")


def _image_lines(image: Recipe, folder: Path) -> list[str]:
    """The image from Debian on: what the base has, then the steps of each recipe, whose files go into `folder`."""
    lines = [
        f"FROM {DEBIAN}",
        f"ARG {_SWITCHES.split()[0]}",
        *(f"ARG {switch}" for switch in _SWITCHES.split()[1:]),
        _BASE_PACKAGES,
        _AGENT,
        "RUN mkdir -p /workspace && chown 1000:1000 /workspace",
    ]
    for each in image.lineage()[1:]:
        for path in each.context():
            target = folder / "image" / each.name / path.relative_to(each.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
        lines += [_line(step, each.name) for step in each.steps[1:]]
    return lines


def _line(step: Step, image: str) -> str:
    if step.keyword != "COPY":
        return f"{step.keyword} {step.value}"
    *sources, target = step.words()
    return f"COPY {' '.join(f'image/{image}/{source}' for source in sources)} {target}"


def _write_solution(folder: Path, family: Family, instance: Instance) -> None:
    calls = [{"tool": call.tool, "arguments": dict(call.arguments)} for call in family.oracle(instance)]
    _write(folder / "calls.json", json.dumps(calls, indent=1))
    _write(folder / "play.py", (_CARRIED / "play.py").read_text(encoding="utf-8"))
    _write(folder / "solve.sh", "#!/bin/bash\nset -e\npython3 /solution/play.py /solution/calls.json\n", mode=0o755)


def _write_tests(folder: Path, task: Task, entry: Entry, image: Recipe) -> None:
    lines = _image_lines(image, folder)
    for name in ("grade.py", "local_sandbox.py"):
        _write(folder / name, (_CARRIED / name).read_text(encoding="utf-8"))
    _bundle(entry, folder / "bundle")
    if needed := _needed_packages(entry, folder / "bundle"):
        lines.append(
            "RUN apt-get update && apt-get install -y --no-install-recommends python3-pip && "
            f"rm -rf /var/lib/apt/lists/* && pip install --target {_GRADER} {' '.join(needed)}"
        )
    module, _, kind = entry.entry_point.partition(":")
    said = {
        "id": entry.id,
        "seed": task.seed,
        "level": task.level,
        "options": dict(task.options),
        "module": module,
        "kind": kind,
        "image": entry.verifier_image or entry.image,
        "verify_s": entry.limits.verify_s,
        "secret": PUBLIC_DEFAULT,
    }
    _write(folder / "instance.json", json.dumps(said, indent=1))
    _write(folder / "test.sh", "#!/bin/bash\npython3 /tests/grade.py\n", mode=0o755)
    # what holds the truth is root's alone: the agent's programs run beside it as uid 1000
    lines += ["COPY . /tests/", "RUN chmod -R go-rwx /tests && chmod 755 /tests/test.sh", "WORKDIR /workspace"]
    _write(folder / "Dockerfile", "\n".join(lines) + "\n")


def _bundle(entry: Entry, folder: Path) -> None:
    """The modules that the verifier needs, as the packages that they are imported by."""
    home = family_folder(entry)
    package = entry.entry_point.split(":")[0].split(".")[:-1]
    prefix = package[:2] if package[:2] == ["metier", "envs"] else package[:1]
    root = home.parents[len(package) - len(prefix) - 1] if len(package) > len(prefix) else home
    wanted = imported(home, root, prefix) | {path for path in home.rglob("*") if path.is_file()}
    _copied(wanted, root, folder.joinpath(*prefix))
    if prefix != ["metier", "envs"]:
        ours = Path(__file__).parents[2] / "envs"
        both = [path for part in ("core", "parts") for path in (ours / part).rglob("*") if path.is_file()]
        _copied(set(both), ours, folder / "metier" / "envs")
    for made in (folder / "metier", folder / "metier" / "envs"):
        (made / "__init__.py").touch()


def _copied(paths: set[Path], root: Path, to: Path) -> None:
    for path in sorted(paths):
        if "__pycache__" in path.parts or path.name == CERTIFICATE:
            continue
        target = to / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _needed_packages(entry: Entry, bundle: Path) -> list[str]:
    """What of PyPI the bundled module imports on a host, with the versions that it has here."""
    module = entry.entry_point.partition(":")[0]
    command = [sys.executable, "-c", _LOADED, module, str(bundle)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigError(f"{entry.id}: its verifier cannot be bundled, {module} does not import: {done.stderr[-500:]}")
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    known = importlib.metadata.packages_distributions()
    found: dict[str, str] = {}
    for name in loaded - set(sys.stdlib_module_names) - {"metier", module.partition(".")[0]}:
        for distribution in known.get(name, [])[:1]:
            found[distribution] = importlib.metadata.version(distribution)
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def _writable_mb(entry: Entry) -> int:
    return entry.sandbox().writable_mb["/workspace"]


def _write(path: Path, text: str, *, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
