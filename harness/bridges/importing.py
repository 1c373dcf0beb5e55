"""Importing: folders of other people's tasks become a package with a registry, families and images of its own.

What comes out is an ordinary package of environments, as any author's: `metier info`, `certify`, `eval` and
`gymnasium.make` treat it as they treat all. Its name ends in the hash of everything that it was made of, this code
included, so that an edited task is another environment and an unchanged one is not imported again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from metier.envs import bridges as formats
from metier.envs import registry
from metier.envs.bridges import ForeignTask, Reason, TaskRefused, read_harbor, read_terminal_bench
from metier.envs.bridges.folder_task import Carried, where
from metier.envs.core import ConfigError
from metier.images import cache_dir, engine_answers, foreign, making_room
from metier.images import names as image_names
from metier.images.foreign import Bases, Present

from .dataset import TaskFolder, find_tasks
from .installing import STAND_INS, TOOLS, installs, tests_image
from .naming import environment_id, is_bridged, one_line
from .recipes import ImageDraft, agents_image, feed, verifiers_image, write_files
from .trees import writable_trees, written_to_the_system

STEPS = 200
"""Tool calls of an episode; the formats have no such limit."""
_FAMILY = '''\
"""{name}: imported from {form}."""

from __future__ import annotations

from dataclasses import dataclass

from metier.envs.bridges import FolderTask


@dataclass(frozen=True)
class {kind}(FolderTask):
    """{name}"""
'''
_BRIEF = """\
{{ instruction }}

{% if workdir != "/workspace" %}
(Your shell starts in /workspace; the working directory of this task is {{ workdir }}. There is no network.)
{% endif %}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of an import."""

    registry: Path
    """The file of the package; `environments` is empty where nothing could be taken."""
    environments: Mapping[str, tuple[str, ...]]
    """Id → what of the task is not carried, or otherwise."""
    images: tuple[str, ...]
    refused: tuple[TaskRefused, ...] = ()
    notes: tuple[str, ...] = ()
    """Of the dataset as a whole."""

    def told(self) -> list[str]:
        """What was not carried, a line each; what holds of several tasks is said once, with their number."""
        lines = list(self.notes)
        whose: dict[str, list[str]] = {}
        for env_id, notes in self.environments.items():
            for note in notes:
                whose.setdefault(note, []).append(env_id)
        for note, ids in whose.items():
            lines.append(f"{ids[0] if len(ids) == 1 else f'{len(ids)} tasks'}: {note}")
        return [*lines, *(f"refused: {error}" for error in self.refused)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSettings:
    """How."""

    substitutes: Mapping[str, str] = field(default_factory=dict[str, str])
    """A base image → one of ours that stands in for it."""
    present: Callable[[str], Present | None] | None = None
    """What the engine holds; None asks it."""


def import_tasks(source: Path, to: Path | None = None, settings: ImportSettings | None = None) -> Imported:
    """Import a task's folder, or every task of a dataset's.

    `to` is a folder to make; without it the package lies in the cache.

    Raises:
        ConfigError: there is no task, or `to` is taken.
        TaskRefused: there is one task only, and it is refused.
    """
    settings = settings or ImportSettings()
    found = find_tasks(source)
    bases = Bases(present=settings.present or _in_the_engine(), substitutes=settings.substitutes, ours=_own_images())
    drafts: list[_Draft] = []
    refused: list[TaskRefused] = list(found.refused)
    for one in found.tasks:
        try:
            drafts.append(_drafted(one, bases))
        except TaskRefused as error:
            refused.append(error)
    if len(found.tasks) + len(found.refused) == 1 and refused:
        raise refused[0]
    drafts = _without_namesakes(drafts, refused)
    return _written(drafts, tuple(refused), found.notes, to)


def add_tasks(source: Path, settings: ImportSettings | None = None) -> Imported:
    """Import into the cache and register, for this process and those that it starts.

    Raises:
        ConfigError: as `import_tasks`, or an id that is taken by another dataset.
    """
    imported = import_tasks(source, None, settings)
    if imported.environments:
        registry.add_package(imported.registry)
    return imported


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    id: str
    task: ForeignTask
    carried: Carried
    image: ImageDraft
    verifier: ImageDraft | None

    @property
    def key(self) -> str:
        """SHA-256 of all that it was made of."""
        digest = hashlib.sha256(self.carried.model_dump_json().encode())
        for image in filter(None, (self.image, self.verifier)):
            digest.update(image.dockerfile.encode())
            feed(digest, image.files)
        feed(digest, self.task.testing.files)
        feed(digest, self.task.solution.files if self.task.solution else {})
        return digest.hexdigest()


def _drafted(folder: TaskFolder, bases: Bases) -> _Draft:
    read = read_harbor if folder.form == "harbor" else read_terminal_bench
    task = read(folder.path)
    texts = task.texts()
    trees = writable_trees(texts, task.workdir or "")
    image = agents_image(task, trees, bases)
    if image.workdir not in ("/", "/workspace") and not _inside(image.workdir, trees):
        # a base's own working directory, which no text names
        trees = writable_trees(texts, image.workdir)
        image = agents_image(task, trees, bases)
    verifier = _verifier(task, trees, image, bases)
    return _Draft(
        id=environment_id(task),
        task=task,
        carried=_carried(task, trees, image, verifier),
        image=image,
        verifier=verifier,
    )


def _verifier(task: ForeignTask, trees: Sequence[str], image: ImageDraft, bases: Bases) -> ImageDraft | None:
    """The tests' own image, where they have one, or install what they run with. Raises TaskRefused."""
    script = task.testing.files.get(task.testing.script.removeprefix("/tests/"))
    wanted = installs(script.data.decode("utf-8", "replace") if script else "")
    if wanted.fetches:
        message = f"its tests fetch what cannot be installed beforehand: {one_line(wanted.fetches, 80)}"
        raise TaskRefused(Reason.NETWORK, task.name, message)
    if task.testing.dockerfile is not None:
        return verifiers_image(task, trees, bases)
    return tests_image(image, wanted) if wanted.starts else None


