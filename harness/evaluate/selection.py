"""What a person asks to evaluate, resolved: names of suites and environments, as a plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path

from metier.envs import registry
from metier.envs.core import ConfigError, Json
from metier.envs.entry import Entry
from metier.envs.suite import Seeds, Suite
from metier.images import digest as image_digest

from ..bridges import ImportSettings, add_tasks, is_bridged, looks_like_tasks
from ..certify import Status, certificate_status, environment_digest
from ..grading import secret_fingerprint
from ..sandbox import backend_names, open_backend
from .plan import Conditions, Plan, PlannedEnvironment, PlannedPolicy

DEFAULT_SEEDS = "0:10"
"""Of an environment that is named by itself."""


class Split(StrEnum):
    """Which seeds of a suite."""

    PUBLIC = auto()
    """For whoever develops an agent."""
    HELD_OUT = "held-out"
    """For ranking it; nobody trains on these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for; None leaves it to the suites."""

    names: Sequence[str]
    seeds: Seeds | None = None
    levels: Sequence[int] | None = None
    split: Split = Split.PUBLIC
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    substitutes: Mapping[str, str] = field(default_factory=dict[str, str])
    """For the tasks of a folder: a base image → one of ours that stands in for it."""
    uncertified: bool = False
    """Also those of a suite's domains and tags that hold no valid certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The environments, and what a person should know of the choice."""

    environments: tuple[PlannedEnvironment, ...]
    notes: tuple[str, ...]
    images: tuple[str, ...] = ()
    """Of tasks that were imported for this: nobody built them yet."""


def select(asked: Asked) -> Selected:
    """The environments of a plan, in the order asked for.

    Raises:
        ConfigError: an unknown name, level or option, a split that a suite has not, an environment that is asked for
            in two ways, or nothing at all.
    """
    if not asked.names:
        raise ConfigError(f"name suites or environments; suites are {', '.join(registry.suites()) or 'none'}")
    notes: list[str] = []
    chosen: dict[tuple[str, str], PlannedEnvironment] = {}
    for name in asked.names:
        for one in _of_name(name, asked, notes):
            known = chosen.setdefault((one.id, str(sorted(one.options.items()))), one)
            if known != one:
                raise ConfigError(
                    f"{one.id} is asked for twice, with other seeds or levels: give --seeds and --level, or evaluate "
                    f"{name} into a folder of its own"
                )
    if not chosen:
        raise ConfigError("nothing is selected: " + ("; ".join(notes) or "no environment matches"))
    for one in chosen.values():
        if one.certificate != Status.VALID and not is_bridged(one.image):
            notes.append(f"{one.id} is run without a valid certificate ({one.certificate})")
    entries = [registry.get(one.id) for one in chosen.values() if is_bridged(one.image)]
    images = [image for entry in entries for image in (entry.image, entry.verifier_image) if image]
    return Selected(environments=tuple(chosen.values()), notes=tuple(notes), images=tuple(dict.fromkeys(images)))


def make_plan(
    selected: Selected, policy: PlannedPolicy, *, samples: int, backend: str, episode_s: float, version: str
) -> Plan:
    """The plan of these environments, under the conditions of this process.

    Raises:
        ConfigError: no sample, or an episode of no time or without end.
    """
    if samples < 1 or not 0 < episode_s < math.inf:
        raise ConfigError(f"{samples} samples of episodes of {episode_s:g} s: give at least 1, and a number of seconds")
    conditions = Conditions(
        backend=backend, episode_s=episode_s, secret_fingerprint=secret_fingerprint(), metier=version
    )
    return Plan(environments=selected.environments, samples=samples, policy=policy, conditions=conditions)


