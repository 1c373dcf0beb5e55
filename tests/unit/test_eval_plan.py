"""What is asked for, as trials with keys: suites, seeds, levels, policies, and what makes a key another one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adder
import metier
from metier.envs import registry
from metier.envs.core import Capability, ConfigError
from metier.envs.suite import Seeds, Span, Suite
from metier.harness.certify import FIRST_SEED, Status
from metier.harness.evaluate import selection
from metier.harness.evaluate.acting import acting
from metier.harness.evaluate.plan import Plan, PlannedPolicy, differences
from metier.harness.evaluate.selection import Asked, Split, backend_of, check_promises, make_plan, members, select
from metier.harness.testing import ECHO
from trials import ECHO_ID, conditions, environment, plan

metier.register_environments(ECHO)
adder.install()

# seeds

spans = st.builds(lambda first, count: Span(first, first + count), st.integers(0, 60), st.integers(1, 5))


@given(st.lists(spans, min_size=1, max_size=5))
def test_seeds_are_read_as_they_are_written(given_spans: list[Span]) -> None:
    every = [seed for span in given_spans for seed in range(*span)]
    if len(set(every)) < len(every):
        with pytest.raises(ConfigError, match="overlap"):
            Seeds.of(given_spans)
        return
    seeds = Seeds.of(given_spans)
    assert Seeds.parse(str(seeds)) == seeds
    assert list(seeds.each()) == sorted(every)
    assert seeds.total == len(every)


@given(st.lists(spans, min_size=1, max_size=1), st.lists(spans, min_size=1, max_size=1))
def test_seeds_meet_where_one_is_in_both(one: list[Span], two: list[Span]) -> None:
    first, second = Seeds.of(one), Seeds.of(two)
    assert first.meets(second) == bool(set(first.each()) & set(second.each()))


@pytest.mark.parametrize("text", ["", "a", "5:5", "7:3", "-1:3", "1:2:3", "0:5,3:9", "1.5", f"0:{2**63 + 1}", "٣"])
def test_what_are_no_seeds_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="seeds"):
        Seeds.parse(text)


# suites


def test_the_suites_keep_their_seeds_apart() -> None:
    """From certification's, and from the held-out ones of the main job and of each other's public split."""
    main_job = Seeds.parse("0:2000000")
    for name in registry.suites():
        suite = registry.suite(name)
        for seeds in (suite.public_seeds, suite.held_out_seeds or suite.public_seeds):
            assert not seeds.meets(main_job)
            assert max(span.end for span in seeds) < min(FIRST_SEED, 6_000_000)
        for other in registry.suites():
            held_out = registry.suite(other).held_out_seeds
            assert held_out is None or not suite.public_seeds.meets(held_out)


def test_every_suite_of_ours_selects_something() -> None:
    for name in registry.suites():
        suite = registry.suite(name)
        chosen = list(members(suite, True, []))
        assert chosen, name
        assert all(entry.domain != "test" for entry, _ in chosen)
        assert len({entry.id for entry, _ in chosen}) == len(chosen)


FILE = """\
suites:
- suite: mine-v0
  summary: Of mine
  domains: [acme]
  levels: [0, 9]
  environments: [{id: acme/Named-v0, options: {unit: m}}]
  public_seeds: '0:2'
  held_out_seeds: '5:6'
- suite: tagged-v0
  summary: By two tags
  tags: [a, b]
  public_seeds: '7'
environments:
- id: acme/Plain-v0
  entry_point: metier.harness.testing.echo.family:Echo
  summary: A plain one
  image: terminal-python
  tools: [read_file]
  levels: 3
  tags: [a]
- id: acme/Named-v0
  entry_point: metier.harness.testing.echo.family:Echo
  summary: Named by the suite
  image: terminal-python
  tools: [read_file]
  levels: 10
  tags: [a, b]
