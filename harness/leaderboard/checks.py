"""What must hold of a submission by itself, before anything is replayed.

The plan is compared with the board's before its trials are counted, so that nobody makes the server count to 2**63.
Then each file must agree with the others: rows with trials, episodes with rows, rewards with their checks, calls with
the conversation. A forger who keeps all of this right is left to the replays.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from metier.envs import registry
from metier.envs.core import Verdict

from ..evaluate import folder as results_folder
from ..evaluate import manifest
from ..evaluate.faults import ResultsError, ResultsSchema
from ..evaluate.files import MIB, read, unpacked
from ..evaluate.folder import EPISODES, ROWS, Results
from ..evaluate.manifest import Manifest
from ..evaluate.plan import Plan, canonical
from ..evaluate.report import Report, make_report
from ..evaluate.row import Row
from ..evaluate.spent import Spent
from ..policy import AssistantTurn
from ..result import EpisodeResult
from .archive import ABOUT, MOST_EPISODE
from .boards import Boards, Demanded, named
from .contract import About
from .faults import Reason, Refusal
from .scrub import scrubbed

MOST_SAMPLES = 64
_MOST_UNPACKED = 64 * MIB
_MOST_SETTINGS = 16 << 10
_MOST_COUNT = 10**15
_MOST_S = 1e8
_MOST_USD = 10**9
_SAME = ("env_id", "seed", "level", "sample", "outcome", "limit", "reward", "passed", "checks", "dropped", "replayable")
"""What a row and its episode both say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A submission that agrees with itself and with a board."""

    about: About
    manifest: Manifest
    results: Results
    rows: tuple[Row, ...]
    """All of the file, earlier rounds included."""
    id: str
    calls_digest: str
    """The same where every trial has the same calls."""
    report: Report
    """Made here: the uploaded one is not read."""


def check(folder: Path, boards: Boards, each: Callable[[Row, EpisodeResult, dict[str, Any]], None]) -> Checked:
    """Check what an upload left in a folder.

    Args:
        folder: with the files of an archive.
        boards: of this server.
        each: is given every row that has an episode, the episode, and the JSON that it was read from.

    Raises:
        Refusal: something does not hold.
    """
    about = _about(folder)
    board = boards.get(about.suite, about.split)
    try:
        found = manifest.load(folder)
        _check_plan(found.plan, board)
        results = results_folder.load(folder)
    except Refusal:
        raise
    except ResultsSchema as error:
        raise Refusal(Reason.SCHEMA, _said(error, folder)) from error
    except (ResultsError, FileNotFoundError) as error:
        raise Refusal(Reason.RESULTS, _said(error, folder)) from error
    except (RecursionError, ValueError) as error:  # a number of ten thousand digits, a thousand brackets
        raise Refusal(Reason.RESULTS, f"the results cannot be read: {type(error).__name__}: evaluate again") from error
    if results.num_other:
        raise Refusal(
            Reason.FOREIGN_ROWS,
            f"{results.num_other} rows are of other settings than the plan's: `metier leaderboard submit` leaves "
            f"them out",
        )
    if missing := results_folder.missing(results):
        one = missing[0]
        raise Refusal(
            Reason.MISSING_TRIALS,
            f"{len(missing)} of {results.plan.num_trials} trials have no row, such as {one.env_id} level {one.level} "
            f"seed {one.seed}: the same `metier eval` command runs them",
        )
    rows = tuple(_rows(folder / ROWS))
    for row in rows:
        _check_numbers(row)
    steps = _check_episodes(folder, rows, results, each)
    return Checked(
        about=about,
        manifest=found,
        results=results,
        rows=rows,
        id=_id(folder, about),
        calls_digest=hashlib.sha256(canonical(sorted(steps))).hexdigest(),
        report=make_report(results),
    )


def _about(folder: Path) -> About:
    try:
        return About.model_validate_json(read(folder / ABOUT, MIB))
    except FileNotFoundError:
        raise Refusal(Reason.ABOUT, f"the archive has no {ABOUT}") from None
    except pydantic.ValidationError as error:
        raise Refusal(Reason.ABOUT, f"{ABOUT}: {_first(error)}") from error


def _check_plan(plan: Plan, board: Demanded) -> None:
    """Raises Refusal: it is not exactly the board's."""
    where = f"{board.suite} ({board.split})"
    if plan.samples > MOST_SAMPLES:
        raise Refusal(Reason.NUMBERS, f"{plan.samples} samples of an instance: at most {MOST_SAMPLES} are taken")
    theirs = {named(one): one for one in plan.environments}
    if len(theirs) < len(plan.environments):
        raise Refusal(Reason.OTHER_PLAN, "the plan names an environment twice")
    if lacking := [one.id for key, one in board.environments.items() if key not in theirs]:
        raise Refusal(
            Reason.INCOMPLETE_PLAN,
            f"the plan lacks {', '.join(lacking[:5])}: {where} has {len(board.environments)} "
            f"environments, and a row is of all of them",
        )
    for key, one in theirs.items():
        ours = board.environments.get(key)
        if ours is None:
            raise Refusal(Reason.OTHER_PLAN, f"{one.id} with options {one.options} is not in {where}")
        if one.seeds != ours.seeds:
            raise Refusal(Reason.INCOMPLETE_PLAN, f"{one.id}: seeds {str(one.seeds)[:200]}: {where} has {ours.seeds}")
        if sorted(one.levels) != sorted(ours.levels):
            raise Refusal(Reason.INCOMPLETE_PLAN, f"{one.id}: levels {one.levels[:20]}: {where} has {ours.levels}")
        if (one.digest, one.image, one.image_digest) != (ours.digest, ours.image, ours.image_digest):
            raise Refusal(
                Reason.OTHER_ENVIRONMENT,
                f"{one.id} has the digest {one.digest[:12]} with the image {one.image} {one.image_digest[:12]}; this "
                f"server has {ours.digest[:12]} with {ours.image} {ours.image_digest[:12]}: evaluate with the same "
                f"version of Metier",
            )
    if len(canonical(plan.model_dump(mode="json", exclude={"environments"}))) > _MOST_SETTINGS:
        raise Refusal(Reason.NUMBERS, f"the policy's settings have more than {_MOST_SETTINGS >> 10} KiB of text")
    if scrubbed(plan.policy.model_dump(mode="json")).removed:
        raise Refusal(
            Reason.SECRET_IN_PLAN,
            "a setting of the policy looks like a token, and settings are published: revoke it, name an environment "
            "variable instead and evaluate again",
        )


