"""Estimators against brute force over every subset, and figures whose denominators stay right."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import Limit, Outcome
from metier.envs.suite import Seeds
from metier.harness.evaluate.bootstrap import clustered_intervals
from metier.harness.evaluate.compare import compare, comparison_as_markdown, sign_test
from metier.harness.evaluate.estimators import pass_at_k, pass_hat_k
from metier.harness.evaluate.folder import Results
from metier.harness.evaluate.plan import PlannedPolicy
from metier.harness.evaluate.report import as_markdown, make_report
from metier.harness.evaluate.row import Row
from metier.harness.evaluate.statistics import Interval, wilson
from metier.harness.evaluate.summary import Ended, Summary, counted, summarise, which_k
from trials import environment, failed_try, folder, plan, results, row

# one instance


def test_the_two_conventions_of_pass_hat_k_are_told_apart() -> None:
    assert pass_at_k(5, 3, 2) == Fraction(9, 10)
    assert pass_hat_k(5, 3, 2) == Fraction(3, 10)
    assert pass_hat_k(5, 3, 2) != Fraction(3, 5) ** 2
    assert (pass_at_k(1, 1, 2), pass_hat_k(1, 1, 2)) == (None, None)


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 9))
def test_the_estimators_are_the_means_over_every_choice_of_k_samples(samples: list[bool], k: int) -> None:
    chosen = list(itertools.combinations(samples, k))
    any_of = Fraction(sum(map(any, chosen)), len(chosen)) if chosen else None
    all_of = Fraction(sum(map(all, chosen)), len(chosen)) if chosen else None
    assert pass_at_k(len(samples), sum(samples), k) == any_of
    assert pass_hat_k(len(samples), sum(samples), k) == all_of


@pytest.mark.parametrize(("valid", "passed", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_what_cannot_be_is_refused(valid: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError):
        pass_at_k(valid, passed, k)
    with pytest.raises(ValueError):
        pass_hat_k(valid, passed, k)


@given(st.integers(1, 400))
def test_every_k_that_is_reported_can_be_estimated(samples: int) -> None:
    ks = which_k(samples)
    assert ks[0] == 1 and ks[-1] == samples and ks == sorted(set(ks))
    assert samples > 16 or ks == list(range(1, samples + 1))


# intervals

fractions = st.fractions(0, 1, max_denominator=7)
columns = st.lists(st.one_of(st.none(), fractions), min_size=2, max_size=12)


@settings(max_examples=25, deadline=None)
@given(columns, st.text(max_size=5))
def test_an_interval_is_reproducible_and_within_the_values(values: list[Fraction | None], stream: str) -> None:
    (first,) = clustered_intervals([values], stream=stream, resamples=200)
    again, other = clustered_intervals([values, [Fraction(1)] * len(values)], stream=stream, resamples=200)
    assert first == again  # whatever else is asked of the same draws
    assert other == (1.0, 1.0)
    known = [float(value) for value in values if value is not None]
    if len(known) < 2:
        assert first is None
    else:
        assert first is not None
        assert min(known) - 1e-9 <= first.low <= first.high <= max(known) + 1e-9


def test_the_bootstrap_is_that_of_whole_instances() -> None:
    """Against a plain one, by Python's own random numbers."""
    values = [Fraction(at * at, 1521) for at in range(40)]
    (ours,) = clustered_intervals([values], stream="a")
    chance = random.Random(3)
    means = sorted(math.fsum(float(chance.choice(values)) for _ in values) / len(values) for _ in range(20_000))
    assert ours is not None
    assert ours == pytest.approx((means[499], means[19499]), abs=0.02)
    assert clustered_intervals([values], stream="b") != [ours]


def test_the_interval_is_pinned() -> None:
    """Of this stream, on every machine and with every version of NumPy."""
    values = [Fraction(at, 10) for at in range(11)]
    assert clustered_intervals([values], stream="golden") == [Interval(low=0.3090909091036089, high=0.6818181818393483)]


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    chance = random.Random(11)
    covered = 0
    for number in range(200):
        values = [Fraction(chance.random() < 0.4) for _ in range(60)]
        (interval,) = clustered_intervals([values], stream=str(number), resamples=200)
        covered += interval is None or interval.low <= 0.4 <= interval.high
    assert 180 <= covered <= 199


def test_samples_of_one_instance_are_no_evidence_of_others() -> None:
    """A hundred samples of two instances: Wilson is sure of itself, the clustered interval is not."""
    made = results(plan(environment(seeds=Seeds.parse("0:2")), samples=100), {0: [True] * 100, 1: [False] * 100})
    overall = make_report(made).overall
    assert (overall.pass_rate_low, overall.pass_rate_high) == pytest.approx(wilson(100, 200), abs=1e-6)
    assert (overall.pass_at[0].low, overall.pass_at[0].high) == (0.0, 1.0)


# denominators


def summary(made: Results) -> Summary:
    return make_report(made).overall


