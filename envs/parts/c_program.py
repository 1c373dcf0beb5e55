"""Build C programs in a verifier sandbox and run them, bare or under Valgrind: what came of it, judged by no one here.

Trusted programs (a reference, say) and the agent's are measured by one probe on one machine. The agent's sources are
judged after preprocessing (no inline assembly, no pragma or attribute that bends a build, no function outside the
allowed ones), and every build is made of that same text, so that it cannot be told which one runs. Anything wrong with
them is a `failure` in words. What callers expect stays on the host.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any

from ..core import Sandbox, VerifierError
from .probe import run_probe

FUNCTIONS = (
    "malloc", "calloc", "realloc", "free", "memcpy", "memmove", "memset", "memcmp", "memchr", "strlen", "strcmp",
    "strncmp", "strcpy", "strncpy", "strcat", "strncat", "strchr", "strrchr", "strstr", "strdup", "strndup", "strspn",
    "strcspn", "strpbrk", "strtol", "strtoul", "strtoll", "strtoull", "atoi", "qsort", "bsearch", "abs", "labs",
    "__assert_fail", "__stack_chk_fail", "abort",
)  # fmt: skip
"""What any of the agent's C may call."""
ATTRIBUTES = (
    "aligned", "always_inline", "assume_aligned", "cold", "const", "fallthrough", "flatten", "format", "gnu_inline",
    "hot", "inline", "leaf", "malloc", "may_alias", "noinline", "nonnull", "noreturn", "nothrow", "packed", "printf",
    "pure", "returns_nonnull", "unused", "used", "vector_size", "warn_unused_result", "attribute", "sizeof", "unsigned",
    "int", "char", "long",
)  # fmt: skip
PRAGMAS = ("GCC unroll", "GCC ivdep", "GCC diagnostic")
PREFIXES = (
    "__asan", "__lsan", "__ubsan", "__sanitizer", "__msan", "__tsan", "__builtin_ia32_rd", "__builtin_return_address",
    "__builtin_frame_address", "__builtin_setjmp", "__builtin_longjmp", "__builtin_apply",
)  # fmt: skip
_TOLD = "c_program_probe.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the agent's own sources may hold."""

    functions: tuple[str, ...] = FUNCTIONS
    """Of the C library."""
    ours: tuple[str, ...] = ()
    """Of the sources that are not the agent's."""
    attributes: tuple[str, ...] = ATTRIBUTES
    pragmas: tuple[str, ...] = PRAGMAS
    prefixes: tuple[str, ...] = PREFIXES


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One process: `under` goes before the program, where {log} is a descriptor for Valgrind's own words."""

    stdin: bytes
    under: tuple[str, ...] = ()
    kind: str = "plain"
    seconds: float = 20.0
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Sources by name (relative paths), how to compile them, and what to run."""

    files: Mapping[str, str]
    flags: tuple[str, ...]
    runs: tuple[Run, ...]
    rules: Rules | None = None
    """None: a program of our own, which no rule binds."""
    pristine: tuple[str, ...] = ()
    """Those of `files` that are not the agent's, in a program of the agent's."""
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"plain": ()})
    """Build → further flags."""
    build_s: float = 20.0
    give_up: int = 2
    """After so many runs that did not end, the others are not tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How one run ended: the exit code, or minus the signal."""

    code: int
    late: bool
    stdout: bytes
    stderr: str
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The runs of one program in order (None: not tried), or why there are none."""

    runs: tuple[Ended | None, ...]
    failure: str = ""


async def measure(sandbox: Sandbox, programs: Sequence[Program], *, timeout_s: float) -> list[Measured]:
    """Build and run each program, trusted ones best first; all in one probe.

    Raises:
        VerifierError: a program of our own does not build, the probe broke, or the machine is overloaded.
    """
    # the probe runs as root and takes the agent's rights on for what is the agent's: the sandbox must know of that
    await sandbox.exec(["true"], user="agent", timeout_s=10)
    source = files(__package__ or "").joinpath(_TOLD).read_text()
    payload: Any = {"programs": [_told(program) for program in programs]}
    result = await run_probe(sandbox, source, payload, timeout_s=timeout_s, output_kib=8192)
    if not isinstance(result.value, list):
        if all(program.rules is None for program in programs):
            raise VerifierError(f"measuring programs of our own {result.failure}")
        await _require_our_own(sandbox, source, programs, timeout_s=timeout_s / 2)
        return [Measured(runs=(), failure=f"measuring it {result.failure}") for _ in programs]
    answers: Any = result.value
    measured = [_read(answer) for answer in answers]
    for program, one in zip(programs, measured, strict=True):
        if program.rules is None and one.failure:
            raise VerifierError(f"a program of our own does not build: {one.failure}")
    return measured


async def _require_our_own(sandbox: Sandbox, source: str, programs: Sequence[Program], *, timeout_s: float) -> None:
    """A control: ours alone in half the time, or the machine is overloaded and nobody's program is to blame."""
    payload: Any = {"programs": [_told(program) for program in programs if program.rules is None]}
    control = await run_probe(sandbox, source, payload, timeout_s=timeout_s)
    if not isinstance(control.value, list):
        raise VerifierError(f"our own programs alone {control.failure}: the machine is overloaded")


async def read_sources(sandbox: Sandbox, paths: Sequence[str], *, max_bytes: int) -> dict[str, str] | str:
    """The agent's sources under /workspace as text, or what is wrong with them."""
    texts: dict[str, str] = {}
    for path in paths:
        try:
            texts[path] = (await sandbox.read(f"/workspace/{path}", max_bytes=max_bytes)).decode()
        except ConnectionError:
            raise
        except UnicodeDecodeError:
            return f"{path} is no UTF-8 text"
        except (OSError, ValueError) as error:
            return f"{path} cannot be read: {error}"
        if "\0" in texts[path]:
            return f"{path} holds a zero byte"
    return texts


def _told(program: Program) -> dict[str, Any]:
    runs = [{**asdict(run), "stdin": base64.b64encode(run.stdin).decode()} for run in program.runs]
    return {**asdict(program), "runs": runs}


def _read(answer: dict[str, Any]) -> Measured:
    runs = tuple(
        None if run is None else Ended(**{**run, "stdout": base64.b64decode(run["stdout"])}) for run in answer["runs"]
    )
    return Measured(runs=runs, failure=answer["failure"])
