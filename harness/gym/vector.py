"""Many episodes of one environment at once: what `gymnasium.make_vec(id, num_envs=N)` returns.

All members live on the surface's one event loop; nothing is forked or pickled. What always holds:

- a reply answers the action it belongs to. A member that is still busy when `step` returns is `pending`, and is given
  no other action until its reply has been shown;
- a member that failed has reward NaN, is `truncated`, and says why in `infos["outcome"]` and `infos["failure"]`; no
  other member notices, and the next reset of its seat is a fresh episode;
- member i seeded with s has the same episodes as `gymnasium.make(id)` seeded with s.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ClosedEnvironmentError
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from numpy.typing import NDArray

from metier.envs.core import ConfigError, Json, MetierError, Outcome

from ..prepare import told
from .loop import call
from .member import Member, Observation, Transition, check_render_mode, options_of
from .turns import Turns

Stepped = tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


@dataclass(slots=True)
class _Seat:
    """A place in the batch: its member, its own stream of seeds, and what it is doing."""

    member: Member
    rng: np.random.Generator
    level: int
    shown: Observation
    """The last observation."""
    ended: bool = True
    """No episode is running: the next step begins one, where resets are automatic."""
    running: asyncio.Task[Transition] | None = None

    def seed(self, given: int | None) -> int:
        """The seed of the next episode, drawn as `MetierEnv` draws it."""
        if given is None:
            return int(self.rng.integers(2**31))
        self.rng = np_random(given)[0]
        return given

    async def stop(self) -> None:
        """Cancel what is running, and wait until it is."""
        task, self.running = self.running, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class MetierVectorEnv(VectorEnv[Observation, Sequence[Any], NDArray[Any]]):
    """N members of one environment, stepped side by side.

    Args:
        env_id: an id of the registry.
        num_envs: how many members.
        level: the default difficulty; `reset(options={"level": …})` overrides it until the next reset.
        backend: "auto", "docker", "bubblewrap" or another registered sandbox backend.
        render_mode: None or "rgb_array".
        autoreset_mode: what follows an episode's end, as Gymnasium defines it.
        step_s: the time of one member's step. A call over it is stopped, and that episode ends graded at the time
            limit. By default the environment's own limits are all there is.
        wait_s: how long `step` waits for its members. Those still busy then are `infos["pending"]`, with their last
            observation and no reward; give them None until they have answered. By default it waits for all.
        options: the family's own options, by name.

    Raises:
        ConfigError: an unknown id, level, option or render mode, or a nonsensical number.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # gymnasium declares it so
        "render_modes": ["rgb_array"],
        "render_fps": 1,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        level: int = 0,
        backend: str = "auto",
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        step_s: float | None = None,
        wait_s: float | None = None,
        **options: Json,
    ) -> None:
        check_render_mode(env_id, render_mode)
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ConfigError(f"{env_id}: num_envs is a positive integer, not {told(num_envs)}")
        for name, seconds in (("step_s", step_s), ("wait_s", wait_s)):
            if seconds is not None and not (_is_number(seconds) and 0 < seconds < math.inf):
                raise ConfigError(f"{env_id}: {name} is None or a positive number of seconds, not {told(seconds)}")
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = _autoreset(env_id, autoreset_mode)
        self.metadata = type(self).metadata | {"autoreset_mode": self.autoreset_mode}
        self._step_s = step_s
        self._wait_s = wait_s
        self._begun = False
        self._turns = Turns(env_id)
        self._seats: list[_Seat] = []
        for _ in range(num_envs):
            member = Member(env_id, level, backend, options)
            self._seats.append(_Seat(member, np_random()[0], member.level, member.observation("")))
        self.single_observation_space: gymnasium.Space[Any] = self._seats[0].member.observation_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._offer()

    def _offer(self) -> None:
        self.single_action_space: gymnasium.Space[Any] = self._seats[0].member.calls
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode in every seat, or in those of `options["reset_mask"]`; whatever they were doing ends.

        Args:
            seed: an integer s seeds member i with s + i; a sequence seeds each with its own; equal seeds share one
                prepared snapshot.
            options: `level`, and `reset_mask`, a Boolean array.

        Raises:
            ConfigError: a wrong option, level or number of seeds.
            GenerationError, SandboxError: no member could be had at all. Where some could, the others say in
                `infos["outcome"]` and `infos["failure"]` why not, and the next step tries them again.
        """
        self._check_open()
        given = options_of(self._seats[0].member.entry.id, options)
        mask = self._mask(given.pop("reset_mask", None))
        level = self._seats[0].member.level_of(given)
        seeds = self._seeds(seed)
        self._begun = True
        infos: dict[str, Any] = {}
        for index, begun in call(self._reset(mask, seeds, level)).items():
            infos = self._add_info(infos, begun.info, index)
        if self._seats[0].member.calls is not self.single_action_space:
            self._offer()
        return self._batch(), infos

    def _mask(self, mask: Any) -> list[bool]:
        if mask is None:
            return [True] * self.num_envs
        chosen: Any = mask.tolist() if isinstance(mask, np.ndarray) else mask
        fits = isinstance(chosen, list | tuple) and len(chosen) == self.num_envs
        if not fits or not all(isinstance(one, bool | np.bool_) for one in chosen) or not any(chosen):
            raise ConfigError(f"reset_mask is a Boolean array of {self.num_envs}, true somewhere; not {told(mask)}")
        return [bool(one) for one in chosen]

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        member = self._seats[0].member
        if isinstance(seed, int):
            member.seed_of(seed)
            return [member.seed_of(seed + index) for index in range(self.num_envs)]
        if not isinstance(seed, Sequence):
            raise ConfigError(f"{member.entry.id}: seed is None, an integer or a sequence of them, not {told(seed)}")
        if len(seed) != self.num_envs:
            raise ConfigError(f"{len(seed)} seeds for {self.num_envs} members; give one for each, or one integer")
        return [member.seed_of(one) for one in seed]

    async def _reset(self, mask: list[bool], seeds: list[int | None], level: int) -> dict[int, Transition]:
        async with self._turns.taken("reset"):
            return await self._begin_all(mask, seeds, level)

    async def _begin_all(self, mask: list[bool], seeds: list[int | None], level: int) -> dict[int, Transition]:
        chosen = [index for index, wanted in enumerate(mask) if wanted]
        await asyncio.gather(*(self._seats[index].stop() for index in chosen))
        for index in chosen:
            self._seats[index].level = level
        begun = await asyncio.gather(
            *(self._begin(self._seats[index], seeds[index]) for index in chosen), return_exceptions=True
        )
        replies: dict[int, Transition] = {}
        errors: list[BaseException] = []
        for index, one in zip(chosen, begun, strict=True):
            if isinstance(one, BaseException):
                errors.append(one)
                if not isinstance(one, MetierError) or isinstance(one, ConfigError):
                    raise one
                one = _failed(self._seats[index].member, one)
            self._seats[index].shown = one.observation
            replies[index] = one
        if len(errors) == len(chosen):
            raise errors[0]
        return replies

    async def _begin(self, seat: _Seat, seed: int | None = None) -> Transition:
        seat.ended = True
        observation, info = await seat.member.start(seat.seed(seed), seat.level)
        seat.ended = False
        return Transition(observation, 0.0, False, False, info)

    def step(self, actions: Sequence[Any]) -> Stepped:
        """One action for each member; None for one that is to do nothing, or is pending.

        Raises:
            ConfigError: the number of actions is wrong, a pending member was given one, or an ended one under
                AutoresetMode.DISABLED. Nothing was started.
            ClosedEnvironmentError: closed before or meanwhile.
        """
        self._check_open()
        if not self._begun:
            raise ConfigError("no episode is running: call reset() first")
        if not isinstance(actions, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"a step takes {self.num_envs} actions, one for each member, not {told(actions)}")
        replies = call(self._step(list(actions)))
        rewards = np.array([reply.reward for reply in replies], dtype=np.float64)
        terminated = np.array([reply.terminated for reply in replies], dtype=np.bool_)
        truncated = np.array([reply.truncated for reply in replies], dtype=np.bool_)
        infos: dict[str, Any] = {}
        for index, reply in enumerate(replies):
            infos = self._add_info(infos, reply.info, index)
        return self._batch(), rewards, terminated, truncated, infos

    async def _step(self, actions: list[Any]) -> list[Transition]:
        async with self._turns.taken("step"):
            self._check(actions)
            for seat, action in zip(self._seats, actions, strict=True):
                if seat.running is None and (seat.ended or action is not None):
                    seat.running = asyncio.create_task(self._answer(seat, action))
            running = [seat.running for seat in self._seats if seat.running is not None]
            if running:
                await asyncio.wait(running, timeout=self._wait_s)
            self._check_open()
            return [self._reply(seat) for seat in self._seats]

    def _check(self, actions: list[Any]) -> None:
        if len(actions) != self.num_envs:
            raise ConfigError(f"{len(actions)} actions for {self.num_envs} members; give None to those that wait")
        for index, (seat, action) in enumerate(zip(self._seats, actions, strict=True)):
            if seat.running is not None and action is not None:
                raise ConfigError(f"member {index} is still busy with its last action; give it None, or reset it")
            if seat.ended and action is not None and self.autoreset_mode is AutoresetMode.DISABLED:
                raise ConfigError(f"member {index} has no episode; reset it with options={{'reset_mask': …}}")

    async def _answer(self, seat: _Seat, action: Any) -> Transition:
        """What this step led to; a failure of ours is told in it, and is never a reward."""
        if seat.ended and self.autoreset_mode is AutoresetMode.DISABLED:
            return _quiet(seat)
        try:
            if seat.ended:
                return await self._begin(seat)
            reply = await seat.member.step(action, step_s=self._step_s)
        except ConfigError:
            raise
        except MetierError as error:
            reply = _failed(seat.member, error)
        seat.ended = reply.terminated or reply.truncated
        if not (seat.ended and self.autoreset_mode is AutoresetMode.SAME_STEP):
            return reply
        final = {"final_obs": reply.observation, "final_info": reply.info}
        try:
            begun = await self._begin(seat)
        except ConfigError:
            raise
        except MetierError as error:
            begun = _failed(seat.member, error)
        return Transition(begun.observation, reply.reward, reply.terminated, reply.truncated, begun.info | final)

    def _reply(self, seat: _Seat) -> Transition:
        if seat.running is None:
            return _quiet(seat)
        if not seat.running.done():
            return _quiet(seat, pending=True)
        task, seat.running = seat.running, None
        reply = task.result()
        seat.shown = reply.observation
        return reply

    def _batch(self) -> Observation:
        space = self.single_observation_space
        shown = [seat.shown for seat in self._seats]
        empty: Any = create_empty_array(space, n=self.num_envs)
        batch: Any = concatenate(space, shown, empty)
        return batch

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:  # type: ignore[override]  # narrower than gymnasium's
        """Every member's picture."""
        return None if self.render_mode is None else tuple(seat.member.frame() for seat in self._seats)

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("the vector environment is closed; make another one")

    def close_extras(self, **_: Any) -> None:
        """Ends what is running, also a `step` that another thread waits in."""
        self.closed = True
        call(self._close())

    async def _close(self) -> None:
        await self._turns.break_up()
        await asyncio.gather(*(seat.stop() for seat in self._seats))
        await asyncio.gather(*(seat.member.leave() for seat in self._seats))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _autoreset(env_id: str, mode: object) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        modes = ", ".join(repr(known.value) for known in AutoresetMode)
        raise ConfigError(f"{env_id}: autoreset_mode is one of {modes}, not {told(mode)}") from None


def _quiet(seat: _Seat, *, pending: bool = False) -> Transition:
    return Transition(seat.shown, 0.0, False, False, {"pending": True} if pending else {})


def _failed(member: Member, error: MetierError) -> Transition:
    info: Mapping[str, Any] = {
        "outcome": error.outcome or Outcome.CLUSTER_FAILURE,
        "failure": f"{type(error).__name__}: {error}",
    }
    return Transition(member.observation(""), math.nan, False, True, dict(info))
