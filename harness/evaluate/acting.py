"""The policy of an evaluation: what a person names, what is told to workers, and what goes into keys and manifests."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from metier.envs.core import ConfigError, Json

from ..policy import open_policy
from ..policy.table import OF_ONE_TASK
from .plan import PlannedPolicy

_SETTING = re.compile(r"[a-z]\w*=")
_SECRET = re.compile(r"(^|_)(key|token|secret|password|passwd|authorization|credentials?|cookie)$")


@runtime_checkable
class _Settings(Protocol):
    """Settings that know which of them change what is said."""

    def identity(self) -> dict[str, Json]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """A policy as workers open it; `planned` is what is recorded of it."""

    name: str
    settings: Mapping[str, Json]
    planned: PlannedPolicy


def acting(line: str, settings: Sequence[str] = ()) -> Acting:
    """The policy of a command line: `NAME`, `NAME:ADDRESS` or `NAME:setting=value,…`, and further `setting=value`.

    Values are JSON, or text where they are none.

    Raises:
        ConfigError: an unknown policy, settings that it refuses, a secret among them, or a policy that only acts once.

    Example:
        >>> acting("random:seed=3").planned
        PlannedPolicy(name='random', settings={'seed': 3})
    """
    name, _, rest = line.partition(":")
    given = list(settings)
    if _SETTING.match(rest):
        line, given = name, [*_split(rest), *given]
    chosen = dict(parsed(one) for one in given)
    if name == "human":
        raise ConfigError("a person plays one episode at a time: metier play ID")
    for secret in _secrets(chosen):
        raise ConfigError(
            f"{secret} looks like a secret, which would be recorded: put it into an environment variable, and name "
            f"that (the policy openai takes api_key_env)"
        )
    return Acting(name=line, settings=chosen, planned=_planned(line, chosen))


def _secrets(value: Json) -> Iterator[str]:
    """Names of settings, however deep, that belong into no record."""
    if isinstance(value, dict):
        for name, inside in value.items():
            if _SECRET.search(name.lower().replace("-", "_")):
                yield name
            yield from _secrets(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _secrets(inside)


def _split(text: str) -> list[str]:
    """At commas that begin another setting, so that values may have commas too."""
    return re.split(r",(?=[a-z]\w*=)", text)


def parsed(text: str) -> tuple[str, Json]:
    """A setting's name and value. Raises ConfigError.

    Example:
        >>> parsed("temperature=0.2"), parsed("model=smollm2")
        (('temperature', 0.2), ('model', 'smollm2'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ConfigError(f"{text!r} is no setting: write name=value")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _planned(line: str, settings: Mapping[str, Json]) -> PlannedPolicy:
    """What is recorded; opening it here refuses wrong settings before anything runs."""
    name, colon, address = line.partition(":")
    recorded: dict[str, Json] = {**settings, **({"address": address} if colon else {})}
    if name in OF_ONE_TASK:  # each trial opens its own
        if name == "replay" and isinstance(recorded.get("address"), str):
            recorded["sha256"] = _sha256(Path(str(recorded.pop("address"))))
        return PlannedPolicy(name=name, settings=recorded)
    known = getattr(open_policy(line, settings), "settings", None)
    return PlannedPolicy(name=name, settings=known.identity() if isinstance(known, _Settings) else recorded)


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}; name a file of results") from error
