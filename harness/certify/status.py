"""What a family's certificate is worth today: it vouches for one environment, by the gates of its day."""

from __future__ import annotations

from enum import StrEnum, auto

from metier.envs.core import ConfigError
from metier.envs.entry import Entry

from .certificate import Certificate, load
from .digest import environment_digest
from .gates import GATES


class Status(StrEnum):
    """What an environment's certificate is worth."""

    VALID = auto()
    """Every gate of today is green, for exactly this environment."""
    PARTIAL = auto()
    """What was tried is green, but it was not all: a gate is new or sharper since, or the run was cut short."""
    STALE = auto()
    """The environment changed since."""
    RED = auto()
    """A gate failed."""
    NONE = auto()
    """There is none."""


def certificate_status(entry: Entry) -> Status:
    """What the family's certificate is worth; a file that is no certificate counts as none."""
    try:
        certificate = load(entry)
    except ConfigError:
        return Status.NONE
    if certificate is None:
        return Status.NONE
    try:
        if certificate.environment_digest != environment_digest(entry):
            return Status.STALE
    except (ConfigError, SyntaxError):
        return Status.STALE  # its image or its source cannot be read any more
    if not certificate.green:
        return Status.RED
    return Status.VALID if certificate.valid and not missing_gates(certificate) else Status.PARTIAL


def missing_gates(certificate: Certificate) -> list[str]:
    """Today's gates that it does not have, or has in an older version."""
    versions = {report.name: report.version for report in certificate.gates}
    return [gate.name for gate in GATES if versions.get(gate.name, 0) < gate.version]
