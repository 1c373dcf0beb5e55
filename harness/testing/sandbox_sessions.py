"""Persistent sessions on every real backend: what is kept, what is shown, and how they end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from metier.envs.core import ConfigError, ExecResult, Sandbox

from .claims import raises
from .places import SOON_S, SandboxSuite

SESSIONS = SandboxSuite("sessions")


async def shell(box: Sandbox, command: str, timeout_s: float = 10, **more: Any) -> ExecResult:
    return await box.exec(command, timeout_s=timeout_s, session="shell", **more)


async def python(box: Sandbox, source: str, timeout_s: float = 20, **more: Any) -> ExecResult:
    return await box.exec(source, timeout_s=timeout_s, session="python", **more)


@SESSIONS.of_sandbox()
async def shell_keeps_directory_variables_functions_and_jobs(box: Sandbox) -> None:
    await shell(box, "mkdir -p d && cd d; export A=1; b=2; f() { echo f:$1; }; alias hi='echo hello'")
    await shell(box, "sleep 30 & echo started")
    result = await shell(box, "pwd; echo $A $b; f x; hi; jobs | wc -l")
    assert result.stdout == b"/workspace/d\n1 2\nf:x\nhello\n1\n"


@SESSIONS.of_sandbox()
async def shell_status_and_streams_are_the_commands(box: Sandbox) -> None:
    result = await shell(box, "echo o; echo e >&2; (exit 5)")
    assert (result.exit_code, result.stdout, result.stderr) == (5, b"o\n", b"e\n")


@SESSIONS.of_sandbox(cases=["if", "break", "return 3", "echo 'open", "no-such-program", "cat", "fi; )"])
async def shell_survives_what_agents_type(box: Sandbox, command: str) -> None:
    await shell(box, "kept=yes")
    await shell(box, command, timeout_s=3)
    assert (await shell(box, "echo $kept")).stdout == b"yes\n"


@SESSIONS.of_sandbox()
async def shell_output_that_looks_like_a_sentinel_is_output(box: Sandbox) -> None:
    result = await shell(box, "printf '0123456789abcdef 0\\0'; printf 'x' >&9; echo after")
    assert result.stdout.endswith(b"after\n")
    assert b"0123456789abcdef 0\0" in result.stdout


@SESSIONS.of_sandbox()
async def shell_without_newline_and_with_large_input(box: Sandbox) -> None:
    text = "x" * 200_000
    result = await shell(box, f"v='{text}'; printf %s ${{#v}}")
    assert result.stdout == b"200000"


@SESSIONS.of_sandbox()
async def a_source_may_be_longer_than_a_request(box: Sandbox) -> None:
    text = "é" * 1_000_000
    assert (await shell(box, f"v='{text}'; printf %s ${{#v}}", timeout_s=60)).stdout in (b"1000000", b"2000000")
    assert (await python(box, f"len('{text}')", timeout_s=60)).stdout == b"1000000\n"


@SESSIONS.of_sandbox()
async def what_is_refused_holds_no_later_command_up(box: Sandbox) -> None:
    await shell(box, "kept=yes")
    began = time.monotonic()
    answers = await asyncio.gather(
        shell(box, "sleep 0.2", timeout_s=60), shell(box, "\ud800", timeout_s=60), return_exceptions=True
    )
    assert isinstance(answers[1], ValueError), answers
    assert (await shell(box, "echo $kept")).stdout == b"yes\n"
    assert time.monotonic() - began < SOON_S


@SESSIONS.of_sandbox()
async def shell_that_ends_says_so_and_starts_anew(box: Sandbox) -> None:
    await shell(box, "gone=1")
    result = await shell(box, "echo last; exit 3")
    assert (result.exit_code, result.stdout) == (3, b"last\n")
    assert b"the shell session ended (exit code 3)" in result.stderr
    assert (await shell(box, "echo -$gone-; pwd")).stdout == b"--\n/workspace\n"


@SESSIONS.of_sandbox()
async def shell_timeout_interrupts_and_keeps_the_session(box: Sandbox) -> None:
    await shell(box, "kept=yes")
    result = await shell(box, "echo early; sleep 60", timeout_s=0.5)
    assert result.timed_out
    assert result.stdout == b"early\n"
    assert b"interrupted" in result.stderr
    assert result.duration_s < SOON_S
    assert (await shell(box, "echo $kept")).stdout == b"yes\n"


@SESSIONS.of_sandbox()
async def shell_timeout_kills_what_does_not_yield(box: Sandbox) -> None:
    began = time.monotonic()
    result = await shell(box, "kept=yes; while true; do setsid sleep 60; done", timeout_s=0.5)
    assert result.timed_out
    assert b"starts a new one" in result.stderr
    assert time.monotonic() - began < SOON_S
    assert (await shell(box, "echo -$kept-; ps -eo comm | grep -c sleep")).stdout == b"--\n0\n"


@SESSIONS.of_sandbox()
async def shell_takes_env_and_cwd(box: Sandbox) -> None:
    result = await shell(box, "echo $K; pwd", env={"K": "a 'b'"}, cwd="/tmp")
    assert result.stdout == b"a 'b'\n/tmp\n"


@SESSIONS.of_sandbox()
async def background_output_shows_with_the_next_command(box: Sandbox) -> None:
    await shell(box, "(sleep 0.2; echo late) & true")
    await asyncio.sleep(0.5)
    assert (await shell(box, "echo now")).stdout == b"late\nnow\n"


@SESSIONS.of_sandbox()
async def calls_to_one_session_wait_for_one_another(box: Sandbox) -> None:
    results = await asyncio.gather(*(shell(box, f"n=$((n+1)); sleep 0.05; echo {i}:$n") for i in range(4)))
    assert [result.stdout for result in results] == [b"0:1\n", b"1:2\n", b"2:3\n", b"3:4\n"]


@SESSIONS.of_sandbox()
async def python_is_an_interactive_interpreter(box: Sandbox) -> None:
    await python(box, "import os\nx = 20\ndef f(a):\n    return a + 1")
    result = await python(box, "print('out')\nf(x) * 2")
    assert (result.exit_code, result.stdout, result.stderr) == (0, b"out\n42\n", b"")
    assert (await python(box, "os.getuid(), os.getcwd(), __name__")).stdout == b"(1000, '/workspace', '__main__')\n"
    assert (await python(box, "None")).stdout == b""


@SESSIONS.of_sandbox()
async def python_errors_are_tracebacks_of_the_cell_alone(box: Sandbox) -> None:
    result = await python(box, "def g():\n    return 1 / 0\ng()")
    assert result.exit_code == 1
    text = result.stderr.decode()
    assert "ZeroDivisionError" in text
    assert "return 1 / 0" in text
    assert "zygote" not in text
    result = await python(box, "def broken(:")
    assert result.exit_code == 1
    assert b"SyntaxError" in result.stderr


@SESSIONS.of_sandbox()
async def python_survives_exit_and_pickles_its_own_classes(box: Sandbox) -> None:
    await python(box, "class P: pass\nkept = 5")
    assert (await python(box, "raise SystemExit(4)")).exit_code == 4
    assert (await python(box, "import pickle; pickle.loads(pickle.dumps(P())) is not None and kept")).stdout == b"5\n"


@SESSIONS.of_sandbox()
async def python_that_dies_says_so_and_starts_anew(box: Sandbox) -> None:
    await python(box, "v = 1")
    result = await python(box, "import os; os.kill(os.getpid(), 9)")
    assert result.signal == 9
    assert b"the python session ended (signal 9)" in result.stderr
    assert (await python(box, "'v' in globals()")).stdout == b"False\n"


@SESSIONS.of_sandbox()
async def python_timeout_interrupts_and_keeps_the_session(box: Sandbox) -> None:
    await python(box, "kept = 'yes'")
    result = await python(box, "print('early', flush=True)\nwhile True: pass", timeout_s=0.5)
    assert result.timed_out
    assert result.exit_code == 130
    assert result.stdout == b"early\n"
    assert (await python(box, "kept")).stdout == b"'yes'\n"


@SESSIONS.of_sandbox()
async def python_timeout_kills_what_does_not_yield(box: Sandbox) -> None:
    source = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    result = await python(box, source, timeout_s=0.5)
    assert result.timed_out
    assert result.signal == 9
    assert (await python(box, "1")).stdout == b"1\n"


@SESSIONS.of_sandbox()
async def python_forks_and_c_output_do_not_confuse_it(box: Sandbox) -> None:
    result = await python(
        box, "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('parent' if pid else 'child')"
    )
    assert sorted(result.stdout.split()) == [b"child", b"parent"]
    await python(box, "import ctypes; c = ctypes.CDLL(None); c.printf(b'from C %d\\n', 5)")
    assert (await python(box, "1")).stdout in (b"1\n",)
    result = await python(box, "_ = c.printf(b'again\\n')")
    assert result.stdout == b"again\n"


@SESSIONS.of_sandbox()
async def python_reads_its_own_proc_entries(box: Sandbox) -> None:
    result = await python(box, "_ = open('/dev/stdout', 'w').write('direct\\n')")
    assert (result.exit_code, result.stdout) == (0, b"direct\n")


@SESSIONS.of_sandbox()
async def the_two_sessions_are_apart(box: Sandbox) -> None:
    await shell(box, "cd /tmp")
    assert (await python(box, "import os; os.getcwd()")).stdout == b"'/workspace'\n"


@SESSIONS.of_sandbox(cases=[{"user": "root"}, {"stdin": b"x"}])
async def what_a_session_cannot_do_is_refused(box: Sandbox, bad: dict[str, Any]) -> None:
    with raises(ConfigError, match="plain exec"):
        await shell(box, "true", **bad)


@SESSIONS.of_sandbox()
async def sessions_end_with_a_kill_of_all(box: Sandbox) -> None:
    await shell(box, "v=1")
    await python(box, "v = 1")
    await box.exec("kill -9 -1", timeout_s=5)
    await asyncio.sleep(0.2)
    assert (await shell(box, "echo -$v-")).stdout == b"--\n"
    assert (await python(box, "'v' in globals()")).stdout == b"False\n"


@SESSIONS.of_sandbox()
async def a_session_step_costs_less_than_a_command_of_its_own(box: Sandbox) -> None:
    await shell(box, "true")

    async def seconds(command: Callable[[], Awaitable[object]]) -> float:
        began = time.perf_counter()
        await command()
        return time.perf_counter() - began

    steps = [await seconds(lambda: shell(box, "true")) for _ in range(50)]
    own = [await seconds(lambda: box.exec("true", timeout_s=10)) for _ in range(20)]
    # the best of each, which other work on the machine does not lengthen
    assert min(steps) < min(own), f"{min(steps)} s in a session, {min(own)} s as a command of its own"
