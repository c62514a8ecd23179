"""The engine: one thread that owns the session and takes the scheduler's steps while there is something to do.

Other threads hand requests and cancellations in under a lock, and the engine's thread takes them between two steps. All
that a step has to tell goes out in one call of `deliver`, on the engine's thread. onnxruntime runs without the
interpreter's lock, so an event loop in another thread goes on meanwhile.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dragoman.adapters.faults import Fault

from .choice import Choice
from .folder import ModelFolder, open_folder
from .places import FolderError
from .ports import Decoder
from .providers import Device, Provider, choose
from .requests import Event, Failed, Finished, Generation
from .scheduler import Scheduler

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from .kv import Cache

__all__ = ["Batch", "Deliver", "Engine", "Limits", "Options"]

Batch: TypeAlias = list[tuple[int, Event]]
Deliver: TypeAlias = Callable[[Batch], None]

LONGEST_DEFAULT = 8192
MASK_THREADS = 2
HOST_ATTENTION = "attention runs on the CPU, for CUDA has it in float16 alone: export the model as fp16 or int4-fp16"
LONGEST_RETRY = 60.0
MOST_CHOICES = 128


@dataclass(frozen=True, slots=True)
class Options:
    """`threads` 0: one per core. `context` None: the model's, at most 8192. `memory` None: as much as seems right.

    `slots` sequences run at once, fewer if `memory` bytes hold no more; `queue` further ones wait. `piece` is how many
    prompt tokens a step computes at most. `choose_there` None chooses tokens on the device where that is CUDA.
    """

    device: Device = "auto"
    index: int = 0
    threads: int = 0
    slots: int = 16
    queue: int = 64
    context: int | None = None
    memory: int | None = None
    piece: int = 256
    choose_there: bool | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What the engine came to: where it runs, how many sequences at once, the longest context, the vocabulary."""

    provider: Provider
    slots: int
    queue: int
    context: int
    vocab: int


