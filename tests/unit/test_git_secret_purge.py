"""terminal/GitSecretPurge on the host: the drawn history, a right purge, and the judgement of planted repositories."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import Instance, instance_rng
from metier.envs.registry import render_brief
from metier.envs.terminal.git_secret_purge import grading, repo_probe
from metier.envs.terminal.git_secret_purge.family import GitSecretPurge, _read
from metier.envs.terminal.git_secret_purge.history import NOTES, History, build
from metier.envs.terminal.git_secret_purge.objects import Repository, add_tree, object_id, read_tree
from metier.envs.terminal.git_secret_purge.project import purged
from metier.envs.terminal.git_secret_purge.secret import MARK, Leak, holds, redacted

ENV_ID = "terminal/GitSecretPurge-v0"
FAMILY = GitSecretPurge()
LEVELS = range(5)
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine")


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


def drawn(level: int, seed: int) -> tuple[History, Leak]:
    return _read(made(level, seed))[:2]


@given(st.integers(0, 4), st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_the_original_earns_nothing_and_the_purged_plan_passes(level: int, seed: int) -> None:
    history, leak = drawn(level, seed)
    original, right = build(history).repository, build(purged(history, leak)).repository
    untouched = grading.judge(original, original, leak)
    assert untouched.reward == 0.0
    assert all(check.score == 1.0 for check in untouched.checks if check.gate)
    assert grading.judge(right, original, leak).passed
    assert made(level, seed) == made(level, seed)
    assert History.from_json(json.loads(json.dumps(history.to_json()))) == history


@pytest.mark.parametrize("level", LEVELS)
def test_instances_differ_and_tell_no_secret(level: int) -> None:
    instances = [made(level, seed) for seed in range(3)]
    assert len({instance.secrets for instance in instances}) == 3
    for instance in instances:
        brief = render_brief(FAMILY, instance, level)
        shown = brief + "".join(data.decode("latin-1") for data in instance.files.values())
        assert not any(secret in shown for secret in instance.secrets)
        leak = _read(instance)[1]
        assert all((secret in brief) == (level < 3) for secret in leak.secrets.values())
        assert len(leak.secrets) == (1, 3, 4, 4, 4)[level]


def test_every_form_of_a_secret_is_found_and_redacted() -> None:
    secret = "aB3/x@y#Zq"
    pair = base64.b64encode(f"svc:{secret}".encode())
    texts = {
        secret.encode(): MARK.encode(),
        b"postgres://u:aB3%2Fx%40y%23Zq@h": f"postgres://u:{MARK}@h".encode(),
        b"Basic " + pair: b"Basic " + MARK.encode(),
        b"\xff\xfe" + f"p={secret}".encode("utf-16-le"): b"\xff\xfe" + f"p={MARK}".encode("utf-16-le"),
    }
    for data, wanted in texts.items():
        assert holds(data, secret)
        assert redacted(data, [secret]) == wanted
        assert redacted(wanted, [secret]) == wanted
        assert not holds(wanted, secret)
    assert redacted(b"aB3/x@y#Zp " + base64.b64encode(b"nothing to see here"), [secret]).startswith(b"aB3/x@y#Zp bm90")


def changed(history: History, **fields: Any) -> Repository:
    return build(replace(history, **fields)).repository


def test_what_is_lost_or_left_is_named() -> None:
    history, leak = drawn(4, 1)
    original, right = build(history).repository, purged(history, leak)
    last = len(right.commits) - 1
    newest = right.heads[right.head]
    cut = replace(right.commits[newest], parents=())
    reworded = replace(right.commits[newest], message="Something else\n")
    redated = replace(right.commits[newest], authored="1 +0000")

    def with_newest(commit: Any) -> Repository:
        return changed(right, commits=tuple(commit if n == newest else c for n, c in enumerate(right.commits)))

    wrong = {
        "history": [with_newest(cut), with_newest(reworded), with_newest(redated)],
        "stash": [changed(right, stashes=right.stashes[1:])],
        "notes": [changed(right, notes={**dict(list(right.notes.items())[1:]), str(last): "x\n"})],
        "refs": [changed(right, tags=right.tags[:-1]), changed(right, heads={**right.heads, "backup": newest})],
    }
    for gate, repositories in wrong.items():
        for repository in repositories:
            verdict = grading.judge(repository, original, leak)
            assert verdict.reward == 0.0
            assert gate in {check.name for check in verdict.checks if check.gate and check.score == 0.0}
    half = purged(history, Leak(secrets=dict(list(leak.secrets.items())[:-1]), paths=leak.paths, marker=leak.marker))
    verdict = grading.judge(build(half).repository, original, leak)
    assert 0.0 < verdict.reward < 1.0
    assert not verdict.passed


def test_a_secret_in_any_file_or_object_is_seen() -> None:
    history, leak = drawn(0, 0)
    original, right = build(history).repository, build(purged(history, leak)).repository
    secret = leak.secrets["token"].encode()
    raw = b"x " + secret
    blob = {**right.objects, object_id("blob", raw): ("blob", raw)}
    for repository in (replace(right, objects=blob), replace(right, others={"backup": raw})):
        verdict = grading.judge(repository, original, leak)
        assert not verdict.passed
        assert 0.0 < verdict.reward < 1.0
    missing = {oid: data for oid, data in right.objects.items() if data[0] != "tree"}
    assert grading.judge(replace(right, objects=missing), original, leak).reward == 0.0
    assert grading.judge("no repository", original, leak).reward == 0.0


def test_trees_sort_as_git_sorts_them() -> None:
    objects: dict[str, tuple[str, bytes]] = {}
    top = add_tree(objects, {"a.b": "0" * 40, "a/c": "1" * 40, "a0": "2" * 40})
    assert [entry.name for entry in read_tree(objects[top][1])] == [b"a.b", b"a", b"a0"]
    with pytest.raises(ValueError, match="cut"):
        list(read_tree(objects[top][1][:-3]))


@needs_git
@pytest.mark.parametrize("level", [1, 4])
def test_git_makes_the_planned_objects_and_the_probe_reads_them(level: int, tmp_path: Path) -> None:
    instance = made(level, 2)
    history, leak, _ = _read(instance)
    for path, data in instance.files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    environment = {**os.environ, "HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": os.devnull}
    for line in instance.setup:
        subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment, check=True, capture_output=True)
    answer = repo_probe.gather(str(tmp_path / "repo" / ".git"))
    found, planned = grading.unpacked(answer["packed"]), build(history).repository
    assert found.refs == planned.refs
    assert found.head == planned.head
    assert found.stash == planned.stash
    assert found.objects.keys() == planned.objects.keys()
    verdict = grading.judge(found, planned, leak)
    assert verdict.reward == 0.0
    assert all(check.score == 1.0 for check in verdict.checks if check.gate)
    assert (NOTES in found.refs) == (level == 4)


def test_rubbish_is_no_repository(tmp_path: Path) -> None:
    assert "error" in repo_probe.gather(str(tmp_path / "nothing"))
    (tmp_path / "HEAD").write_bytes(b"\xff\xfe")
    loose = tmp_path / "objects" / "ab"
    loose.mkdir(parents=True)
    (loose / ("c" * 38)).write_bytes(b"1\n1\n")
    assert "error" in repo_probe.gather(str(tmp_path))
    (loose / ("c" * 38)).unlink()
    assert "packed" in repo_probe.gather(str(tmp_path))
    os.symlink("/etc/passwd", tmp_path / "config")
    assert "error" in repo_probe.gather(str(tmp_path))


def test_every_attempt_ends_with_submit() -> None:
    for level in LEVELS:
        instance = made(level, 0)
        attempts = {**FAMILY.mutants(instance), **FAMILY.alternatives(instance), "oracle": FAMILY.oracle(instance)}
        assert all(calls[-1].tool == "submit" for calls in attempts.values())
        assert {"started_anew", "hidden_by_replace", "old_objects_left"} <= attempts.keys()
