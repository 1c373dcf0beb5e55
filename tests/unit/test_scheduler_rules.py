"""The scheduler's decisions, without clocks or processes."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from metier.scheduler.admission import admissible
from metier.scheduler.retries import RETRIES, pause_s

AMOUNTS = st.dictionaries(st.sampled_from(["cpus", "memory_mb", "slot a"]), st.integers(1, 4), max_size=3)


@given(st.lists(AMOUNTS, max_size=8), AMOUNTS)
def test_admission_never_lends_more_than_is_free(waiting: list[dict[str, int]], free: dict[str, int]) -> None:
    starting = admissible(waiting, free)
    for name in ("cpus", "memory_mb", "slot a"):
        assert sum(waiting[position].get(name, 0) for position in starting) <= free.get(name, 0)


@given(st.lists(AMOUNTS, max_size=8), AMOUNTS)
def test_nobody_overtakes_on_the_resource_another_lacks(waiting: list[dict[str, int]], free: dict[str, int]) -> None:
    starting = set(admissible(waiting, free))
    for position, wanted in enumerate(waiting):
        if position in starting:
            continue
        lent = {
            name: free.get(name, 0) - sum(waiting[at].get(name, 0) for at in starting if at < position)
            for name in wanted
        }
        lacking = {name for name in wanted if wanted[name] > lent[name]}
        assert all(lacking.isdisjoint(waiting[at]) for at in starting if at > position)


def test_a_large_item_is_not_starved_by_small_ones() -> None:
    assert admissible([{"cpus": 2}, {"cpus": 1}, {"cpus": 1}], {"cpus": 1}) == []
    assert admissible([{"cpus": 2}, {"slot render": 1}], {"cpus": 1, "slot render": 1}) == [1]


def test_fractions_of_a_core_add_up() -> None:
    assert admissible([{"cpus": 0.1}] * 10, {"cpus": 1.0}) == list(range(10))


def test_only_what_the_machinery_broke_is_tried_again() -> None:
    assert set(RETRIES) == {"ClusterError", "SandboxLost", "SandboxUnavailable", "PolicyError"}
    for failure in (
        "ConfigError",
        "VerifierError",
        "GenerationError",
        "DeadlineExceeded",
        "KeyError",
        "CancelledError",
    ):
        assert pause_s(failure, 1) is None
    assert [pause_s("ClusterError", attempts) for attempts in (1, 2, 3, 4)] == [0.25, 0.5, 1.0, None]


def test_importing_the_scheduler_does_not_import_ray() -> None:
    code = "import sys, metier.scheduler, metier.scheduler.local_executor; assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
