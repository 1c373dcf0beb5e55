"""The executors by name: each a lazy entry point, so that nobody imports Ray without asking for it."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from metier.envs.core import ConfigError

from .contract import Executor

EXECUTORS: Mapping[str, str] = {
    "local": "metier.scheduler.local_executor:LocalExecutor",
    "ray": "metier.scheduler.ray_executor:RayExecutor",
}


def open_executor(name: str, **settings: Any) -> Executor:
    """The executor of that name with its own settings; use it as an async context manager.

    Raises:
        ConfigError: unknown name or setting, or a package that is not installed.
    """
    if name not in EXECUTORS:
        near = difflib.get_close_matches(name, EXECUTORS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"unknown executor {name!r}: choose one of {', '.join(EXECUTORS)}{hint}")
    module_name, _, class_name = EXECUTORS[name].partition(":")
    try:
        return getattr(importlib.import_module(module_name), class_name)(**settings)
    except ImportError as error:
        raise ConfigError(f"executor {name!r} needs a package that is missing: pip install 'metier[{name}]'") from error
    except TypeError as error:
        raise ConfigError(f"executor {name!r}: {error}") from error
