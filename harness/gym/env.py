"""The environment that `gymnasium.make("domain/Name-v0")` returns: one step is one tool call.

A step at a limit is `truncated` and graded all the same; a submission is `terminated`. An infrastructure failure raises
its typed error and gives no reward. The environment keeps its own step limit, since Gymnasium's TimeLimit would cut the
episode ungraded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from metier.envs.core import Json

from ..episode import Episode
from .loop import call
from .member import PICTURE, Member, Observation, check_render_mode

__all__ = ["PICTURE", "MetierEnv", "Observation"]


class MetierEnv(gymnasium.Env[Observation, dict[str, Json]]):
    """A professional environment behind the Gymnasium interface.

    Args:
        env_id: an id of the registry.
        level: the default difficulty; `reset(options={"level": …})` overrides it for one episode.
        backend: "auto", "docker", "bubblewrap" or another registered sandbox backend.
        render_mode: None or "rgb_array".
        options: the family's own options, by name.

    Raises:
        ConfigError: an unknown id, level, option or render mode.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # gymnasium declares it so
        "render_modes": ["rgb_array"],
        "render_fps": 1,
    }

    def __init__(
        self, env_id: str, level: int = 0, backend: str = "auto", render_mode: str | None = None, **options: Json
    ) -> None:
        self._member = Member(env_id, level, backend, options)
        check_render_mode(env_id, render_mode)
        self.entry = self._member.entry
        self.render_mode = render_mode
        self.observation_space = self._member.observation_space
        self.action_space = self._member.calls

    @property
    def episode(self) -> Episode | None:
        """The running episode, for those who look behind the interface."""
        return self._member.episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: the observation's text is the brief.

        Without a seed one is drawn from the environment's own generator, so a run seeded once repeats whole.

        Raises:
            ConfigError: a wrong seed, level or option, or another thread is in `reset` or `step`.
            GenerationError, SandboxError: no episode could be had.
            ClosedEnvironmentError: another thread closed it meanwhile.
        """
        seed = self._member.seed_of(seed)
        level = self._member.level_of(options)
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(2**31))
        started = call(self._member.start(seed, level))
        self.action_space = self._member.calls
        return started

    def step(self, action: Mapping[str, Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Run one call. What is no call at all is answered by an observation that says how to go on.

        Raises:
            ConfigError: no episode is running, or another thread is in `reset` or `step`.
            SandboxError, VerifierError: infrastructure failed; there is no reward, and the episode is over.
            ClosedEnvironmentError: another thread closed it meanwhile.
        """
        observation, reward, terminated, truncated, info = call(self._member.step(action))
        return observation, reward, terminated, truncated, info

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]  # narrower than gymnasium's union
        """The trade's picture: the last viewport or drawing; in text trades the terminal screen."""
        return None if self.render_mode is None else self._member.frame()

    def close(self) -> None:
        """Ends the episode, also a `reset` or `step` that another thread is in."""
        call(self._member.leave())
