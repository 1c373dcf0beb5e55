"""Parts that are installed only where records are wanted: imported here, at first use, or named with their extra."""

from __future__ import annotations

import importlib
from typing import Any

from metier.envs.core import ConfigError


def need(module: str, what: str, extra: str = "records") -> Any:
    """The module `module`, which `what` needs.

    Raises:
        ConfigError: it is not installed; the message names the extra.

    Example:
        >>> need("no_such_module", "a store on Mars")
        Traceback (most recent call last):
        metier.envs.core.errors.ConfigError: a store on Mars needs no_such_module: pip install 'metier[records]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).partition(".")[0]
        raise ConfigError(f"{what} needs {missing}: pip install 'metier[{extra}]'") from error