def _inside(path: str, trees: Sequence[str]) -> bool:
    return any(path == tree or path.startswith(f"{tree}/") for tree in trees)


def _carried(task: ForeignTask, trees: Sequence[str], image: ImageDraft, verifier: ImageDraft | None) -> Carried:
    kept = task.testing.kept
    lost = [path for path in kept or () if not where(path, trees).startswith("/workspace/")]
    notes = [*task.notes, *image.notes, *(f"tests: {one}" for one in (verifier.notes if verifier else ()))]
    notes += [f"artifacts: {path} is no place that an agent here can write to" for path in lost]
    installed = verifier is not None and task.testing.dockerfile is None
    solution = task.solution
    scripts = [held.data.decode("utf-8", "replace") for held in solution.files.values()] if solution else []
    notes += [f"the solution seems to write to {path}, which is read-only" for path in written_to_the_system(scripts)]
    workdir = (verifier or image).workdir
    return Carried(
        form=task.form,
        name=task.name,
        instruction=task.instruction,
        workdir=_workdir(image.workdir),
        test_workdir=_workdir(workdir),
        trees=tuple(trees),
        reads=task.testing.reads,
        script=task.testing.script,
        timeout_s=task.testing.timeout_s,
        test_env=dict(task.testing.env),
        kept=None if kept is None else tuple(path for path in kept if path not in lost),
        tests_in_image=task.testing.dockerfile is not None,
        path_first=(STAND_INS, f"{TOOLS}/bin") if installed else (),
        as_root=task.testing.as_root,
        solution=None
        if solution is None
        else {"script": solution.script, "home": solution.home, "env": dict(solution.env)},
        workspace_mb=max(1, task.memory_mb // 2 * 2 // 3),
        solve_s=min(3600, max(1, int(task.agent_s))),
        notes=tuple(dict.fromkeys(notes)),
        bridge=_code_digest(),
    )


def _workdir(path: str) -> str:
    """Where commands start: the root itself is no place to work in."""
    return "/workspace" if path == "/" else path


@functools.cache
def _code_digest() -> str:
    """Of all code that decides what an imported task is, and how it is graded."""
    digest = hashlib.sha256()
    for folder in (Path(formats.__file__).parent, Path(__file__).parent):
        for path in sorted(folder.glob("*.py")):
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
    digest.update(Path(foreign.__file__).read_bytes())
    return digest.hexdigest()


def _without_namesakes(drafts: list[_Draft], refused: list[TaskRefused]) -> list[_Draft]:
    """The first of each id; others are refused, since an id has to say which task it is."""
    known: dict[str, _Draft] = {}
    for draft in drafts:
        first = known.setdefault(draft.id, draft)
        if first is not draft:
            message = f"its id would be {draft.id}, which {first.task.name} has; rename one of them"
            refused.append(TaskRefused(Reason.DAMAGED, draft.task.name, message))
    return list(known.values())


def _written(
    drafts: list[_Draft], refused: tuple[TaskRefused, ...], notes: tuple[str, ...], to: Path | None
) -> Imported:
    key = hashlib.sha256("\n".join(draft.key for draft in drafts).encode()).hexdigest()[:16]
    package = f"metier_bridged_{key}"
    home = to if to is not None else cache_dir() / "bridges" / key
    if to is not None and to.exists():
        raise ConfigError(f"{to} is there already; choose another folder, or remove it")
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with making_room(home.parent, "imported tasks"):
            _write_whole(home, lambda folder: _write_package(folder, package, drafts))
    return Imported(
        registry=home / package / "registry.yaml",
        environments={draft.id: draft.carried.notes for draft in drafts},
        images=tuple(dict.fromkeys(name for draft in drafts for name in _image_names(draft).values())),
        refused=refused,
        notes=notes,
    )


def _write_whole(home: Path, write: Callable[[Path], None]) -> None:
    """Under another name first: nobody finds half of it."""
    made = Path(tempfile.mkdtemp(dir=home.parent, prefix=f".{home.name}-"))
    try:
        write(made)
        made.chmod(0o755)
        try:
            os.rename(made, home)
        except OSError:
            if not home.is_dir():  # another process was faster otherwise
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _write_package(folder: Path, package: str, drafts: list[_Draft]) -> None:
    inner = folder / package
    inner.mkdir()
    (inner / "__init__.py").write_text('"""Imported tasks."""\n')
    (folder / "pyproject.toml").write_text(_project(package))
    entries: list[dict[str, Any]] = []
    for draft in drafts:
        module = f"metier_task_{draft.key[:16]}"  # a package each, so that no task's digest depends on its neighbours
        place = folder / module
        place.mkdir()
        kind = draft.id.partition("/")[2].rpartition("-")[0]
        name = one_line(draft.task.name).replace('"', "'").replace("\\", "/")
        family = _FAMILY.format(name=name, form=draft.task.form, kind=kind)
        (place / "__init__.py").touch()
        (place / "family.py").write_text(family, encoding="utf-8")
        (place / "instruction.md").write_text(_BRIEF)
        (place / "task.json").write_text(draft.carried.model_dump_json(indent=1), encoding="utf-8")
        if not draft.carried.tests_in_image:
            write_files(place / "tests", draft.task.testing.files)
        if draft.task.solution is not None:
            write_files(place / "solution", draft.task.solution.files)
        for image in filter(None, (draft.image, draft.verifier)):
            image.write(inner / "images")
        entries.append(_entry(draft, f"{module}.family:{kind}", _image_names(draft)))
    text = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=120)
    (inner / "registry.yaml").write_text(text, encoding="utf-8")


