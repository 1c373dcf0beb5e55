"""Grading: the declared artefacts, alone, in a fresh verifier sandbox, measured by the family's verifier.

Nothing of the agent's survives but its artefacts; what is wrong with them is a failed check. Only the verifier's own
faults raise, and then there is no reward.
"""

from __future__ import annotations

import asyncio
import hashlib
import os

from metier.envs.core import (
    Check,
    Collected,
    Deadline,
    MetierError,
    SandboxBackend,
    SandboxLost,
    Verdict,
    VerifierError,
    hidden_rng,
)

from .blame import blamed
from .prepare import Prepared

_PUBLIC_DEFAULT = "metier development secret"


def hub_secret() -> bytes:
    """The hub's secret, from METIER_HUB_SECRET; development has a public default."""
    return os.environ.get("METIER_HUB_SECRET", _PUBLIC_DEFAULT).encode()


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
    try:
        await sandbox.unpack(collected.tar, "/workspace")
        async with asyncio.timeout(bound.left_s()):
            return await prepared.family.verify(sandbox, prepared.instance, hidden_rng(hub_secret(), entry.id, seed))
    except TimeoutError as error:
        raise VerifierError(str(bound.error(f"{entry.id}: verifying"))) from error
    except SandboxLost as error:
        if error.agent_caused is None:
            raise
        return floor("verifier survives", f"the artefact took the verifier's sandbox down: {error.agent_caused}")
    except MetierError:
        raise
    except Exception as error:
        raise VerifierError(f"{entry.id}: the verifier broke: {blamed(prepared.family, error)}") from error
    finally:
        await sandbox.close()
