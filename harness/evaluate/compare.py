"""Two runs compared, paired: on the instances that both have valid results of, and on no other.

An instance is the same where its environment's digest, options, level, seed and the hub's secret are; whatever else
differs between the runs but the agent is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

import pydantic

from metier.envs.core import ConfigError

from .bootstrap import clustered_intervals
from .folder import Results
from .plan import Conditions, PlannedPolicy
from .report import named, percent
from .summary import Counted, Ended, Instance, counted, mean, rounded


class Paired(pydantic.BaseModel, frozen=True, extra="forbid"):
    """The second run beside the first, on one group of instances."""

    group: str
    instances: int
    """That both have valid results of; all figures are of these."""
    first_valid: int
    """Samples."""
    second_valid: int
    first_pass: float
    """Mean over instances, as everything below."""
    second_pass: float
    difference: float
    """Second less first."""
    low: float | None
    """95% bootstrap interval of the difference, clustered by instance; None below two instances."""
    high: float | None
    first_reward: float
    second_reward: float
    reward_difference: float
    reward_low: float | None
    reward_high: float | None
    better: int
    """Instances on which the second passes more often."""
    worse: int
    same: int
    p_value: float
    """Two-sided sign test over those that differ."""


class Comparison(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Two runs, paired by instance."""

    kind: Literal["metier evaluation comparison"] = "metier evaluation comparison"
    schema_version: Literal[1] = 1
    first: PlannedPolicy
    second: PlannedPolicy
    first_plan: str
    second_plan: str
    differences: tuple[str, ...]
    """Other than the agent: how the runs were made."""
    only_first: int
    """Instances that only the first was asked for, or that are others in the second."""
    only_second: int
    invalid_first: int
    """Instances of both of which only the first has no valid result."""
    invalid_second: int
    invalid_both: int
    overall: Paired
    domains: tuple[Paired, ...]
    levels: tuple[Paired, ...]

    def written(self) -> bytes:
        """As JSON."""
        return (self.model_dump_json(indent=1) + "\n").encode()


class Beside(NamedTuple):
    """One instance of both runs, also where one of them has no valid result of it."""

    instance: Instance
    first: Counted
    second: Counted

    @property
    def compared(self) -> bool:
        """Whether it is in the comparison's figures."""
        return self.first.num_valid > 0 and self.second.num_valid > 0


class _Same(NamedTuple):
    """What makes instances of two runs the same."""

    instance: Instance
    digest: str
    secret: str

    @property
    def domain(self) -> str:
        return self.instance.env_id.partition("/")[0]


Pairs = Mapping[_Same, tuple[Counted, Counted]]


def compare(first: Results, second: Results) -> Comparison:
    """The second run beside the first.

    Raises:
        ConfigError: they share no instance with valid results, so that there is nothing to compare.
    """
    ours, theirs = _instances(first), _instances(second)
    both = [key for key in ours if key in theirs]
    pairs = {key: (ours[key], theirs[key]) for key in both if ours[key].num_valid and theirs[key].num_valid}
    if not pairs:
        raise ConfigError(_nothing(first, second, len(both)))
    return Comparison(
        first=first.plan.policy,
        second=second.plan.policy,
        first_plan=first.plan.digest,
        second_plan=second.plan.digest,
        differences=tuple(_conditions(first.plan.conditions, second.plan.conditions)),
        only_first=len(ours) - len(both),
        only_second=len(theirs) - len(both),
        invalid_first=sum(not ours[key].num_valid and theirs[key].num_valid > 0 for key in both),
        invalid_second=sum(ours[key].num_valid > 0 and not theirs[key].num_valid for key in both),
        invalid_both=sum(not ours[key].num_valid and not theirs[key].num_valid for key in both),
        overall=_paired("all", pairs),
        domains=_by(pairs, "", lambda key: key.domain),
        levels=_by(pairs, "level ", lambda key: key.instance.level),
    )


def beside(first: Results, second: Results) -> list[Beside]:
    """Every instance that both runs were asked for, in the first one's order; the figures are those of `compare`."""
    ours, theirs = _instances(first), _instances(second)
    return [Beside(key.instance, ours[key], theirs[key]) for key in ours if key in theirs]


def sign_test(better: int, worse: int) -> float:
    """Two-sided: how likely a split as uneven as this one is, if either way were as likely.

    Example:
        >>> sign_test(8, 1), sign_test(3, 3)
        (0.0390625, 1.0)
    """
    count, fewer = better + worse, min(better, worse)
    tail = sum(math.comb(count, at) for at in range(fewer + 1))
    return float(min(Fraction(1), Fraction(2 * tail, 1 << count)))


