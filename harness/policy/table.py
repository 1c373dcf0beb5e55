"""The registered policies: name → lazy entry point. What needs torch is reached by its name only."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from metier.envs.core import ConfigError, Json
from metier.envs.registry import suggest

from .contract import Policy

POLICIES: dict[str, str] = {
    "oracle": "metier.harness.policy.scripted:oracle_policy",
    "noop": "metier.harness.policy.scripted:NoopPolicy",
    "scripted": "metier.harness.policy.scripted:ScriptedPolicy",
    "random": "metier.harness.policy.random:RandomPolicy",
    "human": "metier.harness.policy.human:HumanPolicy",
    "engine": "metier.trainer.rollout.policy:engine_policy",
}
"""Each is called with its settings as keyword arguments."""


def open_policy(name: str, settings: Mapping[str, Json] | None = None) -> Policy:
    """The policy of that name.

    Raises:
        ConfigError: an unknown name, refused settings, or a part that is not installed.
    """
    entry_point = POLICIES.get(name)
    if entry_point is None:
        raise ConfigError(f"unknown policy {name!r}{suggest(name, list(POLICIES))}; there are {', '.join(POLICIES)}")
    module_name, _, attribute = entry_point.partition(":")
    arguments: dict[str, Any] = dict(settings or {})
    try:
        factory: Any = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise ConfigError(f"policy {name!r} needs a part that is not installed: {error}") from error
    try:
        return factory(**arguments)
    except TypeError as error:
        raise ConfigError(f"policy {name!r} refuses its settings: {error}") from error
