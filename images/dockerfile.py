"""Reading a Dockerfile of the small dialect that builds everywhere: FROM, ARG, RUN, COPY, ENV.

Every instruction is kept with its line, so that a refusal names the place. What is accepted here is exactly what
`docker build` and the builder without an engine do alike; everything else is refused, never ignored.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from metier.envs.core import ConfigError

ALLOWED = ("FROM", "ARG", "RUN", "COPY", "ENV")
_PARENT = re.compile(r"metier/([a-z0-9][a-z0-9-]*)")
_ENGINES = re.compile(r"sha256:[0-9a-f]{64}")
"""An image that only the engine holds, by its id: what an imported task may grow from."""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One instruction: `RUN` with its shell line, `COPY` with its words."""

    line: int
    keyword: str
    value: str

    def words(self) -> list[str]:
        """The value split as a shell would, without expansion."""
        return shlex.split(self.value)

    def assignments(self) -> dict[str, str]:
        """`NAME=value` pairs of ENV and ARG; an ARG without a default has no value and is left out."""
        return dict(word.split("=", 1) for word in self.words() if "=" in word)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$NAME` and `${NAME}` by their values, empty where unknown, as Docker does."""
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], ""), text)


def parent_of(steps: tuple[Step, ...]) -> str | None:
    """The folder name in `FROM metier/<name>`; None where it grows from an image of the engine's."""
    return None if _ENGINES.fullmatch(steps[0].value) else steps[0].value.removeprefix("metier/")


def parse(path: Path) -> tuple[Step, ...]:
    """The steps of the Dockerfile at `path`, FROM first.

    Raises:
        ConfigError: `file:line: what is wrong and what to write instead`.
    """
    steps = tuple(_steps(path))
    if not steps or steps[0].keyword != "FROM":
        raise ConfigError(f"{path}:1: the first instruction must be FROM metier/<image>")
    for index, step in enumerate(steps):
        problem = _problem(step, first=index == 0)
        if problem:
            raise ConfigError(f"{path}:{step.line}: {problem}")
    return steps


def _steps(path: Path) -> list[Step]:
    steps: list[Step] = []
    pending: list[str] = []
    start = 0
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        start = start if pending else number
        continues = line.endswith("\\")
        pending.append(line.removesuffix("\\").rstrip())
        if not continues:
            steps.append(_step(path, start, " ".join(pending)))
            pending = []
    if pending:
        raise ConfigError(f"{path}:{start}: the last line ends with a backslash; write the rest or remove it")
    return steps


def _step(path: Path, line: int, text: str) -> Step:
    keyword, _, value = text.partition(" ")
    keyword = keyword.upper()
    if keyword not in ALLOWED:
        raise ConfigError(f"{path}:{line}: {keyword} is not allowed; an image is made of {', '.join(ALLOWED)}")
    return Step(line=line, keyword=keyword, value=value.strip())


def _problem(step: Step, *, first: bool) -> str | None:
    """Why this step is refused, or None."""
    if not step.value:
        return f"{step.keyword} says nothing; complete or remove it"
    if step.keyword == "FROM":
        if not first:
            return "a second FROM; images here have one stage, copy files from the folder instead"
        known = _PARENT.fullmatch(step.value) or _ENGINES.fullmatch(step.value)
        return None if known else f"FROM {step.value}: write FROM metier/<image>, without a tag"
    if step.keyword == "RUN":
        if step.value.startswith(("[", "--")):
            return "RUN in shell form only, without flags: RUN command && command"
        return "here-documents do not build everywhere; COPY a file instead" if "<<" in step.value else None
    if "${" in step.value and _VARIABLE.search(step.value) is None:
        return "only $NAME and ${NAME} are expanded; write the value out"
    try:
        words = step.words()
    except ValueError as error:
        return f"{step.keyword}: {error}; check the quotes"
    return _copy_problem(words) if step.keyword == "COPY" else _assignment_problem(step.keyword, words)


def _copy_problem(words: list[str]) -> str | None:
    if any(word.startswith("--") for word in words):
        return "COPY without flags; change owner or mode by RUN"
    if len(words) < 2:
        return "COPY source… target"
    if any(word.startswith("/") or ".." in Path(word).parts for word in words[:-1]):
        return "COPY takes files from the image's own folder; write a path relative to it"
    if not words[-1].startswith("/"):
        return f"COPY to {words[-1]}: write an absolute target"
    return "COPY of several sources: end the target with /" if len(words) > 2 and not words[-1].endswith("/") else None


def _assignment_problem(keyword: str, words: list[str]) -> str | None:
    bare = [word for word in words if "=" not in word]
    if keyword == "ENV" and bare:
        return f"ENV {bare[0]}: write ENV NAME=value"
    if keyword == "ARG" and len(words) != 1:
        return "one name an ARG: ARG NAME=default"
    names = [word.split("=", 1)[0] for word in words]
    wrong = [name for name in names if not re.fullmatch(r"[A-Za-z_]\w*", name)]
    return f"{keyword} {wrong[0]}: not a variable's name" if wrong else None