def _instances(results: Results) -> dict[_Same, Counted]:
    plan = results.plan
    digests = {one.id: one.digest for one in plan.environments}
    trials = [Ended(trial=trial, row=results.rows.get(trial.key)) for trial in plan.trials()]
    return {
        _Same(at, digests[at.env_id], plan.conditions.secret_fingerprint): found
        for at, found in counted(trials).items()
    }


def _by(pairs: Pairs, what: str, name_of: Callable[[_Same], str | int]) -> tuple[Paired, ...]:
    groups: dict[str | int, dict[_Same, tuple[Counted, Counted]]] = {}
    for key, pair in pairs.items():
        groups.setdefault(name_of(key), {})[key] = pair
    names = sorted(groups, key=lambda name: (isinstance(name, str), name))
    return tuple(_paired(f"{what}{name}", groups[name]) for name in names)


def _paired(group: str, pairs: Pairs) -> Paired:
    passes = [(_known(one.mean_pass), _known(two.mean_pass)) for one, two in pairs.values()]
    rewards = [(_known(one.mean_reward), _known(two.mean_reward)) for one, two in pairs.values()]
    columns = [[two - one for one, two in passes], [two - one for one, two in rewards]]
    by_pass, by_reward = clustered_intervals(columns, stream=f"compare {group}")
    better = sum(two > one for one, two in passes)
    worse = sum(two < one for one, two in passes)
    return Paired(
        group=group,
        instances=len(pairs),
        first_valid=sum(one.num_valid for one, _ in pairs.values()),
        second_valid=sum(two.num_valid for _, two in pairs.values()),
        first_pass=_mean([one for one, _ in passes]),
        second_pass=_mean([two for _, two in passes]),
        difference=_mean(columns[0]),
        low=None if by_pass is None else rounded(by_pass.low),
        high=None if by_pass is None else rounded(by_pass.high),
        first_reward=_mean([one for one, _ in rewards]),
        second_reward=_mean([two for _, two in rewards]),
        reward_difference=_mean(columns[1]),
        reward_low=None if by_reward is None else rounded(by_reward.low),
        reward_high=None if by_reward is None else rounded(by_reward.high),
        better=better,
        worse=worse,
        same=len(pairs) - better - worse,
        p_value=rounded(sign_test(better, worse)),
    )


def _known(value: Fraction | None) -> Fraction:
    assert value is not None
    return value


def _mean(values: list[Fraction]) -> float:
    return rounded(_known(mean(values)))


def _conditions(first: Conditions, second: Conditions) -> list[str]:
    ours, theirs = first.model_dump(), second.model_dump()
    return [f"{name}: {ours[name]} and {theirs[name]}" for name in ours if ours[name] != theirs[name]]


def _nothing(first: Results, second: Results, shared: int) -> str:
    if shared:
        return f"{first.path} and {second.path} share {shared} instances, but none with valid results of both"
    why = _conditions(first.plan.conditions, second.plan.conditions)
    if first.plan.conditions.secret_fingerprint != second.plan.conditions.secret_fingerprint:
        return f"{first.path} and {second.path} cannot be compared: their hub secrets differ, so hidden inputs do too"
    digests = {one.id: one.digest for one in first.plan.environments}
    changed = [one.id for one in second.plan.environments if one.id in digests and digests[one.id] != one.digest]
    if changed:
        return f"{first.path} and {second.path} cannot be compared: of {', '.join(changed)} they ran other versions"
    return (
        f"{first.path} and {second.path} cannot be compared: they share no environment, level and seed"
        f"{' (' + '; '.join(why) + ')' if why else ''}"
    )


def comparison_as_markdown(made: Comparison) -> str:
    """The comparison for a person."""
    lines = [
        f"# {named(made.second)} beside {named(made.first)}",
        "",
        *(f"Not only the agent differs: {line}." for line in made.differences),
        _left_out(made),
        "",
        "| | instances | first | second | difference | better | worse | same | p (sign test) | reward difference |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for one in (made.overall, *made.domains, *made.levels):
        lines.append(
            f"| {one.group} | {one.instances} | {percent(one.first_pass, None, None)} "
            f"| {percent(one.second_pass, None, None)} | {percent(one.difference, one.low, one.high)} "
            f"| {one.better} | {one.worse} | {one.same} | {one.p_value:.4f} "
            f"| {percent(one.reward_difference, one.reward_low, one.reward_high)} |"
        )
    return "\n".join(lines) + "\n"


def _left_out(made: Comparison) -> str:
    return (
        f"{made.overall.instances} instances are compared. Left out: {made.only_first} that only the first run has, "
        f"{made.only_second} that only the second has, {made.invalid_first} without a valid result in the first, "
        f"{made.invalid_second} in the second, {made.invalid_both} in both."
    )
