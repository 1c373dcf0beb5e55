"""Exports: every line and document says what was said, and what a format cannot carry is counted."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import ConfigError, Outcome, ToolCall, ToolSpec
from metier.harness.policy.contract import AssistantTurn, Message, Role, TokenTrace, Usage
from metier.harness.record import Provenance, Records
from metier.harness.record.export import Exported, ExportSettings, Format, export
from metier.harness.record.export.tuning import Level
from metier.harness.record.parcel import pack
from metier.harness.record.sink import Sink
from metier.harness.record.store import FolderStore
from metier.harness.result import EpisodeResult
from record_samples import PICTURE, events_of, plain, rich

SHELL = ToolSpec(name="shell", description="Run bash.", parameters={"type": "object", "properties": {}})


class Line:
    def __init__(self, data: bytes) -> None:
        self.data = data


def store(folder: Path, *results: EpisodeResult, **more: Any) -> Records:
    sink = Sink(FolderStore(folder / "store"))
    for index, result in enumerate(results):
        kept = events_of(result, tools=(SHELL,), attempt=index, policy="p", settings={"model": "m"}, **more)
        sink.put_blobs(kept.blobs.values())
        sink.commit([Line(pack(event).data) for event in kept.events])
    return Records.open(folder / "store")


def lines(records: Records, form: Format, out: Path, **more: Any) -> tuple[list[dict[str, Any]], Exported]:
    exported = export(records, form, out, ExportSettings(**more))
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert exported.num_written == len(found) and exported.paths == [out]
    return found, exported


# sft


def test_a_conversation_with_ids_has_structured_calls(tmp_path: Path) -> None:
    records = store(tmp_path, rich(passed=True))
    (line,), exported = lines(records, Format.SFT, tmp_path / "sft.jsonl")
    said = line["messages"]
    roles = [message["role"] for message in said]
    assert roles == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    first = said[2]
    assert [call["id"] for call in first["tool_calls"]] == ["a", "b"]
    assert json.loads(first["tool_calls"][0]["function"]["arguments"])["command"] == "ls"
    assert (said[3]["tool_call_id"], said[5]["tool_call_id"]) == ("a", "b")
    assert said[6] == {"role": "assistant", "content": "nothing", "reasoning_content": "hm"}
    assert said[7] == {"role": "user", "content": "No tool was called."}
    assert [call["id"] for call in said[8]["tool_calls"]] == ["call_2_0", "a"], "a call without an id is numbered"
    assert said[9]["tool_call_id"] == "call_2_0"
    assert line["tools"][0]["function"]["name"] == "shell"
    assert (line["metadata"]["reward"], line["metadata"]["passed"], line["metadata"]["seed"]) == (0.5, True, 3)
    assert exported.left_out.counts == {}


def test_observations_that_an_agent_told_itself_answer_their_calls(tmp_path: Path) -> None:
    """As those of the policy `inside` do, whose episodes have no steps."""
    call = ToolCall(tool="shell", arguments={"command": "ls"}, id="c1")
    result = plain().model_copy(
        update={
            "conversation": (
                Message(role=Role.USER, text="do it"),
                AssistantTurn(text="", calls=(call,)),
                Message(role=Role.TOOL, text="a b", call_id="c1"),
                AssistantTurn(text="done"),
                Message(role=Role.USER, text="[the agent ended with exit code 0]"),
            ),
            "steps": (),
            "replayable": False,
            "passed": True,
        }
    )
    (line,), _ = lines(store(tmp_path, result), Format.SFT, tmp_path / "sft.jsonl")
    told = [
        (one["role"], one.get("tool_call_id", [call["id"] for call in one.get("tool_calls", [])]))
        for one in line["messages"]
    ]
    assert told == [("user", []), ("assistant", ["c1"]), ("tool", "c1"), ("assistant", []), ("user", [])]


def test_pictures_are_files_beside_the_lines(tmp_path: Path) -> None:
    records = store(tmp_path, rich(passed=True))
    (line,), _ = lines(records, Format.SFT, tmp_path / "out" / "sft.jsonl")
    parts = line["messages"][5]["content"]
    assert parts[0] == {"type": "text", "text": "drawn"}
    pictures = [(tmp_path / "out" / part["image"]).read_bytes() for part in parts[1:]]
    assert pictures == [PICTURE, PICTURE[::-1]]
    assert len(list((tmp_path / "out" / "images").iterdir())) == 2


def test_calls_that_were_text_are_told_once(tmp_path: Path) -> None:
    (line,), _ = lines(store(tmp_path, plain(said='{"tool": "wait"}')), Format.SFT, tmp_path / "sft.jsonl")
    assert line["messages"][1] == {"role": "assistant", "content": '{"tool": "wait"}'}
    assert line["messages"][2] == {"role": "tool", "content": "waited"}


def test_by_default_only_what_passed_is_imitated(tmp_path: Path) -> None:
    records = store(tmp_path, plain(1), plain(2, reward=0.5), plain(3))
    found, exported = lines(records, Format.SFT, tmp_path / "sft.jsonl")
    assert [line["metadata"]["seed"] for line in found] == [1, 3] and exported.num_chosen == 2
    found, _ = lines(records, Format.SFT, tmp_path / "sft.jsonl", where="reward < 1")
    assert [line["metadata"]["seed"] for line in found] == [2]
    with pytest.raises(ConfigError):
        export(records, Format.SFT, tmp_path / "x.jsonl", ExportSettings(where="nope = 1"))
    with pytest.raises(ConfigError, match="no run"):
        export(records, Format.SFT, tmp_path / "x.jsonl", ExportSettings(run_ids=("r9",)))


def traced(seed: int, sample: int, reward: float, *traces: TokenTrace | None) -> EpisodeResult:
    turns = tuple(AssistantTurn(text="t", tokens=trace) for trace in traces)
    brief = plain(seed).conversation[0]
    made = plain(seed, sample=sample, reward=reward)
    return made.model_copy(update={"conversation": (brief, *turns), "steps": ()})


ONE = TokenTrace(context_ids=[1, 2], output_ids=[3], logprobs=[-0.5], versions=((4, 1),))
TWO = TokenTrace(context_ids=[5], output_ids=[6, 7], logprobs=[-1.0, -2.0], versions=((4, 1), (5, 1)))
FORKED = TokenTrace(context_ids=[9], output_ids=[8], logprobs=[0.0], versions=((5, 1),), forked=True)


def test_token_rows_are_the_engines_ids(tmp_path: Path) -> None:
    records = store(tmp_path, traced(1, 0, 1.0, ONE, TWO), traced(2, 0, 1.0, ONE, FORKED), traced(3, 0, 1.0, ONE, None))
    found, exported = lines(records, Format.SFT, tmp_path / "sft.jsonl", level=Level.TOKEN)
    assert [line["input_ids"] for line in found] == [[1, 2, 3, 5, 6, 7], [1, 2, 3], [9, 8]]
    assert found[0]["action_mask"] == [0, 0, 1, 0, 1, 1]
    assert found[0]["logprobs"] == [0.0, 0.0, -0.5, 0.0, -1.0, -2.0]
    assert found[0]["weight_versions"] == [-1, -1, 4, -1, 4, 5]
    assert found[0]["reward"] == 1.0
    assert exported.left_out.counts == {"has no token ids": 1}


def test_token_rows_are_those_that_the_trainer_makes(tmp_path: Path) -> None:
    """The trainer's own, from the same turns."""
    from metier.trainer.rollout.chat import Turn
    from metier.trainer.trajectory import _Growing

    row = _Growing()
    for trace in (ONE, TWO):
        context_ids, output_ids = tuple(trace.context_ids), tuple(trace.output_ids)
        logprobs = tuple(trace.logprobs)
        row.add(Turn(context_ids=context_ids, output_ids=output_ids, logprobs=logprobs, versions=trace.versions))
    theirs = row.done()
    records = store(tmp_path, traced(1, 0, 1.0, ONE, TWO))
    (line,), _ = lines(records, Format.SFT, tmp_path / "sft.jsonl", level=Level.TOKEN)
    assert tuple(line["input_ids"]) == theirs.ids
    assert tuple(map(bool, line["action_mask"])) == theirs.actions
    assert tuple(line["logprobs"]) == theirs.logprobs
    assert tuple(line["weight_versions"]) == theirs.versions


