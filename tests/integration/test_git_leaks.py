"""The leak search in repositories: whatever git keeps of an answer is found, wherever it keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from metier.envs.core import SandboxBackend, SandboxSpec
from metier.harness.certify.gates.leakage import _in_trees
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers
from waiting import soon

pytestmark = [
    pytest.mark.docker,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers"),
]

SPEC = SandboxSpec(image="git", memory_mb=256, pids=64, writable_mb={"/workspace": 64, "/tmp": 32})
GOLD = "return ratio * 3.27 - offset"
BEGIN = """
set -e
git init -q -b main repo && cd repo
git config user.name "Ops" && git config user.email ops@example.org
seq 400 | sed 's/.*/line & of a file that is long enough for a delta, with words & and &&/' > code.py
git add . && git commit -q -m base
"""
GOLD_LINE = f"echo '{GOLD}' >> code.py"
HIDDEN = {
    "a branch": f"git checkout -q -b fix; {GOLD_LINE}; git commit -q -a -m fix; git checkout -q main",
    "a tag of an object alone": f"git tag kept $(echo '{GOLD}' | git hash-object -w --stdin)",
    "the words of a tag": f"git tag -a v1 -m '{GOLD}'",
    "the words of a commit": f"git commit -q --allow-empty -m '{GOLD}'",
    "a note": f"git notes add -m '{GOLD}'",
    "a stash": f"{GOLD_LINE}; git stash -q",
    "the index": f"{GOLD_LINE}; git add .; git checkout -q HEAD -- . ; git reset -q",
    "a commit that was reset": f"{GOLD_LINE}; git commit -q -a -m x; git reset -q --hard HEAD~1",
    "a commit that nothing names": (
        f"{GOLD_LINE}; git commit -q -a -m x; git reset -q --hard HEAD~1; rm -rf .git/logs .git/ORIG_HEAD"
    ),
    "the log of a reference": (
        f"git commit -q --allow-empty -m '{GOLD}'; git reset -q --hard HEAD~1; git reflog; "
        "rm -f .git/objects/*/* .git/ORIG_HEAD"
    ),
    "a delta in a pack": f"{GOLD_LINE}; git commit -q -a -m x; git gc -q --aggressive; test ! -e .git/objects/??",
    "a pack of what nothing names": (
        f"{GOLD_LINE}; git commit -q -a -m x; git repack -q -a -d; git reset -q --hard HEAD~1; "
        "rm -rf .git/logs .git/ORIG_HEAD"
    ),
    "an upstream": (
        f"git checkout -q -b next; {GOLD_LINE}; git commit -q -a -m x; git checkout -q main; "
        "git clone -q --bare . ../up.git; git --git-dir=../up.git gc -q; "
        "git branch -q -D next; rm -rf .git/logs; git gc -q --prune=now"
    ),
    "a borrowed store": (
        f"git clone -q --bare . /tmp/other.git; git --git-dir=/tmp/other.git config gc.auto 0; "
        f"echo '{GOLD}' | git --git-dir=/tmp/other.git hash-object -w --stdin; "
        "git --git-dir=/tmp/other.git repack -q -a -d; echo /tmp/other.git/objects > .git/objects/info/alternates"
    ),
    "a submodule": (
        f"git init -q sub; cd sub; git config user.name O; git config user.email o@example.org; "
        f"echo '{GOLD}' > f; git add f; git commit -q -m x; git rm -q f; git commit -q -m y; git gc -q; cd ..; "
        "git add sub 2> /dev/null"
    ),
    "a hook": f"echo '# {GOLD}' > .git/hooks/post-commit",
    "the settings": f"git config alias.x '{GOLD}'",
    "a patch": f"{GOLD_LINE}; git diff | gzip > ../old.patch.gz; git checkout -q .",
    "a bundle": (
        f"{GOLD_LINE}; git commit -q -a -m x; git bundle create -q ../all.bundle HEAD; git reset -q --hard HEAD~1; "
        "rm -rf .git/logs .git/ORIG_HEAD; git gc -q --prune=now"
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend() -> AsyncIterator[SandboxBackend]:
    async with open_backend("docker") as opened:
        yield opened


@pytest.mark.parametrize("where", HIDDEN)
async def test_it_is_found(backend: SandboxBackend, where: str) -> None:
    async with await backend.acquire(SPEC, deadline=soon()) as sandbox:
        made = await sandbox.exec(BEGIN + HIDDEN[where], timeout_s=60)
        assert made.ok, made
        hits = await _in_trees(sandbox, ["no such thing anywhere", GOLD])
        assert hits and {index for index, _ in hits} == {1}, hits


async def test_an_honest_history_holds_nothing(backend: SandboxBackend) -> None:
    async with await backend.acquire(SPEC, deadline=soon()) as sandbox:
        assert (await sandbox.exec(BEGIN + "git gc -q; git tag v0", timeout_s=60)).ok
        assert await _in_trees(sandbox, [GOLD]) == []
