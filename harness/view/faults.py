"""What can be wrong with what somebody asks to see."""

from __future__ import annotations

from metier.envs.core import ConfigError


class NotThere(ConfigError):
    """There is no such run, episode, picture or address."""
