"""Tokens of submitters: shown once, kept as hashes.

A token has 256 bits of randomness, so a plain SHA-256 of it tells nobody anything, and needs no salt: slow hashes are
for passwords that people choose.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

PATTERN = re.compile(r"mlb_([0-9a-f]{8})_[A-Za-z0-9_-]{43}")
ENV = "METIER_LEADERBOARD_TOKEN"


class NewToken(NamedTuple):
    """A token as it is shown, once, and as it is kept."""

    token: str
    id: str
    """Its public part, by which a maintainer names it."""
    digest: str


def new_token() -> NewToken:
    """A fresh one."""
    name = secrets.token_hex(4)
    token = f"mlb_{name}_{secrets.token_urlsafe(32)}"
    return NewToken(token, name, digest_of(token))


def digest_of(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def id_of(token: str) -> str | None:
    """The public part; None where it has not the shape of a token."""
    found = PATTERN.fullmatch(token)
    return found[1] if found else None


def same(digest: str, token: str) -> bool:
    """Whether the token has this digest, in a time that says nothing about either."""
    return hmac.compare_digest(digest, digest_of(token))
