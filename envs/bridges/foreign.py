"""A task of another format, as far as it is carried: what both formats have in common.

`notes` are what a person is told and what every import records: each is one thing that the original has and this
environment has not, or has otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum, auto

from .folder import Held


class Form(StrEnum):
    """Where a task comes from; also the domain of its id."""

    HARBOR = "harbor"
    TERMINAL_BENCH = "terminal-bench"


class Reads(StrEnum):
    """What the verdict is read from."""

    REWARD_FILE = auto()
    """`/logs/verifier/reward.json`, else `reward.txt`."""
    PYTEST_SUMMARY = auto()
    """The summary that pytest prints; exit codes say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Testing:
    """How it is graded."""

    files: Mapping[str, Held]
    """Below /tests; they come into the verifier's sandbox only, after the agent. Empty where its image has them."""
    script: str
    """An absolute path."""
    reads: Reads
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    kept: tuple[str, ...] | None = None
    """The absolute paths that reach the tests; None: all that the agent may write."""
    dockerfile: str | None = None
    """Of an image of its own, whose context is `files`."""
    as_root: bool = False
    """They ask for root by name. Root of a sandbox has no rights over the agent's files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The author's own."""

    files: Mapping[str, Held]
    script: str
    """Its name in `files`."""
    home: str
    """The absolute folder that `files` are put into."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTask:
    """One task."""

    form: Form
    name: str
    """As it calls itself: `org/name`, or its folder's name."""
    summary: str
    instruction: str
    dockerfile: str | None
    docker_image: str | None
    """A prebuilt image, which wins over the Dockerfile."""
    context: Mapping[str, Held]
    """What the Dockerfile may COPY."""
    workdir: str | None
    """Overrides the image's."""
    env: Mapping[str, str]
    testing: Testing
    solution: Solution | None
    agent_s: float
    memory_mb: int
    cpus: float
    tags: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def texts(self) -> list[str]:
        """All that names paths: the instruction, the Dockerfile, the tests and the solution."""
        solution = self.solution.files.values() if self.solution else ()
        tests = (held for name, held in self.testing.files.items() if "/" not in name)
        scripts = [held.data for held in (*tests, *solution) if len(held.data) < 1 << 20]
        said = [self.instruction, self.dockerfile or "", self.testing.dockerfile or "", *(self.testing.kept or ())]
        return [*said, *(data.decode("utf-8", "replace") for data in scripts if b"\0" not in data)]
