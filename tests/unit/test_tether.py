"""What is tied to a process goes with it, however it ends; and stays where it is none of the tether's business."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from metier.scheduler.tether import Tether
from process_table import alive, descendants
from waiting import until

OWNER = """
import os, sys, time
from metier.scheduler.tether import Tether
Tether('rm -rf "$1"; echo "$2" > "$3"', sys.argv[1], "cleared away", sys.argv[2])
os.mkdir(sys.argv[1])
print("tied", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_clears_away_after_its_owner(tmp_path: Path, number: signal.Signals) -> None:
    folder, word = tmp_path / "a folder", tmp_path / "word"
    command = [sys.executable, "-c", OWNER, str(folder), str(word)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, process_group=0
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "tied\n"
        assert folder.is_dir()
        tethers = descendants(owner.pid)
        assert len(tethers) == 1
        os.killpg(owner.pid, number)  # as a terminal does it: to all of its group
    until(lambda: word.exists() and word.read_text() == "cleared away\n", 5)
    assert not folder.exists()
    until(lambda: not alive(tethers), 5)


def test_a_cut_one_does_nothing_and_is_gone(tmp_path: Path) -> None:
    before = set(descendants(os.getpid()))
    tether = Tether('rm -rf "$1"', str(tmp_path))
    assert len(set(descendants(os.getpid())) - before) == 1
    tether.cut()
    tether.cut()
    assert tmp_path.is_dir()
    assert set(descendants(os.getpid())) <= before
