"""What a command's result says, on every real backend: endings, limits of output and time, and nothing left running."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from metier.envs.core import Capability, ConfigError, ExecResult, Sandbox

from .claims import raises
from .places import SOON_S, SandboxSuite

EXEC = SandboxSuite("exec")

KIB = 1024


async def _processes(box: Sandbox) -> list[str]:
    """Commands of the agent's processes, told by root."""
    probe = (
        "import os\n"
        "for p in os.listdir('/proc'):\n"
        "  if p.isdigit() and p not in ('1', str(os.getpid())):\n"
        "    try:\n"
        "      words = open(f'/proc/{p}/cmdline').read().replace('\\0', ' ')\n"
        "    except OSError: continue\n"
        "    if words: print(words)\n"
    )
    result = await box.exec(["python3", "-I", "-c", probe], timeout_s=10, user="root")
    assert result.ok, result
    return result.stdout.decode().splitlines()


@EXEC.of_sandbox()
async def success_is_exit_code_zero_with_both_streams(box: Sandbox) -> None:
    result = await box.exec("echo out; echo err >&2", timeout_s=5)
    assert (result.exit_code, result.signal, result.stdout, result.stderr) == (0, None, b"out\n", b"err\n")
    assert result.ok
    assert not (result.timed_out or result.oom_killed or result.background_open or result.cut_bytes)
    assert 0 < result.duration_s < 5


@EXEC.of_sandbox()
async def exit_code_is_the_commands_own(box: Sandbox) -> None:
    assert (await box.exec("exit 7", timeout_s=5)).exit_code == 7


@EXEC.of_sandbox()
async def a_signal_is_no_exit_code(box: Sandbox) -> None:
    result = await box.exec("kill -SEGV $$", timeout_s=5)
    assert (result.exit_code, result.signal) == (None, 11)


@EXEC.of_sandbox()
async def an_argument_list_meets_no_shell(box: Sandbox) -> None:
    result = await box.exec(["printf", "%s", "$HOME && a  b"], timeout_s=5)
    assert result.stdout == b"$HOME && a  b"


@EXEC.of_sandbox(cases=[(["no-such-program"], 127), (["/etc/passwd"], 126)])
async def what_cannot_start_is_told_like_a_shell_does(box: Sandbox, command: list[str], code: int) -> None:
    result = await box.exec(command, timeout_s=5)
    assert result.exit_code == code
    assert command[0].encode() in result.stderr


@EXEC.of_sandbox()
async def missing_working_directory_is_an_observation(box: Sandbox) -> None:
    result = await box.exec("true", timeout_s=5, cwd="/workspace/nowhere")
    assert result.exit_code == 126
    assert b"nowhere" in result.stderr


@EXEC.of_sandbox()
async def stdin_environment_and_directory_reach_the_command(box: Sandbox) -> None:
    result = await box.exec("cat; echo $WHO; pwd", timeout_s=5, stdin=b"in\0\xff", env={"WHO": "Zoë"}, cwd="/tmp")
    assert result.stdout == b"in\0\xff" + "Zoë\n/tmp\n".encode()


@EXEC.of_sandbox()
async def no_stdin_is_an_empty_one(box: Sandbox) -> None:
    assert (await box.exec("cat", timeout_s=5)).stdout == b""


@EXEC.of_sandbox()
async def the_agent_is_who_it_should_be(box: Sandbox) -> None:
    assert (await box.exec("id -u; pwd", timeout_s=5)).stdout == b"1000\n/workspace\n"


@EXEC.of_sandbox(needs=Capability.SEPARATE_UIDS)
async def root_is_another_user(box: Sandbox) -> None:
    assert (await box.exec("id -u", timeout_s=5, user="root")).stdout == b"0\n"


@EXEC.of_sandbox()
async def agent_has_no_capabilities(box: Sandbox) -> None:
    result = await box.exec("grep -E 'Cap(Prm|Eff|Amb)|NoNewPrivs' /proc/self/status", timeout_s=5)
    assert result.stdout.split() == [
        b"CapPrm:",
        b"0" * 16,
        b"CapEff:",
        b"0" * 16,
        b"CapAmb:",
        b"0" * 16,
        b"NoNewPrivs:",
        b"1",
    ]


