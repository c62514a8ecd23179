"""The record of one exchange, which becomes its log line."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal

from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.traffic import Price

from .recording import Recording
from .short_recording import ShortRecording
from .token_counts import TokenCounts, complete_token_counts, read_token_counts

__all__ = ["MAX_MODEL", "MAX_PATH", "ExchangeRecord", "Outcome"]

Outcome = Literal["ok", "fault", "client_left"]

_OPTIONAL = (
    "path",
    "client",
    "key",
    "key_metadata",
    "model",
    "target",
    "hedge",
    "status",
    "upstream_status",
    "first_token_ms",
)
_get_optional = attrgetter(*_OPTIONAL)
_TOKENS = ("tokens_in", "tokens_out", "tokens_cached")  # in the order of TokenCounts
_INSPECTED = frozenset(("number", "raw_path", "replayed_from", "kept_bytes"))  # fields that belong to the inspector
_MAX_CAUSE = 300  # characters
MAX_PATH = 200
"""Characters of a path in the log."""
MAX_MODEL = 256
"""Characters of a model's name in the log: no name of a model is longer, but clients can ask for any."""


@dataclass(eq=False, repr=False, slots=True)  # the page keeps a thousand: in slots they take half of the memory
class ExchangeRecord:
    """Collects the fields of an exchange's log line while the exchange runs. Unset fields are left out of the line.
    The page lists the records of the latest exchanges.

    `path` is that of the request, without its query; `client` is the address of the peer, which may be a load balancer.
    `request_bytes` is the size of the request's body. `recording` keeps the bytes, for the page; it is None if nobody
    wants them. `provider` is OpenTelemetry's name of the provider. If the exchange is traced, calls to providers get
    `trace_headers`, and `spans` end with it.

    `duration_ms`, `ended` (in Unix seconds), `tokens` and `cost` are known when it has ended: `tokens` are those of the
    usage, or an estimate if the answer did not come to its usage; `cost` is at the target's price, without tries that
    failed. `fault_code` and `fault_message` are known then too, and are what is left of its fault once it is logged.

    `number`, `raw_path`, `replayed_from` and `kept_bytes` belong to the inspector, which counts exchanges from 1.
    `raw_path` has the query, `replayed_from` is the reference of the exchange that this one repeats, and `kept_bytes`
    is the memory that is counted for it, 0 if it is not kept.
    """

    request_id: str
    dialect: str
    protocol: str
    started: float = field(default_factory=time.perf_counter)
    path: str | None = None
    client: str | None = None
    key: str | None = None
    key_metadata: Mapping[str, str] | None = None
    model: str | None = None
    target: str | None = None
    attempts: int = 0
    status: int | None = None
    upstream_status: int | None = None
    hedge: str | None = None
    stream: bool = False
    first_token_ms: float | None = None
    request_bytes: int = 0
    events: int = 0
    bytes: int = 0
    receipt: Receipt | None = None
    usage: dict[str, Any] | None = None
    price: Price | None = None
    fault: Fault | None = None
    cause: BaseException | None = None
    outcome: Outcome = "ok"
    recording: Recording | ShortRecording | None = None
    provider: str | None = None
    trace_headers: dict[str, str] | None = None
    spans: tuple[object, object] | None = None
    duration_ms: float | None = None
    ended: float | None = None
    fault_code: str | None = None
    fault_message: str | None = None
    number: int = 0
    raw_path: str = ""
    replayed_from: str | None = None
    kept_bytes: int = 0
    _tokens: TokenCounts | None = None

    @property
    def has_ended(self) -> bool:
        return self.duration_ms is not None

    @property
    def began(self) -> float:
        """In Unix seconds."""
        if self.ended is None or self.duration_ms is None:
            return time.time() - self.elapsed_ms() / 1000
        return self.ended - self.duration_ms / 1000

    @property
    def reference(self) -> str:
        """What the page calls the exchange: its id, and its number because a client may send one id several times."""
        return f"{self.request_id}~{self.number}"

    def elapsed_ms(self) -> float:
        return round((time.perf_counter() - self.started) * 1000, 3)

    def begin_try(self, target: str, provider: str, price: Price | None, receipt: Receipt) -> None:
        """Take note of one more try: the provider gets its first call."""
        self.attempts += 1
        self.target, self.provider, self.price, self.receipt = target, provider, price, receipt
        self.upstream_status = None

    def end(self) -> None:
        """The exchange has ended. It forgets where the reasons of its fault were raised: their frames refer to the
        record, and to the body, which would stay in memory until the next collection of garbage."""
        if (fault := self.fault) is not None:
            self.fault_code, self.fault_message = fault.code or fault.kind, fault.message
            for reason in fault.reasons:
                reason.__traceback__ = None
        self.duration_ms, self.ended = self.elapsed_ms(), time.time()

    def release(self) -> None:
        """Forget what nobody looks at once the log has its line: the page may keep the record for long."""
        self._tokens = self.tokens
        self.fault = self.cause = self.usage = None
        if self.receipt is not None and not self.receipt.changes:
            self.receipt = None

    def unfold_recording(self) -> Recording | None:
        """What is recorded now; None with `inspect: off`, or if the exchange has made room for others."""
        found = self.recording  # the page's thread asks too, and the exchange may make room meanwhile
        return found.unfold() if isinstance(found, ShortRecording) else found

    @property
    def tokens(self) -> TokenCounts:
        if self._tokens is None:
            found = read_token_counts(self.usage)
            self._tokens = complete_token_counts(found, self.request_bytes, self.events) if self._is_cut else found
        return self._tokens

    @property
    def cost(self) -> float | None:
        return None if self.price is None else _find_cost(self.price, self.tokens)

    @property
    def _is_cut(self) -> bool:
        """Whether the client left, or a stream broke: the usage of the whole answer may be missing."""
        if self.target is None:
            return False
        return self.outcome == "client_left" or (self.outcome == "fault" and self.events > 0)

    def fork(self, target: str, receipt: Receipt) -> ExchangeRecord:
        """A record of one try, which runs at the same time as another one. `join` it if it counts."""
        made = copy(self)
        made.target, made.receipt, made.attempts, made.upstream_status = target, receipt, 0, None
        return made

    def join(self, other: ExchangeRecord) -> None:
        """Take what happened in a try with a record of its own."""
        attempts = self.attempts + other.attempts
        for name in ExchangeRecord.__slots__:
            if name not in _INSPECTED:
                setattr(self, name, getattr(other, name))
        self.attempts = attempts

    def record_fault(self, fault: Fault) -> None:
        """Record the fault that ended the exchange. Its traceback and those of its causes go: their frames have the
        request's body, and refer to this record, so only the garbage collector would free them."""
        error: BaseException | None = fault
        while error is not None:
            error.__traceback__ = None
            error = error.__cause__ or error.__context__
        self.fault, self.cause, self.outcome = fault, fault.__cause__, "fault"

    def to_log_line(self) -> dict[str, Any]:
        line: dict[str, Any] = {
            "request_id": self.request_id,
            "dialect": self.dialect,
            "protocol": self.protocol,
            "attempts": self.attempts,
            "outcome": self.outcome,
            "stream": self.stream,
            "events": self.events,
            "bytes": self.bytes,
            "duration_ms": self.duration_ms,
        }
        for name, value in zip(_OPTIONAL, _get_optional(self), strict=True):
            if value is not None:
                line[name] = value
        if self.receipt is not None and self.receipt.changes:
            line["changes"] = [change.public() for change in self.receipt.changes]
        if self.receipt is not None and self.receipt.violations:
            line["violations"] = self.receipt.violations
        if self.usage or self._is_cut:
            for name, count in zip(_TOKENS, self.tokens, strict=True):
                if count is not None:
                    line[name] = count
            if self.cost is not None:
                line["cost"] = round(self.cost, 9)
        if (fault := self.fault) is not None:
            line |= {"fault": fault.code or fault.kind, "fault_kind": fault.kind, "message": fault.message}
            if fault.others:
                line["reasons"] = [one.param or one.code for one in fault.reasons]
        if self.cause is not None:
            line["cause"] = f"{type(self.cause).__name__}: {self.cause}"[:_MAX_CAUSE]
        return line


def _find_cost(price: Price, tokens: TokenCounts) -> float:
    given, cached = tokens.input or 0, tokens.cached or 0
    cheap = price.input if price.cached is None else price.cached
    return ((given - cached) * price.input + cached * cheap + (tokens.output or 0) * price.output) / 1e6
