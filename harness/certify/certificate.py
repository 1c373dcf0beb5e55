"""The certificate: what was tried, where and when, and what every gate found. One JSON file in the family's folder."""

from __future__ import annotations

from enum import StrEnum, auto
from typing import Literal

import pydantic

from metier.envs.core import ConfigError
from metier.envs.entry import Entry

from .digest import CERTIFICATE, environment_digest, family_folder


class Status(StrEnum):
    """What an environment's certificate is worth today."""

    VALID = auto()
    """Every gate is green, for exactly this environment."""
    STALE = auto()
    """The environment changed since."""
    RED = auto()
    """A gate failed."""
    NONE = auto()
    """There is none."""


class Finding(pydantic.BaseModel, frozen=True, extra="forbid"):
    """One thing tried: `what` says where and what, `evidence` what was seen."""

    level: int
    seed: int
    what: str
    ok: bool
    evidence: str = ""


class GateReport(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What a gate found: how many things it tried, and each that was wrong."""

    name: str
    claim: str
    green: bool
    tried: int
    reds: tuple[Finding, ...] = ()
    seconds: float
    evidence: dict[str, str] = {}
    """A sample of what was seen, by what was tried."""


class Certificate(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Valid while the environment's digest is the one it names and every gate is green."""

    schema_version: Literal[1] = 1
    env_id: str
    valid: bool
    environment_digest: str
    image: str
    image_digest: str
    backend: str
    levels: tuple[int, ...]
    seeds: tuple[int, ...]
    secret_fingerprint: str
    """Of the hub's secret that the hidden inputs came from."""
    made_at: str
    """UTC, ISO 8601."""
    envelope_s: dict[str, float]
    """Median seconds of an oracle episode: reset, tool, verify."""
    gates: tuple[GateReport, ...]


def save(entry: Entry, certificate: Certificate) -> None:
    """Write it into the family's folder."""
    path = family_folder(entry) / CERTIFICATE
    path.write_text(certificate.model_dump_json(indent=1) + "\n", encoding="utf-8")


def load(entry: Entry) -> Certificate | None:
    """The family's certificate, if it has one.

    Raises:
        ConfigError: the file is there but is no certificate.
    """
    path = family_folder(entry) / CERTIFICATE
    try:
        return Certificate.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, pydantic.ValidationError) as error:
        raise ConfigError(f"{path} is no certificate: run `metier certify {entry.id}` ({error})") from error


def certificate_status(entry: Entry) -> Status:
    """What the family's certificate is worth; a file that is no certificate counts as none."""
    try:
        certificate = load(entry)
    except ConfigError:
        return Status.NONE
    if certificate is None:
        return Status.NONE
    if certificate.environment_digest != environment_digest(entry):
        return Status.STALE
    return Status.VALID if certificate.valid else Status.RED