@EXEC.of_sandbox()
async def no_descriptor_is_inherited(box: Sandbox) -> None:
    result = await box.exec(["python3", "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))"], timeout_s=5)
    assert result.stdout == b"['0', '1', '2', '3']\n"  # 3 is the listing itself


@EXEC.of_sandbox(cases=[-1, 0, 1, 2 * KIB * 9])
async def output_keeps_head_and_tail_and_counts_the_rest(box: Sandbox, extra: int) -> None:
    size = 2 * KIB + extra
    script = f"import sys; data = bytes(i % 251 for i in range({size})); sys.stdout.buffer.write(data)"
    result = await box.exec(["python3", "-c", script], timeout_s=10, output_kib=1)
    data = bytes(i % 251 for i in range(size))
    cut = max(0, extra)
    assert result.cut_bytes == cut
    if cut:
        assert result.stdout == data[:KIB] + b"\n[... %d bytes cut ...]\n" % cut + data[-KIB:]
    else:
        assert result.stdout == data


@EXEC.of_sandbox()
async def both_streams_are_cut_each_for_itself(box: Sandbox) -> None:
    result = await box.exec("head -c 5000 /dev/zero; head -c 6000 /dev/zero >&2", timeout_s=5, output_kib=1)
    assert result.cut_bytes == (5000 - 2048) + (6000 - 2048)


@EXEC.of_sandbox()
async def bytes_come_as_they_are(box: Sandbox) -> None:
    result = await box.exec("printf 'a\\0\\377'; printf '\\303'; sleep 0.05; printf '\\251'", timeout_s=5)
    assert result.stdout == b"a\0\xff" + "é".encode()


NUMBERS = "".join(f"{number}\n" for number in range(1, 2_000_001)).encode()
AGAIN = 20
"""What is lost once in many times is lost."""


@EXEC.of_sandbox()
async def numbers_come_byte_for_byte_or_are_said_to_be_cut(box: Sandbox) -> None:
    for _ in range(AGAIN):
        whole = await box.exec("seq 1 2000000", timeout_s=60, output_kib=10 * KIB)
        assert (whole.cut_bytes, whole.stdout == NUMBERS) == (0, True), f"{len(whole.stdout)} of {len(NUMBERS)} bytes"
    part = await box.exec("seq 1 2000000", timeout_s=60)
    cut, kept = len(NUMBERS) - 128 * KIB, 64 * KIB
    assert part.cut_bytes == cut
    assert part.stdout == NUMBERS[:kept] + b"\n[... %d bytes cut ...]\n" % cut + NUMBERS[-kept:]


IN_PIECES = """
import os
data = b"x" * {offset} + {character!r}.encode() * 400_000
for fd in (1, 2):
    for start in range(0, len(data), 4093):
        os.write(fd, data[start : start + 4093])
"""
"""4093 is prime: the pieces end everywhere in a character, and so do frames and what a pipe holds."""


@EXEC.of_sandbox(
    cases={
        f"{size} bytes each, {offset} before": (character, offset)
        for size, character in ((2, "é"), (3, "漢"), (4, "🙂"))
        for offset in (0, 1)
    }
)
async def characters_that_edges_cut_come_whole(box: Sandbox, character: str, offset: int) -> None:
    source = IN_PIECES.format(offset=offset, character=character)
    result = await box.exec(["python3", "-c", source], timeout_s=60, output_kib=10 * KIB)
    expected = "x" * offset + character * 400_000
    assert result.stdout.decode() == expected
    assert result.stderr.decode() == expected


@EXEC.of_sandbox(cases={"on standard output": (300, ""), "on standard error": (1024, ">&2")})
async def a_flood_ends_in_time_and_memory(box: Sandbox, size_mb: int, where: str) -> None:
    flooding = asyncio.create_task(box.exec(f"head -c {size_mb}M /dev/zero {where}", timeout_s=120))
    before = most = _resident_mb()
    while not flooding.done():
        await asyncio.wait({flooding}, timeout=0.01)
        most = max(most, _resident_mb())
    result = flooding.result()
    assert result.ok
    assert result.cut_bytes == size_mb * KIB * KIB - 128 * KIB
    assert most - before < 64, f"the host's side grew from {before} to {most} MiB"


