"""The engine: a thread that owns the session and runs the scheduler's steps while there is work.

Other threads submit requests and cancellations under a lock; the engine's thread reads them between two steps. All
events of a step are delivered in one call of `deliver`, on the engine's thread. onnxruntime releases the interpreter's
lock, so an event loop in another thread continues during a step.
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
from typing import TYPE_CHECKING, TypeAlias

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.local_engine.batching.choice import Choice
from dragoman.local_engine.batching.scheduler import Scheduler
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.model_folder.folder import ModelFolder, open_folder
from dragoman.local_engine.model_folder.signature import DecoderSignature
from dragoman.local_engine.runtime.providers import Device, ExecutionProvider, select_provider

from .generation import Event, Failed, Finished, GenerationRequest

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from dragoman.local_engine.batching.kv_cache import KVCache

__all__ = ["Deliver", "Engine", "EngineLimits", "EngineOptions", "EventBatch"]

EventBatch: TypeAlias = list[tuple[int, Event]]
Deliver: TypeAlias = Callable[[EventBatch], None]

DEFAULT_MAX_CONTEXT = 8192
MASK_THREADS = 2
CPU_ATTENTION_NOTE = (
    "attention runs on the CPU, because CUDA supports it in float16 only: export the model as fp16 or int4-fp16"
)
MAX_RETRY_AFTER = 60.0
MAX_CHOICES = 128


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How to run an engine.

    `index` selects one of several CUDA devices. `threads` 0 means one per core. `slots` sequences run at once, fewer if
    they do not fit into `memory` bytes; `queue` more can wait. `context` None means the model's, at most 8192; `memory`
    None means the default of `memory.default_cache_bytes`. A step prefills `prefill_chunk` tokens at most.
    `sample_on_device` None samples on the device if it is CUDA.
    """

    device: Device = "auto"
    index: int = 0
    threads: int = 0
    slots: int = 16
    queue: int = 64
    context: int | None = None
    memory: int | None = None
    prefill_chunk: int = 256
    sample_on_device: bool | None = None


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The limits of a loaded engine: its provider, slots, queue, context length and vocabulary size."""

    provider: ExecutionProvider
    slots: int
    queue: int
    context: int
    vocab: int


class Engine:
    """A loaded model. Create it with `load` and end it with `close`. All methods are thread-safe."""

    def __init__(
        self,
        folder: ModelFolder,
        tokenizer: Tokenizer,
        cache: KVCache,
        limits: EngineLimits,
        *,
        prefill_chunk: int = 256,
        deliver: Deliver | None = None,
    ) -> None:
        self.folder = folder
        self.tokenizer = tokenizer
        self.limits = limits
        self.deliver = deliver or _reject_events
        self._pool = ThreadPoolExecutor(MASK_THREADS, "dragoman-masks")
        self._scheduler = Scheduler(
            cache, limits.vocab, self._pool, prefill_chunk=prefill_chunk, token_budget=prefill_chunk
        )
        self._tickets = itertools.count(1)
        self._wake = threading.Condition()
        self._inbox: deque[list[Choice]] = deque()
        self._cancelled: set[int] = set()
        self._unfinished: dict[int, tuple[int, float]] = {}
        self._mean_seconds = 1.0
        self._closing = False
        self._step_started: float | None = None
        self._failed: str | None = None
        self._thread = threading.Thread(target=self._run, name="dragoman-engine", daemon=True)
        self._thread.start()

    @classmethod
    def load(cls, path: Path, options: EngineOptions = EngineOptions(), deliver: Deliver | None = None) -> Engine:
        """Load a model folder. Raises FolderError and ProviderError."""
        from dragoman.local_engine.batching.concat_cache import ConcatCache
        from dragoman.local_engine.batching.kv_cache import SlotCache, cache_provider
        from dragoman.local_engine.runtime.session import open_session
        from dragoman.local_engine.text.detokenizer import load_tokenizer

        provider = select_provider(options.device, options.index)
        folder = open_folder(path, provider.device)
        signature = folder.signature
        if not isinstance(signature, DecoderSignature):
            raise FolderError(f"{folder.file} returns no logits: it is an encoder, for embeddings only")
        tokenizer = load_tokenizer(folder.tokenizer)
        fallback = options.device == "auto"
        session, provider = open_session(folder.file, provider, threads=options.threads, fallback=fallback)
        if signature.layout == "slots" and cache_provider(signature, provider).device != provider.device:
            provider = replace(provider, note=CPU_ATTENTION_NOTE)
        context = min(folder.context, options.context or DEFAULT_MAX_CONTEXT)
        slots = _count_slots(folder, signature, provider, options, context)
        cache: KVCache
        if signature.layout == "slots":
            on_device = options.sample_on_device
            on_device = provider.device == "cuda" if on_device is None else on_device
            cache = SlotCache(session, signature, provider, slots, context, sample_on_device=on_device)
        else:
            cache = ConcatCache(session, signature, provider, slots, context)
        limits = EngineLimits(provider, slots, options.queue, context, signature.vocab)
        return cls(folder, tokenizer, cache, limits, prefill_chunk=options.prefill_chunk, deliver=deliver)

    def submit(self, request: GenerationRequest) -> int:
        """Queue a request; return its ticket. Its events may be delivered before this returns. Raises Fault."""
        self._check(request)
        ticket = next(self._tickets)
        choices = [self._create_choice(ticket, index, request) for index in range(request.n)]
        with self._wake:
            if self._closing:
                raise Fault("overloaded", "the engine is closed")
            ahead = sum(count for count, _ in self._unfinished.values())
            if ahead + request.n > self.limits.slots + self.limits.queue:
                raise self._build_queue_full_fault(ahead)
            self._unfinished[ticket] = (request.n, time.monotonic())
            self._inbox.append(choices)
            self._wake.notify()
        return ticket

    def cancel(self, ticket: int) -> None:
        """Cancel a request; its choices finish as `cancelled` before the next step. No effect on a finished request."""
        with self._wake:
            if ticket in self._unfinished:
                self._cancelled.add(ticket)
                self._scheduler.interrupt(ticket)
                self._wake.notify()

    def close(self) -> None:
        """Fail all requests and end the thread."""
        with self._wake:
            self._closing = True
            self._scheduler.interrupt(None)
            self._wake.notify()
        self._thread.join()
        self._pool.shutdown()

    def statistics(self) -> JsonObject:
        """Numbers for a status page: running and waiting sequences, and totals.

        `step_seconds` is the time since the start of the current step. `failed` is None, or the reason why this engine
        will not answer any more.
        """
        counters = self._scheduler.counters
        started = self._step_started
        with self._wake:
            unfinished = sum(count for count, _ in self._unfinished.values())
        running = self._scheduler.running_count
        return {
            "device": self.limits.provider.device,
            "note": self.limits.provider.note,
            "context": self.limits.context,
            "slots": self.limits.slots,
            "queue": self.limits.queue,
            "running": running,
            "waiting": max(0, unfinished - running),
            "steps": counters.steps,
            "prompt_tokens": counters.prompt_tokens,
            "cached_tokens": counters.cached_tokens,
            "generated_tokens": counters.generated_tokens,
            "step_seconds": 0.0 if started is None else round(time.monotonic() - started, 3),
            "failed": self._failed,
        }

    def _check(self, request: GenerationRequest) -> None:
        size, limits = len(request.prompt), self.limits
        if not size:
            raise Fault("invalid_request", "the prompt has no tokens")
        if size >= limits.context:
            raise Fault(
                "invalid_request",
                f"the prompt has {size} tokens; prompt and answer must fit into the context of {limits.context}",
                code="context_length_exceeded",
            )
        max_choices = min(MAX_CHOICES, limits.slots + limits.queue)
        if not 1 <= request.n <= max_choices:
            raise Fault("invalid_request", f"n is {request.n}; supported are 1 to {max_choices}", ("n",))
        if request.max_tokens is not None and request.max_tokens < 1:
            raise Fault(
                "invalid_request", f"max_tokens is {request.max_tokens}; it must be at least 1", ("max_tokens",)
            )
        for field, tokens in (("prompt", request.prompt), ("logit_bias", request.sampling.logit_bias)):
            unknown = next((token for token in tokens if not 0 <= token < limits.vocab), None)
            if unknown is not None:
                message = f"token {unknown} is not in the vocabulary of {limits.vocab}"
                raise Fault("invalid_request", message, (field,))

    def _create_choice(self, ticket: int, index: int, request: GenerationRequest) -> Choice:
        from dragoman.local_engine.text.detokenizer import make_decode

        end_tokens = request.stop_ids if request.ignore_eos else request.stop_ids | self.folder.eos
        remaining = self.limits.context - len(request.prompt)
        max_tokens = min(remaining, request.max_tokens or remaining)
        decode = make_decode(self.tokenizer, skip_special=request.skip_special)
        return Choice(ticket, index, request, end_tokens, max_tokens, decode)

    def _build_queue_full_fault(self, ahead: int) -> Fault:
        wait = min(
            MAX_RETRY_AFTER,
            max(1.0, math.ceil(self._mean_seconds * (ahead - self.limits.slots + 1) / self.limits.slots)),
        )
        message = f"{ahead} sequences are running or waiting, which is the limit; try again in {wait:.0f} s"
        return Fault("rate_limit", message, code="queue_full", retry_after=wait)

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:
            self._failed = f"the engine thread ended: {error!r}"
            raise

    def _serve(self) -> None:
        scheduler = self._scheduler
        while True:
            self._step_started = None
            with self._wake:
                while not (self._inbox or self._cancelled or self._closing or scheduler.has_work):
                    self._wake.wait()
                arrived, cancelled = [*self._inbox], self._cancelled
                self._inbox.clear()
                self._cancelled = set()
                closing = self._closing
            self._step_started = time.monotonic()
            for choices in arrived:
                scheduler.add(choices)
            events = [event for ticket in cancelled for event in scheduler.cancel(ticket)]
            if closing:
                self._publish(events + self._fail_all(Fault("overloaded", "the engine was closed")))
                return
            self._publish(events + self._step())

    def _step(self) -> EventBatch:
        if not self._scheduler.has_work:
            return []
        try:
            return self._scheduler.step()
        except Exception as error:  # noqa: BLE001  onnxruntime's errors have no other common base class
            if self.limits.provider.device == "cuda":
                self._failed = f"CUDA failed: {error}"  # a CUDA error is permanent for the process
            return self._fail_all(Fault("internal", f"the engine failed: {error}"))

    def _fail_all(self, fault: Fault) -> EventBatch:
        return [event for ticket in self._scheduler.list_tickets() for event in self._scheduler.fail(ticket, fault)]

    def _publish(self, events: EventBatch) -> None:
        if not events:
            return
        for ticket, event in events:
            if isinstance(event, (Finished, Failed)):
                self._record_end(ticket, all_choices=isinstance(event, Failed))
        self.deliver(events)

    def _record_end(self, ticket: int, *, all_choices: bool) -> None:
        with self._wake:
            count, since = self._unfinished.pop(ticket, (0, 0.0))
            if count > 1 and not all_choices:
                self._unfinished[ticket] = (count - 1, since)
            elif count:
                self._mean_seconds += 0.2 * (time.monotonic() - since - self._mean_seconds)


def _reject_events(batch: EventBatch) -> None:
    raise RuntimeError("the engine has no event handler: set `deliver` before the first request")


def _count_slots(
    folder: ModelFolder, signature: DecoderSignature, provider: ExecutionProvider, options: EngineOptions, context: int
) -> int:
    from dragoman.local_engine.batching.kv_cache import cache_provider
    from dragoman.local_engine.runtime.memory import default_cache_bytes

    storage = cache_provider(signature, provider) if signature.layout == "slots" else provider
    memory = default_cache_bytes(storage) if options.memory is None else options.memory
    slot_bytes = signature.bytes_per_position * context
    if slot_bytes > memory:
        raise FolderError(
            f"{folder.file}: one sequence of {context} tokens needs {slot_bytes >> 20} MiB for keys and values, but"
            f" {memory >> 20} MiB are available; choose a shorter context"
        )
    return min(options.slots, memory // slot_bytes)
