"""One choice of a request, from the queue to its end: a table of states, and the text that comes out.

    WAITING --slot--> PREFILL --last piece--> DECODE --end token, stop string, length, mask, cancel--> DONE
       '------------------------- cancel, or a request that breaks -------------------------------------^

Text leaves through two gates: characters are whole (detok), and no stop string can begin in them (stops). A token is
told with the piece of text that settles the last of it; what belongs to a stop string is never told.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field

from .detok import Decode, Detokenizer
from .requests import Delta, Finished, FinishReason, Generation, TokenMask, Usage
from .sampling import Chosen, Sampler
from .stops import StopScanner

__all__ = ["Choice", "State"]


class State(enum.Enum):
    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    DONE = "done"


@dataclass(slots=True)
class _Told:
    """A token, and the length of the text once all of its own is there."""

    chosen: Chosen
    end: int


@dataclass(eq=False)
class Choice:
    """Choice `index` of request `ticket`. `ends` are its end tokens, `room` the most tokens it may generate."""

    ticket: int
    index: int
    request: Generation
    ends: frozenset[int]
    room: int
    decode: Decode
    state: State = State.WAITING
    row: int = -1
    prefilled: int = 0
    cached: int = 0
    generated: int = 0
    last: int = -1
    mask: TokenMask | None = None
    sampler: Sampler = field(init=False)

    def __post_init__(self) -> None:
        request = self.request
        self.sampler = Sampler(request.sampling, request.prompt, self.index)
        self.mask = request.mask() if request.mask else None
        self._detokenizer = Detokenizer(self.decode)
        self._stops = StopScanner(request.stop)
        self._waiting: deque[_Told] = deque()
        self._settled = self._shown = 0
        self._text = ""

    @property
    def done(self) -> bool:
        return self.state is State.DONE

    @property
    def usage(self) -> Usage:
        return Usage(len(self.request.prompt), self.generated, self.cached)

    def take(self, chosen: Chosen) -> list[Delta | Finished]:
        """A token was chosen: what there is to tell, ending in Finished if it was the last."""
        self.generated += 1
        self.last = chosen.token
        complete = self.mask.accept(chosen.token) if self.mask else False
        if chosen.token in self.ends:
            return self._finish("stop", chosen.token)
        self._settle(self._detokenizer.add(chosen.token), chosen)
        if self._stops.found is not None:
            return self._finish("stop", self._stops.found)
        if complete:
            return self._finish("stop", None)
        if self.generated >= self.room:
            return self._finish("length", None)
        return self._delta()

    def cancel(self) -> list[Delta | Finished]:
        return self._finish("cancelled", None)

    def _settle(self, text: str, chosen: Chosen | None) -> None:
        self._settled += len(text)
        if chosen is not None:
            self._waiting.append(_Told(chosen, self._settled if self._detokenizer.held == 0 else self._settled + 1))
        self._text += self._stops.add(text)

    def _delta(self, *, everything: bool = False) -> list[Delta | Finished]:
        text, self._text = self._text, ""
        self._shown += len(text)
        told = []
        while self._waiting and (everything or self._waiting[0].end <= self._shown):
            told.append(self._waiting.popleft().chosen)
        if not text and not told:
            return []
        logprobs = tuple(chosen.logprob for chosen in told if chosen.logprob is not None)
        return [Delta(self.index, text, tuple(chosen.token for chosen in told), logprobs)]

    def _finish(self, reason: FinishReason, stop: str | int | None) -> list[Delta | Finished]:
        """The last words: what was held back belongs to the text unless a stop string ended it."""
        self.state = State.DONE
        if self._stops.found is None:
            self._settle(self._detokenizer.finish(), None)
        if self._stops.found is None:
            self._text += self._stops.finish()
        elif reason != "cancelled":
            reason, stop = "stop", self._stops.found
        last = self._delta(everything=self._stops.found is None)
        return [*last, Finished(self.index, reason, self.usage, stop)]
