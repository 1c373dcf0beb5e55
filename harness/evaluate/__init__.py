"""Evaluation: many episodes of one policy, counted honestly, and nothing of them lost.

| module | what it knows |
|---|---|
| `selection`, `acting` | what a person names: suites and environments, a policy |
| `plan` | which trials that makes, and the key of each |
| `folder`, `manifest`, `row`, `files` | the results folder, durable line by line |
| `run`, `trial`, `budget`, `tally` | running what a folder lacks |
| `summary`, `estimators`, `bootstrap`, `statistics` | what it amounts to |
| `report`, `compare` | the tables |
| `batch`, `occupancy` | episodes of a trainer, and what an episode takes of a machine |
"""

from .batch import run_batch
from .folder import Results, load
from .report import Report, make_report
from .row import Row
from .statistics import Rate, pass_rate, wilson

__all__ = ["Rate", "Report", "Results", "Row", "load", "make_report", "pass_rate", "run_batch", "wilson"]
