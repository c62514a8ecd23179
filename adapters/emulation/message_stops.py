"""Emulates `stop_sequences` of Messages: the text of a message is cut at the first stop sequence.

Only text is cut, and a stop sequence that spans two blocks is none. In a stream, the block with
the stop sequence is closed, and the events that end the message follow: the provider's call can be cancelled. Its
usage is an estimate then.
"""

from __future__ import annotations

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.completeness import end_cut_stream
from dragoman.adapters.messages.events import (
    BLOCK_START,
    BLOCK_STOP,
    DELTA,
    MESSAGE_START,
    TEXT,
    TEXTS,
    block_delta,
    block_stop,
    message_delta,
    message_stop,
)
from dragoman.adapters.streams import Chunk, DeltaRun, Output
from dragoman.adapters.text_buffer import decode_fragment

from .interface import Emulation, StreamMerger
from .stop_cutter import ESTIMATE, StreamCutter, estimate_tokens
from .stop_scanner import StopScanner
from .stop_sequences import check_stops, count_prompt_bytes

__all__ = ["MESSAGE_STOPS"]

_FIELD = "stop_sequences"
_PROMPT = ("system", "messages")
_PLACE = ("delta", TEXTS[TEXT])


def _find_obstacle(request: JsonObject) -> str | None:
    return check_stops(_list_stops(request))


def _list_stops(request: JsonObject) -> tuple[str, ...]:
    return tuple(stop for stop in request.get(_FIELD) or () if stop)


def _split(ctx: Context) -> list[Context]:
    ctx.receipt.record_emulation((_FIELD,), "dragoman cuts the text at the first stop sequence")
    return [ctx._replace(request={key: value for key, value in ctx.request.items() if key != _FIELD})]


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    (reply,) = replies
    stops, kept = _list_stops(ctx.request), list[JsonObject]()
    for block in reply["content"]:
        scanner = StopScanner(stops)
        text = scanner.feed(block["text"]) if block["type"] == "text" else ""
        if scanner.stop is None:
            kept.append(block)
            continue
        kept += [{**block, "text": text}] if text else []
        return {**reply, "content": kept, "stop_reason": "stop_sequence", "stop_sequence": scanner.stop}
    return reply


class _MessageCutter(StreamCutter):
    """Cuts the text of a message."""

    def __init__(self, ctx: Context, stops: tuple[str, ...], prompt: int) -> None:
        super().__init__(ctx, stops, prompt)
        self._scanner = StopScanner(stops)
        self._usage: JsonObject = {}  # that the message began with
        self._index = 0  # of the block that began last

    def _cut(self, output: Chunk | DeltaRun) -> list[Output]:
        if isinstance(output, DeltaRun):
            if output.place != _PLACE:
                return [output]
            return self._cut_text(output, "".join(map(decode_fragment, output.texts)))
        event = output.body
        if event["type"] == DELTA and event["delta"]["type"] == TEXT:
            return self._cut_text(output, event["delta"]["text"])
        if event["type"] == MESSAGE_START:
            self._usage = event["message"]["usage"]
        elif event["type"] == BLOCK_START:
            self._scanner, self._index = StopScanner(self._stops), event["index"]
        elif event["type"] == BLOCK_STOP and (held := self._scanner.flush()):
            return [Chunk(block_delta(event["index"], TEXT, held)), output]
        return [output]

    def _flush(self) -> list[Output]:
        held = self._scanner.flush()  # there is some if the stream broke off inside a block
        return [Chunk(block_delta(self._index, TEXT, held))] if held else []

    def _cut_text(self, output: Chunk | DeltaRun, text: str) -> list[Output]:
        self._bytes += len(text.encode())
        out = self._scanner.feed(text)
        if out == text and self._scanner.stop is None:
            return [output]
        made: list[Output] = []
        if out and isinstance(output, DeltaRun):
            made.append(DeltaRun(output.body, output.place, [orjson.dumps(out)[1:-1]]))
        elif out:
            made.append(Chunk(block_delta(output.body["index"], TEXT, out)))
        return made + ([] if self._scanner.stop is None else self._end_early(output.body["index"], self._scanner.stop))

    def _end_early(self, index: int, stop: str) -> list[Output]:
        self._has_ended = True
        self._ctx.receipt.record_conversion(("usage",), ESTIMATE, "loss")
        given = {key: value for key, value in self._usage.items() if value}
        usage = {
            **self._usage,
            "input_tokens": given.get("input_tokens") or estimate_tokens(self._prompt),
            "output_tokens": self._estimate_answer(),
        }
        ending = [block_stop(index), message_delta("stop_sequence", stop, usage), message_stop()]
        return [*map(Chunk, ending), end_cut_stream()]


def _merge(ctx: Context, parts: int) -> StreamMerger:
    return _MessageCutter(ctx, _list_stops(ctx.request), count_prompt_bytes(ctx.request, _PROMPT))


MESSAGE_STOPS = Emulation(_split, _join, _merge, _find_obstacle)
