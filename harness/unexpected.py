"""Faults of ours that no boundary foresaw: each ends one episode, typed and without a reward, and never another one."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from metier.envs.core import ClusterError, MetierError

_log = logging.getLogger(__name__)


class UnexpectedError(ClusterError):
    """A fault of ours, met by the caller's episode; the log has its traceback. It would only fail again."""


@contextmanager
def contained(what: str, kind: type[MetierError] = UnexpectedError) -> Iterator[None]:
    """What is raised inside and is no MetierError becomes one of `kind`, its traceback logged.

    Example:
        >>> from metier.envs.core import ConfigError
        >>> with contained("test/Echo-v0"):
        ...     raise ConfigError("passes as it is")
        Traceback (most recent call last):
        metier.envs.core.errors.ConfigError: passes as it is
    """
    try:
        yield
    except MetierError:
        raise
    except Exception as error:
        _log.exception("%s: unexpected", what)
        raise kind(
            f"{what}: unexpected {type(error).__name__}: {error}; please report it with the traceback in the log"
        ) from error