# preference


def test_the_best_is_preferred_to_the_worst_of_the_same_instance(tmp_path: Path) -> None:
    rewards = [0.2, 1.0, 0.9, 0.15]
    others = [plain(9), plain(8, reward=0.5), plain(8, sample=1, reward=0.55)]
    records = store(tmp_path, *(plain(1, sample=i, reward=r, said=str(r)) for i, r in enumerate(rewards)), *others)
    (line,), exported = lines(records, Format.PREFERENCE, tmp_path / "p.jsonl")
    assert [line["metadata"][side]["reward"] for side in ("chosen", "rejected")] == [1.0, 0.15]
    assert line["prompt"] == [{"role": "user", "content": "the brief of 1"}]
    assert line["chosen"][0] == {"role": "assistant", "content": "1.0"}
    assert exported.left_out.counts == {"has no partner": 5}
    found, _ = lines(records, Format.PREFERENCE, tmp_path / "p.jsonl", pairs=9, min_margin=0.01)
    assert [(e["metadata"]["chosen"]["reward"], e["metadata"]["rejected"]["reward"]) for e in found] == [
        (1.0, 0.15),
        (0.9, 0.2),
        (0.55, 0.5),
    ]


def test_pairs_of_token_rows(tmp_path: Path) -> None:
    records = store(
        tmp_path, traced(1, 0, 1.0, ONE), traced(1, 1, 0.0, TWO), traced(2, 0, 1.0, ONE, FORKED), traced(2, 1, 0.0, ONE)
    )
    (line,), exported = lines(records, Format.PREFERENCE, tmp_path / "p.jsonl", level=Level.TOKEN)
    assert (line["chosen"]["input_ids"], line["rejected"]["input_ids"]) == ([1, 2, 3], [5, 6, 7])
    assert exported.left_out.counts["has no token ids, or forked"] == 1