def test_twelve_trials_that_were_lost_are_neither_failures_nor_forgotten() -> None:
    made = plan(environment(seeds=Seeds.parse("0:500")))
    passed = {seed: [None if seed < 12 else seed % 2 == 0] for seed in range(500)}
    overall = summary(results(made, passed))
    assert (overall.requested, overall.valid, overall.invalid, overall.missing) == (
        500,
        488,
        {"sandbox_failure": 12},
        0,
    )
    assert overall.passed == 244 and overall.pass_rate == 0.5
    assert overall.reward.instances == 488


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.sampled_from([True, False, None]), max_size=3), min_size=1, max_size=5))
def test_a_summary_is_what_counting_by_hand_gives(samples: list[list[bool | None]]) -> None:
    made = plan(environment(seeds=Seeds.parse(f"0:{len(samples)}")), samples=3)
    overall = summary(results(made, dict(enumerate(samples))))
    ended = [one for each in samples for one in each]
    valid = [one for one in ended if one is not None]
    assert overall.requested == 3 * len(samples) == overall.valid + sum(overall.invalid.values()) + overall.missing
    assert (overall.valid, overall.passed) == (len(valid), sum(valid))
    assert overall.pass_rate == (round(sum(valid) / len(valid), 6) if valid else None)
    for of_k in (*overall.pass_at, *overall.pass_hat):
        estimate = pass_at_k if of_k in overall.pass_at else pass_hat_k
        known = [[one for one in each if one is not None] for each in samples]
        each = [estimate(len(one), sum(one), of_k.k) for one in known if len(one) >= of_k.k]
        assert of_k.instances == len(each)
        middle = sum((one for one in each if one is not None), Fraction(0)) / len(each) if each else None
        assert of_k.value == (None if middle is None else round(float(middle), 6))


def test_fewer_valid_samples_than_k_give_no_estimate() -> None:
    overall = summary(
        results(plan(environment(seeds=Seeds.parse("0:2")), samples=2), {0: [True, None], 1: [True, False]})
    )
    assert [(one.value, one.instances) for one in overall.pass_at] == [(0.75, 2), (1.0, 1)]
    assert [(one.value, one.instances) for one in overall.pass_hat] == [(0.75, 2), (0.0, 1)]
    nothing = summary(results(plan(samples=2), {0: [True], 1: [False]}))
    assert [one.value for one in nothing.pass_at] == [0.5, None]
    assert nothing.missing == 4


def test_partial_credit_is_the_mean_over_instances_of_their_means() -> None:
    made = plan(environment(seeds=Seeds.parse("0:2")), samples=2)
    first, second, third, fourth = made.trials()
    ended = [
        Ended(trial=first, row=row(first, False, reward=0.25)),
        Ended(trial=second, row=row(second, None)),
        Ended(trial=third, row=row(third, True)),
        Ended(trial=fourth, row=row(fourth, False, reward=0.5)),
    ]
    assert summarise("x", ended, 2).reward.value == 0.5
    assert [one.mean_reward for one in counted(ended).values()] == [Fraction(1, 4), Fraction(3, 4)]


def test_what_a_success_costs_counts_failures_of_the_agent_and_no_failure_of_ours() -> None:
    made = plan(environment(seeds=Seeds.parse("0:4")))
    ok, also, wrong, lost = made.trials()
    ended = [
        Ended(trial=ok, row=row(ok, history=(failed_try(),))),
        Ended(trial=also, row=row(also)),
        Ended(trial=wrong, row=row(wrong, False, outcome=Outcome.AGENT_LIMIT, limit=Limit.STEPS)),
        Ended(trial=lost, row=row(lost, None)),
    ]
    made_of = summarise("x", ended, 1)
    assert made_of.per_success is not None
    assert (made_of.per_success.seconds, made_of.per_success.turns) == (3.0, 4.5)
    assert (made_of.per_success.tokens, made_of.per_success.output_tokens) == (165.0, 15.0)
    assert made_of.per_success.cost_usd == Decimal("0.03")
    assert made_of.limits == {"steps": 1}
    assert (made_of.spent.output_tokens, made_of.spent_for_nothing.output_tokens) == (30, 17)
    assert summarise("x", ended[2:], 1).per_success is None


def test_a_report_has_every_part_and_says_its_conventions() -> None:
    others = environment(id="cad/Other-v0", levels=(0, 10, 2))
    report = make_report(results(plan(environment(), others, samples=2), {0: [True, True], 1: [None, False]}))
    assert [one.group for one in report.domains] == ["cad", "test"]
    assert [one.group for one in report.environments] == ["cad/Other-v0", "test/Echo-v0"]
    assert [one.group for one in report.levels] == ["level 0", "level 2", "level 10"]
    for table in (report.domains, report.environments, report.levels):
        assert sum(one.requested for one in table) == report.overall.requested == 24
    text = as_markdown(report)
    assert text.startswith("# openai (model small, temperature 0.5)\n")
    assert "Requested 24, valid 12, invalid 4 (4 sandbox_failure), missing 8. Rates are of the valid ones." in text
    assert "pass^k = C(c, k) / C(n, k)" in text and "2000 bootstrap resamples of instances" in text


