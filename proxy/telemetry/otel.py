"""Spans and metrics of exchanges with OpenTelemetry. Needs the extra `otel`; imported if `server.tracing` is set.

Each exchange has two spans: one for the client's request, and below it one for the operation of the model, all tries
included, whose context goes to the provider. Where they are sent, how many, and under which name is decided by the
variables OTEL_... of the environment, which the SDK reads. A thread of the SDK sends them; if it cannot, they are
dropped. No span has a part of a body.

Source: OpenTelemetry semantic conventions 1.41, generative AI spans and metrics, HTTP spans; W3C Trace Context.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Histogram, Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from dragoman import __version__

from .log import Log
from .record import ExchangeRecord
from .token_counts import read_token_counts
from .tracing import TRACE, TRACE_STATE, Tracing

__all__ = ["OpenTelemetry"]

_OPERATIONS = {
    "chat": "chat",
    "responses": "chat",
    "messages": "chat",
    "completions": "text_completion",
    "embeddings": "embeddings",
}
"""The operation of each protocol; others have their own name."""

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_BETWEEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_TOKENS = tuple(float(4**power) for power in range(14))
_PATIENCE = 3.0  # seconds for what is left when the proxy stops
_QUIET = 10.0  # seconds between two lines of the log
_MOST_WORDS = 1_000  # in the metrics, of those that clients and providers choose
_CHOSEN = ("gen_ai.request.model", "error.type")
"""The attributes of metrics with such words."""

_Attributes = dict[str, AttributeValue]


class OpenTelemetry(Tracing):
    """Tells `log` what the SDK complains about."""

    def __init__(self, log: Log) -> None:
        _redirect_logging(log)
        resource = Resource.create({"service.name": _name_service(), "service.version": __version__})
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        if _is_exported("OTEL_TRACES_EXPORTER"):
            self._tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if _is_exported("OTEL_METRICS_EXPORTER") else []
        self._meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        self._tracer = self._tracers.get_tracer("dragoman", __version__)
        self._metrics = _Metrics(self._meters.get_meter("dragoman", __version__))
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, record: ExchangeRecord, method: str, headers: Mapping[str, str]) -> None:
        """Begin the two spans."""
        given = {name: headers[name] for name in (TRACE, TRACE_STATE) if name in headers}
        request = self._tracer.start_span(f"{method} {record.path}", self._propagator.extract(given), SpanKind.SERVER)
        operation = self._tracer.start_span("chat", set_span_in_context(request), SpanKind.CLIENT)
        record.trace_headers = {}
        self._propagator.inject(record.trace_headers, set_span_in_context(operation))
        record.spans = (request, operation)
        request.set_attributes({"http.request.method": method, "url.path": record.path or ""})

    def end(self, record: ExchangeRecord) -> None:
        """End both spans, the inner one first."""
        if record.spans is None:
            return
        (request, operation), record.spans = record.spans, None
        assert isinstance(request, Span) and isinstance(operation, Span)
        attributes = _describe_operation(record)
        operation.update_name(f"{_name_operation(record)} {record.model or ''}".rstrip())
        operation.set_attributes({**attributes, **_describe_answer(record)})
        request.set_attributes(_describe_request(record))
        if (fault := record.fault) is not None:
            operation.set_status(Status(StatusCode.ERROR))
            if fault.owner != "client":
                request.set_status(Status(StatusCode.ERROR))
        operation.end()
        request.end()
        self._metrics.measure(record, attributes)

    def close(self) -> None:
        """Send what is left. A collector that does not answer is given up."""
        threads = [
            threading.Thread(target=one.shutdown, name="otel-close", daemon=True)
            for one in (self._tracers, self._meters)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_PATIENCE)


class _Metrics:
    """What is measured of each operation."""

    def __init__(self, meter: Meter) -> None:
        def create(name: str, unit: str, text: str, bounds: Sequence[float]) -> Histogram:
            return meter.create_histogram(
                f"gen_ai.client.{name}", unit, text, explicit_bucket_boundaries_advisory=bounds
            )

        self._duration = create("operation.duration", "s", "Duration of operations", _SECONDS)
        self._tokens = create("token.usage", "{token}", "Tokens of operations", _TOKENS)
        self._first = create("operation.time_to_first_chunk", "s", "Time to the first event", _FIRST)
        self._between = create("operation.time_per_output_chunk", "s", "Time between two events", _BETWEEN)
        self._words: set[AttributeValue] = set()

    def measure(self, record: ExchangeRecord, attributes: _Attributes) -> None:
        """Measure an exchange that has reached a target."""
        if not record.target:
            return
        limited = {name: self._limit(attributes[name]) for name in _CHOSEN if name in attributes}
        attributes = {**attributes, **limited}
        duration = (record.duration_ms or 0.0) / 1000
        self._duration.record(duration, attributes)
        counts = read_token_counts(record.usage)
        for kind, count in (("input", counts.input), ("output", counts.output)):
            if count is not None:
                self._tokens.record(count, {**attributes, "gen_ai.token.type": kind})
        if record.first_token_ms is not None:
            first = record.first_token_ms / 1000
            self._first.record(first, attributes)
            if record.events > 1:
                self._between.record((duration - first) / (record.events - 1), attributes)

    def _limit(self, word: AttributeValue) -> AttributeValue:
        """The word, or `other` after many."""
        if len(self._words) < _MOST_WORDS:
            self._words.add(word)
        return word if word in self._words else "other"


def _name_operation(record: ExchangeRecord) -> str:
    return _OPERATIONS.get(record.protocol, record.protocol)


def _describe_operation(record: ExchangeRecord) -> _Attributes:
    """The attributes that spans and metrics have in common."""
    made: _Attributes = {
        "gen_ai.operation.name": _name_operation(record),
        "gen_ai.provider.name": record.provider or "dragoman",
        "gen_ai.request.model": record.model or "",
    }
    if (fault := record.fault) is not None:
        made["error.type"] = fault.code or fault.kind
    return made


def _describe_answer(record: ExchangeRecord) -> _Attributes:
    counts = read_token_counts(record.usage)
    losses = 0 if record.receipt is None else len(record.receipt.losses)
    found: dict[str, AttributeValue | None] = {
        "gen_ai.request.stream": record.stream,
        "gen_ai.usage.input_tokens": counts.input,
        "gen_ai.usage.output_tokens": counts.output,
        "gen_ai.usage.cache_read.input_tokens": counts.cached,
        "gen_ai.response.time_to_first_chunk": record.first_token_ms and record.first_token_ms / 1000,
        "dragoman.target": record.target,
        "dragoman.attempts": record.attempts,
        "dragoman.losses": losses,
        "dragoman.outcome": record.outcome,
    }
    return {name: value for name, value in found.items() if value is not None}


def _describe_request(record: ExchangeRecord) -> _Attributes:
    found: dict[str, AttributeValue | None] = {
        "client.address": record.client,
        "http.response.status_code": record.status,
        "error.type": None if record.fault is None else record.fault.code or record.fault.kind,
        "dragoman.request_id": record.request_id,
        "dragoman.key": record.key,
    }
    return {name: value for name, value in found.items() if value is not None}


def _name_service() -> str:
    """The name in OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES."""
    return str(OTELResourceDetector().detect().attributes.get("service.name") or "dragoman")


def _is_exported(variable: str) -> bool:
    """Whether the environment leaves a signal on; only OTLP over HTTP is there."""
    return os.environ.get(variable, "otlp") != "none"


class _LogHandler(logging.Handler):
    """Passes on what the SDK logs, at most one line in ten seconds: it repeats itself while a collector is away."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._quiet_until = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if (now := time.monotonic()) >= self._quiet_until:
            self._quiet_until = now + _QUIET
            self._log.warning("tracing", message=record.getMessage())


def _redirect_logging(log: Log) -> None:
    logger = logging.getLogger("opentelemetry")
    logger.handlers = [_LogHandler(log)]
    logger.propagate = False
