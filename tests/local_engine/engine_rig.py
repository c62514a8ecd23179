"""A scheduler without threads, driven step by step, and a plain loop over the same graph to compare it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from dragoman.local_engine.choice import Choice
from dragoman.local_engine.concat import ConcatCache
from dragoman.local_engine.detok import decoder, load_tokenizer
from dragoman.local_engine.folder import open_folder
from dragoman.local_engine.kv import Cache, SlotCache
from dragoman.local_engine.ports import Decoder
from dragoman.local_engine.providers import cpu
from dragoman.local_engine.requests import Delta, Event, Finished, Generation, Sampling
from dragoman.local_engine.scheduler import Scheduler
from dragoman.local_engine.scores import HostScores
from dragoman.local_engine.session import open_session

Folders = Callable[..., Path]
Rigs = Callable[..., "Rig"]
GREEDY = Sampling(temperature=0)


class Rig:
    def __init__(self, path: Path, slots: int, piece: int, length: int, *, choose_there: bool = False) -> None:
        self.folder = open_folder(path)
        assert isinstance(self.folder.ports, Decoder)
        self.ports = self.folder.ports
        self.tokenizer = load_tokenizer(self.folder.tokenizer)
        self.session, _ = open_session(self.folder.file, cpu(), threads=1)
        self.cache: Cache
        if self.ports.layout == "slots":
            self.cache = SlotCache(self.session, self.ports, cpu(), slots, length, choose_there=choose_there)
        else:
            self.cache = ConcatCache(self.session, self.ports, cpu(), slots, length)
        self.length = length
        self.pool = ThreadPoolExecutor(1)
        self.scheduler = Scheduler(self.cache, self.ports.vocab, self.pool, piece=piece, budget=piece)
        self.events: dict[int, list[Event]] = {}

    def prefill(self, row: int, start: int, ids: Sequence[int]) -> NDArray[np.float32]:
        """Logits (vocab,) of the last position."""
        scores = self.cache.prefill(row, start, ids)
        assert isinstance(scores, HostScores)
        return scores.logits[0]

    def decode(self, rows: Sequence[int], tokens: Sequence[int]) -> NDArray[np.float32]:
        scores = self.cache.decode(rows, tokens)
        assert isinstance(scores, HostScores)
        return scores.logits

    def request(self, prompt: list[int], count: int, **more: Any) -> Generation:
        more.setdefault("sampling", GREEDY)
        more.setdefault("ignore_eos", True)
        return Generation(tuple(prompt), max_tokens=count, **more)

    def add(self, ticket: int, request: Generation) -> None:
        ends = request.stop_ids if request.ignore_eos else request.stop_ids | self.folder.eos
        room = min(self.length - len(request.prompt), request.max_tokens or self.length)
        decode = decoder(self.tokenizer, skip_special=request.skip_special)
        self.events[ticket] = []
        self.scheduler.add([Choice(ticket, index, request, ends, room, decode) for index in range(request.n)])

    def step(self) -> None:
        self.note(self.scheduler.step())

    def note(self, told: list[tuple[int, Event]]) -> None:
        for ticket, event in told:
            self.events[ticket].append(event)

    def cancel(self, ticket: int) -> None:
        self.note(self.scheduler.cancel(ticket))

    def drain(self) -> None:
        while self.scheduler.busy:
            self.step()

    def run(self, request: Generation, ticket: int = 0) -> list[Event]:
        self.add(ticket, request)
        self.drain()
        return self.events[ticket]

    def tokens(self, ticket: int = 0, index: int = 0) -> list[int]:
        deltas = [event for event in self.events[ticket] if isinstance(event, Delta) and event.index == index]
        return [token for delta in deltas for token in delta.tokens]

    def text(self, ticket: int = 0, index: int = 0) -> str:
        deltas = [event for event in self.events[ticket] if isinstance(event, Delta) and event.index == index]
        return "".join(delta.text for delta in deltas)

    def end(self, ticket: int = 0, index: int = 0) -> Finished:
        (found,) = [event for event in self.events[ticket] if isinstance(event, Finished) and event.index == index]
        return found


def plain(path: Path, prompt: list[int], count: int) -> list[int]:
    """Greedy tokens of a slot-layout fp32 folder by the simplest loop: one sequence, no buffers, no batching."""
    session = onnxruntime.InferenceSession(str(path / "model.onnx"), providers=["CPUExecutionProvider"])
    ports = open_folder(path).ports
    assert isinstance(ports, Decoder)
    kept = [np.zeros((1, port.heads, 0, port.width), np.float32) for port in ports.cache]
    ids, made = list(prompt), []
    total = 0
    for _ in range(count):
        total += len(ids)
        feeds: dict[str, Any] = {"input_ids": np.array([ids]), "attention_mask": np.ones((1, total), np.int64)}
        feeds |= {port.past: past for port, past in zip(ports.cache, kept, strict=True)}
        logits, *kept = session.run(["logits", *(port.present for port in ports.cache)], feeds)
        ids = [int(logits[0, -1].argmax())]
        made += ids
    return made
