"""A plain user: bubblewrap keeps what it promises there, an engine without rights says so, and `auto` finds its way.

Root becomes such a user for these tests, in a mount namespace of its own in which the interpreter and an image's files
are where the user can reach them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from metier.envs.core import Capability, Deadline, SandboxUnavailable
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.bubblewrap import BubblewrapBackend
from metier.harness.sandbox.bubblewrap.filter import program
from metier.harness.sandbox.docker import DockerBackend, answers
from metier.harness.testing import SPEC
from metier.images import rootfs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="apt-get install bubblewrap"),
]
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv"))), reason="only root can become another user"
)
NOBODY = 65534
PLAIN = """
set -e
kept=$1 image=$2; shift 2
n=0
for place in $NEEDED "$image"; do n=$((n + 1)); mkdir -p "$kept/$n"; mount --bind "$place" "$kept/$n"; done
mount -t tmpfs -o mode=755 none /root
n=0
for place in $NEEDED; do
  n=$((n + 1))
  case $place in /root/*) mkdir -p "$place"; mount --bind "$kept/$n" "$place";; esac
done
n=$((n + 1))
mkdir -p "/root/plain/metier/rootfs/${image##*/}"
mount --bind "$kept/$n" "/root/plain/metier/rootfs/${image##*/}"
chown NOBODY:NOBODY /root/plain /root/plain/metier
cd /
exec setpriv --reuid NOBODY --regid NOBODY --clear-groups --inh-caps=-all \\
  env -i PATH="$PATH" HOME=/root/plain METIER_HOME=/root/plain/metier COLUMNS=200 "$@"
""".replace("NOBODY", str(NOBODY))

CLAIMS = """
import asyncio, json, os
from metier.harness.sandbox import open_backend
from metier.harness.testing import EXEC, FILES, ISOLATION, LEAVINGS, LINKS, SESSIONS, TUNNELLED, Place, run_suite

async def main():
    assert os.geteuid() != 0 and "docker" not in os.environ
    async with open_backend("auto") as backend:
        place = Place(backend)
        suites = await asyncio.gather(*(run_suite(suite, place) for suite in (EXEC, FILES, SESSIONS, LINKS, LEAVINGS)))
        for only in ("comes_back", "crowd", "given_up"):
            suites.append(await run_suite(TUNNELLED, place, only=only))
        for only in ("fork_bomb", "full_disk", "network", "read_only", "must_not_do"):
            suites.append(await run_suite(ISOLATION, place, only=only))
        held = [[one.claim, one.held, one.skipped, one.evidence] for suite in suites for one in suite]
        print(json.dumps([backend.name, sorted(backend.capabilities), held]))

asyncio.run(main())
"""
ONLY_WITH_TWO_UIDS = {
    "root_is_another_user",
    "rights_are_the_named_users",
    "root_follows_no_link_of_the_agents",
}
PRIVATELY = ("unshare", "--mount", "--propagation", "private", "sh", "-c")
CLI = "from metier.cli import main; main()"
PLAY = ("play", "finance/CovenantTest-v0", "--policy", "oracle")


@pytest.fixture(scope="module")
def image() -> Path:
    try:
        return rootfs(SPEC.image, build=False)
    except SandboxUnavailable as gap:
        pytest.skip(str(gap))


def plainly(folder: Path, image: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program as nobody."""
    needed = " ".join({sys.base_prefix, sys.prefix, str(Path(__file__).parents[2])})
    done = subprocess.run(
        [*PRIVATELY, PLAIN, "sh", str(folder), str(image), sys.executable, "-c", code, *arguments],
        env={**os.environ, "NEEDED": needed},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    print(done.stdout[-3000:], done.stderr[-3000:])
    return done


@as_root
def test_bubblewrap_keeps_what_it_promises_to_a_plain_user(image: Path, tmp_path: Path) -> None:
    done = plainly(tmp_path, image, CLAIMS)
    assert done.returncode == 0, done.stderr
    backend, promised, held = json.loads(done.stdout.splitlines()[-1])
    assert backend == "bubblewrap"
    filtered = [Capability.SYSCALL_FILTER] if program() is not None else []
    assert promised == sorted([Capability.PIDS_LIMIT, *filtered])  # docs/sandbox.md, last column
    assert {claim: evidence for claim, holds, _, evidence in held if not holds} == {}
    assert {claim for claim, _, skipped, _ in held if skipped} == ONLY_WITH_TWO_UIDS
    assert len(held) > 80


@as_root
def test_a_plain_user_plays_by_bubblewrap(image: Path, tmp_path: Path) -> None:
    done = plainly(tmp_path, image, CLI, *PLAY, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["reward"] == 1.0


@as_root
@pytest.mark.docker
async def test_an_engine_without_rights_says_what_to_do(image: Path, tmp_path: Path) -> None:
    if not await answers():
        pytest.skip("no Docker engine answers")
    done = plainly(tmp_path, image, CLI, *PLAY, "--backend", "docker")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("metier: SandboxUnavailable: you may not use the Docker engine at ")
    assert "join the group that owns the socket" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("engine", ["none", "dead", "silent", "elsewhere"])
async def test_auto_is_bubblewrap_where_no_engine_answers(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No socket, one that nobody listens at, one that nobody serves, and an engine on another machine."""
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        if engine in ("dead", "silent"):
            listener.bind(str(path))
        if engine == "silent":
            listener.listen()
        monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere:2375" if engine == "elsewhere" else f"unix://{path}")
        began = time.monotonic()
        async with open_backend("auto") as backend:
            assert backend.name == "bubblewrap"
        assert time.monotonic() - began < 10
        with pytest.raises(SandboxUnavailable, match=r"bubblewrap backend|set it to unix://"):
            async with DockerBackend():
                pass


async def test_a_user_without_namespaces_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: Path) -> None:
    refused = tmp_path / "unshare"
    refused.write_text("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    refused.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    async with BubblewrapBackend() as backend:
        with pytest.raises(SandboxUnavailable, match="Operation not permitted; this user may make no namespaces"):
            await backend.acquire(SPEC, deadline=Deadline.after(20, limit="test_s", set_by="test"))
