"""What is right: kept exactly where it is stored, found in every form that a brief allows, and by no substring."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.envs.core import HashRng, Instance, instance_rng
from metier.envs.finance.covenant_test import terms
from metier.envs.finance.covenant_test.draw import KNOBS, draw
from metier.envs.finance.covenant_test.family import CovenantTest
from metier.envs.finance.covenant_test.grading import grade
from metier.envs.finance.three_statement.conventions import draw_conventions
from metier.envs.finance.three_statement.figures import Company, draw_company
from metier.envs.finance.xbrl_calc_check.family import XbrlCalcCheck
from metier.envs.finance.xbrl_calc_check.filing import filing_from_json, filing_json

LEVELS = range(5)
COVENANTS = CovenantTest()


def stored(value: Any) -> Any:
    """As it comes back from wherever an instance's truth was kept."""
    return json.loads(json.dumps(value, allow_nan=False))


# stored


@given(
    st.fractions(min_value=-(10**12), max_value=10**12),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9),
)
def test_a_covenants_value_and_limit_are_no_floats_on_the_way(value: Fraction, limit: Decimal) -> None:
    tested = terms.Tested(name="leverage", value=value, limit=limit, is_maximum=True, clause="21.2")
    again = terms.Tested.from_json(stored(tested.to_json()))
    assert again == tested
    assert (again.rounded, again.status, str(again.limit)) == (tested.rounded, tested.status, str(limit))


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_drawn_covenants_come_back_as_they_were_drawn(level: int) -> None:
    for seed in range(10):
        for one in draw(HashRng(b"%d" % seed), KNOBS[level]).tested:
            assert terms.Tested.from_json(stored(one.to_json())) == one


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_company_and_a_filing_come_back_as_they_were_drawn(level: int) -> None:
    rng = HashRng(b"%d" % level)
    on = draw_conventions(rng.child("conventions"), level)
    company = draw_company(rng.child("company"), on)
    assert Company.from_json(stored(company.to_json())) == company
    truth: Mapping[str, Any] = XbrlCalcCheck().generate(instance_rng("x", {}, 1, level), level).truth
    for which in ("right", "faulty"):
        filing = filing_from_json(stored(truth[which]))
        assert stored(filing_json(filing)) == truth[which]
        assert not any(isinstance(leaf, float) for leaf in leaves(truth[which])), "money as a float"


def leaves(value: Any) -> list[Any]:
    """Everything that is neither a list nor an object."""
    if isinstance(value, dict | list):
        return [leaf for part in (value.values() if isinstance(value, dict) else value) for leaf in leaves(part)]
    return [value]


# answered


def made(level: int, seed: int) -> Instance:
    return COVENANTS.generate(instance_rng("finance/CovenantTest-v0", {}, seed, level), level)


def paid(instance: Instance, answer: str) -> float:
    truth: Mapping[str, Any] = instance.truth
    tested = [terms.Tested.from_json(one) for one in truth["tested"]]
    return grade(answer, tested, evidence=instance.variables["level"] != 0).reward


def right(instance: Instance) -> str:
    return str(instance.truth["answer"])


FORMATS = {
    "as asked": lambda text: text,
    "with line ends of Windows, and one at the end": lambda text: text.replace("\n", "\r\n") + "\r\n",
    "in another order, indented, with empty lines": lambda text: "\n\n  ".join(reversed(text.split("\n"))) + "\n\n",
    "in capitals": lambda text: text.upper().replace("CLAUSE", "clause"),
    "with more digits": lambda text: " ".join(
        f"{word}00" if word.startswith(("value=", "ratio=")) else word for word in text.split(" ")
    ),
    "with commas between": lambda text: text.replace(" limit", ", limit").replace(" clause", ", clause"),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("level", LEVELS)
def test_the_right_answer_is_right_in_every_form(level: int, form: str) -> None:
    for seed in range(6):
        instance = made(level, seed)
        assert paid(instance, FORMATS[form](right(instance))) == 1.0, FORMATS[form](right(instance))


NO_ANSWERS = ["", " ", "0", "null", "None", "NaN", "nan", "inf", "-inf", "Infinity", "true", "[]", "{}", "pass", "fail"]
CODE = ["__import__('os').system('true')", "1+1", "ratio=1+1 pass", "lambda: 0", "ratio=nan pass", "ratio=inf pass"]


@pytest.mark.parametrize("answer", NO_ANSWERS + CODE)
def test_what_is_no_answer_is_worth_nothing_at_any_level(answer: str) -> None:
    for level in LEVELS:
        assert paid(made(level, 1), answer) == 0.0


TURNED = ["not pass", "did not pass", "passes, which is no fail", "fail (pass)", "no fail", "failing to pass"]


@pytest.mark.parametrize("said", TURNED)
def test_a_word_inside_other_words_is_not_the_word(said: str) -> None:
    """Neither a negation that holds the right word nor a hedge that holds both is taken for it."""
    seen = set()
    for seed in range(20):
        instance = made(0, seed)
        status = right(instance).split(" ")[-1]
        seen.add(status)
        assert paid(instance, right(instance).replace(status, said)) == 0.0
    assert seen == {"pass", "fail"}
