"""Another clock for code under test: the wall clock that it reads, and nobody else's.

`install` puts readers into `time` and `datetime` that add a shift; the shift is a context variable, 0 by default, so
that only tasks inside `at(moment)` see another day while everything of ours around them goes on by the real one.
Monotonic clocks are left alone. Standard library only and no import of ours: the source is also put in front of Python
probes, in sandboxes where nobody may set the clock.
"""

from __future__ import annotations

import contextlib
import contextvars
import datetime
import sys
import time
from collections.abc import Iterator
from typing import Any

_shift_s: contextvars.ContextVar[float] = contextvars.ContextVar("_shift_s", default=0.0)
_real_time = time.time
_real_datetime = datetime.datetime
_NOW_BY_DEFAULT = ("localtime", "gmtime", "ctime")
"""Functions of `time` that take seconds, and mean now without them."""


class _Datetime(type):
    def __instancecheck__(cls, instance: object) -> bool:
        if cls is MovedDatetime:
            return isinstance(instance, _real_datetime)
        return super().__instancecheck__(instance)


class MovedDatetime(_real_datetime, metaclass=_Datetime):
    """Makes real datetimes, of which only now is moved; a class derived from it, as Arelle's, makes its own."""

    def __new__(cls, *parts: Any, **named: Any) -> Any:
        if cls is MovedDatetime:
            return _real_datetime(*parts, **named)
        return super().__new__(cls, *parts, **named)

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        kind = _real_datetime if cls is MovedDatetime else cls
        return kind.fromtimestamp(_real_time() + _shift_s.get(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(datetime.UTC).replace(tzinfo=None)


def _of_seconds(real: Any) -> Any:
    return lambda seconds=None: real(_real_time() + _shift_s.get() if seconds is None else seconds)


def _readers() -> dict[str, Any]:
    """The functions of `time` that read the wall clock, moved."""
    readers: dict[str, Any] = {
        "time": lambda: _real_time() + _shift_s.get(),
        "time_ns": lambda real=time.time_ns: real() + int(_shift_s.get() * 1e9),
    }
    readers.update({name: _of_seconds(getattr(time, name)) for name in _NOW_BY_DEFAULT})
    moved = readers["localtime"]
    readers["strftime"] = lambda form, when=None, real=time.strftime: real(form, when or moved())
    readers["asctime"] = lambda when=None, real=time.asctime: real(when or moved())
    return readers


def install(packages: tuple[str, ...] = ()) -> list[tuple[Any, str, Any]]:
    """Put the readers in place, also where modules of `packages` hold the real ones; gives what `remove` takes."""
    moved = {id(getattr(time, name)): reader for name, reader in _readers().items()}
    moved[id(_real_datetime)] = MovedDatetime
    holders = [
        module
        for name, module in list(sys.modules.items())
        if module is not None and any(name == package or name.startswith(package + ".") for package in packages)
    ]
    replaced: list[tuple[Any, str, Any]] = []
    for module in (time, datetime, *holders):
        for name, value in list(vars(module).items()):
            if id(value) in moved:
                replaced.append((module, name, value))
                setattr(module, name, moved[id(value)])
    return replaced


def remove(replaced: list[tuple[Any, str, Any]]) -> None:
    """Undo `install`."""
    for module, name, value in replaced:
        setattr(module, name, value)


def move_for_good(moment: float) -> None:
    """From here on this whole process lives at `moment`, seconds since 1970; for a process of its own."""
    install()
    _shift_s.set(moment - _real_time())


@contextlib.contextmanager
def at(moment: float | None) -> Iterator[None]:
    """Inside, this task and those it starts live at `moment`; None is the real time."""
    token = _shift_s.set(0.0 if moment is None else moment - _real_time())
    try:
        yield
    finally:
        _shift_s.reset(token)
