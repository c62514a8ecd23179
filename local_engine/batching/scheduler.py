"""Continuous batching, one step at a time and without threads: admit, prefill, decode, report events.

A step moves waiting choices into idle slots and prefills chunks of their prompts, up to `token_budget` tokens. Then it
computes one token for every choice whose prompt is complete. So a long prompt delays the others by one chunk at most.
Choices can join at any step and leave at the end of the step that finishes them. A cancelled choice leaves before the
next step, and a prefill chunk of it that is running is interrupted.

Prompts are split into chunks of `prefill_chunk` tokens, counted from their first computed token, and never into a
single token. So a prompt is computed in the same way regardless of other requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.adapters.faults import Fault
from dragoman.local_engine.generation import Event, Failed, TokenMask
from dragoman.local_engine.sampling.logits import Logits
from dragoman.local_engine.sampling.sampler import SampledToken

from .choice import Choice, State
from .kv_cache import KVCache, RunInterrupt
from .slot_table import SlotTable

__all__ = ["Scheduler", "SchedulerCounters", "next_prefill_size"]

MAX_ROWS_PER_SEQUENCE = 2
"""Rows in a decode step per decoding sequence. Above this ratio, a sequence is moved to a lower row."""


@dataclass(slots=True)
class SchedulerCounters:
    """Totals since the engine started."""

    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    moves: int = 0


def next_prefill_size(remaining: int, prefill_chunk: int) -> int:
    """The size of the next chunk of a prompt: at most `prefill_chunk`, and never such that one token remains."""
    if remaining <= prefill_chunk:
        return remaining
    return prefill_chunk - 1 if remaining == prefill_chunk + 1 else prefill_chunk


class Scheduler:
    """Runs choices on a KV cache. `pool` computes token masks while the model runs."""

    def __init__(
        self, cache: KVCache, vocab: int, pool: Executor, *, prefill_chunk: int = 256, token_budget: int = 256
    ) -> None:
        if prefill_chunk < 3:
            raise ValueError("prefill_chunk must be at least 3")
        self.counters = SchedulerCounters()
        self.waiting: deque[Choice] = deque()
        self._running: dict[int, Choice] = {}
        self._cache = cache
        self._mask_words = -(-vocab // 32)
        self._slots = SlotTable(cache.slots, reuse=cache.reusable)
        self._pool = pool
        self._prefill_chunk = prefill_chunk
        self._token_budget = token_budget
        self._events: list[tuple[int, Event]] = []
        self._running_prefill: tuple[int, RunInterrupt] | None = None

    @property
    def running_count(self) -> int:
        return len(self._running)

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self._running)

    def add(self, choices: Sequence[Choice]) -> None:
        """Queue the choices of a request."""
        self.waiting.extend(choices)

    def cancel(self, ticket: int) -> list[tuple[int, Event]]:
        """End a request's choices as cancelled; their slots are idle at once."""
        return self._remove(ticket, lambda choice: choice.cancel())

    def interrupt(self, ticket: int | None) -> None:
        """Interrupt the running prefill chunk if it belongs to this request, or to any with None. Thread-safe."""
        running = self._running_prefill
        if running is not None and ticket in (None, running[0]):
            running[1].set()

    def fail(self, ticket: int, fault: Fault) -> list[tuple[int, Event]]:
        """End a request with a fault. The contents of its slots are not reused."""
        self._remove(ticket, lambda choice: (), forget=True)
        return [(ticket, Failed(fault))]

    def list_tickets(self) -> set[int]:
        return {choice.ticket for choice in (*self.waiting, *self._running.values())}

    def _remove(
        self, ticket: int, end: Callable[[Choice], Sequence[Event]], *, forget: bool = False
    ) -> list[tuple[int, Event]]:
        removed = [choice for choice in (*self.waiting, *self._running.values()) if choice.ticket == ticket]
        self.waiting = deque(choice for choice in self.waiting if choice.ticket != ticket)
        events: list[tuple[int, Event]] = []
        for choice in removed:
            events += [(ticket, event) for event in end(choice)]
            choice.state = State.DONE
            self._release(choice, forget=forget)
        return events

    def step(self) -> list[tuple[int, Event]]:
        """Run one step; return its events with their tickets."""
        self.counters.steps += 1
        self._events = []
        self._prefill()
        self._compact()
        self._decode()
        return self._events

    # prompts

    def _prefill(self) -> None:
        spent = 0
        while (choice := self._find_prefilling() or self._admit()) is not None:
            size = next_prefill_size(len(choice.request.prompt) - choice.prefilled, self._prefill_chunk)
            if spent and spent + size > self._token_budget:
                return
            spent += size
            if not self._compute_chunk(choice, size):
                return

    def _find_prefilling(self) -> Choice | None:
        return next((choice for choice in self._running.values() if choice.state is State.PREFILL), None)

    def _admit(self) -> Choice | None:
        if not self.waiting:
            return None
        assignment = self._slots.assign(self.waiting[0].request.prompt)
        if assignment is None:
            return None
        choice = self.waiting.popleft()
        reused = assignment.reused
        choice.row, choice.prefilled, choice.cached = assignment.row, reused, reused
        choice.state = State.PREFILL
        self._running[assignment.row] = choice
        if assignment.source is not None:
            self._cache.copy_row(assignment.source, assignment.row, reused)
        self.counters.cached_tokens += reused
        return choice

    def _compute_chunk(self, choice: Choice, size: int) -> bool:
        """Prefill the next `size` tokens of a prompt; return False if the run was interrupted."""
        prompt = choice.request.prompt
        start, end = choice.prefilled, choice.prefilled + size
        masks = self._start_masks([choice] if end == len(prompt) else [])
        self._running_prefill = (choice.ticket, interrupt := RunInterrupt())
        try:
            logits = self._cache.prefill(choice.row, start, prompt[start:end], interrupt)
        except Exception:
            if not interrupt.is_set:
                raise
            return False
        finally:
            self._running_prefill = None
        choice.prefilled = end
        self._slots.record_prompt(choice.row, prompt[:end] if len(prompt) > 1 else ())
        self.counters.prompt_tokens += size
        if end == len(prompt):
            choice.state = State.DECODE
            self._sample([choice], logits, masks)
        return True

    # tokens

    def _decode(self) -> None:
        choices = [self._running[row] for row in sorted(self._running)]
        choices = [choice for choice in choices if choice.state is State.DECODE]
        if not choices:
            return
        masks = self._start_masks(choices)
        logits = self._cache.decode([choice.row for choice in choices], [choice.last_token for choice in choices])
        self._sample(choices, logits, masks)

    def _start_masks(self, choices: Sequence[Choice]) -> list[Future[NDArray[np.bool_] | None] | None]:
        """Start to compute the masks of the choices that have one."""
        return [
            self._pool.submit(_compute_mask, choice.mask, self._mask_words) if choice.mask else None
            for choice in choices
        ]

    def _sample(
        self,
        choices: Sequence[Choice],
        logits: Logits,
        masks: Sequence[Future[NDArray[np.bool_] | None] | None],
    ) -> None:
        allowed = [self._await_mask(choice, mask) for choice, mask in zip(choices, masks, strict=True)]
        sampled = logits.sample([choice.sampler for choice in choices], allowed)
        for choice, token in zip(choices, sampled, strict=True):
            if choice.is_done:
                continue
            if token is None:
                self._events += self.fail(
                    choice.ticket,
                    Fault(
                        "internal", "no token is allowed: the mask excludes all, or the model's logits are not finite"
                    ),
                )
                continue
            self.counters.generated_tokens += 1
            self._append_token(choice, token)
            if choice.is_done:
                self._release(choice)

    def _await_mask(self, choice: Choice, mask: Future[NDArray[np.bool_] | None] | None) -> NDArray[np.bool_] | None:
        """Wait for a mask. If its computation fails, only its own request fails."""
        try:
            return mask.result() if mask else None
        except Exception as error:  # noqa: BLE001  a mask is supplied by the caller
            self._events += self.fail(choice.ticket, Fault("internal", f"the token mask failed: {error}"))
            return None

    def _append_token(self, choice: Choice, token: SampledToken) -> None:
        try:
            self._events += [(choice.ticket, event) for event in choice.append(token)]
        except Exception as error:  # noqa: BLE001  raised by a mask or the tokenizer
            self._events += self.fail(choice.ticket, Fault("internal", f"token {token.token} was rejected: {error}"))

    # slots

    def _release(self, choice: Choice, *, forget: bool = False) -> None:
        if self._running.get(choice.row) is choice:
            del self._running[choice.row]
            self._slots.release(choice.row, forget=forget)
            if not self._cache.reusable:
                self._cache.clear_row(choice.row)

    def _compact(self) -> None:
        """Move the highest sequence to the lowest idle row, if most rows of the decode step would be dummies."""
        rows = [row for row in sorted(self._running) if self._running[row].state is State.DECODE]
        if not self._cache.reusable or not rows or rows[-1] - rows[0] + 1 <= MAX_ROWS_PER_SEQUENCE * len(rows):
            return
        idle_row = next((row for row in range(rows[0], rows[-1]) if self._slots.is_idle(row)), None)
        if idle_row is None:
            return
        choice = self._running[rows[-1]]
        self._cache.copy_row(choice.row, idle_row, len(choice.request.prompt) + choice.generated - 1)
        del self._running[choice.row]
        self._slots.move(choice.row, idle_row)
        self._cache.clear_row(choice.row)
        choice.row = idle_row
        self._running[idle_row] = choice
        self.counters.moves += 1


def _compute_mask(mask: TokenMask, words: int) -> NDArray[np.bool_] | None:
    """Compute a token mask as one bool per token; None allows all tokens."""
    bits = np.zeros(words, np.int32)
    if not mask.fill(bits.data):
        return None
    return np.unpackbits(bits.view(np.uint8), bitorder="little").astype(np.bool_)
