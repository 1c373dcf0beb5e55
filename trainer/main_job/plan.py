"""What a main job is to do: a checked-in file, validated; seeds of training and of evaluation cannot meet."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from metier.envs.core import ConfigError

from ..grpo import GrpoSettings

Positive = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskLine(_Part):
    """One environment at one level."""

    id: str
    level: Annotated[int, Field(ge=0)] = 0


class Seeds(_Part):
    """Where each phase's seeds begin; no two phases share one."""

    sft: int
    grpo: int
    control: int
    held_out: int


class Evaluation(_Part):
    """How the model is evaluated on held-out seeds: sampled, as the policy that GRPO trains."""

    episodes: Positive
    """Of each environment."""
    base_episodes: Positive
    """Of each environment, for the untrained model."""


class SftPlan(_Part):
    """Supervised warm start on the oracle's trajectories, each seen once."""

    episodes: Positive
    """Of each environment."""
    batch: Positive = 8
    lr: float = 1e-4
    warmup_updates: int = 4


class GrpoPlan(GrpoSettings, frozen=True):
    """Group relative policy optimisation: the trainer's settings, and how large a step's batch is."""

    prompts: Positive = 8
    samples: Annotated[int, Field(ge=2)] = 8

    @model_validator(mode="after")
    def _has_no_seed_of_its_own(self) -> GrpoPlan:
        if "seed" in self.model_fields_set:
            raise ValueError("the whole job has one seed: write it as `seed`, beside `grpo`")
        return self


class MainJob(_Part):
    """The whole job.

    Example:
        >>> MainJob.load(Path("examples/main_job.yaml")).grpo.steps >= 15
        True
    """

    model: str
    tour: tuple[TaskLine, ...]
    """Oracle episodes to show, one a trade."""
    tasks: tuple[TaskLine, ...]
    """What the model learns."""
    seeds: Seeds
    seed: int = 0
    """Of sampling and initialisation."""
    evaluation: Evaluation
    sft: SftPlan
    grpo: GrpoPlan
    control: bool = True
    """Train SFT alone for the compute that GRPO took, and evaluate it as well."""
    executor: Literal["ray", "local"] = "ray"
    backend: str = "auto"
    in_flight: Positive = 64
    episode_s: float = 300.0
    max_turn_tokens: Positive = 96
    context_tokens: Positive = 640
    trainable_layers: int | None = None
    """Train only the last so many layers; all by default."""

    @model_validator(mode="after")
    def _seeds_are_apart(self) -> MainJob:
        spans = sorted(self._spans())
        for (_, end, first), (start, _, second) in itertools.pairwise(spans):
            if start < end:
                raise ValueError(f"the seeds of {first} and {second} overlap: move seeds.{second} to {end} or beyond")
        return self

    def _spans(self) -> Iterator[tuple[int, int, str]]:
        yield self.seeds.sft, self.seeds.sft + self.sft.episodes, "sft"
        # bounded retries may ask for more prompts than steps × prompts
        yield self.seeds.grpo, self.seeds.grpo + 4 * self.grpo.steps * self.grpo.prompts, "grpo"
        yield self.seeds.control, self.seeds.control + 50_000, "control"
        longest = max(self.evaluation.episodes, self.evaluation.base_episodes)
        yield self.seeds.held_out, self.seeds.held_out + longest, "held_out"

    @classmethod
    def load(cls, path: Path) -> MainJob:
        """Read a plan.

        Raises:
            ConfigError: no such file, no YAML, or a wrong field, which is named.
        """
        try:
            return cls.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise ConfigError(f"cannot read the plan {path}: {error.strerror}") from error
        except (yaml.YAMLError, ValidationError) as error:
            raise ConfigError(f"{path}: {error}") from error
