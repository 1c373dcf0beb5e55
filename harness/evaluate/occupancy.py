"""What an episode occupies while it runs, from what its environment's certificate measured.

The certificate's envelope holds the most memory that the oracle's sandbox and the verifier's took. A policy is less
tidy than an oracle, so each counts for twice that (`SLACK`), and for no more than its limit. A certificate that has
become stale is still the best that is known: an id stands for the same instances for good. Where nothing was measured,
a sandbox counts for what it does on its host (`metier.harness.sandbox.budget`).
"""

from __future__ import annotations

from collections.abc import Sequence

from metier.envs.core import ConfigError
from metier.envs.entry import Entry
from metier.envs.registry import get
from metier.scheduler.contract import Needs

from ..certify import load
from ..sandbox.budget import IDLE_MB, shares

SLACK = 2.0
"""Of the oracle's own memory."""
POOL = "sandbox"


def episode_needs(env_id: str) -> Needs:
    """What a work item that plays one episode of `env_id` needs: a sandbox slot, and memory for agent and verifier.

    Raises:
        ConfigError: an unknown id.
    """
    entry = get(env_id)
    measured = _measured(entry)
    agent_mb = _counts_for(entry, [level.get(name, 0.0) for level in measured for name in _AGENT])
    verifier_mb = _counts_for(entry, [level.get("verify_memory_mb", 0.0) for level in measured])
    return Needs(cpus=0.0, memory_mb=agent_mb + verifier_mb, slots={POOL: 1})


_AGENT = ("agent_memory_mb", "prepare_memory_mb")
"""Preparing is over when the agent's sandbox is made."""


def _counts_for(entry: Entry, measured_mb: Sequence[float]) -> int:
    """MiB of one sandbox, by the most that was measured at any level; 0 was not measured."""
    most_mb = max(measured_mb, default=0.0)
    if most_mb == 0.0:
        return shares(entry.sandbox())[0]
    return min(entry.limits.memory_mb, max(IDLE_MB, round(most_mb * SLACK)))


def _measured(entry: Entry) -> list[dict[str, float]]:
    """The envelope of each level that was measured; none where there is no certificate that can be read."""
    try:
        certificate = load(entry)
    except ConfigError:
        return []
    return list(certificate.envelope.values()) if certificate is not None else []
