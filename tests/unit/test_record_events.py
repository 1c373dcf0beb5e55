"""Events: an episode becomes events and comes back, whatever is in it; lines that are none are refused in words."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.envs.core import ConfigError, Outcome, ToolCall
from metier.harness.policy.contract import AssistantTurn, Message, Role, Stop, TokenTrace
from metier.harness.record import MalformedEvent, RecordError
from metier.harness.record.event import Event, Kind, StartedBody, StepBody, TurnBody
from metier.harness.record.extras import need
from metier.harness.record.parcel import MAX_QUEUED_BYTES, delivery_id, pack, unpack
from metier.harness.record.provenance import without_secrets
from metier.harness.record.recording import Detail, EpisodeRecording, record, result_of
from metier.harness.result import EpisodeResult
from record_samples import PICTURE, Kept, all_told, events_of, plain, playing, rich

GOLDEN = Path(__file__).parents[1] / "golden" / "records"


def test_an_episode_comes_back_from_its_events() -> None:
    for result in (rich(), plain()):
        kept = events_of(result)
        assert result_of(kept.events, kept.load) == result
        lines = [pack(event).data for event in kept.events]
        assert [unpack(line, kept.load) for line in lines] == kept.events


def test_that_an_episode_cannot_be_replayed_is_recorded_and_only_that() -> None:
    assert b"replayable" not in b"".join(pack(event).data for event in events_of(plain()).events)
    result = plain().model_copy(update={"replayable": False})
    kept = events_of(result)
    lines = [pack(event).data for event in kept.events]
    assert result_of([unpack(line, kept.load) for line in lines], kept.load) == result
    assert EpisodeResult.model_validate_json(result.model_dump_json()) == result


def test_the_stream_has_no_gap_and_begins_and_ends_as_told() -> None:
    kept = events_of(rich())
    assert [event.seq for event in kept.events] == list(range(len(kept.events)))
    kinds = [event.kind for event in kept.events]
    S, T = Kind.STEP, Kind.TURN
    assert kinds == [Kind.EPISODE_STARTED, T, S, S, T, S, T, S, Kind.VERDICT, Kind.EPISODE_ENDED]
    assert len({event.trace_id for event in kept.events}) == 1


def test_recorded_live_it_has_the_same_events() -> None:
    live, later = Kept(), events_of(rich())
    all_told(live, rich())
    assert [event.body for event in live.events] == [event.body for event in later.events]


def test_pictures_are_blobs_and_never_in_an_event() -> None:
    kept = events_of(rich())
    assert len(kept.blobs) == 2
    assert all(PICTURE[20:80] not in pack(event).data for event in kept.events)
    shown = [len(event.body.images) for event in kept.events if isinstance(event.body, StepBody)]
    assert shown == [0, 2, 0, 0]


def test_a_failure_has_no_verdict_and_keeps_what_was_said() -> None:
    result = rich(outcome=Outcome.SANDBOX_FAILURE, limit=None, reward=None, passed=None, checks=(), failure="lost")
    kept = events_of(result)
    assert Kind.VERDICT not in [event.kind for event in kept.events]
    assert result_of(kept.events, kept.load) == result


def test_a_step_knows_its_turn_and_what_its_player_measured() -> None:
    result, kept = rich(), Kept()
    recording = EpisodeRecording(kept, playing(result))
    recording.follow(result.conversation[:3], ())
    recording.follow(result.conversation[:4], result.steps[:1], detail=Detail(ok=False, cut_bytes=7, duration_s=0.5))
    recording.end(result)
    steps = [event.body for event in kept.events if isinstance(event.body, StepBody)]
    assert [(step.index, step.turn) for step in steps] == [(0, 0), (1, 0), (2, 1), (3, 2)]
    assert (steps[0].ok, steps[0].cut_bytes, steps[0].duration_s) == (False, 7, 0.5)
    recording.end(result)
    assert len(kept.events) == 10, "an end is told once"


def test_what_the_runner_measured_of_turns_and_steps_is_kept() -> None:
    details = tuple(Detail(ok=at != 1, cut_bytes=at, duration_s=0.25 * at) for at in range(4))
    result = rich(turns_s=(0.5, 1.5, 0.0), details=details)
    kept = events_of(result)
    assert result_of(kept.events, kept.load) == result
    assert [event.body.duration_s for event in kept.events if isinstance(event.body, TurnBody)] == [0.5, 1.5, 0.0]


def test_a_refused_event_is_told_again_and_leaves_no_hole() -> None:
    class Full(Kept):
        times = 0

        def emit(self, event: Event, blobs: object = ()) -> None:
            self.times += 1
            if self.times in (3, 4):
                raise RecordError("no room")
            super().emit(event, blobs)

    kept, result = Full(), rich()
    recording = EpisodeRecording(kept, playing(result))
    with pytest.raises(RecordError):
        recording.follow(result.conversation, result.steps)
    with pytest.raises(RecordError):
        recording.follow(result.conversation, result.steps)
    recording.end(result)
    assert result_of(kept.events, kept.load) == result


def test_a_result_of_another_episode_is_refused() -> None:
    kept = Kept()
    with pytest.raises(ConfigError, match=r"seed is 3, not 4.*Playing\.of"):
        record(kept, playing(rich(seed=4)), rich())
    recording = EpisodeRecording(kept, playing(rich(sample=0)))
    with pytest.raises(ConfigError, match="sample is 2, not 0"):
        recording.end(rich())
    recording.end(rich(sample=0))
    assert result_of(kept.events, kept.load) == rich(sample=0)


def test_recorded_twice_under_one_attempt_it_is_the_same_playing() -> None:
    first, again, other = (events_of(result, attempt=0) for result in (plain(), plain(), plain(said="y")))
    assert first.events[0].trace_id == again.events[0].trace_id != other.events[0].trace_id
    kept = Kept()
    assert [record(kept, playing(plain()), plain()).attempt for _ in range(3)] == [0, 1, 2]


# what is no attempt


def test_what_is_not_a_whole_attempt_makes_no_episode() -> None:
    kept = events_of(rich())
    for events in ([], kept.events[1:], kept.events[:-1], [*kept.events[:3], *kept.events[4:]]):
        with pytest.raises(ValueError, match="attempt"):
            result_of(events, kept.load)


def line(**changes: Any) -> bytes:
    fields = json.loads(pack(events_of(plain()).events[0]).data)
    return json.dumps({name: value for name, value in {**fields, **changes}.items() if value != "left out"}).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[1]", "JSON of type list"),
        (b'{"a":"\\ud800"}', "no JSON"),
        (line(schema_version=2), "written by a newer metier"),
        (line(schema_version="left out"), "schema_version is None"),
        (line(kind="turned"), "kind"),
        (line(kind="turn"), "body"),
        (line(run_id="../etc"), "run_id"),
        (line(run_id=""), "run_id"),
        (line(episode_id="e" * 2000), "episode_id"),
        (line(seq=-1), "seq"),
        (line(trace_id="xyz"), "trace_id"),
        (line(more=1), "more: Extra inputs"),
        (line(body={"env_id": 1}), "body"),
        (line(body="left out", body_blob={"sha256": "0" * 64, "size_bytes": 1}), "is not in the store"),
        (line(body="left out", body_blob={"sha256": "../../etc/passwd", "size_bytes": 1}), "sha256"),
    ],
)
def test_a_line_that_is_no_event_is_refused(data: bytes, words: str) -> None:
    def nothing(_: object) -> bytes:
        raise FileNotFoundError

    with pytest.raises(MalformedEvent, match=words):
        unpack(data, nothing)


def test_a_blob_of_another_content_is_refused() -> None:
    body = {"sha256": "0" * 64, "size_bytes": 1}
    with pytest.raises(MalformedEvent, match="another content"):
        unpack(line(body="left out", body_blob=body), lambda _: b"{}")


# sizes and odd values


@pytest.mark.parametrize("size", [MAX_QUEUED_BYTES // 2, MAX_QUEUED_BYTES, 3_000_000])
def test_a_large_event_travels_as_its_hash(size: int) -> None:
    kept = events_of(plain(turns=1, said="é" * (size // 2)))
    turn = next(event for event in kept.events if isinstance(event.body, TurnBody))
    parcel = pack(turn)
    assert len(parcel.data) <= MAX_QUEUED_BYTES
    assert len(parcel.blobs) == (size >= MAX_QUEUED_BYTES)
    held = {blob.ref.sha256: blob.data for blob in parcel.blobs}
    assert unpack(parcel.data, lambda ref: held[ref.sha256]) == turn


def test_numbers_without_end_come_back() -> None:
    trace = TokenTrace(context_ids=(), output_ids=(1, 2), logprobs=(-math.inf, math.nan), versions=((0, 2),))
    result = plain().model_copy(update={"conversation": (AssistantTurn(text="", tokens=trace),), "steps": ()})
    kept = events_of(result)
    event = unpack(pack(kept.events[1]).data, kept.load)
    assert isinstance(event.body, TurnBody) and event.body.turn.tokens is not None
    low, none = event.body.turn.tokens.logprobs
    assert low == -math.inf and math.isnan(none)


def test_half_of_a_character_is_refused_with_what_to_do() -> None:
    event = events_of(plain()).events[1]
    turn = TurnBody(index=0, turn=AssistantTurn(text="\ud800"))
    with pytest.raises(RecordError, match="recorded_turn"):
        pack(event.model_copy(update={"body": turn}))


def test_ids_of_deliveries_are_of_keys_and_playings() -> None:
    events = events_of(plain()).events
    other = events_of(plain(), run_id="r2").events
    ids = {delivery_id(event.key, event.trace_id) for event in [*events, *other]}
    assert len(ids) == len(events) + len(other) and {len(one) for one in ids} == {64}


def test_secrets_of_a_policy_are_not_recorded() -> None:
    settings = {
        "api_key": "abc",
        "nested": {"password": "pw", "max_tokens": 9},
        "list": ["http://u:pw@h/"],
        "x": "\ud800",
    }
    kept = events_of(plain(), settings=settings)
    body = kept.events[0].body
    assert isinstance(body, StartedBody)
    assert body.settings == without_secrets(settings)
    assert b"pw" not in pack(kept.events[0]).data and b"abc" not in pack(kept.events[0]).data
    assert body.settings["nested"] == {"password": "(not recorded)", "max_tokens": 9}


def test_a_missing_part_names_its_extra() -> None:
    with pytest.raises(ConfigError, match=r"a thing needs not_there: pip install 'metier\[records\]'"):
        need("not_there.at_all", "a thing")


# every version that ever was


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("event-v*.jsonl")), ids=lambda path: path.stem)
def test_old_events_stay_readable(path: Path) -> None:
    blobs = {blob["sha256"]: bytes.fromhex(blob["hex"]) for blob in json.loads((GOLDEN / "blobs.json").read_text())}
    events = [unpack(line, lambda ref: blobs[ref.sha256]) for line in path.read_bytes().splitlines()]
    assert {event.kind for event in events} == set(Kind)
    attempt = [event for event in events if event.kind is not Kind.LOG]
    assert result_of(attempt, lambda ref: blobs[ref.sha256]) == rich()


# any episode

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXT, lambda inner: st.lists(inner, max_size=2)
)
CALLS = st.builds(
    ToolCall, tool=TEXT, arguments=st.dictionaries(TEXT, JSON, max_size=2), id=st.sampled_from(["", "a", "b"])
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(Role),
    text=TEXT,
    images=st.lists(st.binary(max_size=4), max_size=2).map(tuple),
    call_id=st.sampled_from(["", "a", "b"]),
)
TURNS = st.builds(
    AssistantTurn, text=TEXT, calls=st.lists(CALLS, max_size=3).map(tuple), stop=st.sampled_from(Stop), reasoning=TEXT
)


@given(
    st.lists(MESSAGES | TURNS, max_size=12).map(tuple),
    st.lists(CALLS, max_size=5).map(tuple),
    st.lists(CALLS, max_size=2).map(tuple),
    st.sampled_from([(outcome, 0.5 if outcome.graded else None) for outcome in Outcome]),
)
def test_any_episode_comes_back(conversation: Any, steps: Any, dropped: Any, how: tuple[Outcome, float | None]) -> None:
    result = EpisodeResult(
        env_id="test/Echo-v0",
        seed=1,
        level=0,
        sample=0,
        outcome=how[0],
        reward=how[1],
        conversation=conversation,
        steps=steps,
        dropped=dropped,
    )
    kept = events_of(result)
    lines = [pack(event).data for event in kept.events]
    assert result_of([unpack(one, kept.load) for one in lines], kept.load) == result