def _image_names(draft: _Draft) -> dict[str, str]:
    """Role → name."""
    return {"agent": draft.image.name} | ({"verifier": draft.verifier.name} if draft.verifier else {})


def _entry(draft: _Draft, entry_point: str, images: Mapping[str, str]) -> dict[str, Any]:
    task = draft.task
    return {
        "id": draft.id,
        "entry_point": entry_point,
        "summary": one_line(task.summary) or draft.id,
        "image": images["agent"],
        **({"verifier_image": images["verifier"]} if "verifier" in images else {}),
        "tools": ["shell", "read_file", "edit"],
        "levels": 1,
        "limits": {
            "steps": STEPS,
            "agent_s": task.agent_s,
            "verify_s": task.testing.timeout_s + 90,
            "memory_mb": task.memory_mb,
            "cpus": task.cpus,
        },
        "tags": [one_line(tag, 40) for tag in task.tags],
        "authors": list(task.authors),
        "license": "see the original",
    }


def _project(package: str) -> str:
    return (
        '[build-system]\nrequires = ["setuptools>=68"]\nbuild-backend = "setuptools.build_meta"\n\n'
        f'[project]\nname = "{package.replace("_", "-")}"\nversion = "0"\nrequires-python = ">=3.11"\n'
        'dependencies = ["metier"]\n\n'
        f'[project.entry-points."metier.registries"]\n{package} = "{package}"\n\n'
        '[tool.setuptools.packages.find]\n\n[tool.setuptools.package-data]\n"*" = ["**/*"]\n'
    )


def _own_images() -> list[str]:
    return [name for name in image_names() if not is_bridged(name)]


def _in_the_engine() -> Callable[[str], Present | None]:
    """Asks a Docker engine, where one answers."""

    @functools.cache
    def asked() -> Any:
        from metier.images.docker_builder import DockerBuilder

        return DockerBuilder() if engine_answers() else None

    def present(reference: str) -> Present | None:
        builder = asked()
        found = builder.present(reference) if builder is not None else None
        if found is None:
            return None
        pairs = (line.partition("=") for line in found[1])
        return Present(id=found[0], environment={name: value for name, _, value in pairs}, workdir=found[2])

    return present
