"""Compares the local engine with onnxruntime-genai and transformers, in tokens per second of processor time.

    uv run python bench/engine.py

A Llama with 32 million random float32 weights continues prompts of 16 tokens by 128 tokens, greedily, on one thread.
All rows do the same work, in rounds; the medians are printed. If onnxruntime-genai or transformers is not installed, it
is left out, with the reason. The benchmark measures processor time, because other load on the machine changes the clock
time. Its process uses large pages, as the proxy's engines do; transformers also runs in a second process without them.

    uv run --no-default-groups --extra gpu --extra export python bench/engine.py --device cuda

measures a GPU instead, by the clock: a model with 1.5 billion random float16 weights, relative to the memory bandwidth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from _transformers import load_generate, start_process
from _work import PROMPT, TOKENS, make_prompt

os.environ.setdefault("OMP_NUM_THREADS", "1")

from dragoman.local_engine.engine import Engine, EngineOptions, EventBatch
from dragoman.local_engine.event_streams import EventStreams
from dragoman.local_engine.export.decoder_graph import ExportOptions
from dragoman.local_engine.export.exporter import export_random_model
from dragoman.local_engine.export.linear import Precision
from dragoman.local_engine.export.spec import ModelSpec
from dragoman.local_engine.export.weights import RandomWeights, write_safetensors
from dragoman.local_engine.generation import Delta, Finished, GenerationRequest, SamplingParams
from dragoman.local_engine.large_pages import request_large_pages
from dragoman.local_engine.runtime.providers import ProviderError

SPEC = ModelSpec("llama", 512, 8, 8, 2, 64, 1536, 8192, 2048, eos=(256,))
STREAMS = 16
GREEDY = SamplingParams(temperature=0)


def build_request(prompt: Sequence[int], tokens: int) -> GenerationRequest:
    """A greedy request for exactly this number of tokens."""
    return GenerationRequest(tuple(prompt), GREEDY, tokens, ignore_eos=True)


@dataclass
class Row:
    name: str
    streams: int
    run: Callable[[int], int]
    """Runs that many streams; returns the number of generated tokens."""
    rates: list[float] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)

    def measure(self) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        tokens = self.run(self.streams)
        self.rates.append(tokens / (time.process_time() - cpu))
        self.walls.append(tokens / (time.perf_counter() - wall))
        assert tokens == self.streams * TOKENS, (self.name, tokens)

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)


@dataclass
class ProcessRow(Row):
    """A row that runs in a separate process, which measures itself."""

    ask: Callable[[], Any] = field(kw_only=True)

    def measure(self) -> None:
        found = self.ask()
        self.rates.append(found["tokens"] / found["cpu"])
        self.walls.append(found["tokens"] / found["wall"])
        assert found["tokens"] == TOKENS, (self.name, found)


class DragomanEngine:
    """The local engine, with a counter of tokens."""

    def __init__(self, folder: Path) -> None:
        self._over = threading.Event()
        self._tokens = self._left = 0
        self.engine = Engine.load(
            folder, EngineOptions(device="cpu", threads=1, slots=STREAMS, context=512), self._deliver
        )

    def _deliver(self, batch: EventBatch) -> None:
        for _, event in batch:
            if isinstance(event, Delta):
                self._tokens += len(event.tokens)
            elif isinstance(event, Finished):
                self._left -= 1
        if not self._left:
            self._over.set()

    def run(self, streams: int) -> int:
        self._over.clear()
        self._tokens, self._left = 0, streams
        for number in range(streams):
            self.engine.submit(build_request(make_prompt(number), TOKENS))
        self._over.wait()
        return self._tokens


def genai_rows(folder: Path) -> list[Row]:
    import onnxruntime_genai as genai

    file = folder / "genai_config.json"
    config = json.loads(file.read_text("utf-8"))
    config["model"]["decoder"]["session_options"] |= {"intra_op_num_threads": 1, "inter_op_num_threads": 1}
    config["model"]["eos_token_id"] = SPEC.vocab - 1
    file.write_text(json.dumps(config), "utf-8")
    model = genai.Model(str(folder))
    engine = genai.Engine(model)

    def generator(streams: int) -> int:
        params = genai.GeneratorParams(model)
        length = PROMPT + TOKENS
        params.set_search_options(do_sample=False, max_length=length, min_length=length, batch_size=streams)
        running = genai.Generator(model, params)
        running.append_tokens([make_prompt(number) for number in range(streams)])
        while not running.is_done():
            running.generate_next_token()
        return sum(len(running.get_sequence(number)) - PROMPT for number in range(streams))

    def waves(streams: int) -> int:
        import numpy as np

        requests = []
        for number in range(streams):
            request = engine.create_request()
            options = genai.TurnOptions(request)
            options.set_do_sample(False)
            options.set_max_generated_tokens(TOKENS)
            options.set_min_generated_tokens(TOKENS)
            request.begin_turn(np.array(make_prompt(number), np.int32), options)
            requests.append(request)
        buffer = engine.create_event_buffer(64)
        tokens = 0
        while engine.has_pending_requests():
            tokens += sum(bool(event.flags & genai.EngineEventFlags.TOKEN) for event in engine.run(buffer) or buffer)
        for request in requests:
            request.close()
        return tokens

    return [
        Row("onnxruntime-genai Generator", 1, generator),
        Row("onnxruntime-genai Generator, one batch", STREAMS, generator),
        Row("onnxruntime-genai Engine", STREAMS, waves),
    ]


def transformers_rows(folder: Path) -> list[Row]:
    write_safetensors(RandomWeights(SPEC), folder / "model.safetensors")
    return [Row("transformers generate, on large pages", 1, load_generate(folder))]


def try_rows(name: str, make: Callable[[Path], list[Row]], folder: Path) -> list[Row]:
    try:
        return make(folder)
    except ImportError as error:
        print(f"{name} is left out: {error}")
        return []


def measure_late_request(folder: Path) -> str:
    """Measure the time to the first token of a request while 15 others run, relative to what it should take."""
    first: dict[int, float] = {}
    times: list[float] = []

    def deliver(batch: EventBatch) -> None:
        times.append(time.process_time())
        for ticket, event in batch:
            if isinstance(event, Delta):
                first.setdefault(ticket, time.process_time())

    engine = Engine.load(folder, EngineOptions(device="cpu", threads=1, slots=STREAMS, context=512), deliver)
    ratios = []
    for attempt in range(5):
        begun = time.process_time()
        alone = engine.submit(build_request(make_prompt(1000 + attempt, 200), 1))
        _wait_until(lambda ticket=alone: ticket in first)
        prefill = first[alone] - begun
        others = [engine.submit(build_request(make_prompt(50 + n), 200)) for n in range(STREAMS - 1)]
        _wait_until(lambda tickets=others: all(ticket in first for ticket in tickets))
        count = len(times)
        _wait_until(lambda least=count: len(times) > least + 20)
        decode = statistics.median(b - a for a, b in zip(times[count:], times[count + 1 :], strict=False))
        begun = time.process_time()
        late = engine.submit(build_request(make_prompt(2000 + attempt, 200), 1))
        _wait_until(lambda ticket=late: ticket in first)
        ratios.append((first[late] - begun) / (prefill + 2 * decode))
        for ticket in others:
            engine.cancel(ticket)
    engine.close()
    return f"late request: first token after {statistics.median(ratios):.2f} x (own prefill + two decode steps); goal 1"


def _wait_until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        time.sleep(0.0005)


def measure_cancellation(folder: Path) -> str:
    """Count the steps between a cancellation and the end of its sequence."""
    over: dict[int, int] = {}
    steps = []

    def deliver(batch: EventBatch) -> None:
        for ticket, event in batch:
            if isinstance(event, Finished) and event.reason == "cancelled":
                over[ticket] = engine.statistics()["steps"]

    engine = Engine.load(folder, EngineOptions(device="cpu", threads=1, slots=STREAMS, context=512), deliver)
    for n in range(20):
        others = [engine.submit(build_request(make_prompt(n + i), 400)) for i in range(4)]
        time.sleep(0.1)
        before = engine.statistics()["steps"]
        for ticket in others:
            engine.cancel(ticket)
        _wait_until(lambda tickets=others: all(ticket in over for ticket in tickets))
        steps += [over[ticket] - before for ticket in others]
    engine.close()
    return f"cancel: freed after {max(steps)} further steps at most, of {len(steps)} cancellations; goal 1"


def measure_cancelled_prompt(folder: Path) -> str:
    """Measure how long prefill runs after its cancellation, and how long a whole chunk takes, by the clock."""
    over = threading.Event()
    engine = Engine.load(folder, EngineOptions(device="cpu", threads=1, slots=1, context=512), lambda _: over.set())
    whole, rest = [], []
    for n in range(10):
        for way, (times, pause) in enumerate(((whole, None), (rest, 0.02))):
            over.clear()
            begun = time.perf_counter()
            ticket = engine.submit(build_request(make_prompt(2 * n + way, 256), 1))
            if pause is not None:
                time.sleep(pause)
                begun = time.perf_counter()
                engine.cancel(ticket)
            over.wait()
            times.append(time.perf_counter() - begun)
    engine.close()
    took, left = (statistics.median(times) * 1000 for times in (whole, rest))
    return f"cancelled prompt: over after {left:.1f} ms; its chunk of 256 tokens takes {took:.0f} ms"


async def measure_loop_gaps(folder: Path) -> tuple[float, float]:
    """Measure the longest gap of an event loop while 16 streams with prompts of 400 tokens run.

    The second number is the longest gap of the same loop without work, right after: what the machine itself adds.
    """
    engine = Engine.load(folder, EngineOptions(device="cpu", threads=1, slots=STREAMS, context=512))
    streams = EventStreams(engine, asyncio.get_running_loop())
    gaps: list[float] = []

    async def tick() -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last - 0.001)
            last = now

    async def consume(number: int) -> None:
        async for _ in streams.run(build_request(make_prompt(number, 400), 60)):
            pass

    begun = time.perf_counter()
    ticker = asyncio.create_task(tick())
    await asyncio.gather(*(consume(number) for number in range(STREAMS)))
    busy, seconds = max(gaps), time.perf_counter() - begun
    engine.close()
    gaps.clear()
    await asyncio.sleep(seconds)
    ticker.cancel()
    return busy, max(gaps)


def main() -> None:
    parser = argparse.ArgumentParser(description="tokens per second of the local engine")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each row; medians are reported")
    parser.add_argument("--json", type=Path, help="write every measurement to this file")
    device = parser.add_argument_group("another device")
    device.add_argument("--device", choices=["cuda", "cpu"], help="measure only this device, by the clock")
    device.add_argument("--index", type=int, default=0, help="which of several CUDA devices")
    device.add_argument("--size", choices=["32M", "1.5B"], default="1.5B")
    device.add_argument("--precision", choices=get_args(Precision), default="fp16")
    device.add_argument("--tokens", type=int, default=256, help="per stream")
    given = parser.parse_args()
    if given.device:
        import _device

        try:
            return _device.print_table(given)
        except ProviderError as error:
            sys.exit(f"error: {error}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        export_random_model(SPEC, folder, ExportOptions("fp32", "gqa", 2048, all_logits=True))
        dragoman = DragomanEngine(folder)
        rows = [Row("dragoman", streams, dragoman.run) for streams in (1, 4, STREAMS)]
        rows += try_rows("onnxruntime-genai", genai_rows, folder)
        transformers = try_rows("transformers", transformers_rows, folder)
        if transformers:
            ask = stack.enter_context(start_process(folder))
            rows += [ProcessRow("transformers generate", 1, lambda _: int(ask()["tokens"]), ask=ask), *transformers]
        for row in rows:
            row.run(row.streams)
        for turn in range(given.rounds):
            for row in rows if turn % 2 == 0 else rows[::-1]:
                row.measure()
        report(rows)
        dragoman.engine.close()
        print(measure_late_request(folder))
        print(measure_cancellation(folder))
        print(measure_cancelled_prompt(folder))
        busy, idle = min(asyncio.run(measure_loop_gaps(folder)) for _ in range(3))
        print(f"event loop: longest gap {busy * 1000:.1f} ms, idle {idle * 1000:.1f} ms, of the best of 3; goal 50")
    if given.json:
        found = [{"name": row.name, "streams": row.streams, "cpu": row.rates, "wall": row.walls} for row in rows]
        given.json.write_text(json.dumps({"python": sys.version, "rows": found}, indent=2) + "\n", "utf-8")


def report(rows: list[Row]) -> None:
    print(f"{'':40} streams  tok/CPU-s  tok/s")
    for row in rows:
        print(f"{row.name:40} {row.streams:7} {row.rate:10.0f} {statistics.median(row.walls):6.0f}")
    rates: dict[tuple[str, int], float] = {
        (row.name.removesuffix(", one batch"), row.streams): row.rate for row in rows
    }
    one, many = rates["dragoman", 1], rates["dragoman", STREAMS]
    goals: list[tuple[str, float, float | None, float | None]] = [
        ("one stream / genai Generator", one, rates.get(("onnxruntime-genai Generator", 1)), 0.9),
        ("one stream / transformers generate", one, rates.get(("transformers generate", 1)), 2),
        ("the same, with large pages", one, rates.get(("transformers generate, on large pages", 1)), None),
        ("16 streams / one stream", many, one, 5),
        ("16 streams / genai Engine", many, rates.get(("onnxruntime-genai Engine", STREAMS)), 2),
    ]
    for name, left, right, goal in goals:
        wanted = "" if goal is None else f"  goal {goal}"
        print(f"{name:40} {left / right:7.2f}{wanted}" if right else f"{name:40} not measured")


if __name__ == "__main__":
    if (wanted := request_large_pages(os.environ)) != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], wanted)
    main()
