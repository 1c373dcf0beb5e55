"""Why a task of another format is not taken: a closed vocabulary, so that a dataset's refusals can be counted."""

from __future__ import annotations

from enum import StrEnum, auto

from ..core import ConfigError


class Reason(StrEnum):
    """What stands against a task. Each makes it meaningless here; what does not is a note instead."""

    DAMAGED = auto()
    """A file is missing, is no TOML or YAML, or a field is wrong."""
    UNSAFE_PATH = auto()
    """A link leads out of the task's folder, or something in it is neither file nor folder."""
    TOO_LARGE = auto()
    """More files or bytes than a task may have."""
    DIGEST = auto()
    """The dataset's manifest names another content than the folder has."""
    BASE_UNAVAILABLE = auto()
    """Its Dockerfile grows from an image that cannot be had here."""
    BUILD = auto()
    """Its Dockerfile says what our builder cannot do."""
    SERVICES = auto()
    """It needs more containers than one."""
    NETWORK = auto()
    """It names hosts that the agent or the tests must reach."""
    ACCELERATOR = auto()
    """It needs a GPU or TPU."""
    PLATFORM = auto()
    """It is for another system than Linux."""
    STEPS = auto()
    """It has several steps, each with tests of its own."""
    PARSER = auto()
    """Its verdict is read by a parser that is not carried."""


class TaskRefused(ConfigError):
    """A task that cannot be carried; `task` names it, and the message says what to do."""

    def __init__(self, reason: Reason, task: str, message: str) -> None:
        super().__init__(reason, task, message)
        self.reason = reason
        self.task = task
        self.message = message

    def __str__(self) -> str:
        return f"{self.task}: {self.message} ({self.reason})"
