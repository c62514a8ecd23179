"""Where exchanges go: when they begin to the inspector, when they have ended to the log, the usage, the metrics and the
inspector. Metrics and inspector are there if anyone can look at them."""

from __future__ import annotations

from collections.abc import Callable

from dragoman.adapters.faults import Fault

from .inspector import Inspector
from .log import Level, Log
from .metrics import ExchangeMetrics
from .record import ExchangeRecord
from .tracing import Tracing

__all__ = ["Journal", "find_level"]

_LEVELS: dict[str, Level] = {"client": "info", "provider": "warning", "proxy": "error"}


class Journal:
    """`metrics` is None if nothing is counted, `tracing` if nothing is traced. `count_usage` adds an exchange to what
    its key has used."""

    __slots__ = ("_count_usage", "_log", "inspector", "metrics", "tracing")

    def __init__(
        self,
        log: Log,
        metrics: ExchangeMetrics | None = None,
        inspector: Inspector | None = None,
        tracing: Tracing | None = None,
        count_usage: Callable[[ExchangeRecord], None] = lambda record: None,
    ) -> None:
        self._log = log
        self._count_usage = count_usage
        self.tracing = tracing
        self.metrics = metrics
        self.inspector = inspector or Inspector()

    def write(self, record: ExchangeRecord) -> None:
        """Write an exchange that has ended. Its record is not altered afterwards."""
        record.end()
        self._count_usage(record)
        if self.metrics is not None:
            self.metrics.count(record)
        if self.tracing is not None:
            self.tracing.end(record)
        self.inspector.end(record)
        self._log.write_event(find_level(record.fault, record.upstream_status), "exchange", record.to_log_line())
        record.release_fault()


def find_level(fault: Fault | None, answered: int | None = None) -> Level:
    """How much whoever runs the proxy has to care: what clients do wrong is information, a failure of a provider a
    warning, one of the proxy an error. A limit that the configuration sets is no failure. `answered` is the status of
    the provider's last reply."""
    if fault is None or (fault.kind == "rate_limit" and answered is None):
        return "info"
    return _LEVELS[fault.owner]
