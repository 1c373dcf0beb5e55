"""The learning rate of GRPO's steps: up over the warm-up, then down to the final share, and never outside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.trainer.grpo import GrpoSettings, scheduled_lr
from metier.trainer.main_job.plan import GrpoPlan


@given(st.integers(1, 60), st.integers(0, 70), st.floats(0.01, 1.0))
def test_it_rises_then_falls_within_bounds(steps: int, warmup: int, share: float) -> None:
    settings = GrpoSettings(steps=steps, lr=1e-4, warmup=warmup, final_lr_share=share)
    rates = [scheduled_lr(settings, step) for step in range(steps)]
    top = min(warmup, steps)
    assert all(0 < rate <= 1e-4 * (1 + 1e-12) for rate in rates)
    assert rates[:top] == sorted(rates[:top])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    if warmup < steps:
        assert rates[-1] == pytest.approx(1e-4 * share)


def test_by_default_it_stays() -> None:
    settings = GrpoSettings(steps=5, lr=2e-5, warmup=2)
    assert [scheduled_lr(settings, step) for step in range(5)] == pytest.approx([1e-5, 2e-5, 2e-5, 2e-5, 2e-5])


def test_a_plan_takes_the_trainers_settings_but_no_seed() -> None:
    assert GrpoPlan(steps=5, lr=2e-5).lr == 2e-5
    with pytest.raises(ValueError, match="the whole job has one seed"):
        GrpoPlan.model_validate({"steps": 5, "seed": 3})
