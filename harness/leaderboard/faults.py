"""Why a submission, or a request, is refused: a closed set, each with its HTTP status.

ConfigError
└── Refusal          what was sent cannot be taken; nothing of it is kept
RecordError
└── StoreError       the database or the disk of the server fails; nothing half-made is left
"""

from __future__ import annotations

from enum import StrEnum, auto
from http import HTTPStatus

from metier.envs.core import ConfigError, RecordError


class Reason(StrEnum):
    """What is wrong, for programs; the message beside it is for people."""

    TOKEN_MISSING = auto()
    """No `Authorization: Bearer …`."""
    TOKEN_WRONG = auto()
    """Unknown or revoked."""
    RATE_LIMITED = auto()
    """Too many uploads of a token, or too many requests of an address."""
    BUSY = auto()
    """As many uploads run as the server takes at once."""
    WRONG_TYPE = auto()
    """The body is not declared as a tar."""
    TOO_LARGE = auto()
    """The body, or a file in it, has more bytes than the server takes."""
    TOO_MANY_FILES = auto()
    """More files than a submission may have."""
    TOO_SLOW = auto()
    """The body did not come in time."""
    CUT_OFF = auto()
    """The body ends before the archive does."""
    NO_ROOM = auto()
    """The server's disk is full."""
    ARCHIVE_FORMAT = auto()
    """Something else than a plain tar: compressed, extended, damaged."""
    ARCHIVE_PATH = auto()
    """A name that is none of a submission's: absolute, with `..`, or unknown."""
    ARCHIVE_MEMBER = auto()
    """A link, a device, a pipe, a folder, a sparse file."""
    ARCHIVE_DUPLICATE = auto()
    """A name that comes twice."""
    ABOUT = auto()
    """`about.json` is missing, or a field of it is."""
    RESULTS = auto()
    """The results folder is damaged: no JSON, wrong fields, rows of other trials."""
    SCHEMA = auto()
    """Written by another version of the harness."""
    NUMBERS = auto()
    """A number that nothing measured can have."""
    UNKNOWN_BOARD = auto()
    """The suite, or its split, is not one of this server's."""
    INCOMPLETE_PLAN = auto()
    """The plan lacks environments, levels or seeds of the split."""
    OTHER_PLAN = auto()
    """The plan has other environments, levels, seeds or options than the split."""
    OTHER_ENVIRONMENT = auto()
    """An environment's digest, or its image's, is not the server's."""
    SECRET_IN_PLAN = auto()
    """A policy's setting looks like a token."""
    MISSING_TRIALS = auto()
    """Trials of the plan have no row."""
    FOREIGN_ROWS = auto()
    """Rows of other settings than the plan's."""
    EPISODE_MISSING = auto()
    """A graded trial without its episode."""
    EPISODE_DIGEST = auto()
    """An episode that is not the one that its row names, or that no row names."""
    EPISODE_DIFFERS = auto()
    """An episode says something else than its row."""
    NOT_REPLAYABLE = auto()
    """The agent acted by itself inside the sandbox, so that no replay can confirm its episodes."""
    REWARD_DIFFERS = auto()
    """A reward is not what its checks amount to."""
    CALLS_DIFFER = auto()
    """The recorded calls are not those of the conversation."""
    TAKEN = auto()
    """Another submitter has sent the same results."""
    NOT_FOUND = auto()
    """There is no such submission, file or page."""
    BAD_REQUEST = auto()
    """The request itself makes no sense."""


_STATUS = {
    Reason.TOKEN_MISSING: HTTPStatus.UNAUTHORIZED,
    Reason.TOKEN_WRONG: HTTPStatus.UNAUTHORIZED,
    Reason.RATE_LIMITED: HTTPStatus.TOO_MANY_REQUESTS,
    Reason.BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
    Reason.WRONG_TYPE: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    Reason.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Reason.TOO_MANY_FILES: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Reason.TOO_SLOW: HTTPStatus.REQUEST_TIMEOUT,
    Reason.CUT_OFF: HTTPStatus.BAD_REQUEST,
    Reason.NO_ROOM: HTTPStatus.INSUFFICIENT_STORAGE,
    Reason.ARCHIVE_FORMAT: HTTPStatus.BAD_REQUEST,
    Reason.ARCHIVE_PATH: HTTPStatus.BAD_REQUEST,
    Reason.ARCHIVE_MEMBER: HTTPStatus.BAD_REQUEST,
    Reason.ARCHIVE_DUPLICATE: HTTPStatus.BAD_REQUEST,
    Reason.BAD_REQUEST: HTTPStatus.BAD_REQUEST,
    Reason.TAKEN: HTTPStatus.CONFLICT,
    Reason.NOT_FOUND: HTTPStatus.NOT_FOUND,
}


class Refusal(ConfigError):
    """What was sent is not taken, and nothing of it is kept; the message says what to do."""

    def __init__(self, reason: Reason, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[type[Refusal], tuple[Reason, str]]:
        return type(self), (self.reason, self.message)

    @property
    def status(self) -> int:
        """Of the answer; what is wrong with the content is 422."""
        return _STATUS.get(self.reason, HTTPStatus.UNPROCESSABLE_ENTITY).value


class StoreError(RecordError):
    """The server's database or disk fails."""
