"""The report of a results folder: made from its manifest and rows alone, the same bytes whenever it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import pydantic

from metier.envs.core import Json

from .bootstrap import RESAMPLES
from .estimators import CONVENTION
from .folder import Results
from .plan import Conditions, PlannedPolicy, Trial, canonical
from .summary import Ended, Estimate, PerSuccess, Summary, summarise

REPORT_VERSION = 1
_SHOWN = 60
_UNSET: tuple[Json, ...] = (None, "", {}, [])


class Report(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What a folder's plan amounts to, as a whole and by parts."""

    kind: Literal["metier evaluation report"] = "metier evaluation report"
    schema_version: Literal[1] = REPORT_VERSION
    plan: str
    """Its digest."""
    policy: PlannedPolicy
    conditions: Conditions
    samples: int
    convention: str = CONVENTION
    intervals: str
    rows_of_other_settings: int
    """That lie in the folder, and are counted nowhere."""
    overall: Summary
    domains: tuple[Summary, ...]
    environments: tuple[Summary, ...]
    levels: tuple[Summary, ...]

    def written(self) -> bytes:
        """The bytes of `report.json`."""
        return (self.model_dump_json(indent=1) + "\n").encode()


def make_report(results: Results) -> Report:
    """The report of a folder as it was read."""
    plan = results.plan
    trials = [Ended(trial=trial, row=results.rows.get(trial.key)) for trial in plan.trials()]

    def table(what: str, name_of: Callable[[Trial], str | int]) -> tuple[Summary, ...]:
        groups: dict[str | int, list[Ended]] = {}
        for one in trials:
            groups.setdefault(name_of(one.trial), []).append(one)
        names = sorted(groups, key=lambda name: (isinstance(name, str), name))
        return tuple(summarise(f"{what}{name}", groups[name], plan.samples) for name in names)

    return Report(
        plan=plan.digest,
        policy=plan.policy,
        conditions=plan.conditions,
        samples=plan.samples,
        intervals=f"95%: Wilson for pass_rate; else {RESAMPLES} bootstrap resamples of instances, percentiles",
        rows_of_other_settings=results.num_other,
        overall=summarise("all", trials, plan.samples),
        domains=table("", lambda trial: trial.domain),
        environments=table("", lambda trial: trial.env_id),
        levels=table("level ", lambda trial: trial.level),
    )


def as_markdown(report: Report) -> str:
    """The report for a person; the bytes of `report.md`."""
    lines = [
        f"# {named(report.policy)}",
        "",
        _conditions(report),
        "",
        *_table([report.overall, *report.domains], "domain", report.samples),
        "",
        *_table(report.environments, "environment", report.samples),
        "",
        *_table(report.levels, "level", report.samples),
        "",
        f"{_sentence(report.overall)} Intervals are {report.intervals}. {report.convention}.",
    ]
    if report.overall.not_replayable:
        lines.append(
            f"Not replayable: {report.overall.not_replayable} of {report.overall.valid} valid ones, whose agents acted "
            "inside the sandbox by themselves; what they said to their model is recorded, what they did is not."
        )
    if report.rows_of_other_settings:
        lines.append(f"{report.rows_of_other_settings} rows of other settings lie in the folder and are not counted.")
    return "\n".join(lines) + "\n"


def named(policy: PlannedPolicy) -> str:
    """A policy with what was set of it.

    Example:
        >>> named(PlannedPolicy(name="random", settings={"seed": 3, "label": None}))
        'random (seed 3)'
    """
    settings = [f"{name} {_short(value)}" for name, value in sorted(policy.settings.items()) if value not in _UNSET]
    return f"{policy.name} ({', '.join(settings)})" if settings else policy.name


def _short(value: Json) -> str:
    text = " ".join((value if isinstance(value, str) else canonical(value).decode()).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _conditions(report: Report) -> str:
    of = report.conditions
    return (
        f"Sandboxes: {of.backend}. Episodes of at most {of.episode_s:g} s. Hub secret {of.secret_fingerprint}. "
        f"Metier {of.metier}. Plan {report.plan[:12]}."
    )


def _sentence(overall: Summary) -> str:
    num_invalid = sum(overall.invalid.values())
    by_class = ", ".join(f"{count} {name}" for name, count in overall.invalid.items())
    return (
        f"Requested {overall.requested}, valid {overall.valid}, invalid {num_invalid}"
        f"{f' ({by_class})' if by_class else ''}, missing {overall.missing}. Rates are of the valid ones."
    )


def _table(rows: Iterable[Summary], what: str, samples: int) -> list[str]:
    head = [what, "requested", "valid", "invalid", "missing", "passed", "pass rate"]
    head += ["pass@1"] if samples == 1 else ["pass@1", f"pass@{samples}", f"pass^{samples}"]
    head += ["mean reward", "s", "turns", "tokens", "USD per success"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    for row in rows:
        estimates = [row.pass_at[0]] if samples == 1 else [row.pass_at[0], row.pass_at[-1], row.pass_hat[-1]]
        lines.append(
            [
                row.group,
                str(row.requested),
                str(row.valid),
                str(sum(row.invalid.values())),
                str(row.missing),
                str(row.passed),
                percent(row.pass_rate, row.pass_rate_low, row.pass_rate_high),
                *(_percent(one) for one in estimates),
                _percent(row.reward),
                *_costs(row.per_success),
            ]
        )
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _costs(per: PerSuccess | None) -> list[str]:
    if per is None:
        return ["-"] * 4
    cost = "-" if per.cost_usd is None else f"{per.cost_usd:f}"
    return [f"{per.seconds:.1f}", f"{per.turns:.1f}", f"{per.tokens:.0f}", cost]


def _percent(one: Estimate) -> str:
    return percent(one.value, one.low, one.high)


def percent(value: float | None, low: float | None, high: float | None) -> str:
    """A rate with its interval.

    Example:
        >>> percent(0.5, 0.25, 0.75), percent(0.5, None, None), percent(None, 0, 1)
        ('50.0% [25.0, 75.0]', '50.0%', '-')
    """
    if value is None:
        return "-"
    interval = "" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * value:.1f}%{interval}"
