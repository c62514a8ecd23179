"""What is counted of exchanges, for `/metrics`. To count one takes a few additions; `exposition` writes the numbers.

Clients choose some labels: the names of models, and the reasons of changes. So every family has a limited number of
series; what comes after them is counted under `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from dragoman.adapters.faults import Fault

from .record import ExchangeRecord

__all__ = ["Counter", "ExchangeMetrics", "Histogram", "Labels", "MetricsSnapshot"]

Labels: TypeAlias = tuple[str, ...]

_MOST_SERIES = 1_000
_OTHER = "other"
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640)
_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Counter:
    """Numbers by labels. `names` are those of the labels."""

    def __init__(self, name: str, text: str, names: Labels) -> None:
        self.name, self.text, self.names = name, text, names
        self.values: dict[Labels, float] = {}

    def add(self, labels: Labels, amount: float = 1) -> None:
        """Add to the number with these labels."""
        if labels not in self.values and len(self.values) >= _MOST_SERIES:
            labels = (_OTHER,) * len(labels)
        self.values[labels] = self.values.get(labels, 0) + amount

    def copy(self) -> Counter:
        """The same numbers, in a counter of their own."""
        made = Counter(self.name, self.text, self.names)
        made.values = dict(self.values)
        return made


class Histogram:
    """Durations in seconds by labels: how many are at most as long as each of `bounds`."""

    def __init__(self, name: str, text: str, names: Labels, bounds: tuple[float, ...] = _SECONDS) -> None:
        self.name, self.text, self.names, self.bounds = name, text, names, bounds
        self.counts: dict[Labels, list[int]] = {}
        self.sums: defaultdict[Labels, float] = defaultdict(float)

    def add(self, labels: Labels, seconds: float) -> None:
        """Count one duration."""
        if labels not in self.counts:
            if len(self.counts) >= _MOST_SERIES:
                labels = (_OTHER,) * len(labels)
            self.counts.setdefault(labels, [0] * (len(self.bounds) + 1))
        self.counts[labels][bisect_left(self.bounds, seconds)] += 1
        self.sums[labels] += seconds

    def copy(self) -> Histogram:
        """The same numbers, in a histogram of their own."""
        made = Histogram(self.name, self.text, self.names, self.bounds)
        made.counts = {labels: [*counts] for labels, counts in self.counts.items()}
        made.sums = self.sums.copy()
        return made


class MetricsSnapshot(NamedTuple):
    """The numbers of one moment, which nobody alters: another thread may read them."""

    counters: Sequence[Counter]
    histograms: Sequence[Histogram]


class ExchangeMetrics:
    """The counters and histograms of one proxy. `before_reading` counts the exchanges that have ended."""

    def __init__(self) -> None:
        self.before_reading: Callable[[], None] = lambda: None
        route = ("dialect", "protocol", "model")
        self._requests = Counter("requests", "Requests, by how they ended", (*route, "outcome", "status", "key"))
        self._faults = Counter("faults", "Requests that ended with a fault", ("owner", "kind", "code", "target"))
        self._changes = Counter("changes", "Changes to requests and replies", ("action", "weight", "reason"))
        self._retries = Counter("retries", "Tries of requests beyond the first one", ("model",))
        self._tokens = Counter("tokens", "Tokens that providers count", ("model", "target", "direction"))
        self._cached = Counter("cached_tokens", "Tokens of the input that came from a cache", ("model", "target"))
        self._cost = Counter("cost", "What the tokens cost at the prices of targets", ("model", "target"))
        self._events = Counter("events", "Events of streams", ("protocol", "target"))
        self._durations = Histogram(
            "request_seconds", "From the request to the end of its answer", ("protocol", "target")
        )
        self._first = Histogram("first_token_seconds", "From the request to the first event", ("protocol", "target"))
        self._between = Histogram(
            "token_interval_seconds", "Between two events of a stream, on average", ("protocol", "target"), _SHORT
        )
        self.reloads = Counter("config_reloads", "Reloads of the configuration", ("outcome",))
        self.counters = (
            self._requests,
            self._faults,
            self._changes,
            self._retries,
            self._tokens,
            self._cached,
            self._cost,
            self._events,
            self.reloads,
        )
        self.histograms = (self._durations, self._first, self._between)

    def take_snapshot(self) -> MetricsSnapshot:
        """The numbers now, with those of all exchanges that have ended."""
        self.before_reading()
        return MetricsSnapshot([one.copy() for one in self.counters], [one.copy() for one in self.histograms])

    def count(self, record: ExchangeRecord) -> None:
        """Count an exchange that has ended."""
        model, target, fault = record.model or "", record.target or "", record.fault
        if fault is not None and fault.kind == "model_not_found":
            model = ""  # clients can ask for any
        labels = (record.dialect, record.protocol, model, record.outcome, str(record.status or ""), record.key or "")
        self._requests.add(labels)
        if fault is not None:
            self._faults.add((fault.owner, fault.kind, fault.code or "", target))
        for change in () if record.receipt is None else record.receipt.changes:
            self._changes.add((change.action, change.weight, change.reason))
        if record.attempts > 1:
            self._retries.add((model,), record.attempts - 1)
        self._count_tokens(record, model, target)
        self._measure(record, (record.protocol, target))

    def count_refusal(self, dialect: str, protocol: str, fault: Fault, status: int) -> None:
        """Count a request that has no exchange, because of the proxy: overload, a stop, a defect."""
        self._requests.add((dialect, protocol, "", "fault", str(status), ""))
        self._faults.add((fault.owner, fault.kind, fault.code or "", ""))

    def _count_tokens(self, record: ExchangeRecord, model: str, target: str) -> None:
        counts = record.tokens
        for direction, count in (("input", counts.input), ("output", counts.output)):
            if count:
                self._tokens.add((model, target, direction), count)
        if counts.cached:
            self._cached.add((model, target), counts.cached)
        if (cost := record.cost) is not None:
            self._cost.add((model, target), cost)

    def _measure(self, record: ExchangeRecord, labels: Labels) -> None:
        if not record.target:
            return
        duration = (record.duration_ms or 0.0) / 1000
        self._durations.add(labels, duration)
        if record.events:
            self._events.add(labels, record.events)
        if record.first_token_ms is not None:
            first = record.first_token_ms / 1000
            self._first.add(labels, first)
            if record.events > 1:
                self._between.add(labels, (duration - first) / (record.events - 1))
