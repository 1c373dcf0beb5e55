"""The command `new`: a whole small family to start from, in our tree or in a package of your own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from metier.envs import registry
from metier.envs.core import ConfigError
from metier.envs.registry_file import ID_PATTERN

_SCAFFOLD = Path(__file__).with_name("scaffold")
_MARKER = "REPLACE"
_INSTALLING = """
So that it is found and its files travel with it, pyproject.toml needs

  [project.entry-points."{group}"]
  {name} = "{package}"

  [tool.setuptools.package-data]
  "*" = ["*.yaml", "*.md", "*.json"]

Then install it: pip install -e .
"""
console = Console()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be written, and where."""

    env_id: str
    image: str
    folder: Path
    module: str
    registry: Path
    test: Path | None
    """Beside our own tests; another package has tests of its own."""

    @property
    def name(self) -> str:
        """The class."""
        return self.env_id.partition("/")[2].rpartition("-v")[0]


def new(
    env_id: Annotated[str, typer.Argument(metavar="DOMAIN/Name", help="For example terminal/LogTriage.")],
    into: Annotated[
        Path | None,
        typer.Option(help="The folder of a package of your own, made if need be; by default this checkout of Metier."),
    ] = None,
    image: Annotated[str, typer.Option(help="An image of `metier images ls`.")] = "terminal-python",
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Write a new family: a small task that already generates and grades, its brief, its registry entry, its test.

    Examples: metier new terminal/LogTriage
              metier new acme/InvoiceMatch --into src/acme_tasks --image documents
    """
    plan = _plan(env_id, into, image)
    written = _write(plan)
    if as_json:
        print(json.dumps({"id": plan.env_id, "written": [str(path) for path in written]}))
        return
    for path in written:
        console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    if into is not None:
        package = plan.module.rpartition(f".{plan.folder.name}.")[0]
        told = _INSTALLING.format(group=registry.GROUP, name=package.replace(".", "_"), package=package)
        console.print(told.rstrip(), markup=False, highlight=False, soft_wrap=True)
    console.print(
        f"\nIt is whole already; make it yours where it says {_MARKER}, then:\n"
        f"  metier info {plan.env_id}\n  metier play {plan.env_id} --policy oracle\n  metier certify {plan.env_id}",
        highlight=False,
    )


def _plan(env_id: str, into: Path | None, image: str) -> Plan:
    from metier.images import names

    whole = env_id if re.search(r"-v\d+$", env_id) else f"{env_id}-v0"
    if not re.match(ID_PATTERN, whole):
        raise ConfigError(f"{env_id!r} must look like domain/Name: small letters, a slash, then a capital")
    domain, _, name = whole.rpartition("-v")[0].partition("/")
    if whole in registry.ids():
        raise ConfigError(
            f"{whole} is there already: take another name, or `metier new {_next(whole)}` says what to do"
        )
    if image not in names():
        raise ConfigError(
            f"there is no image {image!r}{registry.suggest(image, names())}; `metier images ls` lists all"
        )
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    if into is not None:
        package = _package(into)
        folder = package / snake
        module = f"{_dotted(package)}.{snake}.family"
        return _free(
            Plan(env_id=whole, image=image, folder=folder, module=module, registry=package / "registry.yaml", test=None)
        )
    if domain not in registry.DOMAINS:
        hint = registry.suggest(domain, list(registry.DOMAINS))
        raise ConfigError(f"no domain {domain!r}{hint}; ours are {', '.join(registry.DOMAINS)}; or use --into PACKAGE")
    ours = registry.registry_path().resolve()
    root = ours.parent
    if not (root / "envs" / "core").is_dir():
        raise ConfigError("this Metier is installed, not a checkout: use --into with a package of your own")
    return _free(
        Plan(
            env_id=whole,
            image=image,
            folder=root / "envs" / domain / snake,
            module=f"metier.envs.{domain}.{snake}.family",
            registry=ours,
            test=root / "tests" / "unit" / f"test_{snake}.py",
        )
    )


def _next(env_id: str) -> str:
    stem, _, version = env_id.rpartition("-v")
    return f"{stem}-v{int(version) + 1}"


def _package(into: Path) -> Path:
    """A package, or a folder that can become one: a folder of other things is somebody's mistake."""
    package = into.resolve()
    if not package.name.isidentifier():
        raise ConfigError(f"{package.name!r} is no name for a Python package")
    free = not package.exists() or (package.is_dir() and not any(package.iterdir()))
    if not free and not (package / "__init__.py").is_file():
        raise ConfigError(f"{into} is no Python package: name a new folder inside it, or give it an __init__.py")
    return package


def _free(plan: Plan) -> Plan:
    """The plan, if nothing lies in its way. A family that does is never to be removed: its scores name its version."""
    there = next((path for path in (plan.folder, plan.test) if path is not None and path.exists()), None)
    if there is None:
        return plan
    stem, _, version = plan.env_id.rpartition("-v")
    beside = registry.read(plan.registry) if plan.registry.exists() else {}  # perhaps not installed yet
    earlier = [env_id for env_id in [*registry.ids(), *beside] if env_id.rpartition("-v")[0] == stem]
    if not earlier:
        raise ConfigError(f"{there} is there already: take another name")
    copy = plan.folder.with_name(f"{plan.folder.name}_v{version}")
    raise ConfigError(
        f"{there} is there already, of {earlier[-1]}. A new version is a copy beside it, and the old one stays: "
        f"copy the newest one's folder to {copy}, less its certificate.json; add an entry {plan.env_id} with "
        f"entry_point {plan.module.removesuffix('.family')}_v{version}.family:{plan.name}; then certify it"
    )


def _dotted(package: Path) -> str:
    """The package's import name: its folder and those above it that are packages too."""
    parts = [package.name]
    while (package.parent / "__init__.py").is_file():
        package = package.parent
        parts.insert(0, package.name)
    return ".".join(parts)


def _write(plan: Plan) -> list[Path]:
    import jinja2

    source = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)
    names = {"env_id": plan.env_id, "name": plan.name, "core": "...core" if plan.test else "metier.envs.core"}

    def filled(template: str) -> str:
        return source.from_string((_SCAFFOLD / template).read_text(encoding="utf-8")).render(names)

    files = {
        plan.folder / "__init__.py": f'"""{plan.env_id}."""\n',
        plan.folder / "family.py": filled("family.py.jinja"),
        plan.folder / "instruction.md": filled("instruction.md.jinja"),
    }
    if plan.test is not None:
        files[plan.test] = filled("test.py.jinja")
        domain = plan.folder.parent / "__init__.py"
        if not domain.exists():
            files = {domain: f'"""The {plan.folder.parent.name} families."""\n'} | files
    elif not (package := plan.folder.parent / "__init__.py").exists():
        files = {package: '"""Environments for Metier."""\n'} | files
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    known = plan.registry.read_text(encoding="utf-8") if plan.registry.exists() else ""
    entry = _entry(plan)
    plan.registry.write_text(known + ("" if not known or known.endswith("\n") else "\n") + entry, encoding="utf-8")
    return [*files, plan.registry]


def _entry(plan: Plan) -> str:
    return (
        f"- id: {plan.env_id}\n"
        f"  entry_point: {plan.module}:{plan.name}\n"
        "  summary: Add up the hours of a timesheet (a skeleton)\n"
        f"  image: {plan.image}\n"
        "  tools: [shell]\n"
        "  observation: text\n"
        "  levels: 2\n"
        "  limits: {steps: 20, agent_s: 300, verify_s: 60, memory_mb: 512, cpus: 1, network: none}\n"
        "  requires: []\n"
        "  tags: []\n"
        "  authors: []\n"
        "  license: Apache-2.0\n"
    )
