"""What the gates of certification are made of: another clock, lenses, conventions, rubbish, levels, bots."""

from __future__ import annotations

import datetime
import io
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from metier.envs import registry
from metier.envs.core import Artefact, Collected, Deadline, SandboxSpec
from metier.harness.certify import clock
from metier.harness.certify.bench import contents, files_of
from metier.harness.certify.gates import levels
from metier.harness.certify.gates.bots import bots
from metier.harness.certify.gates.conventions import Need, rewritings, stated
from metier.harness.certify.gates.rubbish import SCRIPTS, script, spoiled
from metier.harness.certify.lenses import Displaced, Elsewhere, Listening, Told, Usage, moved_python
from metier.harness.prepare import Task, generate
from metier.harness.sandbox.fake import FakeBackend, FakeSandbox, result
from metier.harness.tools import tool_specs

FIXTURES = Path(__file__).parents[1] / "fixtures"
LEAP = datetime.datetime(2028, 2, 29, 12, tzinfo=datetime.UTC).timestamp()


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.syspath_prepend(str(FIXTURES))
    (added,) = registry.add_registry(FIXTURES / "planted" / "registry.yaml")
    yield added
    del registry._known().entries[added]


def collected(**files: bytes) -> Collected:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name.replace("__", "."))
            member.size, member.mtime = len(data), int(time.time())
            tar.addfile(member, io.BytesIO(data))
    return Collected(tar=buffer.getvalue(), refused={})


def test_the_clock_moves_inside_only() -> None:
    today = datetime.date.today()
    replaced = clock.install((__name__,))
    try:
        with clock.at(LEAP):
            assert datetime.date.today() == datetime.date(2028, 2, 29)
            assert datetime.datetime.now(datetime.UTC).date() == datetime.date(2028, 2, 29)
            assert time.gmtime()[:3] == (2028, 2, 29) and abs(time.time() - LEAP) < 5
            assert isinstance(datetime.datetime.fromtimestamp(0), datetime.datetime)
            with clock.at(None):
                assert datetime.date.today() == today
        assert datetime.date.today() == today
    finally:
        clock.remove(replaced)
    assert datetime.datetime is clock._real_datetime and time.time is clock._real_time


def test_a_class_derived_from_the_moved_datetime_makes_its_own_instances() -> None:
    replaced = clock.install()
    try:

        class Marked(datetime.datetime):
            """As libraries derive (Arelle's DateTime): by their own signature, with a mark of their own."""

            mark: bool

            def __new__(cls, year: int, month: int, day: int, mark: bool = False) -> Self:
                made = datetime.datetime.__new__(cls, year, month, day)
                made.mark = mark
                return made

        made = Marked(2028, 2, 29, mark=True)
        assert type(made) is Marked and made.mark and isinstance(made, datetime.datetime)
        assert not isinstance(datetime.datetime(2028, 2, 29), Marked)
    finally:
        clock.remove(replaced)


