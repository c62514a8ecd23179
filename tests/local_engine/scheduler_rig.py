"""A scheduler without threads, driven step by step, and a plain loop over the same graph to compare it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from dragoman.local_engine.batching.choice import Choice
from dragoman.local_engine.batching.concat_cache import ConcatCache
from dragoman.local_engine.batching.kv_cache import KVCache, SlotCache
from dragoman.local_engine.batching.scheduler import Scheduler
from dragoman.local_engine.export.decoder_graph import Layout
from dragoman.local_engine.export.linear import Precision
from dragoman.local_engine.generation import Delta, Event, Finished, GenerationRequest, SamplingParams, TokenMask
from dragoman.local_engine.model_folder.folder import open_folder
from dragoman.local_engine.model_folder.signature import DecoderSignature
from dragoman.local_engine.runtime.providers import cpu_provider
from dragoman.local_engine.runtime.session import open_session
from dragoman.local_engine.sampling.logits import HostLogits
from dragoman.local_engine.text.detokenizer import load_tokenizer, make_decode

GREEDY = SamplingParams(temperature=0)


class Folders(Protocol):
    """Exports a tiny model at its first use; returns its folder."""

    def __call__(self, name: str = "llama", precision: Precision = "fp32", layout: Layout = "gqa") -> Path: ...


class SchedulerRig:
    """A scheduler over a tiny model that records the events of each ticket."""

    def __init__(
        self, path: Path, slots: int, prefill_chunk: int, length: int, *, sample_on_device: bool = False
    ) -> None:
        self.folder = open_folder(path)
        assert isinstance(self.folder.signature, DecoderSignature)
        self.signature = self.folder.signature
        self.tokenizer = load_tokenizer(self.folder.tokenizer)
        self.session, _ = open_session(self.folder.file, cpu_provider(), threads=1)
        self.cache: KVCache
        if self.signature.layout == "slots":
            self.cache = SlotCache(
                self.session, self.signature, cpu_provider(), slots, length, sample_on_device=sample_on_device
            )
        else:
            self.cache = ConcatCache(self.session, self.signature, cpu_provider(), slots, length)
        self.length = length
        self.pool = ThreadPoolExecutor(1)
        self.scheduler = Scheduler(
            self.cache, self.signature.vocab, self.pool, prefill_chunk=prefill_chunk, token_budget=prefill_chunk
        )
        self.events: dict[int, list[Event]] = {}

    def prefill(self, row: int, start: int, ids: Sequence[int]) -> NDArray[np.float32]:
        """Prefill tokens; return the logits (vocab,) of the last position."""
        logits = self.cache.prefill(row, start, ids)
        assert isinstance(logits, HostLogits)
        last: NDArray[np.float32] = logits.logits[0]
        return last

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> NDArray[np.float32]:
        """Decode one token per row; return the logits (rows, vocab)."""
        logits = self.cache.decode(rows, tokens)
        assert isinstance(logits, HostLogits)
        return logits.logits

    def request(
        self,
        prompt: Sequence[int],
        max_tokens: int,
        *,
        sampling: SamplingParams = GREEDY,
        ignore_eos: bool = True,
        n: int = 1,
        stop: tuple[str, ...] = (),
        stop_ids: frozenset[int] = frozenset(),
        mask: Callable[[], TokenMask] | None = None,
    ) -> GenerationRequest:
        return GenerationRequest(
            tuple(prompt),
            sampling,
            max_tokens,
            stop=stop,
            stop_ids=stop_ids,
            ignore_eos=ignore_eos,
            n=n,
            mask=mask,
        )

    def add(self, ticket: int, request: GenerationRequest) -> None:
        end_tokens = request.stop_ids if request.ignore_eos else request.stop_ids | self.folder.eos
        max_tokens = min(self.length - len(request.prompt), request.max_tokens or self.length)
        decode = make_decode(self.tokenizer, skip_special=request.skip_special)
        self.events[ticket] = []
        self.scheduler.add(
            [Choice(ticket, index, request, end_tokens, max_tokens, decode) for index in range(request.n)]
        )

    def step(self) -> None:
        self._record(self.scheduler.step())

    def cancel(self, ticket: int) -> None:
        self._record(self.scheduler.cancel(ticket))

    def drain(self) -> None:
        """Step until nothing is left to do."""
        while self.scheduler.has_work:
            self.step()

    def run(self, request: GenerationRequest, ticket: int = 0) -> list[Event]:
        self.add(ticket, request)
        self.drain()
        return self.events[ticket]

    def tokens(self, ticket: int = 0, index: int = 0) -> list[int]:
        return [token for delta in self._deltas(ticket, index) for token in delta.tokens]

    def text(self, ticket: int = 0, index: int = 0) -> str:
        return "".join(delta.text for delta in self._deltas(ticket, index))

    def end(self, ticket: int = 0, index: int = 0) -> Finished:
        (found,) = [event for event in self.events[ticket] if isinstance(event, Finished) and event.index == index]
        return found

    def _deltas(self, ticket: int, index: int) -> list[Delta]:
        return [event for event in self.events[ticket] if isinstance(event, Delta) and event.index == index]

    def _record(self, events: list[tuple[int, Event]]) -> None:
        for ticket, event in events:
            self.events[ticket].append(event)


class SchedulerRigs(Protocol):
    """Creates a SchedulerRig over a tiny model."""

    def __call__(
        self,
        name: str = "llama",
        precision: Precision = "fp32",
        layout: Layout = "gqa",
        *,
        slots: int = 16,
        prefill_chunk: int = 32,
        length: int = 192,
        sample_on_device: bool = False,
    ) -> SchedulerRig: ...


def generate_alone(path: Path, prompt: Sequence[int], count: int) -> list[int]:
    """Generate greedy tokens of an fp32 `gqa` folder with the simplest loop: one sequence, no buffers, no batching."""
    session = onnxruntime.InferenceSession(str(path / "model.onnx"), providers=["CPUExecutionProvider"])
    signature = open_folder(path).signature
    assert isinstance(signature, DecoderSignature)
    present = [np.zeros((1, tensor.heads, 0, tensor.width), np.float32) for tensor in signature.cache]
    ids: list[int] = list(prompt)
    generated: list[int] = []
    total = 0
    for _ in range(count):
        total += len(ids)
        feeds = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, total), np.int64)}
        feeds |= {tensor.past: past for tensor, past in zip(signature.cache, present, strict=True)}
        logits, *present = session.run(["logits", *(tensor.present for tensor in signature.cache)], feeds)
        ids = [int(logits[0, -1].argmax())]
        generated += ids
    return generated
