"""Writes Responses streams: hub events in, named server-sent events out.

Theory of operation. The writer numbers the events, from 0 without gaps. An event that already has its number is written
with its original bytes. The writer accumulates the events, so that `response.failed` can contain the items so far:

    End       `[DONE]`, after the response's last event; the writer is closed
    a fault   the `error` event, `response.failed` with the items so far, `[DONE]`; the writer is closed. If no response
              has begun, only `error` and `[DONE]`

If a dialect's events differ from the hub's, `render` converts or omits each. A closed writer drops and counts events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.stream_writer import StreamWriterBase, encode_event_head
from dragoman.adapters.faults import Fault
from dragoman.adapters.retry_after import find_wait
from dragoman.adapters.streams import Chunk, DeltaRun
from dragoman.adapters.text_buffer import TextBuffer

from .accumulator import Accumulator
from .events import BEGINNINGS, error_event, lifecycle_event

__all__ = ["ResponsesStreamWriter"]

_DONE = b"data: [DONE]\n\n"

Render: TypeAlias = Callable[[JsonObject], JsonObject | None]


_TELLING_CODES = frozenset({"context_length_exceeded", "insufficient_quota", "server_is_overloaded"})
"""The codes of faults that Codex looks for in `response.failed`."""


class ResponsesStreamWriter(StreamWriterBase):
    """`write_stream` of Responses.

    `error_body` makes the body of an error: the events repeat its `error`, and the `error` event has its other keys
    too. `render` converts an event to the dialect's form: it returns the same object if nothing changes, None to omit
    the event. `failed` is the response object of a stream that a fault has ended, None if no response had begun.
    """

    def __init__(
        self, error_body: Callable[[Fault], JsonObject], render: Render | None = None, *, ping: bytes = b""
    ) -> None:
        super().__init__(ping=ping)
        self.failed: JsonObject | None = None
        self._error_body = error_body
        self._render = render
        self._accumulator = Accumulator()
        self._number = 0
        self._begun: tuple[object, orjson.Fragment | None] = (None, None)  # a response and its text
        self._ending: tuple[object, orjson.Fragment | None] = (None, None)  # the same, of the last event
        self._run_body: JsonObject | None = None  # whose runs are written with `_frame` and added to `_buffer`
        self._frame = (b"", b"")  # what is before the text of an event, and between it and the number
        self._buffer = TextBuffer()

    def encode_response(self, response: JsonObject) -> bytes:
        """The JSON text of a response. The event that has this object later is written with it."""
        text = orjson.dumps(response)
        self._ending = response, orjson.Fragment(text)
        return text

    def _encode_chunk(self, chunk: Chunk) -> bytes:
        self._run_body = None
        self._accumulator.add(chunk.body)
        return self._encode_event(chunk.body, chunk.raw)

    def _encode_run(self, run: DeltaRun) -> bytes:
        if self._render is not None:
            return super()._encode_run(run)
        if run.body is not self._run_body:
            self._begin_run(run)
        self._buffer.add_fragments(run.texts)
        texts, first = run.encoded_texts(), self._number
        self._number += len(texts)
        before, after = self._frame
        if len(texts) == 1:
            return b"%b%b%b%d}\n\n" % (before, texts[0], after, first)
        pieces = [before, b"", after, b"", b"}\n\n"] * len(texts)
        pieces[1::5], pieces[3::5] = texts, _encode_numbers(first, self._number)
        return b"".join(pieces)

    def _begin_run(self, run: DeltaRun) -> None:
        before, after = run.frame()
        self._frame = encode_event_head(run.body["type"]) + before, after[:-1] + b',"sequence_number":'
        self._buffer = self._accumulator.buffer(run.body)
        self._run_body = run.body

    def _encode_end(self) -> bytes:
        return _DONE

    def _encode_fault(self, fault: Fault) -> bytes:
        body = self._error_body(fault)
        error = body["error"] if isinstance(body.get("error"), dict) else {**body, "message": fault.message}
        others = {key: value for key, value in body.items() if key not in ("error", "message")}
        written = self._encode_event({**others, **error_event(error)})
        if self._accumulator.has_begun:
            reason = {"code": _name_failure(fault), "message": _describe_failure(fault, error["message"])}
            self.failed = self._accumulator.response("failed", reason)
            written += self._encode_event(lifecycle_event("failed", self.failed))
        return written + _DONE

    def _encode_event(self, event: JsonObject, raw: bytes | None = None) -> bytes:
        rendered = event if self._render is None else self._render(event)
        if rendered is None:
            return b""
        if rendered is not event or event.get("sequence_number") != self._number:
            raw = None
        data = raw or orjson.dumps({**self._write_response(rendered), "sequence_number": self._number})
        self._number += 1
        return encode_event_head(rendered["type"]) + data + b"\n\n"

    def _write_response(self, event: JsonObject) -> JsonObject:
        """The event, its response as JSON text if that is known from `encode_response`, or if the event is one of the
        first: they mostly have the same object, whose text is made once, and kept until the second of them."""
        response = event.get("response")
        if response is None:
            return event
        known, text = self._ending
        if text is not None and response is known:
            self._ending = (None, None)
            return {**event, "response": text}
        if event["type"] not in BEGINNINGS:
            return event
        known, text = self._begun
        self._begun = (None, None)
        if text is None or response is not known:
            text = orjson.Fragment(orjson.dumps(response))
            self._begun = response, text
        return {**event, "response": text}


_NUMBERS = [b"%d" % number for number in range(1_000)]


def _encode_numbers(first: int, end: int) -> list[bytes]:
    """The numbers from `first` to before `end`."""
    return _NUMBERS[first:end] if end <= len(_NUMBERS) else [b"%d" % number for number in range(first, end)]


def _name_failure(fault: Fault) -> str:
    """The error code of a failed response for a fault."""
    if fault.code in _TELLING_CODES:
        return fault.code
    if fault.kind == "rate_limit":
        return "rate_limit_exceeded"
    return "invalid_prompt" if fault.owner == "client" else "server_error"


def _describe_failure(fault: Fault, message: str) -> str:
    """The message of a failed response. Codex reads in its text how long to wait: a stream has no header for it."""
    if fault.kind != "rate_limit" or not fault.retry_after or find_wait(message) is not None:
        return message
    return f"{message.rstrip('. ')}. Please try again in {fault.retry_after:.3f}s."
