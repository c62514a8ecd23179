"""The client's answer: a whole response, or a stream that begins with the first bytes."""

from __future__ import annotations

from typing import Protocol

from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import STREAM_HEADERS, Attempt
from dragoman.proxy.http.json_response import create_response
from dragoman.proxy.http.stream_response import EventStreamResponse, send_large

from .context import RequestContext

__all__ = ["Answer", "StreamAnswer", "WholeAnswer", "create_answer"]


class Answer(Protocol):
    """Where an attempt's bytes go."""

    @property
    def response(self) -> StreamResponse | None:
        """The response to the client, once there is one. From then on no other target can be tried."""

    def begin(self, attempt: Attempt) -> None:
        """From now on the bytes are those of this attempt."""

    async def write(self, data: bytes) -> None:
        """Take bytes for the client. Raises ClientDisconnected."""

    async def end(self) -> None:
        """The attempt has ended, and everything is written. Raises ClientDisconnected."""

    async def fail(self, fault: Fault) -> None:
        """End a response that has begun. Raises ClientDisconnected."""

    def close(self) -> None:
        """Stop the timers."""


def create_answer(ctx: RequestContext) -> Answer:
    """A stream if the client asked for one. Raises Fault if its protocol has no streams."""
    return StreamAnswer(ctx) if ctx.pipeline.wants_stream else WholeAnswer(ctx)


class WholeAnswer(Answer):
    """Bytes come once."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._attempt: Attempt | None = None
        self._response: Response | None = None

    @property
    def response(self) -> Response | None:
        return self._response

    def begin(self, attempt: Attempt) -> None:
        self._attempt = attempt

    async def write(self, data: bytes) -> None:
        ctx, attempt = self._ctx, self._attempt
        assert attempt is not None
        headers = {"x-request-id": ctx.record.request_id, **attempt.headers}
        self._response = create_response(attempt.answer.status, data, headers)
        ctx.record.bytes = len(data)

    async def end(self) -> None:
        ctx = self._ctx
        assert self._response is not None
        await send_large(self._response, ctx.request, ctx.deadline, ctx.server.write_stall)

    async def fail(self, fault: Fault) -> None:
        raise AssertionError("a whole response is complete when it begins")

    def close(self) -> None:
        """There are no timers."""


class StreamAnswer(Answer):
    """One stream of events."""

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._attempt: Attempt | None = None
        server, writer = ctx.server, ctx.pipeline.open_stream()
        ping = server.keep_alive if writer.comments else None
        self._stream = EventStreamResponse(
            ctx.request, ctx.deadline, self._headers, server.hold_headers, server.write_stall, ping
        )

    @property
    def response(self) -> StreamResponse | None:
        return self._stream.response

    def begin(self, attempt: Attempt) -> None:
        self._attempt = attempt

    async def write(self, data: bytes) -> None:
        ctx = self._ctx
        if ctx.record.events and ctx.record.first_token_ms is None:
            ctx.record.first_token_ms = ctx.record.elapsed_ms()
        await self._stream.write(data)
        ctx.record.bytes = self._stream.written

    async def end(self) -> None:
        await self._stream.end(broken=self._attempt is not None and self._attempt.answer.breaks_connection)

    async def fail(self, fault: Fault) -> None:
        """Headers are out, but no attempt has written an error event."""
        output = self._attempt.fail(fault) if self._attempt is not None else None
        if output is not None and output.data:
            await self.write(self._ctx.mask(output.data))
            return await self.end()
        writer = self._ctx.pipeline.open_stream()
        await self.write(self._ctx.mask(writer.write(fault)))
        await self._stream.end(broken=writer.aborts)

    def close(self) -> None:
        self._stream.close()

    def _headers(self) -> dict[str, str]:
        headers = STREAM_HEADERS if self._attempt is None else self._attempt.headers
        return {"x-request-id": self._ctx.record.request_id, **headers}
