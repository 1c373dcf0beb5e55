"""A command's telemetry: metrics on a port, spans to a collector or a file, while it runs, with a word about each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rich.console import Console


@dataclass(frozen=True, slots=True)
class Observing:
    """Who is told, if anybody."""

    console: Console
    metrics_port: int | None = None
    traces: str | None = None
    """Besides what the environment names."""

    @contextmanager
    def on(self) -> Iterator[None]:
        """Metrics are served and spans exported meanwhile.

        Raises:
            ConfigError: the extra `telemetry` is not installed, the port is taken, or the target cannot be used.
        """
        with ExitStack() as stack:
            if self.metrics_port is not None:
                from metier.harness.telemetry.metrics import serving

                self._say(f"metrics: {stack.enter_context(serving(self.metrics_port))}")
            if self._traced():
                from metier.harness.telemetry.logs import clean
                from metier.harness.telemetry.tracing import exporting

                if (target := stack.enter_context(exporting(self.traces))) is not None:
                    self._say(f"traces: {clean(target)}")
            yield

    def _traced(self) -> bool:
        return bool(self.traces or os.environ.get("METIER_TRACES")) or any(
            name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ
        )

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