# two runs

OTHER = PlannedPolicy(name="openai", settings={"model": "large"})


def test_two_runs_are_compared_on_the_instances_that_both_have_valid_results_of() -> None:
    first = results(
        plan(environment(seeds=Seeds.parse("0:6"))), {0: [True], 1: [False], 2: [False], 3: [None], 4: [True]}
    )
    second = results(
        plan(environment(seeds=Seeds.parse("1:8")), policy=OTHER),
        {1: [True], 2: [True], 3: [True], 4: [True], 5: [True]},
    )
    made = compare(first, second)
    assert (made.overall.instances, made.only_first, made.only_second) == (3, 1, 2)
    assert (made.invalid_first, made.invalid_second, made.invalid_both) == (2, 0, 0)
    assert (made.overall.first_pass, made.overall.second_pass) == (0.333333, 1.0)
    assert (made.overall.better, made.overall.worse, made.overall.same) == (2, 0, 1)
    assert made.overall.difference == 0.666667 and made.overall.p_value == 0.5
    assert made.differences == ()
    assert "3 instances are compared. Left out: 1 that only the first run has" in comparison_as_markdown(made)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from([True, False, None])] * 2), min_size=1, max_size=8))
def test_a_comparison_turns_round_with_its_runs(pairs: list[tuple[bool | None, bool | None]]) -> None:
    made = plan(environment(seeds=Seeds.parse(f"0:{len(pairs)}")))
    first = results(made, {seed: [one] for seed, (one, _) in enumerate(pairs)})
    second = results(made.model_copy(update={"policy": OTHER}), {seed: [two] for seed, (_, two) in enumerate(pairs)})
    both = [(one, two) for one, two in pairs if one is not None and two is not None]
    if not both:
        with pytest.raises(ValueError, match="none with valid results of both"):
            compare(first, second)
        return
    there, back = compare(first, second).overall, compare(second, first).overall
    assert there.difference == pytest.approx(sum(two - one for one, two in both) / len(both), abs=1e-6)
    assert (there.difference, there.better, there.p_value) == (-back.difference, back.worse, back.p_value)


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_sign_test_is_the_share_of_splits_as_uneven(better: int, worse: int) -> None:
    count = better + worse
    as_uneven = sum(math.comb(count, at) for at in range(count + 1) if abs(2 * at - count) >= abs(better - worse))
    assert sign_test(better, worse) == pytest.approx(as_uneven / 2**count)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"environments": (environment(digest="d" * 64),)}, "of test/Echo-v0 they ran other versions"),
        ({"environments": (environment(seeds=Seeds.parse("7:9")),)}, "they share no environment, level and seed"),
        ({"conditions": plan().conditions.model_copy(update={"secret_fingerprint": "d"})}, "their hub secrets differ"),
    ],
)
def test_runs_of_other_work_are_not_compared(change: dict[str, object], words: str) -> None:
    first, second = plan(), plan(**change)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=words):
        compare(results(first, {0: [True]}), results(second, {0: [True], 7: [True]}))


def test_other_conditions_are_told() -> None:
    second = plan(conditions=plan().conditions.model_copy(update={"backend": "docker", "episode_s": 30.0}))
    made = compare(results(plan(), {0: [True], 1: [True]}), results(second, {0: [True], 1: [False]}))
    assert made.differences == ("backend: fake and docker", "episode_s: 60.0 and 30.0")


def test_a_report_is_the_same_bytes_in_whatever_order_trials_ended(tmp_path: Path) -> None:
    made = plan(environment(seeds=Seeds.parse("0:20")), samples=2)
    rows = results(made, {seed: [seed % 3 == 0, seed % 4 == 0] for seed in range(20)}).rows
    reports: set[bytes] = set()
    for number in range(4):
        shuffled = list(rows.values())
        random.Random(number).shuffle(shuffled)
        other = Results(path=tmp_path, plan=made, rows={one.key: one for one in shuffled}, num_other=0)
        reports.add(make_report(other).written())
    kept = folder(tmp_path / "kept", made, {seed: [seed % 3 == 0, seed % 4 == 0] for seed in range(20)})
    reports.add(make_report(kept).written())
    assert len(reports) == 1


def test_a_row_cannot_say_that_a_failure_of_ours_has_a_reward() -> None:
    (trial, *_) = plan().trials()
    for wrong in ({"reward": 0.0}, {"passed": False}, {"outcome": Outcome.COMPLETED}):
        with pytest.raises(ValueError, match="they disagree"):
            Row.model_validate(row(trial, None).model_dump() | wrong)
    for reward in (math.nan, math.inf, -0.1, 1.1):
        with pytest.raises(ValueError):
            row(trial, True, reward=reward)
