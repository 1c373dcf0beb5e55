"""Claims: what every implementation of a contract must do, each a function that raises AssertionError if it does not.

No test framework is needed: run a suite with `run_suite`, or give its claims to the framework you have. With pytest:

    @pytest.mark.parametrize("claim", SANDBOX.claims, ids=str)
    async def test_my_backend(claim):
        async with MyBackend() as backend:
            await claim.holds(Place(backend, SPEC))
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Claim(Generic[S]):
    """One thing that must hold of a subject."""

    name: str
    holds: Callable[[S], Awaitable[None]]
    """Raises AssertionError, with what was seen, where it does not hold."""
    unmet: Callable[[S], str]
    """Why it does not apply to this subject; empty where it does."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one claim went: it held, it did not and `evidence` says why, or it did not apply."""

    claim: str
    held: bool
    skipped: bool = False
    evidence: str = ""


class Suite(Generic[S]):
    """The claims of one contract, in order."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.claims: list[Claim[S]] = []

    def claim(self, check: Callable[[S], Awaitable[None]]) -> Callable[[S], Awaitable[None]]:
        """Registers a claim that takes the subject."""
        self.add(check)
        return check

    def add(
        self,
        check: Callable[..., Awaitable[None]],
        cases: Mapping[str, Any] | Sequence[Any] | None = None,
        unmet: Callable[[S], str] = lambda _: "",
    ) -> None:
        """A claim, or one for each of `cases`, whose value (or values, of a tuple) follow the subject."""
        name = check.__name__
        if cases is None:
            self.claims.append(Claim(name, check, unmet))
            return
        named = cases.items() if isinstance(cases, Mapping) else ((str(case), case) for case in cases)
        for case_name, case in named:
            values = case if isinstance(case, tuple) else (case,)
            self.claims.append(Claim(f"{name}[{case_name[:60]}]", _bound(check, values), unmet))


def _bound(check: Callable[..., Awaitable[None]], values: Sequence[Any]) -> Callable[[Any], Awaitable[None]]:
    async def holds(subject: Any) -> None:
        await check(subject, *values)

    return holds


async def run_suite(suite: Suite[S], subject: S, *, only: str = "") -> list[Outcome]:
    """Every claim of a suite on one subject, or those whose name has `only` in it; one that fails stops no other."""
    if not __debug__:
        raise RuntimeError("claims are assertions, which `python -O` drops; run without it")
    outcomes: list[Outcome] = []
    for claim in suite.claims:
        if only not in claim.name:
            continue
        if gap := claim.unmet(subject):
            outcomes.append(Outcome(claim=claim.name, held=True, skipped=True, evidence=gap))
            continue
        try:
            await claim.holds(subject)
        except Exception as error:  # also what a claim did not expect is a claim that does not hold
            seen = traceback.extract_tb(error.__traceback__)[-1]
            evidence = f"{type(error).__name__}: {error or seen.line} ({seen.name}, line {seen.lineno})"
            outcomes.append(Outcome(claim=claim.name, held=False, evidence=evidence))
        else:
            outcomes.append(Outcome(claim=claim.name, held=True))
    return outcomes


@contextmanager
def raises(kind: type[BaseException] | tuple[type[BaseException], ...], match: str = "") -> Iterator[None]:
    """The block must raise such an error, whose words match the expression."""
    words: str | None = None
    try:
        yield
    except kind as error:
        words = str(error)
    assert words is not None, f"nothing was raised; expected {kind}"
    assert re.search(match, words), f"the error's words {words!r} do not match {match!r}"
