"""The local engine on one device, by the clock: one stream beside what the memory's bandwidth allows, then 16."""

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

__all__ = ["table"]

SPECS = {
    "32M": ModelSpec("llama", 512, 8, 8, 2, 64, 1536, 8192, 2048),
    "1.5B": ModelSpec("qwen2", 1536, 28, 12, 2, 128, 8960, 151936, 4096, attention_bias=True, tied=True),
}
BYTES = {"fp32": 4, "fp16": 2, "int8": 1.125, "int4": 0.625}
PROMPT, STREAMS, COPIED = 64, 16, 1 << 29
WAYS = {"greedy": SamplingParams(temperature=0), "sampled": SamplingParams(0.8, top_p=0.95, seed=1)}


@dataclass
class Run:
    """An engine whose tokens are counted from the first token of every stream to the last of any."""

    engine: Engine
    over: threading.Event = field(default_factory=threading.Event)
    told: list[tuple[float, int]] = field(default_factory=list)
    streams: int = 0
    left: int = 0
    fault: Fault | None = None
    begun: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.engine.deliver = self.take

    def take(self, batch: EventBatch) -> None:
        self.told.append((time.perf_counter(), sum(len(e.tokens) for _, e in batch if isinstance(e, Delta))))
        self.left -= sum(isinstance(event, Finished) for _, event in batch)
        self.begun |= {ticket for ticket, event in batch if isinstance(event, Delta)}
        if len(self.begun) < self.streams:
            self.told.clear()
        faults = [event.fault for _, event in batch if isinstance(event, Failed)]
        self.fault = faults[0] if faults else self.fault
        if not self.left or self.fault:
            self.over.set()

    def rate(self, streams: int, tokens: int, sampling: SamplingParams) -> float:
        """Tokens per second of the clock while all of them run."""
        self.streams = self.left = streams
        self.over.clear()
        self.told.clear()
        self.begun.clear()
        for number in range(streams):
            prompt = tuple((number * 7919 + i * 104729) % 8000 for i in range(PROMPT))
            self.engine.submit(GenerationRequest(prompt, sampling, tokens, ignore_eos=True))
        self.over.wait()
        if self.fault:
            raise self.fault
        (first, _), *rest = self.told
        return sum(count for _, count in rest) / (rest[-1][0] - first)


def bandwidth(provider: ExecutionProvider) -> float:
    """Bytes per second that copying within the device's memory reads and writes."""
    buffer = memory.allocate((2, 1, 1, COPIED // 4), np.float32, provider)
    buffer.copy_row(0, 1, 1)
    seconds = [_seconds(lambda: buffer.copy_row(0, 1, 1)) for _ in range(7)]
    return 2 * COPIED / statistics.median(seconds)


def _seconds(run: Callable[[], None]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def weights_read(spec: ModelSpec, precision: Precision) -> float:
    """Bytes of weights that a step reads: all, but of an embedding that is no head only a row."""
    counts = {name: int(np.prod(shape)) for name, shape in weight_shapes(spec).items()}
    if not spec.tied:
        del counts["model.embed_tokens.weight"]
    return sum(counts.values()) * BYTES[precision.removesuffix("-fp16")]


def table(given: argparse.Namespace) -> None:
    """Raises ProviderError where the device is not there."""
    provider = select_provider(given.device, given.index)
    spec = SPECS[given.size]
    with tempfile.TemporaryDirectory() as place:
        print(f"writing {given.size} random {given.precision} weights ...", flush=True)
        export_random_model(spec, Path(place), ExportOptions(given.precision, "gqa", 4096))
        moved = bandwidth(provider)
        bound = moved / weights_read(spec, given.precision)
        print(f"{provider.device}: {moved / 1e9:.0f} GB/s copied, {bound:.0f} tokens per second at most for one stream")
        options = {"device": given.device, "index": given.index, "slots": STREAMS, "context": 4096}
        for there in (True, False):
            engine = Engine.load(Path(place), EngineOptions(**options, sample_on_device=there))
            if engine.limits.provider.note:
                print(engine.limits.provider.note)
            for way, sampling in WAYS.items():
                report(Run(engine), f"{way}, chosen on the {'device' if there else 'host'}", sampling, bound, given)
            engine.close()


def report(run: Run, name: str, sampling: SamplingParams, bound: float, given: argparse.Namespace) -> None:
    run.rate(STREAMS, 8, sampling)
    one, many = (
        statistics.median(run.rate(streams, given.tokens, sampling) for _ in range(given.rounds))
        for streams in (1, STREAMS)
    )
    print(
        f"{name:32} one {one:7.1f} tok/s, {one / bound:4.0%} of the bound (goal 25 %); "
        f"{STREAMS} together {many:8.1f}, {many / one:4.1f} x (goal 8)",
        flush=True,
    )
