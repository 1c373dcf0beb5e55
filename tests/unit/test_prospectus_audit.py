"""finance/ProspectusAudit on the host: one ledger, figures that read back, the grader, and bots that must do badly."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import Deadline, HashRng, Instance, SandboxSpec, ToolCall, Verdict, instance_rng
from metier.envs.finance.prospectus_audit import bots
from metier.envs.finance.prospectus_audit.dealings import add_dealings
from metier.envs.finance.prospectus_audit.family import ProspectusAudit
from metier.envs.finance.prospectus_audit.grading import CAP, Error, Key, Shelf, Spot, f_score, grade
from metier.envs.finance.prospectus_audit.names import draw_names
from metier.envs.finance.prospectus_audit.world import draw_ledger
from metier.envs.parts.displays import STYLES, agrees, read, show
from metier.envs.parts.ledger import Kind, Ledger
from metier.envs.parts.prose import Prose
from metier.envs.parts.quotes import Searched
from metier.envs.parts.sections import bodies, mark, put_together
from metier.envs.parts.token_count import count_tokens
from metier.envs.registry import make_family, render_brief
from metier.harness.sandbox.fake import FakeBackend, FakeSandbox

ENV_ID = "finance/ProspectusAudit-v0"
LEVELS = range(5)
FAMILY = ProspectusAudit()
SHORT = ProspectusAudit(tokens=20_000)


def made(level: int, seed: int, family: ProspectusAudit = FAMILY) -> Instance:
    return family.generate(instance_rng(ENV_ID, {}, seed, level), level)


def truth_of(instance: Instance) -> Mapping[str, Any]:
    return instance.truth


def key_of(instance: Instance) -> Key:
    truth = truth_of(instance)
    errors = tuple(
        Error(wrong=Spot.from_json(one["wrong"]), others=tuple(map(Spot.from_json, one["others"])))
        for one in truth["errors"]
    )
    return Key(errors=errors, ties={code: tuple(map(Spot.from_json, spots)) for code, spots in truth["ties"].items()})


def documents_of(instance: Instance) -> dict[str, str]:
    return {path.rpartition("/")[2]: data.decode() for path, data in instance.files.items() if path.endswith(".md")}


def index_of(instance: Instance) -> str:
    return instance.files["prospectus/index.csv"].decode()


def handed_in(calls: Sequence[ToolCall]) -> str:
    command = str(next(call for call in reversed(calls) if call.tool == "shell").arguments["command"])
    return command.split("<<'END_OF_FILE'\n", 1)[1].removesuffix("\nEND_OF_FILE")


def graded(instance: Instance, text: str) -> Verdict:
    return grade(text, key_of(instance), Shelf(documents_of(instance)))


def planted(level: int, family: ProspectusAudit = SHORT) -> Instance:
    return next(one for one in (made(level, seed, family) for seed in range(30)) if truth_of(one)["errors"])


def clean(level: int) -> Instance:
    return next(one for one in (made(level, seed, SHORT) for seed in range(40)) if not truth_of(one)["errors"])


def book_of(seed: int) -> Ledger:
    rng = HashRng(b"%d" % seed)
    names = draw_names(rng.child("names"))
    book = draw_ledger(rng.child("ledger"), names)
    add_dealings(rng.child("dealings"), book, names)
    return book


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_and_differ_by_seed(level: int) -> None:
    assert made(level, 1) == made(level, 1)
    assert len({repr(sorted(made(level, seed, SHORT).files.items())) for seed in range(5)}) == 5


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_the_ledger_adds_up(seed: int) -> None:
    book = book_of(seed)
    assert all(fact.value > 0 for fact in book)
    for ago in (0, 1):
        for keys in (("segment_a", "segment_b", "segment_c"), ("region_a", "region_b", "region_c", "region_d")):
            assert sum(book[f"{key}.{ago}"] for key in keys) == book[f"revenue.{ago}"]
        owed = sum(book[f"{key}.{ago}"] for key in ("debt_long", "debt_short", "leases"))
        assert book[f"net_debt.{ago}"] == owed - book[f"cash.{ago}"]
        assert book[f"equity.{ago}"] < book[f"assets.{ago}"]
        assert book[f"free_cash_flow.{ago}"] == book[f"cash_flow.{ago}"] - book[f"capex.{ago}"]
    assert book["goodwill.0"] == book["goodwill.1"] + book["acquired_goodwill"]
    assert book["use_debt"] + book["use_plant"] + book["use_general"] == book["net_proceeds"]
    assert book["facility_drawn"] < book["facility"] and book["facility_first"] < book["facility"]
    assert book["facility_drawn"] < book["debt_long.0"] and book["acquired"] > book["acquired_goodwill"]
    assert book["leverage.0"] < book["covenant"] and book["top_customer"] < book["top_five"]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(LEVELS))
def test_every_contradiction_shows_and_is_the_only_one_of_its_fact(seed: int, level: int) -> None:
    # generate itself reads every figure back; here the log is held against the files
    instance = made(level, seed, SHORT)
    shelf, truth = Shelf(documents_of(instance)), truth_of(instance)
    wrong = [one["wrong"]["code"] for one in truth["errors"]]
    assert len(wrong) == len(set(wrong)) and len(wrong) <= 12
    for one in truth["errors"]:
        spot = Spot.from_json(one["wrong"]).place
        assert shelf.body(spot.document, spot.section)[spot.start : spot.end] == one["after"] != one["before"]
        assert one["others"] and all(other["section"] != spot.section for other in one["others"])
        assert one["after"] not in {
            shelf.body(other["document"], other["section"])[other["start"] : other["end"]]
            for other in one["others"]
            if other["code"] == one["wrong"]["code"]
        }
    assert not set(truth["ties"]) & set(wrong)


@pytest.mark.parametrize("level", LEVELS)
def test_right_findings_pass_and_wrong_ones_fail(level: int) -> None:
    for seed in range(3):
        instance = made(level, seed)
        for calls in (FAMILY.oracle(instance), *FAMILY.alternatives(instance).values()):
            verdict = graded(instance, handed_in(calls))
            assert verdict.reward == 1.0 and verdict.passed
        mutants = FAMILY.mutants(instance)
        assert len(mutants) >= 4
        for name, calls in mutants.items():
            assert not graded(instance, handed_in(calls)).passed, (seed, name)


@pytest.mark.parametrize("level", LEVELS)
def test_an_empty_list_earns_nothing_unless_the_work_was_done_and_nothing_is_there(level: int) -> None:
    some = planted(level)
    ties = json.loads(handed_in(SHORT.oracle(some)))["ties"]
    assert graded(some, json.dumps({"ties": ties, "contradictions": []})).reward == 0.0
    if level:
        none = clean(level)
        ties = json.loads(handed_in(SHORT.oracle(none)))["ties"]
        assert graded(none, json.dumps({"ties": ties, "contradictions": []})).passed
        assert graded(none, json.dumps({"ties": ties[1:], "contradictions": []})).reward < 1.0
        for lazy in ("[]", "{}", "", '{"contradictions": []}', json.dumps({"ties": [], "contradictions": []})):
            assert graded(none, lazy).reward == 0.0


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_a_quarter_is_clean_and_levels_plant_what_they_say(level: int) -> None:
    drawn = [truth_of(made(level, seed, SHORT))["errors"] for seed in range(60)]
    assert 0.15 < sum(not errors for errors in drawn) / len(drawn) < 0.45
    hops = {error["hop"] for errors in drawn for error in errors}
    assert (
        hops
        == {
            1: {"direct", "scale"},
            2: {"direct", "scale", "term", "derived"},
            3: {"scale", "term", "derived", "asof", "amended", "reference"},
            4: {"term", "derived", "asof", "amended", "reference"},
        }[level]
    )


def test_length_changes_nothing_but_the_length() -> None:
    instances = [
        made(3, seed, ProspectusAudit(tokens=tokens, core=7))
        for seed, tokens in enumerate((20_000, 100_000, 1_000_000))
    ]
    answers = {handed_in(FAMILY.oracle(instance)) for instance in instances}
    assert len(answers) == 1
    assert all(graded(instance, next(iter(answers))).passed for instance in instances)
    tokens = [sum(map(count_tokens, documents_of(instance).values())) for instance in instances]
    assert tokens[0] < 32_000 and 95_000 < tokens[1] < 105_000 and 950_000 < tokens[2] < 1_000_000
    assert sum(map(len, instances[2].files.values())) < 8 << 20
    assert index_of(instances[0]) == index_of(instances[2])


def test_options_are_checked() -> None:
    from metier.envs.core import ConfigError
    from metier.envs.registry import get

    for options in ({"tokens": 5}, {"tokens": 2_000_000}, {"core": -2}, {"token": 20_000}):
        with pytest.raises(ConfigError):
            make_family(get(ENV_ID), options)


@pytest.mark.parametrize("bot", [bots.rare_word_grep, bots.same_number_matcher])
def test_bots_find_next_to_nothing_from_level_2(bot: Any) -> None:
    rewards: list[float] = []
    for level in (2, 3, 4):
        for seed in range(4):
            instance = made(level, seed)
            found = bot(documents_of(instance), index_of(instance))
            shelf = Shelf(documents_of(instance))
            assert found and all(
                any(side["quote"] in shelf.body(side["document"], side["section"]) for side in (one["a"], one["b"]))
                for one in found
            )
            ties = json.loads(handed_in(FAMILY.oracle(instance)))["ties"]
            rewards.append(graded(instance, json.dumps({"ties": ties, "contradictions": found})).reward)
    assert sum(rewards) / len(rewards) < 0.1


def test_no_letters_tell_a_planted_figure_from_the_right_one() -> None:
    samples: dict[bool, list[tuple[str, bool]]] = {True: [], False: []}
    for level in (2, 4):
        for seed in range(30):
            for error in truth_of(made(level, seed, SHORT))["errors"]:
                samples[seed % 2 == 0] += [(error["before"], False), (error["after"], True)]
    counts = {wrong: Counter(gram for text, y in samples[True] if y is wrong for gram in grams(text)) for wrong in
              (True, False)}  # fmt: skip

    def score(text: str) -> float:
        return sum(math.log((counts[True][gram] + 1) / (counts[False][gram] + 1)) for gram in grams(text))

    wrong = [score(text) for text, y in samples[False] if y]
    right = [score(text) for text, y in samples[False] if not y]
    auc = sum((one > other) + (one == other) / 2 for one in wrong for other in right) / len(wrong) / len(right)
    assert 0.42 < auc < 0.58


def grams(text: str) -> list[str]:
    plain = f"^{re.sub('^[A-Z]{3} ', '', text)}$"
    return [plain[at : at + size] for size in (1, 2, 3) for at in range(len(plain) - size + 1)]


@pytest.mark.parametrize("level", LEVELS)
def test_the_brief_is_whole_and_tells_nothing(level: int) -> None:
    instance = made(level, 4)
    brief = render_brief(FAMILY, instance, level)
    workspace = b"\n".join(instance.files.values()).decode()
    assert "findings.json" in brief and "{{" not in brief and str(CAP) in brief
    assert all(code in brief and f"{code}," in workspace for code in truth_of(instance)["ties"])
    assert not any(secret in workspace or secret in brief for secret in instance.secrets)
    assert not re.search("[\x00-\x08]", workspace)


def test_partial_credit_weighs_precision() -> None:
    assert f_score(0, 0, 0) == 1 and f_score(0, 1, 0) == 0 and f_score(0, 0, 3) == 0
    assert f_score(4, 0, 0) == 1
    assert f_score(2, 0, 2) == Fraction(10, 12) and f_score(2, 2, 0) == Fraction(10, 18)


def test_a_finding_needs_both_places_their_figures_and_a_code() -> None:
    instance = next(one for one in (made(0, seed, SHORT) for seed in range(20)) if len(truth_of(one)["errors"]) == 1)
    right = json.loads(handed_in(SHORT.oracle(instance)))
    (entry,) = right["contradictions"]
    other = next(code for code in re.findall(r"^T\d+", index_of(instance), re.MULTILINE) if code != entry["fact"])

    def reward(**changes: Any) -> float:
        return graded(instance, json.dumps({**right, "contradictions": [{**entry, **changes}]})).reward

    assert reward() == 1.0 and reward(a=entry["b"], b=entry["a"]) == 1.0
    assert reward(note="the Group's own") == 1.0
    for wrong in (
        {"b": entry["a"]},
        {"a": {**entry["a"], "section": "99.1"}},
        {"a": {**entry["a"], "document": "business.txt"}},
        {"a": {**entry["a"], "quote": entry["a"]["quote"].replace("1", "7").replace("2", "9") + "0"}},
        {"a": {**entry["a"], "quote": ""}},
        {"a": None},
        {"fact": other if other not in {spot["code"] for spot in truth_of(instance)["errors"][0]["others"]} else "T0"},
        {"fact": 7},
    ):
        assert reward(**wrong) == 0.0, wrong
    twice = json.dumps({**right, "contradictions": [entry, {**entry, "a": entry["b"], "b": entry["a"]}]})
    assert graded(instance, twice).passed
    flood = json.dumps({**right, "contradictions": [entry] * (CAP + 1)})
    assert graded(instance, flood).reward == 0.0


NAMES = st.sampled_from(["ties", "contradictions", "fact", "a", "b", "quote", "section"])
LEAVES = st.none() | st.text() | st.integers() | st.floats()


@given(st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner)))
@settings(max_examples=60, deadline=None)
def test_any_json_gets_a_verdict(value: Any) -> None:
    verdict = graded(ONE, json.dumps(value))
    assert verdict.reward == 0.0 and not verdict.passed


ONE = made(0, 1, SHORT)


@asynccontextmanager
async def verifier_sandbox() -> AsyncIterator[FakeSandbox]:
    deadline = Deadline.after(60, limit="test", set_by="test")
    async with FakeBackend() as backend:
        yield await backend.acquire(SandboxSpec(image="terminal-python", verifier=True), deadline=deadline)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe{}", b"[" * 100_000, b" " * 300_000, b'{"contradictions": NaN}', None])
async def test_an_unreadable_file_is_a_failed_check(data: bytes | None) -> None:
    async with verifier_sandbox() as sandbox:
        if data is not None:
            await sandbox.write("/workspace/findings.json", data)
        verdict = await SHORT.verify(sandbox, ONE, HashRng(b"hidden"))
    assert (verdict.reward, verdict.passed) == (0.0, False)


async def test_the_verifier_reads_the_file() -> None:
    async with verifier_sandbox() as sandbox:
        await sandbox.write("/workspace/findings.json", b"\xef\xbb\xbf" + handed_in(SHORT.oracle(ONE)).encode())
        assert (await SHORT.verify(sandbox, ONE, HashRng(b"hidden"))).passed


@given(st.integers(1, 10**7), st.sampled_from(sorted(STYLES)))
def test_what_is_shown_can_be_read_back(value: int, name: str) -> None:
    style = STYLES[name]
    number = Fraction(value % 3_000_000 + 1 if style.kind is Kind.DATE else value)
    text = show(number, style, "EUR")
    assert agrees(text, style, number)
    assert abs(read(text, style) - number) <= style.unit / 2
    assert not agrees(text, style, number + 2 * style.unit)


def test_figures_are_written_as_people_write_them() -> None:
    assert show(Fraction(7), STYLES["word"], "EUR") == "seven" and show(Fraction(13), STYLES["word"], "EUR") == "13"
    assert show(Fraction(1235, 1000), STYLES["p2"], "EUR") == "1.24%"
    assert show(Fraction(41250), STYLES["m1"], "CHF") == "CHF 41.3 million"
    assert show(Fraction(-15), STYLES["k"], "CHF") == "-15"


def test_quotes_are_found_through_what_copying_changes() -> None:
    text = "| Net **Debt** | 1,234 |\nThe co\u00adve\u00adnant \u2013 \u201cfixed\u201d at 3.75x \ufb01nally."
    searched = Searched(text)
    quotes = {
        "net debt 1,234": "1,234",
        "|Net Debt|1,234|": "1,234",
        'covenant - "fixed"  at 3.75X': "3.75x",
        "3.75x finally.": "3.75x",
    }
    for quote, figure in quotes.items():
        ((start, end),) = searched.occurrences(quote)
        assert figure in text[start:end]
    assert not list(searched.occurrences("net debt 1,235")) and not list(searched.occurrences(" "))


def test_sections_keep_their_places_whatever_stands_around() -> None:
    body = f"Cash was {mark(3, '41,300')} and debt {mark(4, '9')}.\n"
    short, first = put_together("a.md", "A", [("1.1", "One", body)])
    long, second = put_together("a.md", "A", [("1.0", "None", "Nothing.\n"), ("1.1", "One", body), ("1.2", "Two", "")])
    assert first == second
    assert bodies(short)["1.1"] == bodies(long)["1.1"] and bodies(long)["1.0"].strip() == "Nothing."
    assert bodies(long)["1.1"][first[3].start : first[3].end] == "41,300"


def test_prose_uses_every_pattern_before_it_repeats_one() -> None:
    prose = Prose(HashRng(b"1"), {"x": ["{a|b} {#1000..1001}", "c {@1990..1990}", "<who>"]}, {"who": "d"})
    said = {prose.sentence("x") for _ in range(3)}
    assert {"c 1990", "d"} < said and (said - {"c 1990", "d"}) <= {f"{x} 1,00{y}" for x in "ab" for y in "01"}
