"""Replays: the recorded calls in fresh sandboxes, graded with this server's hub secret.

A trial agrees where a replay ends as it was recorded: the same outcome, passed or not, and the same reward. Recorded
under another hub secret, the hidden inputs are others, so partial credit may differ and only `passed` is compared. An
agent's commands may depend on the hour or on luck, so a trial that disagrees is replayed twice more, and agrees if
one of these does: a forged reward agrees with none. Where a trial disagrees for good, every other is replayed as
well, until so many disagree that nothing is left to learn. A record that is better than its replays refutes the
submission; one that is worse is told.

A failure of ours is no disagreement: it is tried again, and after `MOST_STARTS` beginnings without any replay that
ended the submission is left unverified. What ended is in the database, so a server that is killed goes on where it
was.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence

from metier.envs import registry
from metier.envs.core import ConfigError, Deadline, Limit, MetierError, SandboxBackend

from ..evaluate import folder as results_folder
from ..evaluate.folder import Results
from ..evaluate.plan import Trial
from ..evaluate.row import Row
from ..grading import secret_fingerprint
from ..policy import Message, Role
from ..policy.replay import ReplayPolicy
from ..prepare import Preparer, Task
from ..result import EpisodeResult
from ..runner import run_episode
from .contract import End, Replayed, State, Verification
from .folders import Folders
from .sample import SampleRule, drawn
from .store import Store, Submission

TRIES = 3
"""Replays of a trial that disagrees."""
ENOUGH = 20
"""Trials that disagree, after which no more are replayed."""
MOST_STARTS = 8
_MOST_TOLD = 100
_BEYOND_S = 900.0
"""Of a replay beside the agent's own time: the image, the reset, the grading."""
Tell = Callable[[Submission, Verification], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where replays run."""

    backend: SandboxBackend
    preparer: Preparer
    concurrency: int


class ReplayFailed(MetierError, RuntimeError):
    """Replays cannot be had now: this server's failure, never the submission's."""


class Verifier:
    """Replays what is queued; several may share a database and its folders."""

    def __init__(self, store: Store, folders: Folders, tell: Tell | None = None) -> None:
        self._store = store
        self._folders = folders
        self._tell = tell

    async def drain(self, bench: Bench, only: str | None = None) -> dict[str, State]:
        """Replay what is queued now, oldest first; gives how each ended. What another process has is left to it."""
        ended: dict[str, State] = {}
        for submission in await asyncio.to_thread(self._store.submissions, State.QUEUED):
            if only in (None, submission.id):
                ended[submission.id] = await self.one(submission, bench)
        return ended

    async def one(self, submission: Submission, bench: Bench) -> State:
        """Replay one submission to its end, or as far as it goes today; gives its state."""
        with self._folders.claim(submission.id) as mine:
            if not mine or not self._folders.held(submission.id).is_dir():
                return submission.state
            if await asyncio.to_thread(self._store.begin_replays, submission.id) > MOST_STARTS:
                return await self._settle(submission, State.UNVERIFIED)
            try:
                state = await self._replay_all(submission, bench)
            except (ReplayFailed, ConfigError):
                return State.QUEUED
            return await self._settle(submission, state)

    async def _settle(self, submission: Submission, state: State) -> State:
        await asyncio.to_thread(self._store.settle, submission.id, state)
        if state is not State.UNVERIFIED:  # which may be queued again
            await asyncio.to_thread(self._folders.release, submission.id)
        return state

    async def _replay_all(self, submission: Submission, bench: Bench) -> State:
        results = await asyncio.to_thread(results_folder.load, self._folders.held(submission.id))
        trials = {trial.key: trial for trial in results.plan.trials()}
        done = {one.key: one for one in await asyncio.to_thread(self._store.replays, submission.id)}
        while True:
            whole = submission.whole or not all(one.agreed for one in done.values())
            size = submission.row.overall.valid if whole else submission.row.verification.to_replay
            wanted = drawn(list(results.rows.values()), submission.draw, size)
            if self._tell is not None:
                self._tell(submission, verification(len(wanted), list(done.values()), whole=whole))
            enough = sum(not one.agreed for one in done.values()) >= ENOUGH
            batch = [row for row in wanted if row.key not in done][: bench.concurrency]
            if enough or not batch:
                return State.REFUTED if any(one.flattered for one in done.values()) else State.VERIFIED
            for ended in await _replayed_at_once(results, batch, trials, bench):
                await asyncio.to_thread(self._store.add_replay, submission.id, ended)
                done[ended.key] = ended


async def replayed_of(
    results: Results, rule: SampleRule, bench: Bench, told: Callable[[int, int], None]
) -> Verification:
    """Replay a sample of a folder that was never submitted.

    Args:
        told: called with how many replays have ended, and of how many.

    Raises:
        ReplayFailed, ConfigError: replays cannot be had here.
    """
    trials = {trial.key: trial for trial in results.plan.trials()}
    rows = list(results.rows.values())
    wanted = drawn(rows, secrets.token_hex(16), rule.size(sum(row.valid for row in rows)))
    done: list[Replayed] = []
    for at in range(0, len(wanted), bench.concurrency):
        told(len(done), len(wanted))
        done += await _replayed_at_once(results, wanted[at : at + bench.concurrency], trials, bench)
    told(len(done), len(wanted))
    return verification(len(wanted), done, whole=False)


async def _replayed_at_once(
    results: Results, rows: Sequence[Row], trials: Mapping[str, Trial], bench: Bench
) -> list[Replayed]:
    """Raises as `replayed_of`, once all of them have ended."""
    replaying = [_replayed(results, row, trials[row.key], bench) for row in rows]
    ended = await asyncio.gather(*replaying, return_exceptions=True)
    made = [one for one in ended if isinstance(one, Replayed)]
    for one in ended:
        if isinstance(one, BaseException):
            raise one
    return made


async def _replayed(results: Results, row: Row, trial: Trial, bench: Bench) -> Replayed:
    episode = await asyncio.to_thread(results.episode, row)
    same_secret = results.plan.conditions.secret_fingerprint == secret_fingerprint()
    tries, failures = 0, 0
    while True:
        again = await replay(episode, trial, bench)
        if not again.outcome.graded:
            failures += 1
            if failures >= TRIES:
                raise ReplayFailed(f"{row.env_id} seed {row.seed}: {again.failure}")
            continue
        tries += 1
        agreed = agrees(row, again, same_secret=same_secret)
        if agreed or tries == TRIES:
            break
    told, told_again = _observations(episode), _observations(again)
    return Replayed(
        key=row.key,
        env_id=row.env_id,
        level=row.level,
        seed=row.seed,
        sample=row.sample,
        recorded=End(outcome=row.outcome, reward=row.reward, passed=row.passed),
        replayed=End(outcome=again.outcome, reward=again.reward, passed=again.passed),
        tries=tries,
        agreed=agreed,
        flattered=not agreed and _better(row, again, same_secret=same_secret),
        secret_fingerprint=secret_fingerprint(),
        same_observations=sum(one == two for one, two in zip(told, told_again, strict=False)),
        num_observations=max(len(told), len(told_again)),
    )


async def replay(episode: EpisodeResult, trial: Trial, bench: Bench) -> EpisodeResult:
    """The recorded calls in a fresh sandbox; a failure of ours is the outcome of what is given.

    Raises:
        ConfigError: this machine cannot run the environment.
    """
    task = Task(
        env_id=trial.env_id, seed=trial.seed, level=trial.level, options=dict(trial.options), sample=trial.sample
    )
    seconds = registry.get(trial.env_id).limits.agent_s + _BEYOND_S
    deadline = Deadline.after(seconds, limit="episode_s", set_by="the leaderboard")
    return await run_episode(task, ReplayPolicy(episode.steps), bench.backend, bench.preparer, deadline=deadline)


def agrees(row: Row, again: EpisodeResult, *, same_secret: bool) -> bool:
    """Whether a replay ended as it was recorded; see the module.

    Where an agent ran out of tokens or of its own time the record just ends, and so does the replay: a limit is a
    limit. A memory limit, say, may be met a little earlier or later."""
    if row.outcome != again.outcome or row.passed != again.passed:
        return False
    if (row.limit is Limit.STEPS) != (again.limit is Limit.STEPS):
        return False
    return not same_secret or row.reward == again.reward


def _better(row: Row, again: EpisodeResult, *, same_secret: bool) -> bool:
    """Whether the record says more of the agent than the replay that it does not agree with."""
    assert row.reward is not None and again.reward is not None
    return bool(row.passed) > bool(again.passed) or (same_secret and row.reward > again.reward)


def verification(to_replay: int, done: Sequence[Replayed], *, whole: bool) -> Verification:
    """What is known of the replays so far."""
    return Verification(
        to_replay=max(to_replay, len(done)),
        replayed=len(done),
        agreed=sum(one.agreed for one in done),
        agreed_late=sum(one.agreed and one.tries > 1 for one in done),
        flattered=sum(one.flattered for one in done),
        whole=whole,
        same_observations=sum(one.same_observations for one in done),
        num_observations=sum(one.num_observations for one in done),
        secret_fingerprints=tuple(sorted({one.secret_fingerprint for one in done})),
        disagreed=tuple(one for one in done if not one.agreed)[:_MOST_TOLD],
    )


def _observations(episode: EpisodeResult) -> list[str]:
    return [part.text for part in episode.conversation if isinstance(part, Message) and part.role is Role.TOOL]
