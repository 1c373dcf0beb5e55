"""Where an episode came from, so that `metier audit` can say which environment, image and weights it was made of."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from metier.envs.core import Json, MetierError
from metier.envs.registry import get
from metier.images import digest as image_digest

from ..grading import secret_fingerprint
from ..tools.truncate import valid_text
from .event import Provenance

HIDDEN = "(not recorded)"
_SECRET = re.compile(
    r"(api.?key|secret|password|passwd|authorization|credential|cookie|private.?key|(^|_|-)(token|key|auth))$", re.I
)


def provenance(env_id: str, *, backend: str = "", weights: str = "") -> Provenance:
    """Of an episode of `env_id` that is played here and now.

    Raises:
        ConfigError: an unknown id.
    """
    digest, image, recipe = _environment(env_id)
    return Provenance(
        environment_digest=digest,
        image=image,
        image_digest=recipe,
        backend=backend,
        hub_fingerprint=secret_fingerprint(),
        metier_version=_version(),
        commit=_commit(),
        weights=weights,
    )


@functools.cache
def _environment(env_id: str) -> tuple[str, str, str]:
    """Digest, image and the image's digest; once a process, since sources are read for it."""
    # with certification comes all that gates need, which who records need not wait for
    from ..certify.digest import environment_digest

    entry = get(env_id)
    try:
        return environment_digest(entry), entry.image, image_digest(entry.image)
    except MetierError:  # an environment of another package, whose image is not one of ours
        return "", entry.image, ""


@functools.cache
def _version() -> str:
    try:
        return version("metier")
    except PackageNotFoundError:
        return ""


@functools.cache
def _commit() -> str:
    """Of the checkout that this runs from, with a + where its files differ; empty where it is installed otherwise."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        commit, changes = (
            subprocess.run(("git", "-C", str(root), *asked), capture_output=True, text=True, check=True, timeout=10)
            for asked in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return commit.stdout.strip() + ("+" if changes.stdout else "")


def without_secrets(settings: Mapping[str, Any]) -> dict[str, Json]:
    """A policy's settings as they are recorded: what is named like a secret is not told, nor a password in a URL.

    Example:
        >>> without_secrets({"model": "m", "api_key": "abc", "url": "http://me:pw@host/v1", "max_tokens": 5})
        {'model': 'm', 'api_key': '(not recorded)', 'url': 'http://(not recorded)@host/v1', 'max_tokens': 5}
    """
    return {
        valid_text(str(name)): HIDDEN if _SECRET.search(str(name)) else _told(value) for name, value in settings.items()
    }


def _told(value: Any) -> Json:
    if isinstance(value, Mapping):
        return without_secrets(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return [_told(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, str):
        return re.sub(r"(?<=://)[^/@\s]+@", f"{HIDDEN}@", valid_text(value))
    if value is None or isinstance(value, bool | int | float):
        return value
    return valid_text(str(value))
