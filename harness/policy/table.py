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
    "replay": "metier.harness.policy.replay:replay_policy",
    "random": "metier.harness.policy.random:RandomPolicy",
    "human": "metier.harness.policy.human:HumanPolicy",
    "openai": "metier.harness.policy.openai:openai_policy",
    "agent": "metier.harness.policy.agent:agent_policy",
    "inside": "metier.harness.policy.inside:inside_policy",
    "engine": "metier.trainer.rollout.policy:engine_policy",
}
"""Each is called with its settings as keyword arguments. In `name:address` the address is the setting of that name."""

EXTRAS = {"agent": "agents", "engine": "train"}
"""What to install for those that need more than the base."""

OF_ONE_TASK = frozenset({"oracle", "replay"})
"""Those whose settings name the instance, which is not the agent's: `env_id`, `seed`, `level`, `options`, `sample`."""


def open_policy(name: str, settings: Mapping[str, Json] | None = None) -> Policy:
    """The policy of that name, such as `noop` or `openai:http://127.0.0.1:8000/v1#smollm2`.

    Raises:
        ConfigError: an unknown name, refused settings, or a part that is not installed.
    """
    kind, colon, address = name.partition(":")
    entry_point = POLICIES.get(kind)
    if entry_point is None:
        raise ConfigError(f"unknown policy {kind!r}{suggest(kind, list(POLICIES))}; there are {', '.join(POLICIES)}")
    module_name, _, attribute = entry_point.partition(":")
    arguments: dict[str, Any] = dict(settings or {})
    if colon:
        if "address" in arguments:
            raise ConfigError(f"policy {name!r} has an address in its name and another in its settings")
        arguments["address"] = address
    try:
        factory: Any = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        advice = f"; install metier[{EXTRAS[kind]}]" if kind in EXTRAS else ""
        raise ConfigError(f"policy {kind!r} needs a part that is not installed: {error}{advice}") from error
    try:
        return factory(**arguments)
    except TypeError as error:
        given = ", ".join(arguments) or "none"
        raise ConfigError(f"policy {kind!r} refuses its settings ({given}): {error}") from error


def settings_for(
    name: str,
    settings: Mapping[str, Json] | None,
    *,
    env_id: str,
    seed: int,
    level: int = 0,
    options: Mapping[str, Json] | None = None,
    sample: int = 0,
) -> dict[str, Json]:
    """The settings with which to open a policy for this task: with its name, where they must name it.

    Example:
        >>> settings_for("oracle", {}, env_id="a/B-v0", seed=3)
        {'env_id': 'a/B-v0', 'seed': 3, 'level': 0, 'options': {}}
        >>> settings_for("noop", {}, env_id="a/B-v0", seed=3)
        {}
    """
    made: dict[str, Json] = dict(settings or {})
    kind = name.partition(":")[0]
    if kind not in OF_ONE_TASK:
        return made
    task: dict[str, Json] = {"env_id": env_id, "seed": seed, "level": level}
    task |= {"options": dict(options or {})} if kind == "oracle" else {"sample": sample}
    return made | task
