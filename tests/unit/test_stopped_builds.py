"""`metier images build` and what it stands on, interrupted: by children that are real, and an image that never is."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metier.images import Stop, Stopped
from metier.images.reporter import Reporter
from metier.images.store import locked
from process_table import Process, alive, descendants
from waiting import patience, until

FAMILY = "setsid sh -c 'trap \"\" TERM; sleep 100 & wait; sleep 100' & echo up; wait"
"""A child with a family that has gone its own way, and ends at no gentle signal."""


@pytest.fixture
def interrupting() -> Iterator[Callable[[Stop, float], None]]:
    """Stops as the command line does it: by a handler on this thread, some seconds later."""
    before = signal.getsignal(signal.SIGUSR1)

    def soon(stop: Stop, seconds: float) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: stop.now())
        threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGUSR1]).start()

    yield soon
    signal.signal(signal.SIGUSR1, before)


def test_a_running_step_ends_with_all_that_it_started(interrupting: Callable[[Stop, float], None]) -> None:
    stop, before = Stop(), set(descendants(os.getpid()))
    seen: dict[int, Process] = {}

    class Seeing(Reporter):
        def output(self, text: str) -> None:
            seen.update(descendants(os.getpid()))

            interrupting(stop, 0.3)

    with pytest.raises(Stopped, match="the same command goes on"):
        Seeing("x", lambda _: None, stop).run(["sh", "-c", FAMILY], what="a step")
    ours = {pid: one for pid, one in seen.items() if pid not in before}
    assert len(ours) >= 2
    until(lambda: alive(ours) == [], 2)  # what was killed is seen for a moment
    assert set(descendants(os.getpid())) <= before


def test_a_child_is_ended_where_its_block_breaks() -> None:
    before = set(descendants(os.getpid()))
    with pytest.raises(ZeroDivisionError), Stop().child(["sleep", "100"]):
        raise ZeroDivisionError
    assert set(descendants(os.getpid())) <= before


def test_what_is_stubborn_is_killed() -> None:
    stop = Stop()
    command = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"]

    def build() -> None:
        with stop.child(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            stop.now()
            stop.now()
            began.append(time.monotonic())
            assert process.wait() == -signal.SIGKILL

    began: list[float] = []
    with pytest.raises(Stopped):
        build()
    assert time.monotonic() - began[0] < 5 * patience()


def test_nothing_begins_once_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METIER_HOME", str(tmp_path))
    stop, cut = Stop(), []
    stop.now()
    mark = tmp_path / "mark"
    with pytest.raises(Stopped), stop.child(["touch", str(mark)]):
        pass
    with pytest.raises(Stopped), locked("x", lambda _: None, stop):
        pass
    with pytest.raises(Stopped) as caught, stop.cut_by(lambda: cut.append("cut")):
        raise OSError("the engine hung up")
    assert (cut, type(caught.value.__cause__)) == (["cut"], OSError)
    assert not mark.exists()


def test_waiting_for_another_builder_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupting: Callable[[Stop, float], None]
) -> None:
    monkeypatch.setenv("METIER_HOME", str(tmp_path))
    stop, told = Stop(), list[str]()
    (tmp_path / "locks").mkdir()
    with (tmp_path / "locks" / "x").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        interrupting(stop, 0.3)
        with pytest.raises(Stopped), locked("x", told.append, stop):
            pass
    assert told == ["[x] another process is building it: waiting"]


COMMAND = Path(__file__).parents[1] / "fixtures" / "other_images.py"
BOOTSTRAP = """\
sh -c 'trap "" INT TERM; sleep 100 & wait; sleep 100' &
echo half > "$2"; mkdir "$TMPDIR/work"; echo made > "$TMPDIR/work/file"; echo up > "$MARK"; wait
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="building without an engine takes root")
@pytest.mark.parametrize(
    ("signals", "how"),
    [
        ([signal.SIGINT], "in order"),
        ([signal.SIGTERM], "in order"),
        ([signal.SIGINT, signal.SIGINT], "in order"),
        ([signal.SIGTERM, signal.SIGINT, signal.SIGINT], "at once"),
    ],
    ids=["Ctrl-C", "SIGTERM", "Ctrl-C twice", "three signals"],
)
def test_the_command_ends_soon_says_so_and_leaves_nothing(
    tmp_path: Path, signals: list[signal.Signals], how: str
) -> None:
    """The base's own script stands for whatever takes long; the programs that it would need are not run."""
    images, tools, home, temporary = (tmp_path / name for name in ("images", "tools", "home", "tmp"))
    for folder in (images / "base", tools, home, temporary):
        folder.mkdir(parents=True)
    (images / "base" / "bootstrap.sh").write_text(BOOTSTRAP)
    removed = tmp_path / "removed"
    fakes = {"bwrap": "exit 1", "mmdebstrap": "exit 1"}
    if how == "at once":
        fakes["rm"] = f'sleep 3; {shutil.which("rm")} "$@"; touch {removed}'
    for name, script in fakes.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    sources, mark = tmp_path / "sources", tmp_path / "mark"
    sources.touch()
    settings = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "METIER_HOME": str(home),
        "METIER_APT_SOURCES": str(sources),
        "TMPDIR": str(temporary),
        "MARK": str(mark),
    }
    command = [sys.executable, str(COMMAND), str(images), "images", "build", "base", "--engine", "bubblewrap"]
    with subprocess.Popen(
        command, env={**os.environ, **settings}, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as build:
        until(lambda: mark.exists() or build.poll() is not None, 60)
        family = descendants(build.pid)
        began = time.monotonic()
        for number, each in enumerate(signals):
            time.sleep(0.2 if number else 0)
            os.killpg(build.pid, each)
        build.wait()
        took_s = time.monotonic() - began
        assert build.stderr is not None
        said = build.stderr.read()  # to its end, which a removal that goes on may hold open for longer
    assert (build.returncode, "Traceback" in said) == (128 + signals[0], False), said
    assert took_s < (5 if how == "in order" else 2.5) * patience()
    assert len(family) >= 2
    until(lambda: alive(family) == [], 2)
    assert list(temporary.iterdir()) == []
    if how == "in order":
        assert "stopped; what was being built is removed" in said
    else:
        assert "interrupted; left at once; the next build removes what this one left in the cache" in said
        until(removed.exists, 20)  # no signal of the terminal's reached that
    assert [path for path in home.rglob("*") if path.is_file() and path.parent.name != "locks"] == []