"""


@pytest.fixture
def added(tmp_path: Path) -> Iterator[list[str]]:
    path = tmp_path / "registry.yaml"
    path.write_text(FILE)
    known = registry._known()
    names = registry.add_registry(path)
    yield names
    for name in names:
        del known.entries[name]
    for name in ("mine-v0", "tagged-v0"):
        del known.suites[name]


def asked(*names: str, **more: Any) -> Asked:
    return Asked(names=names, **more)


def test_a_suite_takes_what_it_matches_and_what_it_names(added: list[str]) -> None:
    chosen = select(asked("mine-v0", uncertified=True))
    assert [(one.id, one.options, one.levels, str(one.seeds)) for one in chosen.environments] == [
        ("acme/Plain-v0", {}, (0,), "0:2"),
        ("acme/Named-v0", {"unit": "m"}, (0, 9), "0:2"),
    ]
    assert chosen.notes == tuple(
        f"acme/{name}-v0 is run without a valid certificate (none)" for name in ("Plain", "Named")
    )
    tagged = select(asked("tagged-v0", uncertified=True))
    assert [one.id for one in tagged.environments] == ["acme/Named-v0"]
    assert str(tagged.environments[0].seeds) == "7:8"


def test_what_has_no_valid_certificate_is_left_out_and_told(added: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = select(asked("mine-v0"))
    assert [one.id for one in chosen.environments] == ["acme/Named-v0"]  # whoever names it wants it
    note, _ = chosen.notes
    assert note.startswith("mine-v0: 1 without a valid certificate were left out (acme/Plain-v0); certify them, or")
    with pytest.raises(ConfigError, match="nothing is selected: tagged-v0: 1 without"):
        select(asked("tagged-v0"))
    monkeypatch.setattr(selection, "certificate_status", lambda _: Status.VALID)
    assert [one.id for one in select(asked("mine-v0")).environments] == ["acme/Plain-v0", "acme/Named-v0"]


def test_splits_seeds_levels_and_options_can_be_chosen(added: list[str]) -> None:
    (one,) = select(asked("mine-v0", split=Split.HELD_OUT)).environments
    assert str(one.seeds) == "5:6"
    (one,) = select(asked("mine-v0", seeds=Seeds.parse("3"), levels=[2, 1, 2], options={"unit": "s"})).environments
    assert (str(one.seeds), one.levels, one.options) == ("3:4", (2, 1), {"unit": "s"})
    (one,) = select(asked(ECHO_ID)).environments
    assert (str(one.seeds), one.levels, one.certificate) == ("0:10", (0,), "none")


def test_levels_that_an_environment_has_not_are_left_out_of_a_suite(added: list[str]) -> None:
    chosen = select(asked("mine-v0", uncertified=True, levels=None))
    assert {one.id: one.levels for one in chosen.environments}["acme/Plain-v0"] == (0,)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"names": []}, "name suites or environments; suites are all-v0"),
        ({"names": ["smoke-v1"]}, "unknown suite 'smoke-v1' .did you mean smoke-v0.*is named domain/Name-v0"),
        ({"names": ["test/Ecko-v0"]}, "did you mean test/Echo-v0"),
        ({"names": [ECHO_ID], "levels": [3]}, "has levels 0 to 2, not 3"),
        ({"names": [ECHO_ID], "options": {"units": "m"}}, "unknown option 'units' .did you mean unit"),
        ({"names": ["tagged-v0"], "split": Split.HELD_OUT}, "tagged-v0 has no held-out seeds"),
        ({"names": ["acme/Named-v0", "mine-v0"], "options": {"unit": "m"}}, "acme/Named-v0 is asked for twice"),
    ],
)
def test_what_cannot_be_selected_is_said(added: list[str], wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        select(Asked(**wrong))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("  public_seeds: '0:2'\n", r"registry.yaml:3: x-v0: entry: Value error, name domains, tags or environments"),
        ("  domains: [a]\n  public_seeds: 5:50\n", "public_seeds: Value error, seeds 350: write them in quotes"),
        ("  domains: [a]\n", "registry.yaml:3: x-v0: public_seeds: Field required"),
        ("  domains: [a]\n  public_seeds: '2:1'\n", "registry.yaml:6: x-v0: public_seeds: Value error, seeds 2:1 hold"),
        (
            "  domains: [a]\n  public_seeds: '0:5'\n  held_out_seeds: '4:9'\n",
            "public_seeds 0:5 and held_out_seeds 4:9 ov",
        ),
        ("  domains: [a]\n  public_seeds: '0:5'\n  levles: all\n", "levles: no such field .did you mean levels"),
        ("  domains: [a]\n  public_seeds: '0:5'\n  levels: []\n", "registry.yaml:7: x-v0: levels"),
        ("  domains: [a]\n  public_seeds: '0:5'\n  domains: [b]\n", "domains is given twice"),
    ],
)
def test_a_wrong_suite_is_refused_with_its_line(tmp_path: Path, change: str, words: str) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(f"# a file\nsuites:\n- suite: x-v0\n  summary: X\n{change}environments: []\n")
    raw = registry.read_all(path).suites["x-v0"]
    with pytest.raises(ConfigError, match=words):
        registry._modelled(raw, Suite)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("suites: []\nenvironment: []\n", "registry.yaml:2: environment: a registry is a list of entries"),
        ("suites: 5\n", "registry.yaml:1: suites: a registry is"),
        ("environments: []\nsuites: []\n", "`environments` comes last"),
        ("suites: []\nsuites: []\nenvironments: []\n", "registry.yaml:2: suites is given twice"),
        ("suites:\n- suite: Bad\n", "registry.yaml:2: suite 'Bad' must look like some-name-v0"),
        ("suites:\n- suite: a-v0\n- suite: a-v0\n", r"registry.yaml:3: a-v0 is already defined at .*registry.yaml:2"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        registry.read_all(path)


def test_a_suite_of_a_name_that_is_taken_is_refused_whole(tmp_path: Path) -> None:
    path = tmp_path / "registry.yaml"
    path.write_text(FILE.replace("mine-v0", registry.suites()[0]))
    with pytest.raises(ConfigError, match="all-v0 is already defined at registry"):
        registry.add_registry(path)
    assert "acme/Plain-v0" not in registry.ids()


# keys


def test_keys_are_apart_and_the_same_every_time() -> None:
    made = plan(environment(levels=(0, 1)), environment(id="cad/Other-v0", options={"a": 1}), samples=3)
    keys = [trial.key for trial in made.trials()]
    assert len(set(keys)) == len(keys) == made.num_trials == 27
    assert keys == [trial.key for trial in Plan.model_validate_json(made.model_dump_json()).trials()]
    assert keys[0] == "2e8623e5fa47734edbfed07c7b2e85ed"


MATTERS: dict[str, tuple[dict[str, Any], str]] = {
    "the code": ({"environments": (environment(digest="d" * 64),)}, "test/Echo-v0: its code or its registry entry"),
    "the image": (
        {"environments": (environment(digest="d" * 64, image_digest="e" * 64),)},
        "test/Echo-v0: its image terminal-python is another one",
    ),
    "options": ({"environments": (environment(options={"unit": "m"}),)}, 'test/Echo-v0 options.unit: null → "m"'),
    "the policy": ({"policy": PlannedPolicy(name="noop")}, 'policy.name: "openai" → "noop"'),
    "a setting": (
        {"policy": PlannedPolicy(name="openai", settings={"model": "small", "temperature": 0.7})},
        "policy.settings.temperature: 0.5 → 0.7",
    ),
    "the backend": ({"conditions": conditions(backend="docker")}, 'conditions.backend: "fake" → "docker"'),
    "the time": ({"conditions": conditions(episode_s=9.0)}, "conditions.episode_s: 60.0 → 9.0"),
    "the hub's secret": (
        {"conditions": conditions(secret_fingerprint="d")},
        'conditions.secret_fingerprint: "cccccccccccc" → "d"',
    ),
    "the harness": ({"conditions": conditions(metier="0.2.0")}, 'conditions.metier: "0.1.0" → "0.2.0"'),
}


@pytest.mark.parametrize("name", MATTERS)
def test_whatever_matters_makes_every_key_another_one_and_says_so(name: str) -> None:
    change, words = MATTERS[name]
    before, after = plan(), plan(**change)
    assert not {trial.key for trial in before.trials()} & {trial.key for trial in after.trials()}
    (line,) = [line for line in differences(before, after) if words in line]
    assert line.startswith(words)


@pytest.mark.parametrize(
    "after",
    [
        plan(environment(certificate="stale")),
        plan(environment(seeds="0:9")),
        plan(environment(levels=(0, 1))),
        plan(samples=4),
        plan(environment(), environment(id="cad/Other-v0")),
    ],
)
def test_more_of_the_same_keeps_keys_and_is_no_difference(after: Plan) -> None:
    before = plan()
    assert {trial.key for trial in before.trials()} <= {trial.key for trial in after.trials()}
    assert differences(before, after) == []


def test_environments_take_turns_and_a_longer_one_goes_on_alone() -> None:
    made = plan(environment(seeds="0:1"), environment(id="cad/Other-v0", seeds="5:8"))
    order = [(trial.env_id[:3], trial.seed) for trial in made.trials()]
    assert order == [("tes", 0), ("cad", 5), ("cad", 6), ("cad", 7)]


# policies


@pytest.mark.parametrize(
    ("line", "settings", "planned"),
    [
        ("noop", [], ("noop", {})),
        ("random", ["seed=5"], ("random", {"seed": 5})),
        ("random:seed=5", [], ("random", {"seed": 5})),
        ("adder:errs_on=3,marks=a,b", ["wait_s=0.5"], ("adder", {"errs_on": 3, "marks": "a,b", "wait_s": 0.5})),
        ("oracle", [], ("oracle", {})),
    ],
)
def test_a_policy_is_named_with_its_settings(line: str, settings: list[str], planned: tuple[str, Any]) -> None:
    made = acting(line, settings)
    assert (made.planned.name, made.planned.settings) == planned


def test_of_an_endpoint_only_what_changes_its_answers_is_in_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-nobody-may-see-this")
    line = "openai:http://127.0.0.1:1/v1#small"
    made = acting(line, ["temperature=0.5", "api_key_env=MY_KEY", "retries=2"])
    assert made.name == line and made.settings["retries"] == 2
    assert (made.planned.name, made.planned.settings["model"]) == ("openai", "small")
    assert made.planned == acting(line, ["temperature=0.5", "request_s=5"]).planned
    assert made.planned != acting(line, ["temperature=0.6"]).planned
    assert "sk-nobody" not in made.planned.model_dump_json() + json.dumps(dict(made.settings))


def test_a_replay_is_of_the_files_content(tmp_path: Path) -> None:
    recorded = tmp_path / "a.jsonl"
    recorded.write_text("{}")
    first = acting(f"replay:{recorded}").planned
    recorded.write_text("{} ")
    assert acting(f"replay:{recorded}").planned != first


@pytest.mark.parametrize(
    ("line", "settings", "words"),
    [
        ("oracel", [], "did you mean oracle"),
        ("random:seeds=3", [], "refuses its settings"),
        ("random", ["seed"], "'seed' is no setting: write name=value"),
        ("random", ["a b=1"], "is no setting"),
        ("human", [], "metier play ID"),
        ("openai:nowhere#x", [], "give an http"),
        ("openai:http://127.0.0.1/v1", ["model=x", "api_key=sk-1"], "api_key looks like a secret"),
        ("openai:http://127.0.0.1/v1", ["model=x", 'headers={"X-Api-Key": "1"}'], "X-Api-Key looks like a secret"),
        ("openai:http://127.0.0.1/v1", ["model=x", 'extra={"a": [{"password": "1"}]}'], "password looks like a secret"),
        ("replay:nowhere.jsonl", [], "nowhere.jsonl cannot be read"),
    ],
)
def test_a_policy_that_cannot_act_is_refused_before_anything_runs(line: str, settings: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        acting(line, settings)


# conditions


async def test_a_backend_has_its_own_name_in_a_plan() -> None:
    assert await backend_of("fake") == "fake"
    assert await backend_of("auto") in ("docker", "bubblewrap")
    with pytest.raises(ConfigError, match="did you mean docker"):
        await backend_of("dokcer")


async def test_what_a_backend_cannot_promise_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    await check_promises("fake", [ECHO_ID])
    wanting = registry.get(ECHO_ID).model_copy(update={"requires": (Capability.ALLOWLIST,)})
    monkeypatch.setattr(registry, "get", lambda _: wanting)
    with pytest.raises(ConfigError, match=f"fake backend cannot promise .*{ECHO_ID} requires allowlist"):
        await check_promises("fake", [ECHO_ID])


def test_a_plan_takes_no_sample_or_time_that_is_none() -> None:
    selected = select(asked(ECHO_ID))
    for samples, episode_s in itertools.product((0, 1), (0.0, float("inf"), float("nan"))):
        with pytest.raises(ConfigError, match="give at least 1"):
            make_plan(
                selected, acting("noop").planned, samples=samples, backend="fake", episode_s=episode_s, version="1"
            )
