"""The listener for spans: OpenTelemetry's SDK with a provider of our own, which nobody else's spans go to.

A root span has the trace id that its episode has in the records (`identity`). Spans go to a collector over OTLP, or as
lines of OTLP's JSON into a file. They carry ids, sizes and times, never what was said: no prompt, argument or output.
An exporter that cannot reach anybody drops spans and says so in the log; no episode waits for one.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from metier.envs.core import ConfigError

from ..record.extras import need
from . import names, signals
from .identity import trace_id

ASKED = "METIER_TRACES"
"""The environment variable with the target, for workers too."""
_STANDARD = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORT_S = 5.0
_MESSAGE_CHARACTERS = 200


def _sdk(name: str) -> Any:
    return need(f"opentelemetry.{name}", "tracing", "telemetry")


class _Span:
    def __init__(self, span: Any) -> None:
        self._span = span

    def set(self, name: str, value: object) -> None:
        if value is not None:
            self._span.set_attribute(name, _plain(value))


def _plain(value: object) -> signals.Value:
    if isinstance(value, str):
        return str(value)  # a StrEnum's value
    if isinstance(value, bool | int | float):
        return value if not isinstance(value, int) or abs(value) < 2**63 else str(value)
    if isinstance(value, tuple):
        return tuple(str(one) for one in cast("tuple[object, ...]", value))
    return str(value)


class Tracing:
    """Implements `signals.Tracer`; made for an exporter of OpenTelemetry's kind. Close it."""

    def __init__(self, exporter: Any, *, at_once: bool = False) -> None:
        """`at_once` exports each span as it ends, in the thread that ended it: for tests."""
        trace, export = _sdk("sdk.trace"), _sdk("sdk.trace.export")
        resource = _sdk("sdk.resources").Resource.create(
            {"service.name": os.environ.get("OTEL_SERVICE_NAME", "metier")}
        )
        self._api = _sdk("trace")
        self._provider = trace.TracerProvider(resource=resource, id_generator=_ids(), shutdown_on_exit=False)
        processor = export.SimpleSpanProcessor if at_once else export.BatchSpanProcessor
        self._provider.add_span_processor(processor(exporter))
        self._tracer = self._provider.get_tracer("metier", schema_url=names.SCHEMA_URL)
        self._kinds = {
            names.TURN_SPAN: self._api.SpanKind.CLIENT,
            names.EPISODE: self._api.SpanKind.INTERNAL,
        }

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, object]) -> Iterator[signals.Span]:
        """See `signals.span`. An error that leaves the block is the span's error, by its class and a few words."""
        with self._tracer.start_as_current_span(
            name,
            kind=self._kinds.get(name.partition(" ")[0], self._api.SpanKind.INTERNAL),
            attributes={key: _plain(value) for key, value in attributes.items() if value is not None},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield _Span(span)
            except BaseException as error:
                span.set_attribute(names.ERROR, type(error).__name__)
                span.set_status(self._api.Status(self._api.StatusCode.ERROR, _words(error)))
                raise

    def close(self) -> None:
        """Export what waits, for at most some seconds; idempotent."""
        self._provider.shutdown()


def _words(error: BaseException) -> str:
    from .logs import clean

    return clean(str(error))[:_MESSAGE_CHARACTERS]


def _ids() -> Any:
    """Ids for spans, where a root's trace is the episode's."""

    class Ids(_sdk("sdk.trace.id_generator").RandomIdGenerator):
        def generate_trace_id(self) -> int:
            given = trace_id()
            return int(given, 16) if given else super().generate_trace_id()

    return Ids()


def exporter_for(target: str) -> Any:
    """An exporter to `http(s)://…` (OTLP; `/v1/traces` is added where there is no path), or to a file.

    Empty: to what OpenTelemetry's own variables name.

    Raises:
        ConfigError: not installed, or a file that cannot be written.
    """
    if target.startswith(("http://", "https://")) or not target:
        otlp = need("opentelemetry.exporter.otlp.proto.http.trace_exporter", "tracing", "telemetry")
        if not target:
            return otlp.OTLPSpanExporter()
        path = target.partition("://")[2].partition("/")[2]
        return otlp.OTLPSpanExporter(endpoint=target if path else f"{target.rstrip('/')}/v1/traces", timeout=_EXPORT_S)
    if "://" in target:
        raise ConfigError(f"traces go to http://…, https://… or a file, not to {target!r}")
    return _file_exporter(Path(target))


def _file_exporter(path: Path) -> Any:
    """A line for each batch, as the collector's `otlpjsonfile` receiver reads it; several processes may share it."""
    export = _sdk("sdk.trace.export")
    encode = need("opentelemetry.exporter.otlp.proto.common.trace_encoder", "tracing", "telemetry").encode_spans
    as_dict = need("google.protobuf.json_format", "tracing", "telemetry").MessageToDict
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise ConfigError(
            f"traces cannot be written to {path}: {error.strerror or error}; name another file"
        ) from error

    class Lines(export.SpanExporter):
        def export(self, spans: Sequence[Any]) -> Any:
            line = json.dumps(_hexadecimal(as_dict(encode(spans), use_integers_for_enums=True)), separators=(",", ":"))
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
                try:
                    os.write(descriptor, line.encode() + b"\n")
                finally:
                    os.close(descriptor)
            except OSError:
                return export.SpanExportResult.FAILURE
            return export.SpanExportResult.SUCCESS

    return Lines()


def _hexadecimal(message: Any) -> Any:
    """OTLP's JSON has ids in hexadecimal, where protobuf's would have base 64."""
    if isinstance(message, dict):
        return {
            name: base64.b64decode(value).hex()
            if name in ("traceId", "spanId", "parentSpanId")
            else _hexadecimal(value)
            for name, value in cast("dict[str, Any]", message).items()
        }
    if isinstance(message, list):
        return [_hexadecimal(one) for one in cast("list[Any]", message)]
    return message


def asked(target: str | None = None) -> str | None:
    """Where traces are to go: what is given, else what the environment says; None: nowhere. Empty: OpenTelemetry's."""
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    if target or os.environ.get(ASKED):
        return target or os.environ[ASKED]
    exporters = os.environ.get("OTEL_TRACES_EXPORTER", "otlp")
    return "" if any(os.environ.get(one) for one in _STANDARD) and exporters == "otlp" else None


@contextmanager
def exporting(target: str | None) -> Iterator[str | None]:
    """Spans are exported meanwhile, also by workers started meanwhile; gives the target, None where there is none.

    Raises:
        ConfigError: as `exporter_for`.
    """
    where = asked(target)
    if where is None:
        yield None
        return
    tracing = Tracing(exporter_for(where))
    before = os.environ.get(ASKED)
    if where:
        os.environ[ASKED] = where
    try:
        with signals.listening(tracer=tracing):
            yield where or next(os.environ[one] for one in _STANDARD if os.environ.get(one))
    finally:
        if where:
            os.environ.pop(ASKED, None) if before is None else os.environ.update({ASKED: before})
        tracing.close()


def from_environment() -> Callable[[], None] | None:
    """Listen in this process if its environment asks for it and nobody does; gives how to end that. For workers.

    Raises:
        ConfigError: as `exporter_for`.
    """
    where = None if signals.traced() else asked()
    if where is None:
        return None
    tracing = Tracing(exporter_for(where))
    signals.listen(tracing)

    def close() -> None:
        signals.listen(None)
        tracing.close()

    return close
