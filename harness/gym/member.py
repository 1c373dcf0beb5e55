"""One environment on the event loop, as Gymnasium sees it: alone in `MetierEnv`, one of many in `MetierVectorEnv`.

A member has at most one episode. What is no call at all is answered in words; a failure of ours ends the episode and
raises its typed error, and the next `start` is as good as new.
"""

from __future__ import annotations

import asyncio
import io
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from metier.envs.core import ConfigError, Deadline, Json, MetierError, SandboxLost, ToolCall
from metier.envs.registry import get, make_family

from ..episode import Episode, Step
from ..prepare import MAX_SEED, Task, check_seed, told
from ..tools import tool_specs
from ..unexpected import contained
from .loop import backends
from .spaces import TextSpace, ToolCallSpace
from .turns import Turns

PICTURE = (256, 256, 3)
"""Height, width, channels of `image` observations and of `render()`."""
_GRADING_S = 90.0
"""What grading may take beside `limits.verify_s`: collecting, a verifier sandbox."""

Observation = dict[str, Any]


class Transition(NamedTuple):
    """What `gymnasium.Env.step` returns."""

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Member:
    """The episodes of one seat, one after another. Its coroutines run on the surface's loop only.

    Raises:
        ConfigError: an unknown id, level or option.
    """

    def __init__(self, env_id: str, level: int, backend: str, options: dict[str, Json]) -> None:
        self.entry = get(env_id)
        self.level = self._level(level)
        if not isinstance(backend, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # gymnasium.make takes anything
            raise ConfigError(f"{env_id}: backend is a name, such as 'auto', not {told(backend)}")
        make_family(self.entry, options)  # an unknown option is refused here, not at the first reset
        self.visual = self.entry.observation == "text+image"
        spaces: dict[str, gymnasium.Space[Any]] = {"text": TextSpace()}
        if self.visual:
            spaces["image"] = gymnasium.spaces.Box(0, 255, shape=PICTURE, dtype=np.uint8)
        self.observation_space = gymnasium.spaces.Dict(spaces)
        self.calls = ToolCallSpace(tool_specs(self.entry.tools))
        self.episode: Episode | None = None
        self._turns = Turns(env_id)
        self._backend = backend
        self._options = options
        self._patience = Deadline.after(0, limit="", set_by="")
        self._picture = np.zeros(PICTURE, dtype=np.uint8)
        self._screen = ""

    def level_of(self, options: Mapping[str, Any] | None) -> int:
        """The level that `reset`'s options ask for. Raises ConfigError for any other option."""
        given = options_of(self.entry.id, options)
        level = self._level(given.pop("level", self.level))
        if given:
            raise ConfigError(
                f"{self.entry.id}: reset takes the option 'level' only, not {', '.join(map(told, given))}"
            )
        return level

    def _level(self, level: object) -> int:
        if isinstance(level, int) and abs(level) > MAX_SEED:
            raise ConfigError(f"{self.entry.id} has levels 0 to {self.entry.levels - 1}, not {told(level)}")
        return self.entry.check_level(level)

    def seed_of(self, seed: object) -> int | None:
        """The seed that `reset` was given, if any. Raises ConfigError for what is none."""
        return None if seed is None else check_seed(self.entry.id, seed)

    async def start(self, seed: int, level: int) -> tuple[Observation, dict[str, Any]]:
        """A new episode; the observation's text is the brief.

        Raises:
            ConfigError: what was asked for is wrong, or another thread is at work here.
            GenerationError, SandboxError: no episode could be had.
            ClosedEnvironmentError: `leave` was called meanwhile.
        """
        task = Task(env_id=self.entry.id, seed=seed, level=level, options=self._options)
        async with self._turns.taken("reset"):
            with contained(self.entry.id):
                await self._end()
                backend, preparer = await backends.get(self._backend)
                episode = self.episode = await Episode.start(task, backend, preparer)
            return self._begun(episode, seed, level)

    def _begun(self, episode: Episode, seed: int, level: int) -> tuple[Observation, dict[str, Any]]:
        self._patience = episode.deadline
        if episode.specs != self.calls.specs:
            self.calls = ToolCallSpace(episode.specs)  # the family has tools of its own
        self._picture = np.zeros(PICTURE, dtype=np.uint8)
        self._screen = episode.brief
        info = {
            "instruction": episode.brief,
            "tools": self.calls.tools,
            "limits": self.entry.limits.model_dump(),
            "episode_id": uuid.uuid4().hex,
            "seed": seed,
            "level": level,
            "images": (),
        }
        return self.observation(episode.brief), info

    async def step(self, action: Any, *, step_s: float | None = None) -> Transition:
        """Run one call.

        Args:
            action: a `ToolCall` or a mapping; anything else is the empty call.
            step_s: the time of one step. A call over it is the agent's: it is stopped, and its episode ends graded at
                the time limit. What then still does not come back is a failure of ours.

        Raises:
            ConfigError: no episode is running, or another thread is at work here.
            SandboxError, VerifierError: infrastructure failed; there is no reward, and the episode is over.
            ClosedEnvironmentError: `leave` was called meanwhile.
        """
        async with self._turns.taken("step"):
            if self.episode is None:
                raise ConfigError("no episode is running: call reset() first")
            try:
                with contained(self.entry.id):
                    step = await self._bounded(self.episode, as_call(action), step_s)
                    self._show(step)
                    return self._transition(step, self.episode.num_steps)
            except MetierError as error:
                if not isinstance(error, ConfigError):
                    with contained(self.entry.id):
                        await self._end()
                raise

    async def _bounded(self, episode: Episode, call: ToolCall, step_s: float | None) -> Step:
        limits = self.entry.limits
        tool_s = limits.agent_s if step_s is None else step_s
        if step_s is not None:
            episode.deadline = self._patience.within(step_s, "step_s", "make_vec")
        hard = Deadline.after(tool_s + limits.verify_s + _GRADING_S, limit="step_s", set_by=self.entry.id)
        clock = asyncio.timeout(hard.left_s())
        try:
            async with clock:
                step = await episode.step(call)
        except TimeoutError as error:
            if clock.expired():
                raise SandboxLost(str(hard.error(f"{self.entry.id}: a step did not come back"))) from error
            raise
        episode.deadline = self._patience
        return step

    def _transition(self, step: Step, number: int) -> Transition:
        info: dict[str, Any] = {
            "images": step.result.images,
            "cut_bytes": step.result.cut_bytes,
            "ok": step.result.ok,
            "step": number,
        }
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
        return Transition(self.observation(step.result.text), reward, submitted, step.ended and not submitted, info)

    def _show(self, step: Step) -> None:
        self._screen = step.result.text
        if step.result.images:
            picture = Image.open(io.BytesIO(step.result.images[-1])).convert("RGB")
            self._picture = np.asarray(picture.resize((PICTURE[1], PICTURE[0])), dtype=np.uint8)

    def observation(self, text: str) -> Observation:
        """`text` and, in visual trades, the last picture."""
        return {"text": text, "image": self._picture.copy()} if self.visual else {"text": text}

    def frame(self) -> NDArray[np.uint8]:
        """The trade's picture: the last viewport or drawing; in text trades the terminal screen."""
        return self._picture.copy() if self.visual else _terminal(self._screen)

    async def leave(self) -> None:
        """End the episode, if there is one, and whatever another thread does in it; idempotent."""
        await self._turns.break_up()
        await self._end()

    async def _end(self) -> None:
        episode, self.episode = self.episode, None
        if episode is not None:
            await episode.close()


def as_call(action: Any) -> ToolCall:
    """An action as a call; one that is no call becomes the empty call. The tools look at its arguments, not we."""
    if isinstance(action, ToolCall):
        return action
    if not isinstance(action, Mapping) or not isinstance(action.get("tool"), str):
        return ToolCall(tool="")
    return ToolCall(tool=action["tool"], arguments=action.get("arguments", {}))


def options_of(env_id: str, options: object) -> dict[str, Any]:
    """The options of a `reset`, as our own dict. Raises ConfigError for what is no mapping."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ConfigError(f"{env_id}: reset's options are None or a dict, such as {{'level': 1}}, not {told(options)}")
    return dict[str, Any](options)


def check_render_mode(env_id: str, render_mode: str | None) -> None:
    """Raises ConfigError for a mode that there is not."""
    if render_mode not in (None, "rgb_array"):
        raise ConfigError(f"{env_id}: render_mode is None or 'rgb_array', not {told(render_mode)}")


def _terminal(text: str) -> NDArray[np.uint8]:
    picture = Image.new("RGB", (PICTURE[1], PICTURE[0]), (16, 18, 22))
    lines = [line[:42] for line in text.splitlines()[-20:]]
    ImageDraw.Draw(picture).multiline_text((4, 4), "\n".join(lines), fill=(200, 210, 200), spacing=2)
    return np.asarray(picture, dtype=np.uint8)
