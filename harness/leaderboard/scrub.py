"""Secrets in what is published: texts of the shapes that known services give to their tokens are replaced, and counted.

Only shapes that hardly anything else has are looked for: this is a net below a submitter's own care. What a family made
up for its task (a false key in a repository's history) has such a shape too and is replaced as well.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

HIDDEN = "(removed: looks like a secret)"
_SHAPES = (
    r"\bsk-(?:[a-z]{2,12}-)?[A-Za-z0-9_-]{20,200}",  # model endpoints
    r"\bgh[pousr]_[A-Za-z0-9]{30,255}\b|\bgithub_pat_[A-Za-z0-9_]{40,255}\b|\bglpat-[A-Za-z0-9_-]{20,64}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bAIza[0-9A-Za-z_-]{35}\b",
    r"\bhf_[A-Za-z0-9]{30,64}\b|\bnpm_[A-Za-z0-9]{36}\b|\bpypi-[A-Za-z0-9_-]{60,400}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,255}",
    r"\b[rs]k_live_[A-Za-z0-9]{20,128}\b",
    r"\bmlb_[0-9a-f]{8}_[A-Za-z0-9_-]{43}",  # this leaderboard's own
    r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}",
    r"(?i:\bBearer )[A-Za-z0-9._~+/-]{20,4000}=*",
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s]{20,20000}-----END [A-Z ]{0,30}PRIVATE KEY-----",
)
_SECRET = re.compile("|".join(f"(?:{shape})" for shape in _SHAPES))
_PASSWORD = re.compile(r"(?<=://)[^/@\s:\"']{0,200}:[^/@\s\"']{1,200}@")
_DEEPEST = 200


class Scrubbed(NamedTuple):
    """A JSON value without secrets, and how many there were."""

    value: Any
    removed: int


def scrubbed(value: Any) -> Scrubbed:
    """The same value with every text in it, names included, free of what looks like a secret.

    Raises:
        RecursionError: it is deeper than anything of ours.

    Example:
        >>> scrubbed({"command": "curl -H 'Authorization: Bearer abcdefghijklmnopqrstuvwxyz'"})
        Scrubbed(value={'command': "curl -H 'Authorization: (removed: looks like a secret)'"}, removed=1)
    """
    return _walk(value, 0)


def _walk(value: Any, depth: int) -> Scrubbed:
    if isinstance(value, str):
        text, count = _SECRET.subn(HIDDEN, value)
        text, more = _PASSWORD.subn(f"{HIDDEN}@", text)
        return Scrubbed(text, count + more)
    if depth > _DEEPEST:
        raise RecursionError("deeper than anything of ours")
    if isinstance(value, dict):
        parts = [(_walk(str(name), depth + 1), _walk(one, depth + 1)) for name, one in value.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return Scrubbed(
            {name.value: one.value for name, one in parts}, sum(name.removed + one.removed for name, one in parts)
        )
    if isinstance(value, list):
        parts = [_walk(one, depth + 1) for one in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return Scrubbed([one.value for one in parts], sum(one.removed for one in parts))
    return Scrubbed(value, 0)
