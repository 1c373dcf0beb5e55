"""What a signal does to a command, whatever kind of work it does: small programs on the real mechanism."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from waiting import patience

HEAD = """
import asyncio, os, sys, time, typer
from metier.cli.interrupts import run, run_blocking, watched

def up(): print("up", flush=True)

async def forever():
    up()
    await asyncio.sleep(100)
"""
PROGRAMS = {
    "outside": """
def work():
    try:
        up()
        time.sleep(100)
    finally:
        time.sleep(1.5)
        print("cleaned", flush=True)
""",
    "coroutine": """
async def inner():
    try:
        await forever()
    finally:
        await asyncio.sleep(1.5)
        print("cleaned", flush=True)

def work():
    run(inner(), last_words=lambda: print("last words", flush=True))
""",
    "computing thread": """
async def inner():
    thread = asyncio.create_task(asyncio.to_thread(time.sleep, 100))
    try:
        await forever()
    finally:
        print("cleaned", flush=True)

def work():
    run(inner(), threads_hold_nothing=True)
""",
    "blocking": """
asked = []

def inner():
    up()
    while not asked:
        time.sleep(0.01)
    time.sleep(1.5)
    print("cleaned", flush=True)
    raise RuntimeError("stopped")

def work():
    run_blocking(inner, stop=lambda: asked.append(1), kill=lambda: print("killed", flush=True), leave="it is left")
""",
    "hanging cleanup": """
async def inner():
    try:
        await forever()
    finally:
        await asyncio.sleep(100)

def work():
    run(inner(), end_s=1.0, leave="it is left")
""",
}
TAIL = """
try:
    with watched():
        work()
except typer.Exit as ended:
    sys.exit(ended.exit_code)
"""
CTRL_C, TERM = signal.SIGINT, signal.SIGTERM


def ended(program: str, *signals: signal.Signals, prefix: tuple[str, ...] = ()) -> tuple[int, str, float]:
    """Its code, its words, and how long it took to end."""
    command = [*prefix, sys.executable, "-c", HEAD + PROGRAMS[program] + TAIL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        began = time.monotonic()
        for number, each in enumerate(signals):
            time.sleep(0.3 if number else 0)
            process.send_signal(each)
        said = process.stdout.read()
        code = process.wait()
    return code, said, time.monotonic() - began


@pytest.mark.parametrize("signals", [(CTRL_C,), (CTRL_C, CTRL_C), (TERM,), (TERM, CTRL_C)])
@pytest.mark.parametrize("program", ["outside", "coroutine", "computing thread", "blocking"])
def test_it_cleans_up_says_so_and_ends(program: str, signals: tuple[signal.Signals, ...]) -> None:
    code, said, took_s = ended(program, *signals)
    # which of two comes first is the interpreter's affair where a busy machine has it see both at once
    assert code in {128 + each for each in signals}, said
    assert ("cleaned" in said, "Traceback" in said) == (True, False), said
    assert ("last words" if program == "coroutine" else "metier: interrupted") in said
    assert took_s < 4 * patience()
    if program != "computing thread":  # there may be no moment between its two
        assert ("once more to leave at once" in said) == (len(signals) > 1)


@pytest.mark.parametrize("program", ["outside", "coroutine", "blocking"])
def test_the_third_leaves_at_once(program: str) -> None:
    code, said, _ = ended(program, CTRL_C, CTRL_C, TERM)
    assert (code, "cleaned" in said) == (130, False)
    assert "interrupted; left at once" in said
    assert ("killed" in said and "it is left" in said) == (program == "blocking")


def test_a_cleanup_that_hangs_is_bounded() -> None:
    code, said, took_s = ended("hanging cleanup", TERM)
    assert code == 143
    assert "interrupted; not all had ended after 1 s; it is left" in said
    assert took_s < 3 * patience()


def test_what_was_to_be_ignored_stays_ignored() -> None:
    """As of a command in the background: Ctrl-C is not meant for it."""
    ignoring = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")
    code, said, _ = ended("coroutine", CTRL_C, CTRL_C, CTRL_C, TERM, prefix=ignoring)
    assert (code, "cleaned" in said, "once more" in said) == (143, True, False)
