"""What instrumented code calls. Where nobody listens, a call is a look at a module's global, and nothing is imported.

Listeners never raise into whoever is instrumented: what goes wrong in them is logged once and dropped.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from . import names
from .names import Metric

_log = logging.getLogger(__name__)
BEAT_S = 5.0
Value = str | bool | int | float | tuple[str, ...]


class Span(Protocol):
    """What an operation tells about itself while it runs."""

    def set(self, name: str, value: object) -> None:
        """An attribute; None is left out, and what is no plain value becomes its text."""
        ...


class Tracer(Protocol):
    """Listens to spans."""

    def span(self, name: str, attributes: Mapping[str, object]) -> AbstractContextManager[Span]: ...


class Meter(Protocol):
    """Listens to metrics."""

    def add(self, metric: Metric, amount: float, labels: Mapping[str, str]) -> None: ...

    def observe(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None: ...

    def set(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None: ...


class Reading(NamedTuple):
    """What something says of itself when it is asked."""

    metric: Metric
    value: float
    labels: Mapping[str, str] = {}


class Source(Protocol):
    """Something with a standing; `readings` is called from any thread."""

    def readings(self) -> Iterable[Reading]: ...


class _Silent:
    """The span that nobody listens to; one for all."""

    def set(self, name: str, value: object) -> None:
        pass

    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@dataclass(slots=True)
class _Listening:
    tracer: Tracer | None = None
    meter: Meter | None = None
    told: set[str] = field(default_factory=set[str])


_SILENT = _Silent()
_listening = _Listening()
_sources: weakref.WeakSet[Source] = weakref.WeakSet()
_gate = threading.Lock()


def span(name: str, attributes: Mapping[str, object] | None = None) -> AbstractContextManager[Span]:
    """A span around a block, below the one that this code runs in."""
    tracer = _listening.tracer
    return _SILENT if tracer is None else tracer.span(name, attributes or {})


def add(metric: Metric, amount: float = 1.0, **labels: str) -> None:
    """To a counter."""
    if (meter := _listening.meter) is not None:
        try:
            meter.add(metric, amount, labels)
        except Exception as error:
            _tell(metric, error)


def observe(metric: Metric, value: float, **labels: str) -> None:
    """One value of a histogram."""
    if (meter := _listening.meter) is not None:
        try:
            meter.observe(metric, value, labels)
        except Exception as error:
            _tell(metric, error)


def put(metric: Metric, value: float, **labels: str) -> None:
    """A gauge's value."""
    if (meter := _listening.meter) is not None:
        try:
            meter.set(metric, value, labels)
        except Exception as error:
            _tell(metric, error)


def _tell(metric: Metric, error: Exception) -> None:
    if metric.name not in _listening.told:
        _listening.told.add(metric.name)
        _log.warning("metric %s is not kept: %s: %s", metric.name, type(error).__name__, error)


def register(source: Source) -> None:
    """Ask it for its readings at each scrape, as long as it lives."""
    with _gate:
        _sources.add(source)


def readings() -> list[Reading]:
    """Of everything that is registered; what breaks while it is asked says nothing this time."""
    with _gate:
        living = list(_sources)
    found: list[Reading] = []
    for source in living:
        try:
            found += source.readings()
        except Exception as error:
            _log.debug("no readings of %s: %s", type(source).__name__, error)
    return found


@contextmanager
def listening(tracer: Tracer | None = None, meter: Meter | None = None) -> Iterator[None]:
    """Those listen meanwhile, instead of others of their kind."""
    before = _listening.tracer, _listening.meter
    _listening.tracer, _listening.meter = tracer or before[0], meter or before[1]
    try:
        yield
    finally:
        _listening.tracer, _listening.meter = before


def listen(tracer: Tracer | None) -> None:
    """From now on, or nobody any more: for a worker, whose beginning and end are no block."""
    _listening.tracer = tracer


def traced() -> bool:
    """Whether somebody listens to spans."""
    return _listening.tracer is not None


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Meanwhile this event loop says every `BEAT_S` that it is alive, to whom listens."""
    if _listening.meter is None:
        yield
        return

    async def beat() -> None:
        while True:
            put(names.HEARTBEAT, time.time())
            await asyncio.sleep(BEAT_S)

    beats = asyncio.create_task(beat())
    try:
        yield
    finally:
        beats.cancel()
        await asyncio.gather(beats, return_exceptions=True)
