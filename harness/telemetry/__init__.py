"""Telemetry: spans, metrics, and structured logs, each off until somebody asks for it.

    names      every name there is
    signals    what instrumented code calls; without anybody who listens it does nothing, and imports nothing
    identity   the trace id of the episode that this code works for
    tracing    the listener for spans: OpenTelemetry, to a collector or a file
    metrics    the listener for metrics: Prometheus, served over HTTP
    logs       `logging` as JSON, a line an object

Whoever is instrumented imports `signals` and `names`, never the listeners: those import OpenTelemetry and Prometheus.
"""
