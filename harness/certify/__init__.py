"""Certification: proof that an environment's reward can be trusted."""

from .certificate import Certificate, Finding, GateReport, attach_rates, load, save
from .digest import environment_digest
from .rates import SolveRate, read_rates
from .run import FIRST_SEED, certify, certify_all
from .status import Status, certificate_status

__all__ = [
    "FIRST_SEED",
    "Certificate",
    "Finding",
    "GateReport",
    "SolveRate",
    "Status",
    "attach_rates",
    "certificate_status",
    "certify",
    "certify_all",
    "environment_digest",
    "load",
    "read_rates",
    "save",
]
