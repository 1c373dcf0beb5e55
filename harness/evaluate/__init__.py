"""Evaluation: many episodes of one policy, counted honestly."""

from .batch import run_batch
from .statistics import Rate, pass_rate, wilson

__all__ = ["Rate", "pass_rate", "run_batch", "wilson"]
