"""The listener for metrics: counts in this process, and serves them to Prometheus.

Labels are bounded whatever they are given: a value that is in no vocabulary, looks like none of its label, or comes
after `MOST_VALUES` others, is counted as `other`. So no sandbox, episode or model can make a series of its own.
"""

from __future__ import annotations

import shutil
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from metier.envs.core import ConfigError
from metier.images import cache_dir

from ..record.extras import need
from . import names, signals
from .names import METRICS, MOST_VALUES, OTHER, PATTERNS, VOCABULARIES, Kind, Metric


class Labels:
    """The values that each label has had, and may have."""

    def __init__(self) -> None:
        self._seen: defaultdict[str, set[str]] = defaultdict(set)

    def bounded(self, label: str, value: str) -> str:
        """The value, or `OTHER`.

        Example:
            >>> Labels().bounded("backend", "docker"), Labels().bounded("backend", "metier-5e0f3a")
            ('docker', 'other')
        """
        if label in VOCABULARIES:
            return value if value in VOCABULARIES[label] else OTHER
        if not PATTERNS[label].fullmatch(value):
            return OTHER
        seen = self._seen[label]
        if value not in seen:
            if len(seen) >= MOST_VALUES:
                return OTHER
            seen.add(value)
        return value


class Metrics:
    """All metrics of this process. Implements `signals.Meter`, and a collector of Prometheus's client."""

    def __init__(self) -> None:
        """Raises ConfigError where the client is not installed."""
        self._client = need("prometheus_client", "a metrics endpoint", "telemetry")
        self._families = need("prometheus_client.core", "a metrics endpoint", "telemetry")
        self.registry: Any = self._client.CollectorRegistry()
        self._labels = Labels()
        self._made = {
            name: self._make(metric)
            for name, metric in METRICS.items()
            if name not in _ASKED and metric.kind is not Kind.GAUGE  # of which none is told before it is set
        }
        self._making = threading.Lock()
        self.registry.register(self)

    def _make(self, metric: Metric) -> Any:
        arguments = (metric.name, metric.text, metric.labels)
        match metric.kind:
            case Kind.COUNTER:
                return self._client.Counter(*arguments, registry=self.registry)
            case Kind.GAUGE:
                return self._client.Gauge(*arguments, registry=self.registry)
            case Kind.HISTOGRAM:
                return self._client.Histogram(*arguments, registry=self.registry, buckets=metric.buckets)

    def _of(self, metric: Metric, labels: Mapping[str, str]) -> Any:
        if metric.name not in self._made:
            with self._making:
                if metric.name not in self._made:
                    self._made[metric.name] = self._make(metric)
        made = self._made[metric.name]
        if not metric.labels:
            return made
        return made.labels(*(self._labels.bounded(label, str(labels[label])) for label in metric.labels))

    def add(self, metric: Metric, amount: float, labels: Mapping[str, str]) -> None:
        self._of(metric, labels).inc(amount)

    def observe(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        self._of(metric, labels).observe(value)

    def set(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        self._of(metric, labels).set(value)

    def describe(self) -> list[Any]:
        """To the registry: nothing is known before it is asked."""
        return []

    def collect(self) -> Iterator[Any]:
        """What is asked for at each scrape: readings of what stands, those of one kind added up."""
        sums: defaultdict[str, defaultdict[tuple[str, ...], float]] = defaultdict(lambda: defaultdict(float))
        for reading in [*signals.readings(), *_disk()]:
            metric = reading.metric
            key = tuple(self._labels.bounded(label, reading.labels[label]) for label in metric.labels)
            if metric in _LARGEST:
                sums[metric.name][key] = max(sums[metric.name][key], reading.value)
            else:
                sums[metric.name][key] += reading.value
        for name, values in sorted(sums.items()):
            metric = METRICS[name]
            family = self._families.CounterMetricFamily
            if metric.kind is not Kind.COUNTER:
                family = self._families.GaugeMetricFamily
            made = family(name, metric.text, labels=metric.labels)
            for key, value in values.items():
                made.add_metric(key, value)
            yield made

    def text(self) -> str:
        """As Prometheus reads it."""
        return self._client.generate_latest(self.registry).decode()


_STANDING = (
    names.RUNNING,
    names.LEASED,
    names.WARM,
    names.REMOVING,
    names.QUEUE_LAG,
    names.QUEUE_OLDEST,
    names.OUTBOX_BYTES,
    names.UPLOADS_FAILED,
    names.DROPPED_LOGS,
    names.DEAD_LETTERS,
    names.DISK_FREE,
    names.DISK_SIZE,
)
_ASKED = frozenset(metric.name for metric in _STANDING)
"""Those that a `Source` says."""
_LARGEST = (names.QUEUE_OLDEST,)
"""Of these, the largest counts, and not the sum."""


def _disk() -> Iterable[signals.Reading]:
    place = cache_dir()
    while not place.exists():
        place = place.parent
    usage = shutil.disk_usage(place)
    return (
        signals.Reading(names.DISK_FREE, float(usage.free)),
        signals.Reading(names.DISK_SIZE, float(usage.total)),
    )


@contextmanager
def serving(port: int, *, host: str = "127.0.0.1") -> Iterator[str]:
    """Metrics are kept and served meanwhile; gives the address. Port 0 takes a free one.

    Raises:
        ConfigError: the client is not installed, or the port is taken.
    """
    metrics = Metrics()
    try:
        server, thread = metrics._client.start_http_server(port, addr=host, registry=metrics.registry)
    except OSError as error:
        raise ConfigError(
            f"metrics cannot be served on {host} port {port}: {error.strerror or error}; give another --metrics-port"
        ) from error
    try:
        with signals.listening(meter=metrics):
            yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