def _rows(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for line in file:
            yield Row.model_validate_json(line)


def _check_numbers(row: Row) -> None:
    where = f"{row.env_id} level {row.level} seed {row.seed} sample {row.sample}"
    for spent in (row.spent, *(one.spent for one in row.history)):
        counts = (spent.num_turns, spent.prompt_tokens, spent.output_tokens, spent.cached_tokens, spent.num_requests)
        # a decimal of a huge exponent is small to write and endless to add
        if max(counts) > _MOST_COUNT or not (spent.cost_usd is None or _is_price(spent.cost_usd)):
            raise Refusal(Reason.NUMBERS, f"{where}: nothing costs {spent}"[:500])
    times = (*row.timings_s.values(), *(one.run_s for one in row.history))
    if not all(0 <= seconds <= _MOST_S for seconds in times):
        raise Refusal(Reason.NUMBERS, f"{where}: its times are no seconds")
    for check in row.checks:
        if not (0 <= check.score <= 1 and 0 <= check.weight < math.inf):
            raise Refusal(Reason.NUMBERS, f"{where}: the check {check.name[:80]!r} has no score or weight")
    if row.reward is None:
        return
    if not row.checks or Verdict(checks=row.checks, passed=bool(row.passed)).reward != row.reward:
        raise Refusal(Reason.REWARD_DIFFERS, f"{where}: the reward {row.reward} is not what its checks amount to")


def _is_price(value: Any) -> bool:
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and -30 <= exponent <= 9 and value <= _MOST_USD


def _check_episodes(
    folder: Path, rows: tuple[Row, ...], results: Results, each: Callable[[Row, EpisodeResult, dict[str, Any]], None]
) -> list[list[Any]]:
    """The calls of every trial that counts."""
    named: set[str] = set()
    steps: list[list[Any]] = []
    for row in rows:
        where = f"{row.env_id} level {row.level} seed {row.seed} sample {row.sample}"
        if row.file is None:
            if row.valid:
                raise Refusal(Reason.EPISODE_MISSING, f"{where} was graded and has no episode: nothing can be replayed")
            continue
        name = f"{row.key}-{row.round}.json.gz"
        named.add(name)
        episode, said = _episode(folder / EPISODES / name, row, where)
        _check_against(row, episode, where)
        if results.rows.get(row.key) == row:
            calls = [[call.tool, dict(call.arguments)] for call in episode.steps]
            steps.append([row.env_id, row.level, row.seed, row.sample, json.dumps(calls, sort_keys=True)])
        each(row, episode, said)
    there = {path.name for path in (folder / EPISODES).iterdir()} if (folder / EPISODES).is_dir() else set[str]()
    if more := sorted(there - named):
        raise Refusal(Reason.EPISODE_DIGEST, f"{len(more)} episodes belong to no row, such as {more[0]}")
    return steps


def _episode(path: Path, row: Row, where: str) -> tuple[EpisodeResult, dict[str, Any]]:
    assert row.file is not None
    try:
        data = read(path, MOST_EPISODE)
        if hashlib.sha256(data).hexdigest() != row.file.sha256 or len(data) != row.file.size_bytes:
            raise Refusal(Reason.EPISODE_DIGEST, f"{where}: {path.name} is not the file that its row names")
        plain = unpacked(data, _MOST_UNPACKED, path.name)
        return EpisodeResult.model_validate_json(plain), json.loads(plain, parse_constant=_no_constant)
    except Refusal:
        raise
    except FileNotFoundError:
        raise Refusal(Reason.EPISODE_MISSING, f"{where}: {path.name} is not in the archive") from None
    except ResultsError as error:
        raise Refusal(Reason.RESULTS, str(error)) from error
    except pydantic.ValidationError as error:
        raise Refusal(Reason.RESULTS, f"{where}: {path.name} holds no episode: {_first(error)}") from error
    except (ValueError, RecursionError) as error:
        raise Refusal(Reason.RESULTS, f"{where}: {path.name} cannot be read: {error}"[:500]) from error


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _check_against(row: Row, episode: EpisodeResult, where: str) -> None:
    for name in _SAME:
        if name == "dropped" and row.steps is None:
            continue  # too long for a line
        if getattr(row, name) != getattr(episode, name):
            raise Refusal(Reason.EPISODE_DIFFERS, f"{where}: the episode's {name} is not its row's")
    if row.steps is not None and row.steps != episode.steps:
        raise Refusal(Reason.EPISODE_DIFFERS, f"{where}: the episode's calls are not its row's")
    if row.spent != Spent.of(episode):
        raise Refusal(Reason.EPISODE_DIFFERS, f"{where}: the turns do not cost what the row says")
    if not row.valid:
        return
    if not episode.replayable:
        raise Refusal(
            Reason.NOT_REPLAYABLE,
            f"{where}: its agent acted inside the sandbox by itself, and what cannot be replayed cannot be confirmed: "
            f"evaluate an agent whose calls the harness runs, such as openai: or agent:",
        )
    most = registry.get(row.env_id).limits.steps
    if len(episode.steps) > most:
        raise Refusal(Reason.CALLS_DIFFER, f"{where}: {len(episode.steps)} calls were run, and {most} are allowed")
    # a turn without a call is a step without a name, which says nothing
    run = [call for call in (*episode.steps, *episode.dropped) if call.tool]
    turns = [part for part in episode.conversation if isinstance(part, AssistantTurn)]
    if run != [call for turn in turns for call in turn.calls if call.tool]:
        raise Refusal(Reason.CALLS_DIFFER, f"{where}: the calls that were run are not those of the conversation")


def _id(folder: Path, about: About) -> str:
    """Of the content: rows name their episodes by their digests, and `about` says of which board they are."""
    digest = hashlib.sha256(f"{about.suite}\0{about.split}\0".encode())
    for name in (manifest.NAME, ROWS):
        digest.update(hashlib.sha256((folder / name).read_bytes()).digest())
    return digest.hexdigest()[:32]


def _first(error: pydantic.ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"[:500]


def _said(error: Exception, folder: Path) -> str:
    """Without the server's paths."""
    return str(error).replace(f"{folder}/", "").replace(str(folder), "the submission")[:1000]
