"""The API key: read from the environment where it is used, and kept out of everything that is recorded."""

from __future__ import annotations

import json
import os
from typing import Any

from metier.envs.core import ConfigError

from .settings import OpenAISettings

HIDDEN = "[the API key]"
_SHORTEST = 8
"""A shorter key, such as the `EMPTY` of a local server, is no secret and may be a word of the answer."""


def api_key(settings: OpenAISettings) -> str:
    """The key; empty where none is wanted.

    Raises:
        ConfigError: The variable is not set, or holds what no header can carry. The message does not show it.
    """
    name = settings.key_env
    if name is None:
        return ""
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigError(f"{settings.model} at {settings.url} needs an API key: set the environment variable {name}")
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"the environment variable {name} holds no API key: it has characters no header can carry")
    return key


def headers(settings: OpenAISettings, key: str) -> dict[str, str]:
    """Of a request."""
    made = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **settings.headers}
    if key:
        bearer = settings.api_key_header.lower() == "authorization"
        made[settings.api_key_header] = f"Bearer {key}" if bearer else key
    return made


def scrubbed(text: str, key: str) -> str:
    """A text without the key: vendors repeat it in their errors."""
    return text.replace(key, HIDDEN) if len(key) >= _SHORTEST else text


def scrubbed_json(value: Any, key: str) -> Any:
    """A JSON value without the key, which a model may have been shown by its endpoint."""
    if len(key) < _SHORTEST:
        return value
    written = json.dumps(value)
    inside = json.dumps(key)[1:-1]
    return json.loads(written.replace(inside, HIDDEN)) if inside in written else value
