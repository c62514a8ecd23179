"""One choice of a request: its state, and the text that its tokens become.

    WAITING --slot--> PREFILL --last chunk--> DECODE --end token, stop sequence, length, mask, cancel--> DONE
       '------------------------- cancel, or the request fails ------------------------------------------^

Text is reported when its characters are complete (detokenizer) and cannot be the start of a stop sequence
(stop_sequences). A token is reported in the delta that completes its text. Tokens of a stop sequence are not reported.
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field

from dragoman.local_engine.generation import Delta, Finished, FinishReason, GenerationRequest, TokenMask, Usage
from dragoman.local_engine.sampling.sampler import SampledToken, Sampler
from dragoman.local_engine.text.detokenizer import Decode, Detokenizer
from dragoman.local_engine.text.stop_sequences import StopSequenceScanner

__all__ = ["Choice", "State"]


class State(enum.Enum):
    """The states of a choice."""

    WAITING = "waiting"
    PREFILL = "prefill"
    DECODE = "decode"
    DONE = "done"


@dataclass(slots=True)
class _PendingToken:
    """A token that is not reported yet. `text_end` is the length of the text that includes it."""

    sampled: SampledToken
    text_end: int


@dataclass(eq=False)
class Choice:
    """Choice `index` of request `ticket`. `end_tokens` end it; it generates `max_tokens` tokens at most."""

    ticket: int
    index: int
    request: GenerationRequest
    end_tokens: frozenset[int]
    max_tokens: int
    decode: Decode
    state: State = State.WAITING
    row: int = -1
    prefilled: int = 0
    cached: int = 0
    generated: int = 0
    last_token: int = -1
    mask: TokenMask | None = None
    sampler: Sampler = field(init=False)

    def __post_init__(self) -> None:
        request = self.request
        self.sampler = Sampler(request.sampling, request.prompt, self.index)
        self.mask = request.mask() if request.mask else None
        self._detokenizer = Detokenizer(self.decode)
        self._stops = StopSequenceScanner(request.stop)
        self._pending: deque[_PendingToken] = deque()
        self._decoded_length = self._reported_length = 0
        self._text = ""

    @property
    def is_done(self) -> bool:
        return self.state is State.DONE

    @property
    def usage(self) -> Usage:
        return Usage(len(self.request.prompt), self.generated, self.cached)

    def append(self, sampled: SampledToken) -> list[Delta | Finished]:
        """Append a sampled token; return the events that follow from it, with Finished after the last token."""
        self.generated += 1
        self.last_token = sampled.token
        complete = self.mask.accept(sampled.token) if self.mask else False
        if sampled.token in self.end_tokens:
            return self._finish("stop", sampled.token)
        self._add_text(self._detokenizer.add(sampled.token), sampled)
        if self._stops.found is not None:
            return self._finish("stop", self._stops.found)
        if complete:
            return self._finish("stop", None)
        if self.generated >= self.max_tokens:
            return self._finish("length", None)
        return self._take_delta()

    def cancel(self) -> list[Delta | Finished]:
        """End the choice; return its last events."""
        return self._finish("cancelled", None)

    def _add_text(self, text: str, sampled: SampledToken | None) -> None:
        self._decoded_length += len(text)
        if sampled is not None:
            is_complete = self._detokenizer.pending == 0
            self._pending.append(_PendingToken(sampled, self._decoded_length + (not is_complete)))
        self._text += self._stops.add(text)

    def _take_delta(self, *, everything: bool = False) -> list[Delta | Finished]:
        text, self._text = self._text, ""
        self._reported_length += len(text)
        tokens = []
        while self._pending and (everything or self._pending[0].text_end <= self._reported_length):
            tokens.append(self._pending.popleft().sampled)
        if not text and not tokens:
            return []
        logprobs = tuple(sampled.logprob for sampled in tokens if sampled.logprob is not None)
        return [Delta(self.index, text, tuple(sampled.token for sampled in tokens), logprobs)]

    def _finish(self, reason: FinishReason, stop: str | int | None) -> list[Delta | Finished]:
        """End the choice. Held-back text is reported, unless a stop sequence ended the choice."""
        self.state = State.DONE
        if self._stops.found is None:
            self._add_text(self._detokenizer.finish(), None)
        if self._stops.found is None:
            self._text += self._stops.finish()
        elif reason != "cancelled":
            reason, stop = "stop", self._stops.found
        last = self._take_delta(everything=self._stops.found is None)
        return [*last, Finished(self.index, reason, self.usage, stop)]
