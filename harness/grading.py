"""Grading: the declared artefacts, alone, in a fresh verifier sandbox, measured by the family's verifier.

Nothing of the agent's survives but its artefacts; what is wrong with them is a failed check. Only the verifier's own
faults raise, and then there is no reward.
"""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import hashlib
import os

from metier.envs.core import (
    Check,
    Collected,
    Deadline,
    Sandbox,
    SandboxBackend,
    SandboxError,
    SandboxLost,
    Verdict,
    VerifierError,
    hidden_rng,
)

from .blame import blamed
from .prepare import Prepared
from .tools.truncate import valid_text

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN})
"""What a sandbox says whose memory, disk or process limit is reached: whoever filled it did that."""
PUBLIC_DEFAULT = "metier development secret"
"""Everybody knows it: of development, and of what is exported."""


def hub_secret() -> bytes:
    """The hub's secret, from METIER_HUB_SECRET; development has a public default."""
    return os.environ.get("METIER_HUB_SECRET", PUBLIC_DEFAULT).encode()


def secret_fingerprint() -> str:
    """Names the secret in results without telling it: rows of different secrets are never compared."""
    return hashlib.sha256(b"fingerprint:" + hub_secret()).hexdigest()[:12]


def floor(name: str, evidence: str) -> Verdict:
    """The verdict of a failed gate: reward 0, not passed."""
    return Verdict(checks=(Check(name=name, score=0.0, gate=True, evidence=evidence),), passed=False)


async def grade(
    backend: SandboxBackend, prepared: Prepared, collected: Collected, *, seed: int, deadline: Deadline
) -> Verdict:
    """The verdict on what was collected.

    Raises:
        VerifierError: the verifier broke or overran `limits.verify_s`.
        SandboxError: no verifier sandbox could be had, or it was lost with no sign of the agent's doing.
    """
    entry = prepared.entry
    bound = deadline.within(entry.limits.verify_s, "limits.verify_s", entry.id)
    sandbox = await backend.acquire(entry.sandbox(verifier=True), deadline=bound)
    limit = asyncio.timeout(bound.left_s())
    try:
        async with limit:
            if (misfit := await _unpacked(sandbox, collected)) is not None:
                return misfit
            hidden = hidden_rng(hub_secret(), entry.id, seed)
            return _sound(await prepared.family.verify(sandbox, prepared.instance, hidden))
    except SandboxLost as error:
        if error.agent_caused is None:
            raise
        return floor("verifier survives", f"the artefact took the verifier's sandbox down: {error.agent_caused}")
    except (SandboxError, VerifierError):
        raise
    except Exception as error:
        if limit.expired():  # and not a time limit of the family's own
            raise VerifierError(str(bound.error(f"{entry.id}: verifying"))) from error
        raise VerifierError(f"{entry.id}: the verifier broke: {blamed(prepared.family, error)}") from error
    finally:
        await sandbox.close()


def _sound(verdict: object) -> Verdict:
    """The verdict, if it is one: nothing measured is not everything right. Raises ValueError."""
    if not (isinstance(verdict, Verdict) and verdict.checks and 0.0 <= verdict.reward <= 1.0):
        raise ValueError(f"a verdict needs one check or more and a reward in [0, 1], not {verdict!r}")
    # a name that the agent gave to a file may be no text, and a check may repeat it
    checks = [
        dataclasses.replace(check, name=valid_text(check.name), evidence=valid_text(check.evidence))
        for check in verdict.checks
    ]
    return dataclasses.replace(verdict, checks=tuple(checks))


async def _unpacked(sandbox: Sandbox, collected: Collected) -> Verdict | None:
    """Brings the artefacts in; a verdict where they need more room than there is, as sparse files in hundreds may."""
    try:
        await sandbox.unpack(collected.tar, "/workspace")
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        return floor("artefacts fit", f"the artefacts do not fit into a workspace: {error.strerror}")
    return None
