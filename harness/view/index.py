"""A run as a table: what is known of each trial without opening its episode, in the plan's order."""

from __future__ import annotations

from collections.abc import Mapping

from metier.envs.core import Json

from ..evaluate.folder import Results
from ..evaluate.plan import Trial, canonical
from ..evaluate.row import Row

COLUMNS = (
    "id",
    "env",
    "level",
    "seed",
    "sample",
    "outcome",
    "limit",
    "reward",
    "passed",
    "turns",
    "prompt_tokens",
    "output_tokens",
    "cost_usd",
    "total_s",
    "missed",
    "tries",
    "kept",
    "failure",
    "options",
    "ended_at",
)
"""Of a row, as a list; `id` is `<key>-<round>`, `missed` the checks below 1, `kept` whether the episode's file is."""
_FAILURE = 300
_EXACT = 2**53
"""Beyond it a browser's numbers are not whole."""


def index(results: Results) -> dict[str, Json]:
    """The table of a run: `columns` and `rows`, and how many trials have no row yet."""
    rows: list[Json] = []
    missing = 0
    for trial in results.plan.trials():
        row = results.rows.get(trial.key)
        if row is None:
            missing += 1
        else:
            rows.append(_cells(trial, row))
    return {"columns": list(COLUMNS), "rows": rows, "missing": missing, "other": results.num_other}


def exact(number: int) -> Json:
    """A whole number that a browser reads as it is: as text, where it has too many digits.

    Example:
        >>> exact(7), exact(2**60)
        (7, '1152921504606846976')
    """
    return number if abs(number) <= _EXACT else str(number)


def options_text(options: Mapping[str, Json]) -> str:
    """Options in one line; empty where there are none."""
    return canonical(dict(options)).decode() if options else ""


def _cells(trial: Trial, row: Row) -> list[Json]:
    spent = row.spent
    return [
        f"{row.key}-{row.round}",
        row.env_id,
        exact(row.level),
        exact(row.seed),
        exact(row.sample),
        str(row.outcome),
        None if row.limit is None else str(row.limit),
        row.reward,
        row.passed,
        spent.num_turns,
        spent.prompt_tokens,
        spent.output_tokens,
        None if spent.cost_usd is None else float(spent.cost_usd),
        row.total_s,
        [check.name for check in row.checks if check.score < 1],
        1 + len(row.history),
        row.file is not None,
        row.failure[:_FAILURE],
        options_text(trial.options),
        row.ended_at,
    ]
