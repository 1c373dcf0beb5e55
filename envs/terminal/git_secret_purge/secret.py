"""Secrets, the forms they take in a repository, and what a purge puts in their place.

`redacted` is the whole specification of a right purge of bytes: every form of every secret becomes the mark, and
nothing else changes. It is idempotent, so a half-purged repository redacts to the same bytes as the original.
"""

from __future__ import annotations

import base64
import binascii
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MARK = "***REMOVED***"
_WORD = re.compile(rb"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{16,}={0,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """What must go: some secrets as text, and some files under all the names they had."""

    secrets: Mapping[str, str]
    """What it is → the secret."""
    paths: tuple[str, ...] = ()
    marker: str = ""
    """Bytes, as Latin-1 text, that are in every version of those files and nowhere else."""


def percent(secret: str) -> bytes:
    """As it stands in a URL."""
    return urllib.parse.quote(secret, safe="").encode()


def redacted(data: bytes, secrets: Sequence[str]) -> bytes:
    """Without any form of the secrets."""
    for secret in secrets:
        data = data.replace(secret.encode("utf-16-le"), MARK.encode("utf-16-le"))
    data = _WORD.sub(lambda match: MARK.encode() if _hides(match[0], secrets) else match[0], data)
    for secret in secrets:
        for form in (percent(secret), secret.encode()):
            data = data.replace(form, MARK.encode())
    return data


def _hides(word: bytes, secrets: Sequence[str]) -> bool:
    """Whether a base64 word decodes to something with a secret in it."""
    try:
        plain = base64.b64decode(word, validate=True)
    except binascii.Error:
        return False
    return any(secret.encode() in plain for secret in secrets)


def holds(data: bytes, secret: str) -> bool:
    """Whether any form of the secret is in `data`, also in forms that no instance has."""
    forms = [secret.encode(), percent(secret), percent(secret).lower(), secret.encode("utf-16-le")]
    forms += [secret.encode("utf-16-be"), secret.encode()[::-1], secret.encode().hex().encode()]
    for offset in range(3):
        text = base64.b64encode(b"\0" * offset + secret.encode()).rstrip(b"=")
        # the first and last letters depend on what stands beside it
        forms.append(text[(0, 2, 3)[offset] : -1])
    return any(form in data for form in forms)
