"""What a mended program is held to: right answers, no complaint of the sanitizers or of Valgrind, and the same use of
the heap as the program always made, since a fault that is padded over or never freed away is not mended."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import Check, Rng, Verdict, VerifierError
from ...parts.c_program import FUNCTIONS, Ended, Measured, Program, Rules, Run
from .fault import Names, Theme
from .project import THEMES

FLAGS = ("-std=c11", "-D_POSIX_C_SOURCE=200809L", "-g", "-no-pie")
PLAIN = ("-O0",)
CHECKED = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
MORE_CALLS, FEWER_CALLS, MORE_BYTES = 1.4, 0.6, 1.4
_STDIO = (
    "printf", "fprintf", "snprintf", "sprintf", "vprintf", "vfprintf", "vsnprintf", "puts", "putchar", "fputs",
    "fputc", "putc", "fwrite", "getchar", "fgetc", "getc", "fgets", "getline", "fread", "ungetc", "feof", "ferror",
    "fflush", "perror", "sscanf", "__isoc99_sscanf", "stdin", "stdout", "stderr", "tolower", "toupper", "isspace",
    "isdigit", "isalpha", "isalnum", "__ctype_b_loc", "__ctype_tolower_loc", "__ctype_toupper_loc", "strtok",
    "strtok_r", "strcasecmp", "strncasecmp", "exit",
)  # fmt: skip
RULES = Rules(functions=(*FUNCTIONS, *_STDIO))
_MEMCHECK = ("valgrind", "--leak-check=full", "--show-leak-kinds=all", "--log-fd={log}")
_SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99:halt_on_error=1:abort_on_error=0:symbolize=0:"
    "detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "halt_on_error=1:exitcode=98:symbolize=0",
}
_ERRORS = re.compile(r"ERROR SUMMARY: ([\d,]+) errors")
_LEFT = re.compile(r"in use at exit: ([\d,]+) bytes")
_USAGE = re.compile(r"total heap usage: ([\d,]+) allocs, [\d,]+ frees, ([\d,]+) bytes allocated")
_RUN_S = 15.0
_PLENTY = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """The inputs and what they must give."""

    quiet: tuple[str, ...]
    """Inputs that meet no fault."""
    shows: tuple[str, ...]
    """One for each fault, in their order."""
    whole: str
    """All of it, and everyday commands."""
    plenty: str
    """Many lines that meet no fault: what they take of the heap tells how it is used."""
    answers: Mapping[str, str]
    """Input → output."""


def script(theme: Theme, names: Names, fault_name: str, rng: Rng) -> list[str]:
    """Commands that bring a fault out."""
    fault = next(fault for fault in theme.faults if fault.name == fault_name)
    return fault.lines(rng, names)


def examine(truth: Mapping[str, Any], hidden: Rng) -> Exam:
    """Draw held-out inputs."""
    theme, names = THEMES[truth["theme"]], truth["names"]
    quiet = [theme.quiet(hidden.child(f"quiet {number}"), names) for number in range(2)]
    shows, rest = [], []
    for number, name in enumerate(truth["faults"]):
        drawn = [script(theme, names, name, hidden.child(f"fault {number} {again}")) for again in range(3)]
        shows.append([*drawn[0], *drawn[1]])
        rest += drawn[2]
    whole = [*rest, *theme.talk(hidden.child("talk"), names, 120)]
    plenty = [*quiet[0], *["hm"] * _PLENTY]
    inputs = {id(lines): "".join(f"{line}\n" for line in lines) for lines in [*quiet, *shows, whole, plenty]}
    answers = {inputs[id(lines)]: theme.answer(lines, names) for lines in [*quiet, *shows, whole, plenty]}
    return Exam(
        quiet=tuple(inputs[id(lines)] for lines in quiet),
        shows=tuple(inputs[id(lines)] for lines in shows),
        whole=inputs[id(whole)],
        plenty=inputs[id(plenty)],
        answers=answers,
    )


def programs(exam: Exam, right: Mapping[str, str], sources: Mapping[str, str]) -> list[Program]:
    """The right program, for its use of the heap, and the agent's on every input."""
    ours = Program(files=right, flags=(*FLAGS, *PLAIN), runs=(_memcheck(exam.whole), _memcheck(exam.plenty)))
    runs = [Run(stdin=text.encode(), seconds=_RUN_S) for text in exam.quiet]
    runs.append(_memcheck(exam.plenty))
    for text in (*exam.shows, exam.whole):
        runs += [_sanitized(text), _memcheck(text)]
    theirs = Program(
        files=sources, flags=FLAGS, runs=tuple(runs), rules=RULES, kinds={"plain": PLAIN, "checked": CHECKED}
    )
    return [ours, theirs]


