"""Metier: professional sandbox environments for language-model agents, reached through `gymnasium.make`.

    import gymnasium, metier
    env = gymnasium.make("terminal/PyMutationRepair-v0", level=0)
    vector = gymnasium.make_vec("terminal/PyMutationRepair-v0", num_envs=8)

Importing registers with Gymnasium the environments of `registry.yaml` and those of installed packages (entry-point
group `metier.registries`), and has no other effect. Gymnasium itself is not imported for that: workers and the command
line do without its half second, and whoever imports it later finds everything registered. A wrong registry of another
package is left out with a warning.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from metier.envs import registry

if TYPE_CHECKING:
    __version__: str

__all__ = ["__version__", "register_environments"]


def register_environments(path: str | Path | None = None) -> list[str]:
    """Register the environments of a registry file (default: ours, and those of installed packages); returns their ids.

    A folder is one of other people's tasks: they are imported, and what could not be carried is a warning each.

    Raises:
        metier.envs.core.ConfigError: the file is wrong; file and line are named. Or no task of the folder can be taken.
    """
    from gymnasium.envs import registration

    if path is not None and Path(path).is_dir():
        from metier.harness.bridges import add_tasks

        imported = add_tasks(Path(path))
        for line in imported.told():
            warnings.warn(line, stacklevel=2)
        names = list(imported.environments)
    else:
        names = registry.ids() if path is None else registry.add_registry(Path(path))
    for env_id in names:
        if env_id not in registration.registry:
            # straight into Gymnasium's table: `register` looks through all of it each time, which hundreds would feel.
            # No max_episode_steps: the environment keeps its own limit and grades at it, TimeLimit would cut ungraded
            registration.registry[env_id] = registration.EnvSpec(
                id=env_id,
                entry_point="metier.harness.gym.env:MetierEnv",
                vector_entry_point="metier.harness.gym.vector:MetierVectorEnv",
                order_enforce=True,
                disable_env_checker=True,
                kwargs={"env_id": env_id},
            )
    return names


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("metier")
        except PackageNotFoundError:  # a checkout that was never installed
            return "0"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _UntilGymnasium(MetaPathFinder):
    """Waits for Gymnasium's own environments to be imported, and adds ours to them; then it is gone."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium.envs":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                register_environments()

            spec.loader.exec_module = execute_and_register
        return spec


if "gymnasium.envs" in sys.modules:
    register_environments()
else:
    sys.meta_path.insert(0, _UntilGymnasium())
for _problem in registry.problems():
    warnings.warn(_problem, stacklevel=2)
