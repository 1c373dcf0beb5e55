"""The gates: each a claim about an environment and a function that tries to refute it.

A gate looks at the whole grid of (level, seed) or at the easiest and the hardest level only, by its cost. It answers
with findings; one that is not ok makes the gate red.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ..bench import Bench, Cell
from ..certificate import Finding
from .baselines import baselines
from .brief import brief
from .determinism import determinism, levels_differ
from .fuzz import fuzzed_artefacts
from .leakage import leakage
from .repeat import verifier_repeats
from .solutions import alternatives, mutants, noop, oracle


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate."""

    name: str
    claim: str
    check: Callable[[Bench, Sequence[Cell]], Awaitable[list[Finding]]]
    ends_only: bool = False
    """Only at the easiest and the hardest level, with one seed."""
    may_be_empty: bool = False
    """Whether an environment may have nothing to try."""


GATES: tuple[Gate, ...] = (
    Gate(
        name="determinism",
        claim="the same seed gives the same instance, brief and solutions in two processes and under threads; "
        "another seed gives another instance",
        check=determinism,
    ),
    Gate(name="levels", claim="every level gives another instance", check=levels_differ),
    Gate(name="brief", claim="the brief is whole, names what is graded and tells no secret", check=brief),
    Gate(name="oracle", claim="the oracle scores 1 and passes", check=oracle),
    Gate(name="noop", claim="submitting at once scores 0 and does not pass", check=noop),
    Gate(name="mutants", claim="three or more wrong solutions, and none passes", check=mutants),
    Gate(
        name="alternatives",
        claim="every other right solution scores 1 and passes",
        check=alternatives,
        may_be_empty=True,
    ),
    Gate(
        name="leakage",
        claim="no secret of the instance is in the agent's sandbox, plain, encoded or compressed",
        check=leakage,
    ),
    Gate(
        name="baselines",
        claim="bots that do not do the work score 0, in time",
        check=baselines,
        ends_only=True,
    ),
    Gate(
        name="verifier repeats",
        claim="the same artefacts get the same verdict again, alone and under load",
        check=verifier_repeats,
        ends_only=True,
    ),
    Gate(
        name="fuzzed artefacts",
        claim="empty, huge, binary, linked and endless artefacts get a failing verdict, in time",
        check=fuzzed_artefacts,
        ends_only=True,
    ),
)

__all__ = ["GATES", "Gate"]
