"""What can be wrong with a results folder.

ConfigError
└── ResultsError          what is there cannot be used; nothing of it was changed
    ├── ResultsInUse      another process writes into it
    └── ResultsSchema     written by another version of the harness
RecordError
└── ResultsNotKept        a result could not be written; what was written before it is whole
"""

from __future__ import annotations

from metier.envs.core import ConfigError, RecordError


class ResultsError(ConfigError):
    """The folder, or a file of it, cannot be used; nothing of it was changed."""


class ResultsInUse(ResultsError):
    """Another process writes into the folder."""


class ResultsSchema(ResultsError):
    """The folder was written by another version of the harness."""


class ResultsNotKept(RecordError):
    """A result could not be written; all before it are whole, and the same command goes on after them."""


def another_schema(where: str, theirs: int, ours: int) -> ResultsSchema:
    """The error of what another version wrote."""
    return ResultsSchema(
        f"{where} has schema version {theirs} and this harness reads {ours}: read it with the metier that wrote it, or "
        f"evaluate into a new folder"
    )