class Engine:
    """A loaded model. Make it with `load`, end it with `close`. Every method may be called from any thread."""

    def __init__(
        self,
        folder: ModelFolder,
        tokenizer: Tokenizer,
        cache: Cache,
        limits: Limits,
        *,
        piece: int = 256,
        deliver: Deliver | None = None,
    ) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.limits = limits
        self.deliver = deliver or _nobody_listens
        self._pool = ThreadPoolExecutor(MASK_THREADS, "dragoman-masks")
        self._scheduler = Scheduler(cache, limits.vocab, self._pool, piece=piece, budget=piece)
        self._tickets = itertools.count(1)
        self._wake = threading.Condition()
        self._inbox: deque[list[Choice]] = deque()
        self._cancelled: set[int] = set()
        self._open: dict[int, tuple[int, float]] = {}
        self._seconds = 1.0
        self._closing = False
        self._step_since: float | None = None
        self._failed: str | None = None
        self._thread = threading.Thread(target=self._run, name="dragoman-engine", daemon=True)
        self._thread.start()

    @classmethod
    def load(cls, path: Path, options: Options = Options(), deliver: Deliver | None = None) -> Engine:
        """Open a folder and its session. Raises FolderError and ProviderError."""
        from .concat import ConcatCache
        from .detok import load_tokenizer
        from .kv import SlotCache, home
        from .session import open_session

        provider = choose(options.device, options.index)
        folder = open_folder(path, provider.device)
        ports = folder.ports
        if not isinstance(ports, Decoder):
            raise FolderError(f"{folder.file} gives no logits: it is an encoder, for embeddings only")
        tokenizer = load_tokenizer(folder.tokenizer)
        fallback = options.device == "auto"
        session, provider = open_session(folder.file, provider, threads=options.threads, fallback=fallback)
        if ports.layout == "slots" and home(ports, provider).device != provider.device:
            provider = replace(provider, note=HOST_ATTENTION)
        context = min(folder.context, options.context or LONGEST_DEFAULT)
        slots = _slots(folder, ports, provider, options, context)
        cache: Cache
        if ports.layout == "slots":
            there = options.choose_there if options.choose_there is not None else provider.device == "cuda"
            cache = SlotCache(session, ports, provider, slots, context, choose_there=there)
        else:
            cache = ConcatCache(session, ports, provider, slots, context)
        limits = Limits(provider, slots, options.queue, context, ports.vocab)
        return cls(folder, tokenizer, cache, limits, piece=options.piece, deliver=deliver)

    def submit(self, request: Generation) -> int:
        """Queue a request; returns its ticket. Its events may be delivered before this returns. Raises Fault."""
        self._check(request)
        ticket = next(self._tickets)
        choices = [self._choice(ticket, index, request) for index in range(request.n)]
        with self._wake:
            if self._closing:
                raise Fault("overloaded", "the engine is closed")
            ahead = sum(count for count, _ in self._open.values())
            if ahead + request.n > self.limits.slots + self.limits.queue:
                raise self._full(ahead)
            self._open[ticket] = (request.n, time.monotonic())
            self._inbox.append(choices)
            self._wake.notify()
        return ticket

    def cancel(self, ticket: int) -> None:
        """End a request; its choices finish as `cancelled` before the next step. One that is over is left alone."""
        with self._wake:
            if ticket in self._open:
                self._cancelled.add(ticket)
                self._scheduler.interrupt(ticket)
                self._wake.notify()

    def close(self) -> None:
        """End every request as failed, and the thread with them."""
        with self._wake:
            self._closing = True
            self._scheduler.interrupt(None)
            self._wake.notify()
        self._thread.join()
        self._pool.shutdown()

    def statistics(self) -> dict[str, Any]:
        """Numbers for a status page: what is running and waiting now, and what was done so far.

        `step_seconds` tells for how long the step that runs now has been running; `failed`, if it is no null, why this
        engine will not answer any more.
        """
        counts = self._scheduler.counts
        since = self._step_since
        with self._wake:
            unfinished = sum(count for count, _ in self._open.values())
        running = self._scheduler.running
        return {
            "device": self.limits.provider.device,
            "note": self.limits.provider.note,
            "context": self.limits.context,
            "slots": self.limits.slots,
            "queue": self.limits.queue,
            "running": running,
            "waiting": max(0, unfinished - running),
            "steps": counts.steps,
            "prompt_tokens": counts.prompt_tokens,
            "cached_tokens": counts.cached_tokens,
            "generated_tokens": counts.generated_tokens,
            "step_seconds": 0.0 if since is None else round(time.monotonic() - since, 3),
            "failed": self._failed,
        }

    def _check(self, request: Generation) -> None:
        size, limits = len(request.prompt), self.limits
        if not size:
            raise Fault("invalid_request", "the prompt has no tokens")
        if size >= limits.context:
            raise Fault(
                "invalid_request",
                f"the prompt has {size} tokens; the context of {limits.context} must hold it and the answer",
                code="context_length_exceeded",
            )
        most = min(MOST_CHOICES, limits.slots + limits.queue)
        if not 1 <= request.n <= most:
            raise Fault("invalid_request", f"n is {request.n}; 1 to {most} are served", ("n",))
        if request.max_tokens is not None and request.max_tokens < 1:
            raise Fault("invalid_request", f"max_tokens is {request.max_tokens}, less than 1", ("max_tokens",))
        for where, tokens in (("prompt", request.prompt), ("logit_bias", request.sampling.logit_bias)):
            strange = next((token for token in tokens if not 0 <= token < limits.vocab), None)
            if strange is not None:
                message = f"token {strange} is not in the vocabulary of {limits.vocab}"
                raise Fault("invalid_request", message, (where,))

    def _choice(self, ticket: int, index: int, request: Generation) -> Choice:
        from .detok import decoder

        ends = request.stop_ids if request.ignore_eos else request.stop_ids | self.folder.eos
        room = self.limits.context - len(request.prompt)
        room = min(room, request.max_tokens or room)
        decode = decoder(self.tokenizer, skip_special=request.skip_special)
        return Choice(ticket, index, request, ends, room, decode)

    def _full(self, ahead: int) -> Fault:
        wait = min(
            LONGEST_RETRY, max(1.0, math.ceil(self._seconds * (ahead - self.limits.slots + 1) / self.limits.slots))
        )
        message = (
            f"{ahead} sequences are running or waiting, which is all that the engine takes; try again in {wait:.0f} s"
        )
        return Fault("rate_limit", message, code="queue_full", retry_after=wait)

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            self._failed = f"its thread ended: {error!r}"
            raise

    def _serve(self) -> None:
        scheduler = self._scheduler
        while True:
            self._step_since = None
            with self._wake:
                while not (self._inbox or self._cancelled or self._closing or scheduler.busy):
                    self._wake.wait()
                arrived, cancelled = [*self._inbox], self._cancelled
                self._inbox.clear()
                self._cancelled = set()
                closing = self._closing
            self._step_since = time.monotonic()
            for choices in arrived:
                scheduler.add(choices)
            told = [event for ticket in cancelled for event in scheduler.cancel(ticket)]
            if closing:
                self._tell(told + self._fail_all(Fault("overloaded", "the engine was closed")))
                return
            self._tell(told + self._step())

    def _step(self) -> Batch:
        if not self._scheduler.busy:
            return []
        try:
            return self._scheduler.step()
        except Exception as error:  # noqa: BLE001  onnxruntime's errors share no base but this
            if self.limits.provider.device == "cuda":
                self._failed = f"CUDA failed: {error}"  # its errors stay with the process
            return self._fail_all(Fault("internal", f"the engine failed: {error}"))

    def _fail_all(self, fault: Fault) -> Batch:
        return [event for ticket in self._scheduler.tickets() for event in self._scheduler.fail(ticket, fault)]

    def _tell(self, told: Batch) -> None:
        if not told:
            return
        for ticket, event in told:
            if isinstance(event, (Finished, Failed)):
                self._over(ticket, everything=isinstance(event, Failed))
        self.deliver(told)

    def _over(self, ticket: int, *, everything: bool) -> None:
        with self._wake:
            count, since = self._open.pop(ticket, (0, 0.0))
            if count > 1 and not everything:
                self._open[ticket] = (count - 1, since)
            elif count:
                self._seconds += 0.2 * (time.monotonic() - since - self._seconds)


def _nobody_listens(batch: Batch) -> None:
    raise RuntimeError("the engine has no deliver: give it one before the first request")


def _slots(folder: ModelFolder, ports: Decoder, provider: Provider, options: Options, context: int) -> int:
    from .kv import home
    from .memory import available

    place = home(ports, provider) if ports.layout == "slots" else provider
    memory = available(place) if options.memory is None else options.memory
    row = ports.row_bytes * context
    if row > memory:
        raise FolderError(
            f"{folder.file}: one sequence of {context} tokens takes {row >> 20} MiB of keys and values, and"
            f" {memory >> 20} MiB are free for them; a shorter context would fit"
        )
    return min(options.slots, memory // row)
