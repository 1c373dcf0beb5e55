"""The gates: each a claim about an environment and a function that tries to refute it.

A gate looks at the whole grid of (level, seed) or at the easiest and the hardest level only, by its cost. It answers
with findings; one that is not ok makes the gate red. A gate that is sharpened gets a higher `version`, so that older
certificates are seen to lack it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ..bench import Bench, Cell
from ..certificate import Finding
from .baselines import baselines
from .brief import brief
from .determinism import determinism
from .envelope import envelope
from .fuzz import fuzzed_artefacts
from .leakage import leakage
from .levels import levels_differ
from .repeat import verifier_repeats
from .solutions import alternatives, mutants, noop, oracle


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One gate."""

    name: str
    claim: str
    check: Callable[[Bench, Sequence[Cell]], Awaitable[list[Finding]]]
    version: int = 1
    ends_only: bool = False
    """Only at the easiest and the hardest level, with one seed."""
    may_be_empty: bool = False
    """Whether an environment may have nothing to try."""


GATES: tuple[Gate, ...] = (
    Gate(
        name="determinism",
        claim="the same seed gives the same instance, brief and solutions in two processes, on two days and under "
        "threads; another seed gives another instance",
        check=determinism,
        version=2,
    ),
    Gate(
        name="levels",
        claim="every level differs measurably from the one before it, and the family says in what",
        check=levels_differ,
        version=2,
    ),
    Gate(
        name="brief",
        claim="the brief is whole, names what is graded and what the verifier insists on, and tells no secret",
        check=brief,
        version=2,
    ),
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
        claim="no secret of the instance is in the agent's sandbox, plain, encoded or compressed, "
        "or told to its programs by the verifier",
        check=leakage,
        version=2,
    ),
    Gate(
        name="baselines",
        claim="bots that do not do the work score 0, in time",
        check=baselines,
        version=2,
        ends_only=True,
    ),
    Gate(
        name="verifier repeats",
        claim="the same artefacts get the same verdict again: on one core, under load, "
        "in five time zones, on 29 February, in 2038, the night the clocks change",
        check=verifier_repeats,
        version=3,
        ends_only=True,
    ),
    Gate(
        name="fuzzed artefacts",
        claim="empty, huge, binary, linked, nested, spoiled and endless artefacts, and the right one among wrong ones, "
        "get a failing verdict, in time",
        check=fuzzed_artefacts,
        version=3,
        ends_only=True,
    ),
    Gate(
        name="envelope",
        claim="generating, preparing, solving and verifying were measured and fit their limits",
        check=envelope,
        ends_only=True,
    ),
)

__all__ = ["GATES", "Gate"]
