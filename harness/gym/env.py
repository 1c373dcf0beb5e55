"""The environment that `gymnasium.make("domain/Name-v0")` returns: one step is one tool call.

A step at a limit is `truncated` and graded all the same; a submission is `terminated`. An infrastructure failure raises
its typed error and gives no reward. The environment keeps its own step limit, since Gymnasium's TimeLimit would cut the
episode ungraded.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from metier.envs.core import ConfigError, Json, MetierError, ToolCall, ToolSpec
from metier.envs.registry import get, make_family

from ..episode import Episode, Step
from ..prepare import Task
from ..tools import tool_specs
from .loop import backends, call
from .spaces import TextSpace, ToolCallSpace

PICTURE = (256, 256, 3)
"""Height, width, channels of `image` observations and of `render()`."""

Observation = dict[str, Any]


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
        self.entry = get(env_id)
        self.level = self.entry.check_level(level)
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"{env_id}: render_mode is None or 'rgb_array', not {render_mode!r}")
        make_family(self.entry, options)  # an unknown option is refused here, not at the first reset
        self.render_mode = render_mode
        self.backend = backend
        self.options = options
        self.visual = self.entry.observation == "text+image"
        spaces: dict[str, gymnasium.Space[Any]] = {"text": TextSpace()}
        if self.visual:
            spaces["image"] = gymnasium.spaces.Box(0, 255, shape=PICTURE, dtype=np.uint8)
        self.observation_space = gymnasium.spaces.Dict(spaces)
        self._offer(tool_specs(self.entry.tools))
        self._episode: Episode | None = None
        self._picture = np.zeros(PICTURE, dtype=np.uint8)
        self._screen = ""

    def _offer(self, specs: tuple[ToolSpec, ...]) -> None:
        self.action_space = self._calls = ToolCallSpace(specs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: the observation's text is the brief.

        Without a seed one is drawn from the environment's own generator, so a run seeded once repeats whole.

        Raises:
            ConfigError, GenerationError, SandboxError: no episode could be had.
        """
        super().reset(seed=seed)
        given = dict(options or {})
        level = self.entry.check_level(given.pop("level", self.level))
        if given:
            raise ConfigError(
                f"{self.entry.id}: reset takes the option 'level' only, not {', '.join(map(repr, given))}"
            )
        if seed is None:
            seed = int(self.np_random.integers(2**31))
        task = Task(env_id=self.entry.id, seed=seed, level=level, options=self.options)
        call(self._leave())
        episode = call(self._start(task))
        self._episode = episode
        if episode.specs != self._calls.specs:
            self._offer(episode.specs)  # the family has tools of its own
        self._picture = np.zeros(PICTURE, dtype=np.uint8)
        self._screen = episode.brief
        info = {
            "instruction": episode.brief,
            "tools": self._calls.tools,
            "limits": self.entry.limits.model_dump(),
            "episode_id": uuid.uuid4().hex,
            "seed": seed,
            "level": level,
            "images": (),
        }
        return self._observation(episode.brief), info

    async def _start(self, task: Task) -> Episode:
        backend, preparer = await backends.get(self.backend)
        return await Episode.start(task, backend, preparer)

    async def _leave(self) -> None:
        episode, self._episode = self._episode, None
        if episode is not None:
            await episode.close()

    def step(self, action: Mapping[str, Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Run one call. What is no call at all is answered by an observation that says how to go on.

        Raises:
            SandboxError, VerifierError: infrastructure failed; there is no reward, and the episode is over.
        """
        if self._episode is None:
            raise ConfigError("no episode is running: call reset() first")
        try:
            step = call(self._episode.step(_call(action)))
        except MetierError as error:
            if not isinstance(error, ConfigError):
                call(self._leave())
            raise
        self._show(step)
        info: dict[str, Any] = {"images": step.result.images, "cut_bytes": step.result.cut_bytes, "ok": step.result.ok}
        reward = 0.0
        if step.verdict is not None:
            reward = step.verdict.reward
            info |= {
                "outcome": step.outcome,
                "limit": step.limit,
                "verdict": step.verdict,
                "passed": step.verdict.passed,
            }
        submitted = step.ended and step.limit is None
        return self._observation(step.result.text), reward, submitted, step.ended and not submitted, info

    def _show(self, step: Step) -> None:
        self._screen = step.result.text
        if step.result.images:
            picture = Image.open(io.BytesIO(step.result.images[-1])).convert("RGB")
            self._picture = np.asarray(picture.resize((PICTURE[1], PICTURE[0])), dtype=np.uint8)

    def _observation(self, text: str) -> Observation:
        return {"text": text, "image": self._picture.copy()} if self.visual else {"text": text}

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]  # narrower than gymnasium's union
        """The trade's picture: the last viewport or drawing; in text trades the terminal screen."""
        if self.render_mode is None:
            return None
        return self._picture.copy() if self.visual else _terminal(self._screen)

    def close(self) -> None:
        call(self._leave())


def _call(action: Any) -> ToolCall:
    """An action as a call; one that is no call becomes the empty call, which the tools answer in words."""
    if isinstance(action, ToolCall):
        return action
    if not isinstance(action, Mapping) or not isinstance(action.get("tool"), str):
        return ToolCall(tool="")
    arguments = action.get("arguments", {})
    if not isinstance(arguments, Mapping):
        return ToolCall(tool=action["tool"], arguments={"arguments": repr(arguments)[:80]})
    return ToolCall(tool=action["tool"], arguments=dict(arguments))


def _terminal(text: str) -> NDArray[np.uint8]:
    picture = Image.new("RGB", (PICTURE[1], PICTURE[0]), (16, 18, 22))
    lines = [line[:42] for line in text.splitlines()[-20:]]
    ImageDraw.Draw(picture).multiline_text((4, 4), "\n".join(lines), fill=(200, 210, 200), spacing=2)
    return np.asarray(picture, dtype=np.uint8)