def test_a_python_probe_is_moved_and_otherwise_the_same() -> None:
    source = "import datetime, json\nprint(json.dumps([str(datetime.date.today()), __name__]))"
    command = [sys.executable, "-I", "-c", moved_python(source, LEAP)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == '["2028-02-29", "__main__"]\n'
    first = "from __future__ import annotations\n"
    assert moved_python(first, LEAP) == first


async def fake() -> FakeSandbox:
    backend = FakeBackend()
    return await backend.acquire(SandboxSpec(image="x"), deadline=Deadline.after(9, limit="x", set_by="test"))


async def test_a_displaced_command_is_pinned_and_moved() -> None:
    inner = await fake()
    lens = Displaced(inner, Elsewhere(zone="Asia/Kathmandu", moment=LEAP, core=0))
    await lens.exec(["python3", "-I", "-c", "print(1)"], timeout_s=1)
    await lens.exec("ls", timeout_s=1)
    await lens.exec("pwd", timeout_s=1, session="shell")
    argv, line, session = (command for command, _, _ in inner.commands)
    assert argv.startswith("bash -c taskset") and "move_for_good" in argv and argv.endswith("\nprint(1)")
    assert line.startswith("taskset") and line.endswith("\nls")
    assert session == "pwd"


async def test_what_a_verifier_tells_is_heard() -> None:
    told = Told(canary="c")
    lens = Listening(await fake(), told)
    await lens.exec(["cat"], stdin=b"for root", timeout_s=1, user="root")
    assert not told.ran_agent
    await lens.exec(["cat"], stdin=b"for the agent", timeout_s=1, env={"A": "in the environment"})
    await lens.write("/workspace/x", b"in a file")
    await lens.write("/workspace/y", b"in root's file", mode=0o600, user="root")
    heard = b" ".join(told.readable)
    assert told.ran_agent and told.messages == 4
    assert all(words in heard for words in (b"for the agent", b"in the environment", b"in a file"))
    assert b"for root" not in heard and b"in root's file" not in heard


def test_usage_leaves_the_cache_out() -> None:
    usage = Usage()
    usage.saw(
        "peak 104857600\ncache 1\nshmem 10485760\ntotal_shmem 10485760\ntotal_cache 52428800\ndisk 1024\ndisk 512\n"
    )
    assert (usage.memory_mb, usage.disk_mb) == (60.0, 1.5)
    usage.saw("")
    assert (usage.memory_mb, usage.disk_mb) == (60.0, 1.5)


def test_artefacts_are_the_same_whenever_they_were_made() -> None:
    one = collected(a=b"1", b=b"2")
    assert contents(one) == contents(collected(b=b"2", a=b"1"))
    assert contents(one) != contents(collected(a=b"1", b=b"3"))


TABLE = collected(table__csv=b"name,height\nA,-1.25\nB,2.55\n")


def test_conventions_are_found_in_the_right_answer() -> None:
    assert {need.convention for need in stated(TABLE)} == {"units", "sign"}
    assert {need.convention for need in stated(collected(part__step=b"ISO"))} == {"lengths", "version"}
    assert not stated(collected(code__py=b"x = -1.25\n"))
    tried = {need.convention: files_of(written)["table.csv"] for need, written in rewritings(TABLE).items()}
    assert tried["order"] == b"name,height\nB,2.55\nA,-1.25\n"
    assert tried["rounding"] == b"name,height\nA,-1.2\nB,2.5\n"
    assert tried["encoding"].startswith(b"\xff\xfe")
    assert tried["line ends"].count(b"\r\n") == 3


@pytest.mark.parametrize(
    ("convention", "says", "is_silent"),
    [
        ("units", "heights in m", "the height of each in the file"),
        ("units", "`span_mm` of each", "the span of each"),
        ("units", "in EUR thousand", "the amount"),
        ("units", "in seconds", "wait some seconds after the last year"),
        ("lengths", "in millimetres", "the volume within 0.1%"),
        ("rounding", "to 2 decimals", "as a plain number"),
        ("sign", "outflows are negative", "all of the amounts"),
        ("order", "sorted by name", "all of the names"),
        ("encoding", "a UTF-8 file", "a text file"),
        ("version", "AP214", "a STEP file"),
    ],
)
def test_a_brief_has_a_word_about_it_or_not(convention: str, says: str, is_silent: str) -> None:
    need = Need(convention=convention, why="")
    assert not need.missing(f"Write the table, {says}.")
    assert need.missing(f"Write the table, {is_silent}.")


def test_right_work_is_spoiled_in_every_way() -> None:
    right = collected(
        tool__py=b"print(sum(range(100)))  # right\n" * 20, book__xlsx=b"PK" + bytes(range(256)), answer=b"41.50"
    )
    ways = spoiled(right)
    assert all(contents(wrong) != contents(right) for wrong in ways.values())
    assert files_of(ways["endless program"])["tool.py"].startswith(b"while True")
    assert files_of(ways["zip bomb"])["tool.py"] == files_of(right)["tool.py"]
    assert len(files_of(ways["zip bomb"])["book.xlsx"]) < 4 << 20


def test_the_right_answer_is_put_among_wrong_ones() -> None:
    ways = spoiled(collected(answer=b"41.50", list__txt=b"A 19\nno number\n", tool__py=b"x = 1"))
    in_lines = files_of(ways["right one among wrong ones, in lines of its own"])
    on_a_line = files_of(ways["right one among wrong ones, on the same line"])
    assert in_lines["answer"] == b"52.61\n41.50\n63.72\n"
    assert on_a_line["answer"] == b"52.61 41.50 63.72"
    assert in_lines["list.txt"] == b"A 20\nno number\nA 19\nno number\nA 31\nno number\n"
    assert on_a_line["list.txt"] == b"A 20 A 19 A 31\nop ovncfs no number pq pwodgt\n"
    assert in_lines["tool.py"] == on_a_line["tool.py"] == b"x = 1"


@pytest.mark.parametrize("name", SCRIPTS)
def test_rubbish_is_written_by_valid_bash(name: str) -> None:
    for artefact in (Artefact(path="some where/x.json", max_mb=1), Artefact(path="tree", tree=True)):
        done = subprocess.run(["bash", "-n", "-c", script(artefact, name)], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr


def test_bots_are_valid_and_each_is_another(planted: str) -> None:
    prepared = generate(Task(env_id=planted, seed=1))
    made = bots(prepared, seed=1)
    names = [bot.name for bot in made]
    assert len(set(names)) == len(names) >= 20
    specs = tool_specs(prepared.entry.tools)
    for bot in made:
        for call in bot.calls(specs):
            assert call.tool in {spec.name for spec in specs} - {"submit"}
            command = call.arguments.get("command")
            if call.tool == "shell" and bot.name != "random calls":
                assert subprocess.run(["bash", "-n", "-c", str(command)], check=False).returncode == 0


def test_levels_are_told_apart_by_what_is_measured(planted: str) -> None:
    def measured(level: int, defect: str) -> levels.Measured:
        tasks = [
            Task(env_id=planted, seed=seed, level=level, options={"defect": defect}) for seed in range(levels.DRAWS)
        ]
        drawn = [generate(task) for task in tasks]
        return levels.Measured(drawn, [2] * len(drawn))

    assert any("right" in knob for knob in levels._knobs(measured(0, ""), measured(1, "")))
    same = "levels are the same"
    assert not list(levels._knobs(measured(0, same), measured(1, same)))


async def test_a_lens_gives_what_the_sandbox_gives() -> None:
    inner = await fake()
    inner._backend.replies["hello"] = result(b"world")
    lens = Displaced(inner, Elsewhere())
    assert (await lens.exec("hello", timeout_s=1)).stdout == b"world"
    await lens.write("/workspace/a", b"1")
    assert await lens.read("/workspace/a", max_bytes=9) == b"1"
    assert contents(await lens.collect([Artefact(path="a")])) == contents(await inner.collect([Artefact(path="a")]))
    assert lens.spec == inner.spec and lens.id == inner.id
