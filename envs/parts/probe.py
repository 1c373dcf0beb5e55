"""Measure inside a verifier sandbox: run our Python there, and take its answer back under a nonce.

A probe that only *reads* artefacts runs as root, so that nothing of the agent's is trusted. A probe that *runs* the
agent's program runs as the agent (`user="agent"`): its output may then be forged by that program, so such a probe
returns what the program computed from hidden inputs, and the host compares; the expected values never enter the
sandbox.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from ..core import ExecResult, Json, Sandbox, User, VerifierError

_FRAME = """\
import json as _json, sys as _sys
def _answer(value, _out=_sys.stdout):
    _out.write("\\n%s " + _json.dumps(value) + "\\n"); _out.flush()
payload = _json.loads(_sys.stdin.read())
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What a probe answered, or why it did not: `value` is None and `failure` says what happened."""

    value: Json
    failure: str = ""


async def run_probe(
    sandbox: Sandbox, source: str, payload: Json, *, timeout_s: float, user: User = "root", output_kib: int = 4096
) -> ProbeResult:
    """Run Python `source` in the sandbox; it finds `payload`, and calls `_answer(value)` once with JSON.

    Imports nothing from /workspace by itself (`python3 -I`). Only the last line with this call's nonce counts.

    Raises:
        VerifierError: a probe run as root broke by itself, without a bad artefact as its cause; a root probe must catch
            what a bad artefact can raise and answer with it.
    """
    nonce = secrets.token_hex(16)
    result = await sandbox.exec(
        ["python3", "-I", "-c", _FRAME % nonce + source],
        stdin=json.dumps(payload).encode(),
        timeout_s=timeout_s,
        user=user,
        output_kib=output_kib,
    )
    value, found = _answer_of(result, nonce)
    if found:
        return ProbeResult(value=value)
    failure = _why(result, timeout_s)
    if user == "root" and not result.timed_out and not result.oom_killed and result.exit_code == 1:
        raise VerifierError(f"a probe broke: {failure}")
    return ProbeResult(value=None, failure=failure)


def _answer_of(result: ExecResult, nonce: str) -> tuple[Json, bool]:
    for line in reversed(result.stdout.decode("utf-8", "replace").splitlines()):
        if line.startswith(nonce + " "):
            try:
                return json.loads(line[len(nonce) + 1 :]), True
            except (ValueError, RecursionError):  # the agent's program may have printed it, as deep as it likes
                return None, False
    return None, False


def _why(result: ExecResult, timeout_s: float) -> str:
    if result.timed_out:
        return f"did not end within {timeout_s:g} s"
    if result.oom_killed:
        return "was killed for its memory"
    ended = f"exit code {result.exit_code}" if result.signal is None else f"signal {result.signal}"
    tail = result.stderr.decode("utf-8", "replace").strip().splitlines()[-3:]
    return f"ended with {ended} and no answer: {' | '.join(tail)[:400]}"
