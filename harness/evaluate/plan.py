"""A plan: which trials an evaluation consists of, and everything that makes one trial another.

A trial is one episode of one policy. Its key is the hash of all that may change how it ends; what only changes when or
where it runs (concurrency, budgets, the executor, the API key) is in no key. So a folder's results stay of use for as
long as they mean the same, and for no longer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pydantic

from metier.envs.core import Json
from metier.envs.suite import Seeds

Digest = Annotated[str, pydantic.Field(pattern=r"^[0-9a-f]{64}$")]
KEY_PATTERN = r"^[0-9a-f]{32}$"


class PlannedPolicy(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Who acts: a registered name, and those settings that change what it does; no secret is among them."""

    name: str
    settings: dict[str, Json] = {}


class PlannedEnvironment(pydantic.BaseModel, frozen=True, extra="forbid"):
    """One environment of a plan."""

    id: str
    options: dict[str, Json] = {}
    levels: tuple[int, ...]
    seeds: Seeds
    digest: Digest
    """Covers the family, its entry and its image's recipe (`metier.harness.certify.environment_digest`)."""
    image: str
    image_digest: Digest
    certificate: str
    """What its certificate was worth when the plan was made."""

    @property
    def domain(self) -> str:
        """The namespace of the id."""
        return self.id.partition("/")[0]


class Conditions(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What holds for every trial of a plan, beside its policy."""

    backend: str
    """Of the sandboxes, by its own name, never `auto`."""
    episode_s: Annotated[float, pydantic.Field(gt=0, allow_inf_nan=False)]
    """Bounds an episode, the policy's thinking included."""
    secret_fingerprint: str
    """Of the hub's secret, from which hidden inputs come."""
    metier: str
    """The version of the harness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One episode to run."""

    key: str
    env_id: str
    options: Mapping[str, Json]
    level: int
    seed: int
    sample: int

    @property
    def domain(self) -> str:
        """The namespace of the id."""
        return self.env_id.partition("/")[0]


class Plan(pydantic.BaseModel, frozen=True, extra="forbid"):
    """All trials of an evaluation, in the order in which they start: a seed of everything before the next seed."""

    environments: tuple[PlannedEnvironment, ...]
    samples: Annotated[int, pydantic.Field(ge=1)]
    """Of each instance; k of pass@k is at most this."""
    policy: PlannedPolicy
    conditions: Conditions

    @property
    def num_trials(self) -> int:
        """How many there are."""
        return sum(one.seeds.total * len(one.levels) for one in self.environments) * self.samples

    @property
    def digest(self) -> str:
        """Names the plan by all that its trials are; what a certificate was worth that day is no part of it."""
        said = self.model_dump(mode="json", exclude={"environments": {"__all__": {"certificate"}}})
        return hashlib.sha256(canonical(said)).hexdigest()

    def trials(self) -> Iterator[Trial]:
        """Every trial."""
        keys = {id(one): self._keys_of(one) for one in self.environments}
        for one, seed in self._by_seed():
            for level in one.levels:
                for sample in range(self.samples):
                    yield Trial(
                        key=keys[id(one)].of(level, seed, sample),
                        env_id=one.id,
                        options=one.options,
                        level=level,
                        seed=seed,
                        sample=sample,
                    )

    def _by_seed(self) -> Iterator[tuple[PlannedEnvironment, int]]:
        waiting = [(one, one.seeds.each()) for one in self.environments]
        while waiting:
            left: list[tuple[PlannedEnvironment, Iterator[int]]] = []
            for one, seeds in waiting:
                seed = next(seeds, None)
                if seed is not None:
                    yield one, seed
                    left.append((one, seeds))
            waiting = left

    def _keys_of(self, one: PlannedEnvironment) -> _Keys:
        return _Keys(
            {
                "environment": {"id": one.id, "digest": one.digest, "options": one.options},
                "policy": self.policy.model_dump(mode="json"),
                "conditions": self.conditions.model_dump(mode="json"),
            }
        )


class _Keys:
    """Keys of one environment's trials; what they share is hashed once."""

    def __init__(self, shared: Mapping[str, Any]) -> None:
        self._shared = hashlib.sha256(canonical(shared))

    def of(self, level: int, seed: int, sample: int) -> str:
        whole = self._shared.copy()
        whole.update(canonical({"level": level, "seed": seed, "sample": sample}))
        return whole.hexdigest()[:32]


def canonical(value: Any) -> bytes:
    """The one way to write a JSON value, for hashes.

    Example:
        >>> canonical({"b": 1.0, "a": "ä"})
        b'{"a":"\\xc3\\xa4","b":1.0}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def differences(old: Plan, new: Plan) -> list[str]:
    """What makes the new plan's trials others than the old one's, a line each; empty where keys stay.

    More or fewer seeds, levels, samples and environments are no difference: they add trials, or leave them out.
    """
    lines = [
        *_changed("policy", old.policy.model_dump(mode="json"), new.policy.model_dump(mode="json")),
        *_changed("conditions", old.conditions.model_dump(mode="json"), new.conditions.model_dump(mode="json")),
    ]
    known = {one.id: one for one in old.environments}
    for one in new.environments:
        before = known.get(one.id)
        if before is None:
            continue
        lines += _changed(f"{one.id} options", before.options, one.options)
        if before.image_digest != one.image_digest:
            lines.append(f"{one.id}: its image {one.image} is another one")
        elif before.digest != one.digest:
            lines.append(f"{one.id}: its code or its registry entry is another one")
    return lines


def _changed(name: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _changed(f"{name}.{key}", old.get(key), new.get(key))
    elif old != new:
        yield f"{name}: {_shown(old)} → {_shown(new)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else f"{text[:80]}…"
