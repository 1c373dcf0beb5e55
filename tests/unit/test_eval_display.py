"""What a person sees while an evaluation runs, at a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from metier.cli import evaluating
from metier.cli.evaluating import Display, line
from metier.envs.suite import Seeds
from metier.harness.evaluate.folder import missing
from metier.harness.evaluate.tally import Tally
from trials import environment, plan, results, row


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tally(clock: Clock) -> Tally:
    made = plan(environment(seeds=Seeds.parse("0:4")), environment(id="cad/Other-v0", seeds=Seeds.parse("0:2")))
    before = results(made, {0: [True]})
    return Tally(before, missing(before), clock=clock)


def play(display: Display, tally: Tally, clock: Clock) -> None:
    """Three trials end: one passed, two lost in the same words."""
    made = plan(environment(seeds=Seeds.parse("1:4")))
    for trial, passed in zip(made.trials(), (True, None, None), strict=True):
        display.started(trial)
        clock.now += 5
        display.finished(trial, row(trial, passed))


def test_a_line_tells_pass_rates_failures_pace_and_what_is_left(clock: Clock, tally: Tally) -> None:
    display = Display(Console(file=io.StringIO()), tally)
    play(display, tally, clock)
    assert line(tally) == (
        "5/6 ended, 0 running  passed: cad 100% of 1, test 100% of 2  failed: 2 sandbox_failure  "
        "0:00:15 elapsed, about 0:00:05 left, 2 tokens/s"
    )


def test_without_a_terminal_there_is_a_line_now_and_then_and_one_at_the_end(
    clock: Clock, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(evaluating, "_LINE_EVERY_S", 1e9)
    display = Display(Console(file=out, width=300), tally)
    with display.showing():
        play(display, tally, clock)
        assert out.getvalue().splitlines() == ["test/Echo-v0 level 0 seed 2: sandbox_failure: SandboxLost: gone"]
        (last,) = plan(environment(id="cad/Other-v0", seeds=Seeds.parse("1"))).trials()
        display.started(last)
        display.finished(last, row(last))
    assert out.getvalue().splitlines()[1].startswith("6/6 ended, 0 running  passed: cad 100% of 2, test 100% of 2")


def test_at_a_terminal_there_is_a_table_by_domain(clock: Clock, tally: Tally) -> None:
    out = io.StringIO()
    display = Display(Console(file=out, force_terminal=True, width=120, color_system=None), tally)
    with display.showing():
        play(display, tally, clock)
        shown = Console(file=(plain := io.StringIO()), width=120)
        shown.print(display._renderable())
    assert "test/Echo-v0 level 0 seed 2: sandbox_failure" in out.getvalue()
    rows = [" ".join(text.split()) for text in plain.getvalue().splitlines()]
    assert rows[0] == "domain ended running pass rate so far failed"
    assert rows[1] == "cad 1/2 0 100% of 1"
    assert rows[2] == "test 4/4 0 100% of 2 2 sandbox_failure"
    assert rows[3] == "all 5/6 0 100% of 3 2 sandbox_failure"
    assert "about 0:00:05 left" in plain.getvalue()
