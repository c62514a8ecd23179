"""Where exchanges go: when they begin to the inspector, when they have ended to the log, the usage, the metrics and the
inspector. Metrics and inspector are there if anyone can look at them.

What has ended is written a moment later, together with all that has ended meanwhile: code that runs for many exchanges
in a row stays in the processor's caches, and costs half as much. Only the log shows it: whoever reads the inspector,
the usage or the metrics calls `catch_up` first, as their `before_reading`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from dragoman.adapters.faults import Fault

from .inspector import Inspector
from .log import Level, Log
from .metrics import ExchangeMetrics
from .record import ExchangeRecord
from .tracing import Tracing
from .usage_ledger import UsageLedger

__all__ = ["CallLater", "Journal", "find_level"]

CallLater: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Calls a function after so many seconds."""

_PAUSE = 0.02  # seconds after which the first of several exchanges is written
_MOST = 256  # exchanges that wait

_LEVELS: dict[str, Level] = {"client": "info", "provider": "warning", "proxy": "error"}


class Journal:
    """`metrics` is None if nothing is counted, `tracing` if nothing is traced. Without `call_later`, exchanges are
    written at once."""

    __slots__ = ("_call_later", "_ended", "_is_expected", "_ledger", "_log", "_metrics", "inspector", "tracing")

    def __init__(
        self,
        log: Log,
        metrics: ExchangeMetrics | None = None,
        inspector: Inspector | None = None,
        tracing: Tracing | None = None,
        ledger: UsageLedger | None = None,
        call_later: CallLater | None = None,
    ) -> None:
        self._log = log
        self._metrics = metrics
        self._ledger = ledger or UsageLedger()
        self._call_later = call_later
        self._ended: deque[ExchangeRecord] = deque()
        self._is_expected = False
        self.tracing = tracing
        self.inspector = inspector or Inspector()
        for reader in (self.inspector, self._ledger, metrics):
            if reader is not None:
                reader.before_reading = self.catch_up

    def write(self, record: ExchangeRecord) -> None:
        """Take an exchange that has ended. Its record is not altered afterwards."""
        record.end()
        if self.tracing is not None:
            self.tracing.end(record)
        self._ended.append(record)
        if self._call_later is None or len(self._ended) >= _MOST:
            self.catch_up()
        elif not self._is_expected:
            self._is_expected = True
            self._call_later(_PAUSE, self._stop_waiting)

    def catch_up(self) -> None:
        """Write all exchanges that have ended."""
        while self._ended:
            self._write_now(self._ended.popleft())

    def _stop_waiting(self) -> None:
        self._is_expected = False
        self.catch_up()

    def _write_now(self, record: ExchangeRecord) -> None:
        self._ledger.count(record)
        if self._metrics is not None:
            self._metrics.count(record)
        level = find_level(record.fault, record.upstream_status)
        self._log.write_event(level, "exchange", record.to_log_line(), record.ended)
        self.inspector.end(record)
        record.release()


def find_level(fault: Fault | None, answered: int | None = None) -> Level:
    """How much whoever runs the proxy has to care: what clients do wrong is information, a failure of a provider a
    warning, one of the proxy an error. A limit that the configuration sets is no failure. `answered` is the status of
    the provider's last reply."""
    if fault is None or (fault.kind == "rate_limit" and answered is None):
        return "info"
    return _LEVELS[fault.owner]
