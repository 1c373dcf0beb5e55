"""What lies under which address. The server asks for one address at a time, the export for all of them.

    index.html, page.js, page.css, licences.txt
    data/runs.json
    data/run/<run>/rows.json, report.json
    data/run/<run>/<key>-<round>.json             an episode
    data/run/<run>/<key>-<round>/<number>.png     a picture of it, or .jpg
    data/compare/<run>/<run>.json
    data/leaderboard.json                         where somebody gave one

No part of an address ever becomes a path on the disk: static files are those of a closed list, runs and episodes are
looked up by name in what was read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic_core import to_json

from metier.envs.core import ConfigError, MetierError

from ..evaluate.files import MIB, read
from ..evaluate.folder import Results
from ..evaluate.report import named
from ..evaluate.summary import Counted, Instance, instance_of
from .detail import detail, pictures
from .faults import NotThere
from .index import exact, index
from .library import Library, Run
from .pictures import picture

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'"
)
"""Nothing but our own files is run, and nothing is loaded from elsewhere."""
STATIC = {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "licences.txt": "text/plain; charset=utf-8",
}
JSON = "application/json; charset=utf-8"
_PART = re.compile(r"[A-Za-z0-9._-]{1,120}")
_PICTURE = re.compile(r"([0-9]{1,9})\.(png|jpg)")
_MOST_BOARD = 64 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The bytes of an address, as its media type; `status` is HTTP's."""

    body: bytes
    media: str
    status: int = 200
    lasting: bool = False
    """Whether the address will always have the same bytes."""


