"""The certificate: what was tried, where and when, and what every gate found. One JSON file in the family's folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

import pydantic

from metier.envs.core import ConfigError, RecordError
from metier.envs.entry import Entry

from .digest import CERTIFICATE, family_folder
from .rates import SolveRate, merged


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
    version: int = 1
    """Of the gate, not of what it looked at."""
    claim: str
    green: bool
    tried: int
    reds: tuple[Finding, ...] = ()
    seconds: float
    evidence: dict[str, str] = {}
    """A sample of what was seen, by what was tried."""


class Certificate(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Valid while the environment's digest is the one it names, every gate is green, and no gate is newer."""

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
    """Median seconds of an oracle's and a no-op's episode: reset, tool, verify."""
    envelope: dict[str, dict[str, float]] = {}
    """Level → what one instance takes, by name and unit; a memory of 0 was not measured."""
    gates: tuple[GateReport, ...]
    solve_rates: tuple[SolveRate, ...] = ()
    """What was attached later; no part of what the certificate vouches for."""

    @property
    def green(self) -> bool:
        """Whether nothing that was tried is red; `valid` also means that everything was tried."""
        return all(report.green for report in self.gates)


def save(entry: Entry, certificate: Certificate) -> None:
    """Write it into the family's folder, whole or not at all.

    Raises:
        RecordError: it cannot be written there; what was there before stays.
    """
    path = family_folder(entry) / CERTIFICATE
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(certificate.model_dump_json(indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise RecordError(f"{path} cannot be written: {error}; make room, or the folder writable") from error


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


def attach_rates(entry: Entry, rates: Iterable[SolveRate]) -> Certificate:
    """Write `rates` into the family's certificate, which is worth afterwards what it was worth before.

    Raises:
        ConfigError: a level that it has not, or no certificate to attach them to.
        RecordError: it cannot be written.
    """
    rates = list(rates)
    for rate in rates:
        entry.check_level(rate.level)
    certificate = load(entry)
    if certificate is None:
        raise ConfigError(f"{entry.id} has no certificate to attach solve rates to: run `metier certify {entry.id}`")
    certificate = certificate.model_copy(update={"solve_rates": merged(certificate.solve_rates, rates)})
    save(entry, certificate)
    return certificate
