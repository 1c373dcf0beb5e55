"""Metier: professional sandbox environments for language-model agents, reached through `gymnasium.make`.

    import gymnasium, metier
    env = gymnasium.make("terminal/PyMutationRepair-v0", level=0)

Importing registers the environments of `registry.yaml` with Gymnasium and has no other effect.
"""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import gymnasium

from metier.envs import registry

try:
    __version__ = version("metier")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0"

__all__ = ["__version__", "register_environments"]


def register_environments(path: str | Path | None = None) -> list[str]:
    """Register the environments of a registry file (default: ours) with Gymnasium; returns their ids.

    Raises:
        metier.envs.core.ConfigError: the file is wrong; file and line are named.
    """
    names = registry.ids() if path is None else registry.add_registry(Path(path))
    for env_id in names:
        if env_id not in gymnasium.registry:
            # no max_episode_steps: the environment keeps its own limit and grades at it, TimeLimit would cut ungraded
            gymnasium.register(
                id=env_id,
                entry_point="metier.harness.gym.env:MetierEnv",
                vector_entry_point=None,
                order_enforce=True,
                disable_env_checker=True,
                kwargs={"env_id": env_id},
            )
    return names


register_environments()
