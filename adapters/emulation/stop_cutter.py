"""Cuts the choices of a stream at their first stop strings, and ends the stream when none is left.

A chunk is passed on as it came unless text is held back, or was held back before it. When a choice stops, its finish
reason gets a chunk of its own, and what the provider still sends of it is dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.completeness import end_cut_stream
from dragoman.adapters.common.parameters import wants_usage
from dragoman.adapters.streams import Chunk, DeltaRun, Output, count_events
from dragoman.adapters.text_buffer import decode_fragment

from .choice_cutter import ChoiceCutter
from .choice_text import ChoiceText
from .stop_scanner import StopScanner

__all__ = ["ESTIMATE", "StopCutter", "StreamCutter", "estimate_tokens"]

ESTIMATE = "a stop string ended the provider's stream before it reported its usage: the counts are an estimate"
_BYTES_PER_TOKEN = 4


def estimate_tokens(size: int) -> int:
    """The number of tokens of a text of so many bytes: a token has about four."""
    return -(-size // _BYTES_PER_TOKEN)


class StreamCutter(ABC):
    """A StreamMerger of one part, which may end the stream before the provider does. `prompt` is the number of bytes of
    the request's texts."""

    def __init__(self, ctx: Context, stops: tuple[str, ...], prompt: int) -> None:
        self._ctx = ctx
        self._stops = stops
        self._prompt = prompt
        self._events = self._bytes = 0  # of what the provider has sent
        self._has_ended = False

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return these outputs, cut."""
        made: list[Output] = []
        for output in outputs:
            if self._has_ended:
                break
            self._events += count_events(output)
            if isinstance(output, Chunk | DeltaRun):
                made += self._cut(output)
            else:
                self._has_ended = True
                made += [*self._flush(), output]
        return made

    @abstractmethod
    def _cut(self, output: Chunk | DeltaRun) -> list[Output]:
        """What becomes of an output. If it ends the stream, `_has_ended` is set."""

    def _flush(self) -> list[Output]:
        """What is held back when the stream ends."""
        return []

    def _estimate_answer(self) -> int:
        """The tokens of the answer: an event of a stream has one at least."""
        return max(self._events, estimate_tokens(self._bytes))


class StopCutter(StreamCutter):
    """Cuts choices. `expected` is the number of choices that the stream will have."""

    def __init__(
        self, ctx: Context, stops: tuple[str, ...], shape: ChoiceText, expected: int, prompt: int, *, keeps_stop: bool
    ) -> None:
        super().__init__(ctx, stops, prompt)
        self._shape = shape
        self._expected = expected
        self._keeps_stop = keeps_stop
        self._cutters: dict[int, ChoiceCutter] = {}
        self._body: JsonObject = {}  # of the last chunk with choices

    def _cut(self, output: Chunk | DeltaRun) -> list[Output]:
        if isinstance(output, DeltaRun):
            made = self._cut_run(output)
        else:
            made = self._cut_chunk(output) if output.body["choices"] else [output]
        return made + self._end_early() if self._is_complete() else made

    def _cut_chunk(self, chunk: Chunk) -> list[Output]:
        self._body = chunk.body
        given: list[JsonObject] = chunk.body["choices"]
        self._bytes += sum(len(self._shape.read(choice, self._shape.piece).encode()) for choice in given)
        made = [piece for choice in given for piece in self._find_cutter(choice).cut(choice)]
        if len(made) == len(given) and all(map(_is_same, made, given)):
            return [chunk]
        return [self._make_chunk(piece) for piece in made]

    def _cut_run(self, run: DeltaRun) -> list[Output]:
        self._body = run.body
        cutter = self._find_cutter(run.body["choices"][0])
        self._bytes += sum(map(len, run.texts))
        if run.place != self._shape.place:
            return [] if cutter.was_cut else [*map(self._make_chunk, cutter.flush()), run]
        text = "".join(map(decode_fragment, run.texts))
        out, following = cutter.cut_text(text)
        if out == text:
            return [run]
        made: list[Output] = [DeltaRun(run.body, run.place, [orjson.dumps(out)[1:-1]])] if out else []
        return made + [self._make_chunk(choice) for choice in following]

    def _flush(self) -> list[Output]:
        return [self._make_chunk(piece) for cutter in self._cutters.values() for piece in cutter.flush()]

    def _make_chunk(self, choice: JsonObject) -> Chunk:
        return Chunk({**self._body, "choices": [choice]})

    def _find_cutter(self, choice: JsonObject) -> ChoiceCutter:
        index = choice["index"]
        if index not in self._cutters:
            scanner = StopScanner(self._stops, keeps_stop=self._keeps_stop)
            self._cutters[index] = ChoiceCutter(index, scanner, self._shape)
        return self._cutters[index]

    def _is_complete(self) -> bool:
        """Whether every choice has ended, one of them before its end at the provider."""
        cutters = self._cutters.values()
        return (
            len(cutters) >= self._expected
            and all(cutter.has_ended for cutter in cutters)
            and any(cutter.was_cut for cutter in cutters)
        )

    def _end_early(self) -> list[Output]:
        self._has_ended = True
        usage = self._estimate_usage()
        if not wants_usage(self._ctx.request):
            return [end_cut_stream(usage)]
        self._ctx.receipt.record_conversion(("usage",), ESTIMATE, "loss")
        return [Chunk({**self._body, "choices": [], "usage": usage}), end_cut_stream()]

    def _estimate_usage(self) -> JsonObject:
        prompt, completion = estimate_tokens(self._prompt), self._estimate_answer()
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _is_same(one: object, other: object) -> bool:
    return one is other
