"""Measures the local engine on one device, by the clock: one stream relative to the memory bandwidth, then 16."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dragoman.adapters.faults import Fault
from dragoman.local_engine.engine import Engine, EngineOptions, EventBatch
from dragoman.local_engine.export.decoder_graph import ExportOptions
from dragoman.local_engine.export.exporter import export_random_model
from dragoman.local_engine.export.linear import Precision
from dragoman.local_engine.export.spec import ModelSpec
from dragoman.local_engine.export.weights import weight_shapes
from dragoman.local_engine.generation import Delta, Failed, Finished, GenerationRequest, SamplingParams
from dragoman.local_engine.runtime import memory
from dragoman.local_engine.runtime.providers import ExecutionProvider, select_provider

__all__ = ["print_table"]

SPECS = {
    "32M": ModelSpec("llama", 512, 8, 8, 2, 64, 1536, 8192, 2048),
    "1.5B": ModelSpec("qwen2", 1536, 28, 12, 2, 128, 8960, 151936, 4096, attention_bias=True, tied=True),
}
BYTES = {"fp32": 4, "fp16": 2, "int8": 1.125, "int4": 0.625}
PROMPT, STREAMS, COPY_BYTES = 64, 16, 1 << 29
SAMPLINGS = {"greedy": SamplingParams(temperature=0), "sampled": SamplingParams(0.8, top_p=0.95, seed=1)}


@dataclass
class Run:
    """An engine with a counter, which starts when every stream has its first token and ends with the last token."""

    engine: Engine
    over: threading.Event = field(default_factory=threading.Event)
    counts: list[tuple[float, int]] = field(default_factory=list)
    streams: int = 0
    left: int = 0
    fault: Fault | None = None
    begun: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.engine.deliver = self.receive

    def receive(self, batch: EventBatch) -> None:
        self.counts.append((time.perf_counter(), sum(len(e.tokens) for _, e in batch if isinstance(e, Delta))))
        self.left -= sum(isinstance(event, Finished) for _, event in batch)
        self.begun |= {ticket for ticket, event in batch if isinstance(event, Delta)}
        if len(self.begun) < self.streams:
            self.counts.clear()
        faults = [event.fault for _, event in batch if isinstance(event, Failed)]
        self.fault = faults[0] if faults else self.fault
        if not self.left or self.fault:
            self.over.set()

    def measure_rate(self, streams: int, tokens: int, sampling: SamplingParams) -> float:
        """Measure tokens per second, by the clock, while all streams run."""
        self.streams = self.left = streams
        self.over.clear()
        self.counts.clear()
        self.begun.clear()
        for number in range(streams):
            prompt = tuple((number * 7919 + i * 104729) % 8000 for i in range(PROMPT))
            self.engine.submit(GenerationRequest(prompt, sampling, tokens, ignore_eos=True))
        self.over.wait()
        if self.fault:
            raise self.fault
        (first, _), *rest = self.counts
        return sum(count for _, count in rest) / (rest[-1][0] - first)


def measure_bandwidth(provider: ExecutionProvider) -> float:
    """Measure how many bytes per second a copy within the device's memory reads and writes."""
    buffer = memory.allocate((2, 1, 1, COPY_BYTES // 4), np.float32, provider)
    buffer.copy_row(0, 1, 1)
    seconds = [_time(lambda: buffer.copy_row(0, 1, 1)) for _ in range(7)]
    return 2 * COPY_BYTES / statistics.median(seconds)


def _time(run: Callable[[], None]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def count_weight_bytes(spec: ModelSpec, precision: Precision) -> float:
    """Count the bytes of weights that a step reads: all but the embedding, unless it is also the head."""
    counts = {name: int(np.prod(shape)) for name, shape in weight_shapes(spec).items()}
    if not spec.tied:
        del counts["model.embed_tokens.weight"]
    return sum(counts.values()) * BYTES[precision.removesuffix("-fp16")]


def print_table(given: argparse.Namespace) -> None:
    """Measure and print. Raises ProviderError if the device is missing."""
    provider = select_provider(given.device, given.index)
    spec = SPECS[given.size]
    with tempfile.TemporaryDirectory() as folder:
        print(f"writing {given.size} random {given.precision} weights ...", flush=True)
        export_random_model(spec, Path(folder), ExportOptions(given.precision, "gqa", 4096))
        moved = measure_bandwidth(provider)
        bound = moved / count_weight_bytes(spec, given.precision)
        print(f"{provider.device}: {moved / 1e9:.0f} GB/s copied, {bound:.0f} tokens per second at most for one stream")
        options = {"device": given.device, "index": given.index, "slots": STREAMS, "context": 4096}
        for on_device in (True, False):
            engine = Engine.load(Path(folder), EngineOptions(**options, sample_on_device=on_device))
            if engine.limits.provider.note:
                print(engine.limits.provider.note)
            for name, sampling in SAMPLINGS.items():
                place = "device" if on_device else "host"
                report(Run(engine), f"{name}, sampled on the {place}", sampling, bound, given)
            engine.close()


def report(run: Run, name: str, sampling: SamplingParams, bound: float, given: argparse.Namespace) -> None:
    run.measure_rate(STREAMS, 8, sampling)
    one, many = (
        statistics.median(run.measure_rate(streams, given.tokens, sampling) for _ in range(given.rounds))
        for streams in (1, STREAMS)
    )
    print(
        f"{name:32} one {one:7.1f} tok/s, {one / bound:4.0%} of the bound (goal 25 %); "
        f"{STREAMS} together {many:8.1f}, {many / one:4.1f} x (goal 8)",
        flush=True,
    )