# atif and inspect; that their own readers take them is shown in the integration tests


def test_atif_has_a_step_for_each_turn_and_the_reward_beside(tmp_path: Path) -> None:
    records = store(tmp_path, rich(), provenance=Provenance(metier_version="1.2", weights="w"))
    exported = export(records, Format.ATIF, tmp_path / "atif")
    (path,) = exported.paths
    document = json.loads(path.read_text())
    sources = [step["source"] for step in document["steps"]]
    assert sources == ["system", "user", "agent", "agent", "agent", "user"]
    assert [step["step_id"] for step in document["steps"]] == [1, 2, 3, 4, 5, 6]
    first = document["steps"][2]
    assert [result["source_call_id"] for result in first["observation"]["results"]] == ["a", "b"]
    assert first["metrics"]["completion_token_ids"] == [3, 4] and first["metrics"]["cost_usd"] == 0.000125
    assert "source_call_id" not in document["steps"][3]["observation"]["results"][0]
    assert document["agent"] == {
        "name": "p",
        "version": "1.2",
        "model_name": "m",
        "extra": {"settings": {"model": "m"}},
        "tool_definitions": document["agent"]["tool_definitions"],
    }
    extra = document["extra"]["metier"]
    assert (extra["reward"], extra["outcome"], extra["checks"][0]["name"]) == (0.5, "agent_limit", "sum")
    picture = document["steps"][1]["message"][1]["source"]["path"]
    assert (path.parent / picture).read_bytes() == PICTURE
    assert "notes" not in document


def test_exports_are_json_whatever_numbers_are_in_them(tmp_path: Path) -> None:
    odd = TokenTrace(context_ids=[], output_ids=[1], logprobs=[-math.inf], versions=((0, 1),))
    turn = AssistantTurn(text="", tokens=odd, usage=Usage(prompt_tokens=1))
    result = plain().model_copy(update={"conversation": (turn,), "steps": (), "timings_s": {"total": math.nan}})
    records = store(tmp_path, result)
    for form, out in ((Format.SFT, "a.jsonl"), (Format.ATIF, "atif"), (Format.INSPECT, "inspect")):
        exported = export(records, form, tmp_path / out, ExportSettings(where="true"))
        if form is not Format.INSPECT:
            json.loads(exported.paths[0].read_text().splitlines()[0], parse_constant=lambda name: pytest.fail(name))


def test_an_unfinished_attempt_is_exported_as_such(tmp_path: Path) -> None:
    sink = Sink(FolderStore(tmp_path / "store"))
    sink.commit([Line(pack(event).data) for event in events_of(plain()).events[:3]])
    records = Records.open(tmp_path / "store")
    (path,) = export(records, Format.ATIF, tmp_path / "atif").paths
    document = json.loads(path.read_text())
    assert document["notes"] == "The end of this attempt was not recorded."
    assert document["extra"]["metier"]["outcome"] is None


def test_of_failures_and_a_success_the_success_is_inspects_sample(tmp_path: Path) -> None:
    import zipfile

    failed = plain().model_copy(
        update={"outcome": Outcome.SANDBOX_FAILURE, "reward": None, "passed": None, "failure": "SandboxLost: gone"}
    )
    records = store(tmp_path, failed, plain(), plain(4), plain(4))
    exported = export(records, Format.INSPECT, tmp_path / "logs")
    (path,) = exported.paths
    assert exported.left_out.counts == {"is followed by another attempt": 2}
    with zipfile.ZipFile(path) as log:
        sample = json.loads(log.read("samples/seed-0-level-0_epoch_1.json"))
        summaries = json.loads(log.read("summaries.json"))
        header = json.loads(log.read("header.json"))
    assert [retry["message"] for retry in sample["error_retries"]] == ["SandboxLost: gone"]
    assert "error" not in sample and sample["scores"]["metier"]["value"] == 1.0
    assert [summary["id"] for summary in summaries] == ["seed-0-level-0", "seed-4-level-0"]
    assert header["results"]["scores"][0]["metrics"]["pass_rate"]["value"] == 1.0


@pytest.mark.parametrize("form", list(Format))
def test_an_export_of_the_wrong_kind_of_place_is_refused(tmp_path: Path, form: Format) -> None:
    records = store(tmp_path, plain())
    out = tmp_path / "place"
    out.mkdir() if form in (Format.SFT, Format.PREFERENCE) else out.write_text("")
    with pytest.raises(ConfigError, match="is a f"):
        export(records, form, out)


def test_an_export_that_breaks_leaves_no_half_file(tmp_path: Path) -> None:
    records = store(tmp_path, rich(passed=True))
    for blob in (tmp_path / "store" / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    with pytest.raises(FileNotFoundError):
        export(records, Format.SFT, tmp_path / "out" / "sft.jsonl")
    assert list((tmp_path / "out").iterdir()) == []
