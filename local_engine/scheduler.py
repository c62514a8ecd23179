"""Continuous batching, one step at a time and without threads: admit, prefill, decode, tell.

A step takes waiting choices into free slots and computes pieces of their prompts, up to `budget` tokens, then one token
for every choice that is past its prompt. So a long prompt holds the others up by no more than its piece. Choices join
at any step, and leave at the end of the step that finishes them; a cancelled one leaves before the next, and ends the
piece of its prompt that is computed just then.

Prompts are cut into pieces of `piece` tokens counted from where they start, never into a single token, so that the same
prompt is computed in the same way whoever else is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.adapters.faults import Fault

from .choice import Choice, State
from .kv import Cache, Stop
from .requests import Event, Failed, TokenMask
from .sampling import Chosen
from .scores import Scores
from .slots import Slots

__all__ = ["Counts", "Scheduler", "next_piece"]

WASTE = 2
"""Rows from the lowest to the highest, per row in use, beyond which a sequence is moved down."""


@dataclass(slots=True)
class Counts:
    """What the engine has done so far."""

    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    moves: int = 0


def next_piece(left: int, piece: int) -> int:
    """How many of the `left` prompt tokens the next piece has: all if they fit, and never so many that one is left."""
    if left <= piece:
        return left
    return piece - 1 if left == piece + 1 else piece


class Scheduler:
    """Choices over a cache. `pool` computes token masks beside the model's run."""

    def __init__(self, cache: Cache, vocab: int, pool: Executor, *, piece: int = 256, budget: int = 256) -> None:
        if piece < 3:
            raise ValueError("a piece has at least 3 tokens")
        self.counts = Counts()
        self.waiting: deque[Choice] = deque()
        self._running: dict[int, Choice] = {}
        self._cache = cache
        self._words = -(-vocab // 32)
        self._slots = Slots(cache.slots, reuse=cache.reusable)
        self._pool = pool
        self._piece = piece
        self._budget = budget
        self._told: list[tuple[int, Event]] = []
        self._computing: tuple[int, Stop] | None = None

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def busy(self) -> bool:
        return bool(self.waiting or self._running)

    def add(self, choices: Sequence[Choice]) -> None:
        self.waiting.extend(choices)

    def cancel(self, ticket: int) -> list[tuple[int, Event]]:
        """End a request's choices; their slots are free at once."""
        return self._leave(ticket, lambda choice: choice.cancel())

    def interrupt(self, ticket: int | None) -> None:
        """End the piece that is computed now, if it is this request's, or whosoever's. For any thread."""
        computing = self._computing
        if computing is not None and ticket in (None, computing[0]):
            computing[1].set()

    def fail(self, ticket: int, fault: Fault) -> list[tuple[int, Event]]:
        """End a request with a fault; what its slots hold is not trusted any more."""
        self._leave(ticket, lambda choice: (), forget=True)
        return [(ticket, Failed(fault))]

    def tickets(self) -> set[int]:
        return {choice.ticket for choice in (*self.waiting, *self._running.values())}

    def _leave(
        self, ticket: int, end: Callable[[Choice], Sequence[Event]], *, forget: bool = False
    ) -> list[tuple[int, Event]]:
        mine = [choice for choice in (*self.waiting, *self._running.values()) if choice.ticket == ticket]
        self.waiting = deque(choice for choice in self.waiting if choice.ticket != ticket)
        told: list[tuple[int, Event]] = []
        for choice in mine:
            told += [(ticket, event) for event in end(choice)]
            choice.state = State.DONE
            self._release(choice, forget=forget)
        return told

    def step(self) -> list[tuple[int, Event]]:
        """One step; what it has to tell, by ticket."""
        self.counts.steps += 1
        self._told = []
        self._prefill()
        self._compact()
        self._decode()
        return self._told

    # prompts

    def _prefill(self) -> None:
        spent = 0
        while (choice := self._prefilling() or self._admit()) is not None:
            size = next_piece(len(choice.request.prompt) - choice.prefilled, self._piece)
            if spent and spent + size > self._budget:
                return
            spent += size
            if not self._compute(choice, size):
                return

    def _prefilling(self) -> Choice | None:
        return next((choice for choice in self._running.values() if choice.state is State.PREFILL), None)

    def _admit(self) -> Choice | None:
        if not self.waiting:
            return None
        place = self._slots.take(self.waiting[0].request.prompt)
        if place is None:
            return None
        choice = self.waiting.popleft()
        choice.row, choice.prefilled, choice.cached = place.row, place.kept, place.kept
        choice.state = State.PREFILL
        self._running[place.row] = choice
        if place.source is not None:
            self._cache.copy(place.source, place.row, place.kept)
        self.counts.cached_tokens += place.kept
        return choice

    def _compute(self, choice: Choice, size: int) -> bool:
        """Whether the piece was computed, and not interrupted."""
        prompt = choice.request.prompt
        start, end = choice.prefilled, choice.prefilled + size
        masks = self._masks([choice] if end == len(prompt) else [])
        self._computing = (choice.ticket, stop := Stop())
        try:
            scores = self._cache.prefill(choice.row, start, prompt[start:end], stop)
        except Exception:
            if not stop.is_set:
                raise
            return False
        finally:
            self._computing = None
        choice.prefilled = end
        self._slots.computed(choice.row, prompt[:end] if len(prompt) > 1 else ())
        self.counts.prompt_tokens += size
        if end == len(prompt):
            choice.state = State.DECODE
            self._choose([choice], scores, masks)
        return True

    # tokens

    def _decode(self) -> None:
        choices = [self._running[row] for row in sorted(self._running)]
        choices = [choice for choice in choices if choice.state is State.DECODE]
        if not choices:
            return
        masks = self._masks(choices)
        scores = self._cache.decode([choice.row for choice in choices], [choice.last for choice in choices])
        self._choose(choices, scores, masks)

    def _masks(self, choices: Sequence[Choice]) -> list[Future[NDArray[np.bool_] | None] | None]:
        """Begin to compute the masks that some choices need."""
        return [self._pool.submit(_mask, choice.mask, self._words) if choice.mask else None for choice in choices]

    def _choose(
        self,
        choices: Sequence[Choice],
        scores: Scores,
        masks: Sequence[Future[NDArray[np.bool_] | None] | None],
    ) -> None:
        allowed = [self._allowed(choice, mask) for choice, mask in zip(choices, masks, strict=True)]
        for choice, chosen in zip(choices, scores.choose([c.sampler for c in choices], allowed), strict=True):
            if choice.done:
                continue
            if chosen is None:
                self._told += self.fail(choice.ticket, Fault("internal", "no token may follow: the mask or the model"))
                continue
            self.counts.generated_tokens += 1
            self._take(choice, chosen)
            if choice.done:
                self._release(choice)

    def _allowed(self, choice: Choice, mask: Future[NDArray[np.bool_] | None] | None) -> NDArray[np.bool_] | None:
        """A mask once it is computed; one that breaks ends its own request only."""
        try:
            return mask.result() if mask else None
        except Exception as error:  # noqa: BLE001  masks come from outside
            self._told += self.fail(choice.ticket, Fault("internal", f"the token mask failed: {error}"))
            return None

    def _take(self, choice: Choice, chosen: Chosen) -> None:
        try:
            self._told += [(choice.ticket, event) for event in choice.take(chosen)]
        except Exception as error:  # noqa: BLE001  a mask or the tokenizer refused the token
            self._told += self.fail(choice.ticket, Fault("internal", f"token {chosen.token} was refused: {error}"))

    # slots

    def _release(self, choice: Choice, *, forget: bool = False) -> None:
        if self._running.get(choice.row) is choice:
            del self._running[choice.row]
            self._slots.release(choice.row, forget=forget)
            if not self._cache.reusable:
                self._cache.drop(choice.row)

    def _compact(self) -> None:
        """Move the highest sequence into the lowest hole where most rows of a decode step would be dummies."""
        rows = [row for row in sorted(self._running) if self._running[row].state is State.DECODE]
        if not self._cache.reusable or not rows or rows[-1] - rows[0] + 1 <= WASTE * len(rows):
            return
        hole = next((row for row in range(rows[0], rows[-1]) if self._slots.idle(row)), None)
        if hole is None:
            return
        choice = self._running[rows[-1]]
        self._cache.copy(choice.row, hole, len(choice.request.prompt) + choice.generated - 1)
        del self._running[choice.row]
        self._slots.move(choice.row, hole)
        self._cache.drop(choice.row)
        choice.row = hole
        self._running[hole] = choice
        self.counts.moves += 1


def _mask(mask: TokenMask, words: int) -> NDArray[np.bool_] | None:
    """A token mask as one bool per token; None allows all."""
    bits = np.zeros(words, np.int32)
    if not mask.fill(bits.data):
        return None
    return np.unpackbits(bits.view(np.uint8), bitorder="little").astype(np.bool_)
