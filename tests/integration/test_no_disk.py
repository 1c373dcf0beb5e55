"""A disk that is full ends in words that say what is full and what to do, and nothing half-written stays on it.

Home and temporary folder are a tmpfs of 2 MB, which root mounts in a mount namespace of its own. The steward's folder
stays where it was where a case needs a sandbox, since the engine sees no mounts of ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metier.harness.sandbox.docker import answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.protocol import steward_folder
from metier.images import docker_tag

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root mounts a small disk"),
]
SMALL_DISK = """
set -e
disk=$1 filled=$2; shift 2
if [ -d "$disk/home/steward" ]; then mkdir "$disk.kept"; mount --bind "$disk/home/steward" "$disk.kept"; fi
mount -t tmpfs -o size=2m,mode=700 none "$disk"
mkdir "$disk/home" "$disk/tmp"
if [ -d "$disk.kept" ]; then mkdir "$disk/home/steward"; mount --bind "$disk.kept" "$disk/home/steward"; fi
head -c "$filled" /dev/zero > "$disk/filler" 2> /dev/null || true
code=0
"$@" || code=$?
echo "left:"
find "$disk" -type f ! -name filler ! -name reaper.lock ! -path "*/locks/*" ! -path "*/steward/[0-9a-f]*"
exit $code
"""
GYM = """
import gymnasium, metier
from metier.envs.core import MetierError
try:
    gymnasium.make("finance/CovenantTest-v0").reset(seed=1)
except MetierError as error:
    print(f"metier: {type(error).__name__}: {error}")
"""
PRIVATELY = ("unshare", "--mount", "--propagation", "private", "sh", "-c")
CLI = "from metier.cli import main; main()"
FULL = "4m"


def on_small_disk(folder: Path, filled: str, code: str, *arguments: str) -> tuple[int, str, list[str]]:
    """Exit code, words and files left of a program on a disk of 2 MB, of which so much is taken."""
    done = subprocess.run(
        [*PRIVATELY, SMALL_DISK, "sh", str(folder), filled, sys.executable, "-c", code, *arguments],
        env={**os.environ, "METIER_HOME": f"{folder}/home", "TMPDIR": f"{folder}/tmp", "COLUMNS": "1000"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    words, _, left = done.stdout.rpartition("left:\n")
    print(done.returncode, done.stdout)
    return done.returncode, words, left.split()


async def engine_has(image: str) -> bool:
    return await answers() and await Engine(socket_path()).has_image(docker_tag(image))


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


def check(words: str, what: str, left: list[str], disk: Path) -> None:
    assert "Traceback" not in words
    assert f"SandboxUnavailable: no room for {what}" in words
    assert f"the disk of {disk}/home" in words and "set METIER_HOME" in words
    assert left == []


def test_no_room_for_the_steward_of_an_environment(disk: Path) -> None:
    _, words, left = on_small_disk(disk, FULL, GYM)
    check(words, "the steward's code", left, disk)


def refuses_to_play(disk: Path, filled: str, env_id: str, backend: str, *, no_room_for: str) -> None:
    code, words, left = on_small_disk(disk, filled, CLI, "play", env_id, "--policy", "oracle", "--backend", backend)
    check(words, no_room_for, left, disk)
    assert code == 1


@pytest.mark.parametrize("backend", ["docker", "bubblewrap"])
def test_no_room_for_the_steward_of_a_command(disk: Path, backend: str) -> None:
    refuses_to_play(disk, FULL, "finance/CovenantTest-v0", backend, no_room_for="the steward's code")


@pytest.mark.docker
async def test_no_room_for_a_snapshot(disk: Path) -> None:
    """It has arrived in part when the disk is full."""
    if not await engine_has("db"):
        pytest.skip("takes a Docker engine, and: metier images build db")
    steward_folder(disk / "home")
    refuses_to_play(disk, "1536k", "terminal/SqliteIndexPlan-v0", "docker", no_room_for="a snapshot of")


@pytest.mark.docker
async def test_no_room_for_an_images_files(disk: Path) -> None:
    if not await engine_has("terminal-python"):
        pytest.skip("takes a Docker engine, and: metier images build terminal-python")
    refuses_to_play(disk, "512k", "finance/CovenantTest-v0", "bubblewrap", no_room_for="image terminal-python")


def test_images_are_listed_all_the_same(disk: Path) -> None:
    code, words, left = on_small_disk(disk, FULL, CLI, "images", "ls", "--json")
    assert (code, left) == (0, []) and '"terminal-python"' in words
