"""Every registered environment, and the scripted one, keeps the family contract; action spaces keep theirs."""

from __future__ import annotations

import pytest

from metier.envs import registry
from metier.harness.gym import ToolCallSpace
from metier.harness.testing import ECHO, FAMILY, SPACE, Claim, Outcome, Specimen, Suite, raises, run_suite
from metier.harness.tools import SPECS, tool_specs

IDS = [*registry.ids(), *registry.add_registry(ECHO)]


@pytest.fixture(scope="module", params=IDS)
def specimen(request: pytest.FixtureRequest) -> Specimen:
    return Specimen.of(request.param)


@pytest.mark.parametrize("claim", FAMILY.claims, ids=str)
async def test_family(specimen: Specimen, claim: Claim[Specimen]) -> None:
    await claim.holds(specimen)


@pytest.mark.parametrize("names", [list(SPECS), ["shell"], []], ids=str)
@pytest.mark.parametrize("claim", SPACE.claims, ids=str)
async def test_space(names: list[str], claim: Claim[ToolCallSpace]) -> None:
    await claim.holds(ToolCallSpace(tool_specs(names)))


async def test_a_suite_says_what_failed_and_goes_on() -> None:
    suite: Suite[int] = Suite("numbers")

    @suite.claim
    async def it_is_even(number: int) -> None:
        assert number % 2 == 0, f"{number} is odd"

    async def it_divides(number: int, by: int) -> None:
        with raises(ZeroDivisionError, match="zero"):
            _ = number / by

    suite.add(it_divides, cases={"zero": 0, "two": 2}, unmet=lambda number: "only odd ones" if number == 8 else "")
    outcomes = await run_suite(suite, 7)
    assert [(one.claim, one.held) for one in outcomes] == [
        ("it_is_even", False),
        ("it_divides[zero]", True),
        ("it_divides[two]", False),
    ]
    assert "7 is odd" in outcomes[0].evidence
    assert "nothing was raised" in outcomes[2].evidence
    assert [one.skipped for one in await run_suite(suite, 8)] == [False, True, True]
    assert await run_suite(suite, 7, only="even") == [
        Outcome(claim="it_is_even", held=False, evidence=outcomes[0].evidence)
    ]