class Site:
    """All addresses over a library; safe for many threads."""

    def __init__(
        self,
        library: Library,
        *,
        live: bool,
        leaderboard: Path | None = None,
        start: Literal["runs", "leaderboard"] = "runs",
    ) -> None:
        """
        Args:
            library: the runs.
            live: they may grow while somebody looks, who may know where they are.
            leaderboard: the file of that address.
            start: what the bare address of the page shows; whoever starts with a leaderboard has that address answered.
        """
        self._library = library
        self._live = live
        self._leaderboard = leaderboard
        self._start = start

    def answer(self, address: str) -> Answer:
        """What lies there, or an error in words as JSON; raises nothing of ours."""
        try:
            return self._answer(address)
        except MetierError as error:
            body = to_json({"error": self._public(str(error))[:2000]})
            return Answer(body=body, media=JSON, status=404 if isinstance(error, NotThere) else 409)

    def _public(self, words: str) -> str:
        """Without the names of this machine's folders, where others read it."""
        if not self._live:
            for run in self._library.runs():
                words = words.replace(str(run.path), run.name)
        return words

    def addresses(self) -> Iterator[str]:
        """Every one that there is, for an export: pages first, then each run's own, then the pairs of runs."""
        yield from STATIC
        yield "data/runs.json"
        if self._leaderboard is not None:
            yield "data/leaderboard.json"
        runs = self._library.runs()
        for run in runs:
            at = f"data/run/{run.name}"
            yield f"{at}/rows.json"
            yield f"{at}/report.json"
            yield from self._episodes(run, at)
        for first in runs:
            for second in runs:
                if first.name != second.name:
                    yield f"data/compare/{first.name}/{second.name}.json"

    def _episodes(self, run: Run, at: str) -> Iterator[str]:
        try:
            rows = self._library.results(run).rows
        except ConfigError:
            return  # rows.json has the words
        for row in rows.values():
            if row.file is None:
                continue
            name = f"{row.key}-{row.round}"
            yield f"{at}/{name}.json"
            try:
                episode = self._library.episode(run, row)
            except ConfigError:
                continue
            for number, data in enumerate(pictures(episode)):
                found = picture(data)
                if not isinstance(found, str):
                    yield f"{at}/{name}/{number}.{found.suffix}"

    def _answer(self, address: str) -> Answer:
        parts = (address or "index.html").split("/")
        if not all(map(_PART.fullmatch, parts)):
            raise NotThere("there is no such address")
        match parts:
            case [name] if name in STATIC:
                return Answer(body=self._static(name), media=STATIC[name])
            case ["data", "runs.json"]:
                runs = [self._run(run) for run in self._library.runs()]
                board = self._leaderboard is not None or self._start == "leaderboard"
                return _json({"runs": runs, "live": self._live, "leaderboard": board})
            case ["data", "leaderboard.json"] if self._leaderboard is not None:
                return _json(_board(self._leaderboard))
            case ["data", "run", run, "rows.json"]:
                return _json(index(self._library.results(self._library.run(run))))
            case ["data", "run", run, "report.json"]:
                return Answer(body=self._library.report(self._library.run(run)).written(), media=JSON)
            case ["data", "run", run, name] if name.endswith(".json"):
                return self._episode(self._library.run(run), name.removesuffix(".json"))
            case ["data", "run", run, name, number]:
                return self._picture(self._library.run(run), name, number)
            case ["data", "compare", first, name] if name.endswith(".json"):
                second = name.removesuffix(".json")
                return self._compared(self._library.run(first), self._library.run(second))
            case _:
                raise NotThere("there is no such address")

    def _static(self, name: str) -> bytes:
        data = files("metier.harness.view").joinpath("static", name).read_bytes()
        if name == "index.html":
            data = data.replace(b'data-start="runs"', f'data-start="{self._start}"'.encode())
            data = data if self._live else data.replace(b'data-source="live"', b'data-source="served"')
        return data

    def _run(self, run: Run) -> dict[str, Any]:
        about: dict[str, Any] = {"name": run.name, "version": run.version, "problem": run.problem}
        about["path"] = str(run.path) if self._live else ""
        if run.problem:
            return about | {"problem": self._public(run.problem)}
        found = self._library.manifest(run)
        plan = found.plan
        return about | {
            "policy": named(plan.policy),
            "plan": plan.digest,
            "conditions": plan.conditions,
            "samples": plan.samples,
            "trials": exact(plan.num_trials),
            "environments": [one.id for one in plan.environments],
            "sessions": [one.model_dump(exclude={"host"}) for one in found.sessions],
        }

    def _episode(self, run: Run, name: str) -> Answer:
        row = self._library.row(run, name)
        planned = {one.id: one for one in self._library.manifest(run).plan.environments}
        return _json(detail(row, self._library.episode(run, row), planned[row.env_id]))

    def _picture(self, run: Run, name: str, number: str) -> Answer:
        asked = _PICTURE.fullmatch(number)
        if asked is None:
            raise NotThere("there is no such picture")
        row = self._library.row(run, name)
        for at, data in enumerate(pictures(self._library.episode(run, row))):
            if at == int(asked[1]):
                found = picture(data)
                if not isinstance(found, str) and found.suffix == asked[2]:
                    return Answer(body=data, media=found.media, lasting=True)
                break
        raise NotThere("there is no such picture")

    def _compared(self, first: Run, second: Run) -> Answer:
        comparison, pairs = self._library.comparison(first, second)
        ours, theirs = (_by_instance(self._library.results(run)) for run in (first, second))
        instances = [
            {
                "env": at.env_id,
                "options": "" if at.options == "{}" else at.options,
                "level": exact(at.level),
                "seed": exact(at.seed),
                "first": _counted(one, ours.get(at, [])),
                "second": _counted(two, theirs.get(at, [])),
            }
            for at, one, two in pairs
        ]
        labels = [named(comparison.first), named(comparison.second)]
        return _json({"comparison": comparison, "labels": labels, "instances": instances})


def _by_instance(results: Results) -> dict[Instance, list[str]]:
    found: dict[Instance, list[str]] = {}
    for trial in results.plan.trials():
        row = results.rows.get(trial.key)
        if row is not None:
            found.setdefault(instance_of(trial), []).append(f"{row.key}-{row.round}")
    return found


def _counted(one: Counted, episodes: list[str]) -> dict[str, Any]:
    reward = one.mean_reward
    return {
        "valid": one.num_valid,
        "passed": one.num_passed,
        "reward": None if reward is None else float(reward),
        "episodes": episodes,
    }


def _board(path: Path) -> Any:
    try:
        return json.loads(read(path, _MOST_BOARD))
    except FileNotFoundError:
        raise NotThere(f"{path.name} is not there") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no JSON: {error}") from error


def _json(value: object) -> Answer:
    """Numbers without end become null, since JSON has none."""
    return Answer(body=to_json(value, inf_nan_mode="null"), media=JSON)