def _memcheck(text: str) -> Run:
    return Run(stdin=text.encode(), under=_MEMCHECK, seconds=_RUN_S)


def _sanitized(text: str) -> Run:
    return Run(stdin=text.encode(), kind="checked", seconds=_RUN_S, environment=_SANITIZERS)


def grade(exam: Exam, ours: Measured, theirs: Measured) -> Verdict:
    """Gates for what was right and how the heap is used, one check for each fault, one for the whole.

    Raises:
        VerifierError: the right program itself is not right, or not clean.
    """
    wrong = _clean(ours.runs[0], exam.answers[exam.whole])
    used = [_heap(run) for run in ours.runs]
    if wrong or used[0] is None or used[1] is None:
        raise VerifierError(f"the right program {wrong or 'tells nothing of its heap'}")
    if theirs.failure:
        return Verdict.of(Check(name="builds", score=0.0, gate=True, evidence=theirs.failure))
    runs = list(theirs.runs)
    kept = [_answers(run, exam.answers[text]) for run, text in zip(runs, exam.quiet, strict=False)]
    at = len(exam.quiet) + 1
    checks = [
        Check(name="builds", score=1.0, gate=True),
        _check("kept", kept, gate=True),
        _check("heap", [_same_heap(_heap(runs[at - 1]), used[1])], gate=True),
    ]
    for number, text in enumerate((*exam.shows, exam.whole)):
        checked, watched = runs[at + 2 * number], runs[at + 2 * number + 1]
        said = [_answers(checked, exam.answers[text], "with the sanitizers it"), _clean(watched, exam.answers[text])]
        if text is exam.whole:
            said.append(_same_heap(_heap(watched), used[0]))
        checks.append(_check("whole" if text is exam.whole else f"fault_{number + 1}", said))
    return Verdict.of(*checks)


def _check(name: str, said: Sequence[str], *, gate: bool = False) -> Check:
    wrong = [words for words in said if words]
    return Check(name=name, score=0.0 if wrong else 1.0, gate=gate, evidence="; ".join(wrong) or "right and clean")


def _answers(run: Ended | None, expected: str, who: str = "it") -> str:
    """What is wrong with how it ended or what it printed; empty: nothing."""
    if run is None:
        return f"{who} was not run, since earlier runs did not end"
    if run.late:
        return f"{who} did not end within {_RUN_S:g} s"
    if run.code != 0:
        found = re.search(r"(ERROR: AddressSanitizer: [\w-]+|runtime error: [^\n]*)", run.stderr)
        how = f"signal {-run.code}" if run.code < 0 else f"exit code {run.code}"
        return f"{who} ended with {how}{': ' + found[1] if found else ''}"
    printed = run.stdout.decode("utf-8", "replace")
    if printed == expected:
        return ""
    lines, wanted = printed.splitlines(), expected.splitlines()
    at = next((i for i, (a, b) in enumerate(zip(lines, wanted, strict=False)) if a != b), min(len(lines), len(wanted)))
    seen = lines[at][:60] if at < len(lines) else "nothing"
    return f"{who} printed {seen!r} as line {at + 1}, not {wanted[at][:60] if at < len(wanted) else 'nothing'!r}"


def _clean(run: Ended | None, expected: str) -> str:
    if wrong := _answers(run, expected, "under Valgrind it"):
        return wrong
    assert run is not None
    errors, left = _ERRORS.search(run.log), _LEFT.search(run.log)
    if errors is None or left is None:
        return "Valgrind did not sum up"
    if _number(errors[1]) or _number(left[1]):
        kind = re.search(
            r"(Invalid \w+ of size \d+|Conditional jump[^\n]*|Use of uninit[^\n]*|Invalid free[^\n]*)", run.log
        )
        return f"Valgrind: {errors[1]} errors{' (' + kind[1] + ')' if kind else ''}, {left[1]} bytes in use at the end"
    return ""


def _heap(run: Ended | None) -> tuple[int, int] | None:
    found = _USAGE.search(run.log) if run else None
    return (_number(found[1]), _number(found[2])) if found else None


def _same_heap(seen: tuple[int, int] | None, used: tuple[int, int]) -> str:
    if seen is None:
        return "nothing is known of its heap"
    calls, size = seen
    if not FEWER_CALLS * used[0] <= calls <= MORE_CALLS * used[0]:
        return f"it allocates {calls} times where the right program does {used[0]} times"
    if size > MORE_BYTES * used[1]:
        return f"it allocates {size} bytes where the right program needs {used[1]}"
    return ""


def _number(text: str) -> int:
    return int(text.replace(",", ""))
