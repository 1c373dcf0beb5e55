"""The database, in both kinds: tokens as hashes, limits that hold between servers, replays that are kept once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import postgres
from metier.envs.core import ConfigError, Outcome
from metier.harness.leaderboard import store as module
from metier.harness.leaderboard.contract import Board, End, Replayed, State, Terms
from metier.harness.leaderboard.faults import Reason, Refusal
from metier.harness.leaderboard.folders import Folders
from metier.harness.leaderboard.ranking import ranked
from metier.harness.leaderboard.scrub import HIDDEN, scrubbed
from metier.harness.leaderboard.store import Store, Submission
from metier.harness.leaderboard.tokens import digest_of

EXAMPLE = Path(__file__).parents[1] / "fixtures" / "leaderboard_v1" / "leaderboard.json"


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    found = {"sqlite": str(tmp_path_factory.mktemp("db") / "board.sqlite")}
    if postgres.programs() is None:
        yield found
        return
    with postgres.serving() as url:
        yield {**found, "postgresql": url}


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, urls: dict[str, str]) -> str:
    if request.param not in urls:
        pytest.skip("no PostgreSQL: apt-get install postgresql")
    return urls[request.param]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    made = Store(url)
    yield made
    made.close()


def group() -> tuple[Terms, Any]:
    made = Board.model_validate_json(EXAMPLE.read_bytes())
    return made.groups[0].terms, made.groups[0].rows[0]


def submission(store: Store, number: str, **fields: Any) -> Submission:
    terms, row = group()
    token = store.authenticate(store.add_token("Lab").token)
    usual: dict[str, Any] = {
        "number": 0,
        "id": number * 32,
        "token": token.id,
        "submitter": "Lab",
        "contact": "Robert'); DROP TABLE submissions;--",
        "state": State.QUEUED,
        "calls_digest": "0" * 64,
        "draw": "0" * 64,
        "whole": False,
        "starts": 0,
        "terms": terms,
        "row": row,
    }
    return Submission(**{**usual, **fields})


def replayed(key: str, agreed: bool = True) -> Replayed:
    end = End(outcome=Outcome.COMPLETED, reward=1.0, passed=True)
    return Replayed(
        key=key,
        env_id="a/B-v0",
        level=0,
        seed=2**62,
        sample=0,
        recorded=end,
        replayed=end,
        tries=1,
        agreed=agreed,
        flattered=not agreed,
        secret_fingerprint="\x00 is no text in PostgreSQL",
        same_observations=0,
        num_observations=0,
    )


def test_a_token_is_kept_as_its_hash_and_ends_when_it_is_revoked(store: Store, url: str) -> None:
    made = store.add_token("Lab")
    assert store.authenticate(made.token).submitter == "Lab"
    if url.endswith(".sqlite"):
        kept = b"".join(path.read_bytes() for path in Path(url).parent.iterdir())
        assert made.token.encode() not in kept and made.token[13:].encode() not in kept
        assert digest_of(made.token).encode() in kept
    store.revoke(made.id)
    wrong = [made.token, "", "mlb_", f"{made.token[:-1]}x", f"mlb_{made.id}_{'a' * 43}", "' OR 1=1 --", "x" * 10_000]
    for token in wrong:
        with pytest.raises(Refusal) as refused:
            store.authenticate(token)
        assert refused.value.reason is Reason.TOKEN_WRONG
    with pytest.raises(ConfigError, match="no token"):
        store.revoke("' OR 1=1 --")
    assert next(one for one in store.tokens() if one.id == made.id).revoked_at


def test_uploads_are_limited_however_many_servers_count(store: Store, url: str) -> None:
    token = store.authenticate(store.add_token("Lab").token)
    other = Store(url)

    def upload(number: int) -> bool:
        try:
            (store if number % 2 else other).begin_upload(token, 4)
        except Refusal as refusal:
            refused.append(refusal)
            return False
        return True

    refused: list[Refusal] = []
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(upload, range(16))) == 4
    assert all(one.reason is Reason.RATE_LIMITED and 0 < (one.retry_after_s or 0) <= 3600 for one in refused)
    other.close()


def test_a_clock_that_is_set_back_locks_nobody_out(url: str) -> None:
    at = [time.time() + 10**8]
    store = Store(url, clock=lambda: at[0])
    token = store.authenticate(store.add_token("Lab").token)
    for _ in range(2):
        store.begin_upload(token, 1)
        with pytest.raises(Refusal):
            store.begin_upload(token, 1)
        at[0] -= 10**8
    store.close()


def test_submissions_come_back_as_they_were_and_in_their_order(store: Store) -> None:
    for number in ("b", "a"):
        store.add(submission(store, number))
    first, second = [one for one in store.submissions() if one.id[0] in "ab"]
    assert (first.id[0], second.id[0]) == ("b", "a") and first.number < second.number
    assert first.contact.startswith("Robert'") and (first.terms, first.row) == group()
    assert store.find("' OR 1=1 --") is None
    with pytest.raises(module.StoreError):
        store.add(submission(store, "b"))
    for number in ("b", "a"):
        store.settle(number * 32, State.VERIFIED)
    assert not [one for one in store.submissions(State.QUEUED) if one.id[0] in "ab"]


def test_a_replay_is_kept_once_and_one_that_disagrees_asks_for_all(store: Store, url: str) -> None:
    store.add(submission(store, "c"))
    other = Store(url)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: (store if n % 2 else other).add_replay("c" * 32, replayed("1" * 32)), range(8)))
    other.close()
    found = store.find("c" * 32)
    assert found is not None and not found.whole and store.replays("c" * 32) == [replayed("1" * 32)]
    assert [store.begin_replays("c" * 32) for _ in range(3)] == [1, 2, 3]
    store.add_replay("c" * 32, replayed("2" * 32, agreed=False))
    found = store.find("c" * 32)
    assert found is not None and found.whole and found.starts == 0
    store.settle("c" * 32, State.REFUTED)
    with pytest.raises(ConfigError):
        store.queue_again("c" * 32)


def test_two_servers_may_make_the_database_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(lambda _: Store(str(tmp_path / "new.sqlite")), range(6)))
    made[0].add_token("Lab")
    assert [len(one.tokens()) for one in made] == [1] * 6
    for one in made:
        one.close()


def test_wrong_databases_are_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database " * 100)
    for wrong in (str(tmp_path / "text"), "sqlite:////nowhere/x", "mysql://a", "postgresql://me:hunter2@127.0.0.1:1/x"):
        with pytest.raises(ConfigError) as refused:
            Store(wrong)
        assert "hunter2" not in str(refused.value)
    path = tmp_path / "later.sqlite"
    Store(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE metier_board SET schema_version = 99")
    connection.close()
    with pytest.raises(ConfigError, match="schema version 99"):
        Store(str(path))


# ranks


def test_ranks_are_of_ranked_rows_only_and_equals_share_one() -> None:
    _, row = group()

    def with_passed(number: int, *why: str) -> Any:
        overall = row.overall.model_copy(
            update={"passed": number, "pass_rate_low": number / 12 - 0.1, "pass_rate_high": number / 12 + 0.1}
        )
        return row.model_copy(update={"overall": overall, "not_ranked": why})

    made = ranked([with_passed(3), with_passed(12, "refuted"), with_passed(9), with_passed(9), with_passed(8)])
    assert [(one.rank, one.rank_best, one.overall.passed) for one in made] == [
        (1, 1, 9), (1, 1, 9), (3, 1, 8), (4, 4, 3), (None, None, 12)
    ]  # fmt: skip


# folders


def test_what_killed_processes_left_is_cleared_and_what_others_do_is_not(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    with folders.incoming() as running:
        left = tmp_path / "incoming" / "left"
        (left / "arrived").mkdir(parents=True)
        for part, names in {"held": ("known", "done", "orphan"), "public": ("known", "done", "orphan")}.items():
            for name in names:
                (tmp_path / part / name).mkdir()
        with folders.changing():
            assert folders.clear(frozenset({"known", "done"}), frozenset({"known"})) == 4
        assert running.path.is_dir() and not left.exists()
    assert not running.path.exists()
    assert sorted(path.name for path in (tmp_path / "held").iterdir()) == ["known"]
    assert sorted(path.name for path in folders.all_public()) == ["done", "known"]


# secrets


@pytest.mark.parametrize(
    "secret",
    [
        "sk-" + "a1" * 20,
        "sk-ant-api03-" + "a1" * 40,
        "ghp_" + "a1" * 18,
        "github_pat_" + "a1_" * 20,
        "AKIA" + "A1" * 8,
        "AIza" + "a" * 35,
        "hf_" + "aB" * 17,
        "xoxb-1234567890-abc",
        "glpat-" + "a" * 20,
        "mlb_0123abcd_" + "a" * 43,
        "eyJ" + "a" * 20 + ".eyJ" + "b" * 20 + "." + "c" * 20,
        "-----BEGIN RSA PRIVATE KEY-----\n" + "aB1+\n" * 20 + "-----END RSA PRIVATE KEY-----",
    ],
)
@given(before=st.sampled_from(["", " ", "KEY=", '"', "\n"]), after=st.sampled_from(["", " ", '"', "\n", "'"]))
def test_secrets_are_removed_wherever_they_stand(secret: str, before: str, after: str) -> None:
    made = scrubbed({"a": [{"b": f"{before}{secret}{after}"}], secret: 1})
    assert made.removed == 2 and secret not in str(made.value) and HIDDEN in made.value["a"][0]["b"]


@given(st.recursive(st.none() | st.integers() | st.text(alphabet="aé\n 01-_"), lambda one: st.lists(one, max_size=3)))
def test_other_values_stay_as_they_are(value: object) -> None:
    assert scrubbed(value) == (value, 0)


def test_a_password_in_an_address_is_removed_and_ordinary_addresses_are_not() -> None:
    assert scrubbed("http://me:pw@host/x").value == f"http://{HIDDEN}@host/x"
    plain = "see https://host:80/a@b, git@host:x, a sk-learn pipeline, and eyJ"
    assert scrubbed(plain) == (plain, 0)
