"""One entry of `registry.yaml`: what is known of an environment before its code is imported."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from .core import Capability, ConfigError, SandboxSpec
from .registry_file import ID_PATTERN

ToolName = Literal["shell", "read_file", "edit", "python", "view"]
"""The tools of the harness; `submit` is always there, and a family may add its own."""


class Limits(BaseModel, frozen=True, extra="forbid"):
    """What bounds an episode."""

    steps: Annotated[int, Field(ge=1)] = 40
    """Tool calls."""
    agent_s: Annotated[float, Field(gt=0)] = 900
    """Tool time, not the policy's thinking."""
    verify_s: Annotated[float, Field(gt=0)] = 120
    memory_mb: Annotated[int, Field(ge=64)] = 1024
    cpus: Annotated[float, Field(gt=0)] = 1
    network: Literal["none"] = "none"


class Entry(BaseModel, frozen=True, extra="forbid"):
    """One environment, as `registry.yaml` states it."""

    id: Annotated[str, Field(pattern=ID_PATTERN)]
    entry_point: Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]
    summary: Annotated[str, Field(min_length=1, max_length=120)]
    image: str
    """A folder of `images/`."""
    verifier_image: str = ""
    """Another one that its verifier runs in; empty where it is the same."""
    tools: tuple[ToolName, ...]
    observation: Literal["text", "text+image"] = "text"
    levels: Annotated[int, Field(ge=1)] = 5
    limits: Limits = Limits()
    requires: tuple[Capability, ...] = ()
    tags: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    license: str = "Apache-2.0"

    @property
    def domain(self) -> str:
        """The namespace of the id."""
        return self.id.partition("/")[0]

    def check_level(self, level: object) -> int:
        """The level, if this environment has it.

        Raises:
            ConfigError: it has not.
        """
        if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level < self.levels:
            raise ConfigError(f"{self.id} has levels 0 to {self.levels - 1}, not {level!r}")
        return level

    def sandbox(self, *, verifier: bool = False) -> SandboxSpec:
        """What its sandboxes must be."""
        half = self.limits.memory_mb // 2
        return SandboxSpec(
            image=(self.verifier_image or self.image) if verifier else self.image,
            memory_mb=self.limits.memory_mb,
            cpus=self.limits.cpus,
            verifier=verifier,
            writable_mb={"/workspace": half * 2 // 3, "/tmp": half // 3},
            requires=frozenset(self.requires),
        )