async def backend_of(name: str) -> str:
    """The backend's own name: what `auto` means on this machine, now.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in backend_names():
        raise ConfigError(f"no sandbox backend {name!r}{registry.suggest(name, backend_names())}")
    if name != "auto":
        return name
    from ..sandbox.docker import answers

    return "docker" if await answers() else "bubblewrap"


async def check_promises(backend: str, env_ids: Iterable[str]) -> None:
    """Before anything runs: whether the backend promises, on this machine, what the environments require.

    Raises:
        ConfigError: it does not.
        SandboxUnavailable: it cannot work at all.
    """
    required = {env_id: frozenset(registry.get(env_id).requires) for env_id in env_ids}
    if not any(required.values()):
        return
    async with open_backend(backend) as opened:
        missing = {env_id: sorted(needs - opened.capabilities) for env_id, needs in required.items()}
    lacking = {env_id: names for env_id, names in missing.items() if names}
    if lacking:
        told = "; ".join(f"{env_id} requires {', '.join(names)}" for env_id, names in sorted(lacking.items()))
        raise ConfigError(
            f"the {backend} backend cannot promise on this machine what is required: {told}; "
            f"metier doctor says why, and --backend takes another one"
        )


def _of_name(name: str, asked: Asked, notes: list[str]) -> Iterator[PlannedEnvironment]:
    if looks_like_tasks(name):
        yield from _of_folder(name, asked, notes)
        return
    if "/" in name:
        entry = registry.get(name)
        yield _planned(entry, asked, asked.options, asked.seeds or Seeds.parse(DEFAULT_SEEDS), asked.levels or (0,))
        return
    try:
        suite = registry.suite(name)
    except ConfigError as error:
        raise ConfigError(f"{error}; an environment is named domain/Name-v0") from None
    seeds = asked.seeds or _seeds(suite, asked.split)
    for entry, options in members(suite, asked.uncertified, notes):
        levels = asked.levels or _levels(suite, entry)
        if levels:
            yield _planned(entry, asked, {**options, **asked.options}, seeds, levels)
        else:
            notes.append(f"{entry.id} was left out: it has none of the levels of {suite.suite}")


def _of_folder(name: str, asked: Asked, notes: list[str]) -> Iterator[PlannedEnvironment]:
    """The tasks of a folder, imported. One of them is the same for every seed, so one seed is enough for each."""
    imported = add_tasks(Path(name), ImportSettings(substitutes=asked.substitutes))
    notes += [*imported.told(), f"{name}: imported tasks hold no certificate"]
    if not imported.environments:
        raise ConfigError(f"{name}: none of its {len(imported.refused)} tasks can be carried; see above")
    for env_id in imported.environments:
        yield _planned(
            registry.get(env_id), asked, asked.options, asked.seeds or Seeds.parse("0"), asked.levels or (0,)
        )


def members(suite: Suite, uncertified: bool, notes: list[str]) -> Iterator[tuple[Entry, Mapping[str, Json]]]:
    """The environments of a suite with their options; what was left out for want of a certificate goes to `notes`.

    Raises:
        ConfigError: it names an environment that does not exist.
    """
    named = {one.id: one.options for one in suite.named}
    left_out: list[str] = []
    for entry in registry.entries():
        if entry.id in named or not suite.matches(entry.domain, entry.tags):
            continue
        if uncertified or certificate_status(entry) is Status.VALID:
            yield entry, {}
        else:
            left_out.append(entry.id)
    for env_id, options in named.items():
        yield registry.get(env_id), options
    if left_out:
        notes.append(
            f"{suite.suite}: {len(left_out)} without a valid certificate were left out ({', '.join(left_out)}); "
            f"certify them, or take them in with --uncertified"
        )


def _seeds(suite: Suite, split: Split) -> Seeds:
    if split is Split.PUBLIC:
        return suite.public_seeds
    if suite.held_out_seeds is None:
        raise ConfigError(f"{suite.suite} has no held-out seeds: evaluate its public ones, or give --seeds")
    return suite.held_out_seeds


def _levels(suite: Suite, entry: Entry) -> Sequence[int]:
    wanted = range(entry.levels) if suite.levels == "all" else suite.levels
    return [level for level in wanted if level < entry.levels]


def _planned(
    entry: Entry, asked: Asked, options: Mapping[str, Json], seeds: Seeds, levels: Sequence[int]
) -> PlannedEnvironment:
    """Raises ConfigError for a level or an option that it has not."""
    registry.make_family(entry, options)
    return PlannedEnvironment(
        id=entry.id,
        options=dict(options),
        levels=tuple(dict.fromkeys(entry.check_level(level) for level in levels)),
        seeds=seeds,
        digest=environment_digest(entry),
        image=entry.image,
        image_digest=image_digest(entry.image),
        certificate=str(certificate_status(entry)),
    )
