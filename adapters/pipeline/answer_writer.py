"""What the client gets of one attempt: its bytes, and what can be said about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import orjson

from dragoman.adapters.call import Context, Headers, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.events import MESSAGE_DELTA
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.routes import Route
from dragoman.adapters.streams import Chunk, DeltaRun, Output, StreamWriter

from .guard import explain_reply_error
from .reply_reader import SSE

__all__ = ["STREAM_HEADERS", "Answer", "AnswerWriter", "PartlyWritten"]

STREAM_HEADERS: Mapping[str, str] = {"Content-Type": SSE, "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""The headers of every stream to a client."""

Answer: TypeAlias = list[Output] | JsonObject
"""A part of a stream, or a whole reply, in canonical form and in the client's protocol."""


class PartlyWritten(Exception):
    """An output cannot be written, because of `error`. `data` are the bytes of the outputs before it."""

    def __init__(self, data: bytes, error: Exception) -> None:
        super().__init__()
        self.data = data
        self.error = error


class AnswerWriter:
    """`has_begun` says that there were bytes for the client. `status` is that of its response. `events` counts the
    events of a stream, `usage` is the latest usage in canonical form. `reply_headers` are those of a whole reply."""

    has_begun = False
    status = 200
    events = 0
    usage: JsonObject | None = None
    reply_headers: Headers = {}  # noqa: RUF012 - never altered
    _stream: StreamWriter | None = None

    def __init__(self, route: Route, ctx: Context) -> None:
        """`route` is the client's. `ctx` is what the client's dialect may look at: the client's context with the
        attempt's receipt and target."""
        self._served = route.served
        self._protocol = route.protocol
        self._ctx = ctx

    @property
    def breaks_connection(self) -> bool:
        """True if the client's connection must be broken off after the last bytes."""
        return self._stream is not None and self._stream.aborts

    @property
    def failed_response(self) -> JsonObject | None:
        """The response of a Responses stream that ended with a fault, in canonical form."""
        return self._stream.failed if isinstance(self._stream, ResponsesStreamWriter) else None

    def write(self, answer: Answer) -> bytes:
        """The bytes of a whole reply, or of a part of a stream; there may be none. Raises PartlyWritten, or what a
        dialect's writer raises if it has written nothing."""
        if isinstance(answer, dict):
            return self._write_reply(answer)
        self._open_stream()
        data = self._write_output(answer[0]) if len(answer) == 1 else self._write_outputs(answer)
        self.has_begun = self.has_begun or bool(data)
        return data

    def write_run(self, run: DeltaRun) -> bytes:
        """The bytes of coalesced deltas in a stream that has begun."""
        assert self._stream is not None
        self.events += len(run.texts)
        return self._stream.write(run)

    def write_fault(self, fault: Fault) -> bytes:
        """The bytes that end a stream with a fault."""
        return self._open_stream().write(fault)

    def encode_response(self, response: JsonObject) -> bytes | None:
        """The JSON text of a response, with which the event of a stream that has this object later is written too; None
        if the client's dialect writes its events in another way."""
        stream = self._open_stream()
        return stream.encode_response(response) if isinstance(stream, ResponsesStreamWriter) else None

    def _open_stream(self) -> StreamWriter:
        if self._stream is None:
            self._stream = self._served.write_stream(self._ctx)
        return self._stream

    def _write_reply(self, hub: JsonObject) -> bytes:
        try:
            reply = self._served.write_reply(hub, self._ctx)
            data = orjson.dumps(reply.body)
        except Exception as error:
            raise explain_reply_error(error, self._ctx, f"hub/{self._protocol}.reply", hub) from error
        self.status, self.reply_headers, self.has_begun = reply.status, reply.headers, True
        return data

    def _write_outputs(self, outputs: list[Output]) -> bytes:
        """What was written before an output that cannot be written is not lost: how far a client gets must not depend
        on how many outputs came in one read."""
        parts: list[bytes] = []
        try:
            parts.extend(map(self._write_output, outputs))
        except Exception as error:
            if not (data := b"".join(parts)):
                raise
            self.has_begun = True
            raise PartlyWritten(data, error) from error
        return b"".join(parts)

    def _write_output(self, output: Output) -> bytes:
        assert self._stream is not None
        if isinstance(output, DeltaRun):
            return self.write_run(output)
        if isinstance(output, Chunk):
            self.events += 1
            self.usage = _find_usage(output.body, self.usage)
            try:
                return self._stream.write(output)
            except Exception as error:
                raise explain_reply_error(error, self._ctx, f"hub/{self._protocol}.event", output.body) from error
        return self._stream.write(output)


def _find_usage(event: JsonObject, before: JsonObject | None) -> JsonObject | None:
    """The usage so far: that of a chunk, or of the response or the message in an event. `before` is the usage of
    earlier events, which the last events of a Messages stream need not repeat."""
    if "usage" not in event and "response" not in event and "message" not in event:
        return before
    holder = event.get("response", event.get("message"))
    usage: Any = (holder if isinstance(holder, dict) else event).get("usage")
    if not isinstance(usage, dict) or not usage:
        return before
    if before and event.get("type") == MESSAGE_DELTA:
        return {**before, **{key: value for key, value in usage.items() if value is not None}}
    return usage