def _resident_mb() -> int:
    """The memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // (KIB * KIB)


@EXEC.of_sandbox()
async def a_long_script_is_no_argument(box: Sandbox) -> None:
    result = await box.exec("#" + "x" * 300_000 + "\necho done", timeout_s=5)
    assert result.stdout == b"done\n"


@EXEC.of_sandbox()
async def text_may_stand_for_any_byte(box: Sandbox) -> None:
    assert (await box.exec(["printf", "%s", "\udcff\udc80"], timeout_s=5)).stdout == b"\xff\x80"


@EXEC.of_sandbox()
async def timeout_keeps_the_output_so_far(box: Sandbox) -> None:
    result = await box.exec("echo early; sleep 60", timeout_s=0.5)
    assert result.timed_out
    assert not result.ok
    assert result.stdout == b"early\n"
    assert result.duration_s < SOON_S


STUBBORN = (
    "import os, signal, time\n"
    "for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)\n"
    "if os.fork() == 0:\n"
    "  os.setsid()\n"
    "  if os.fork() == 0:\n"
    "    os.execve('/usr/bin/sleep', ['sleep', '987'], {env})\n"
    "time.sleep(987)\n"
)


@EXEC.of_sandbox(cases=["os.environ", "{}"])
async def timeout_kills_the_whole_tree(box: Sandbox, env: str) -> None:
    began = time.monotonic()
    result = await box.exec(["python3", "-c", STUBBORN.replace("{env}", env)], timeout_s=1)
    assert result.timed_out
    assert time.monotonic() - began < SOON_S
    assert await _processes(box) == []


@EXEC.of_sandbox()
async def a_background_child_holds_nothing_up_and_lives(box: Sandbox) -> None:
    result = await box.exec("(sleep 2; echo late > /workspace/late; echo late) & echo now", timeout_s=10)
    assert result.stdout == b"now\n"
    assert result.background_open
    assert result.duration_s < 2
    waited = await box.exec("until [ -s /workspace/late ]; do sleep 0.1; done; cat /workspace/late", timeout_s=SOON_S)
    assert waited.stdout == b"late\n"


@EXEC.of_sandbox()
async def orphans_are_reaped(box: Sandbox) -> None:
    await box.exec("for i in $(seq 200); do (true &) ; done", timeout_s=20)
    result = await box.exec("grep -l 'State:.Z' /proc/[0-9]*/status | wc -l", timeout_s=5)
    assert result.stdout == b"0\n"


@EXEC.of_sandbox()
async def commands_run_side_by_side(box: Sandbox) -> None:
    async def one(number: int) -> ExecResult:
        return await box.exec(f"sleep 0.3; echo {number}", timeout_s=10)

    began = time.monotonic()
    results = await asyncio.gather(*(one(number) for number in range(8)))
    assert [result.stdout for result in results] == [b"%d\n" % number for number in range(8)]
    assert time.monotonic() - began < sum(result.duration_s for result in results) / 2


@EXEC.of_sandbox()
async def cancelling_ends_the_command(box: Sandbox) -> None:
    task = asyncio.create_task(box.exec("sleep 654", timeout_s=60))
    await asyncio.sleep(0.3)
    task.cancel()
    with raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0.5)
    assert await _processes(box) == []


@EXEC.of_sandbox()
async def the_agent_cannot_kill_the_steward(box: Sandbox) -> None:
    assaults = "for s in TERM INT HUP USR1 CHLD STOP KILL; do kill -$s 1; kill -$s -1 & done; sleep 0.2; kill -9 -1"
    await asyncio.gather(*(box.exec(assaults, timeout_s=5) for _ in range(4)))
    assert (await box.exec("echo alive", timeout_s=5)).stdout == b"alive\n"


@EXEC.of_sandbox(cases=[{"timeout_s": 0.0}, {"timeout_s": 1.0, "output_kib": -1}])
async def nonsense_limits_are_refused(box: Sandbox, bad: dict[str, float]) -> None:
    with raises(ConfigError):
        await box.exec("true", **bad)  # type: ignore[arg-type]
