"""Writes the metrics in the formats of Prometheus and OpenMetrics, with prometheus-client. Imported when someone asks.

Source: Prometheus, Exposition formats; OpenMetrics 1.0; Prometheus, Metric and label naming.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from .metrics import Counter, Histogram, Labels, MetricsSnapshot

__all__ = ["Gauge", "write_exposition"]

_PREFIX = "dragoman_"


class Gauge(NamedTuple):
    """A number at this moment."""

    name: str
    text: str
    names: Labels
    values: Iterable[tuple[Labels, float]]


def write_exposition(metrics: MetricsSnapshot, gauges: Iterable[Gauge], accept: str) -> tuple[bytes, str]:
    """The metrics of one proxy, its process included, in a format that the header `accept` names, and its Content-Type.
    The gauges are what is not counted. Thousands of series take a quarter of a second: call it in a thread."""
    registry = CollectorRegistry()
    registry.register(_MetricsCollector(metrics, gauges))
    ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _MetricsCollector(Collector):
    def __init__(self, metrics: MetricsSnapshot, gauges: Iterable[Gauge]) -> None:
        self._metrics = metrics
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        """Every family, with a copy of its numbers."""
        yield from map(_make_counter, self._metrics.counters)
        yield from map(_make_histogram, self._metrics.histograms)
        yield from map(_make_gauge, self._gauges)


def _make_counter(counter: Counter) -> CounterMetricFamily:
    made = CounterMetricFamily(_PREFIX + counter.name, counter.text, labels=counter.names)
    for labels, value in counter.values.items():
        made.add_metric(labels, value)
    return made


def _make_histogram(histogram: Histogram) -> HistogramMetricFamily:
    made = HistogramMetricFamily(_PREFIX + histogram.name, histogram.text, labels=histogram.names)
    bounds = [*map(str, map(float, histogram.bounds)), "+Inf"]
    for labels, counts in histogram.counts.items():
        buckets = list(zip(bounds, map(float, accumulate(counts)), strict=True))
        made.add_metric(labels, buckets, histogram.sums[labels])
    return made


def _make_gauge(gauge: Gauge) -> GaugeMetricFamily:
    made = GaugeMetricFamily(_PREFIX + gauge.name, gauge.text, labels=gauge.names)
    for labels, value in gauge.values:
        made.add_metric(labels, value)
    return made
