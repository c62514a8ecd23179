"""The interface of tracing, for which the extra `otel` is needed: `otel` implements it, and is imported only if the
configuration asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from .record import ExchangeRecord

__all__ = ["INSTALL", "TRACE", "TRACE_STATE", "Tracing"]

TRACE, TRACE_STATE = "traceparent", "tracestate"
"""The headers of W3C Trace Context. The second one means nothing without the first."""

INSTALL = "uv pip install '.[otel]' in the checkout of dragoman"


class Tracing(Protocol):
    """Traces exchanges. Nothing here waits, or raises for what a client sent."""

    def begin(self, record: ExchangeRecord, method: str, headers: Mapping[str, str]) -> None:
        """Begin the spans of an exchange. `headers` are the client's; the record gets those for the provider."""

    def end(self, record: ExchangeRecord) -> None:
        """End the spans of an exchange, and measure it."""

    def close(self) -> None:
        """Send what is left. Waits a few seconds for whoever collects it: to be called in a thread."""
