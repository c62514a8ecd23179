"""Where exchanges go when they have ended: to the log, and to the metrics if anyone can read them."""

from __future__ import annotations

from .log import Log
from .metrics import ExchangeMetrics
from .record import ExchangeRecord

__all__ = ["Journal"]


class Journal:
    """`metrics` is None if nothing is counted."""

    __slots__ = ("_log", "metrics")

    def __init__(self, log: Log, metrics: ExchangeMetrics | None = None) -> None:
        self._log = log
        self.metrics = metrics

    def write(self, record: ExchangeRecord) -> None:
        """Write an exchange that has ended. Its record is not used afterwards."""
        if self.metrics is not None:
            self.metrics.count(record)
        self._log.write_exchange(record.to_log_line())
        record.release_fault()
