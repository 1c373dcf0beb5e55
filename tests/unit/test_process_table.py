"""The tests' own reader of the process table: were it blind, every count of what is left would find nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from process_table import alive, ancestors, descendants, processes, running, saying

CHILD = """
import subprocess, sys
grandchild = subprocess.Popen(["sleep", "60.0625"], start_new_session=True)
print(grandchild.pid, flush=True)
grandchild.wait()
"""


@pytest.fixture
def family() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A child of this process, and its child's number in a session of its own."""
    with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        yield child, grandchild
        if grandchild in alive(descendants(os.getpid())):
            os.kill(grandchild, 9)


def test_what_runs_is_seen_and_what_ended_is_told_apart(family: tuple[subprocess.Popen[bytes], int]) -> None:
    child, grandchild = family
    started = descendants(os.getpid())
    assert {child.pid, grandchild} <= started.keys()
    assert (started[grandchild].parent, started[grandchild].session) == (child.pid, grandchild)
    assert started[child.pid].group == os.getpgrp()
    assert ancestors(grandchild)[:2] == [child.pid, os.getpid()]
    assert saying("60.0625\0") == [grandchild]
    os.kill(grandchild, 9)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert processes()[child.pid].ended
    assert child.pid not in running()
    assert not {child.pid, grandchild} & set(alive(started))


def test_another_process_with_its_number_is_not_the_one_that_was() -> None:
    me = running()[os.getpid()]
    assert alive({os.getpid(): me}) == [os.getpid()]
    assert alive({os.getpid(): me._replace(started=me.started - 1)}) == []
