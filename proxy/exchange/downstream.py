"""The response to the client: whole, or a stream that begins with its first bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol
from urllib.parse import quote

from aiohttp.web_response import StreamResponse

from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import STREAM_HEADERS, Attempt
from dragoman.proxy.http.aiohttp_responses import SingleWriteResponse
from dragoman.proxy.http.json_response import create_reply_response
from dragoman.proxy.http.stream_response import EventStreamResponse, Pings, send_large
from dragoman.proxy.telemetry.recording import REPLY

from .context import RequestContext

__all__ = ["DownstreamResponse", "StreamedResponse", "WholeResponse", "create_downstream_response"]

_TARGET = "x-dragoman-target"
_PRINTED = "/:.@+-_"  # characters of a target that stay as they are; clients may choose the others


class DownstreamResponse(Protocol):
    """Takes the bytes of an attempt."""

    __slots__ = ()

    @property
    def response(self) -> StreamResponse | None:
        """aiohttp's response, or None before it begins. As soon as it has begun, no other target can be tried."""

    def begin(self, attempt: Attempt) -> None:
        """Expect the bytes of this attempt."""

    def continue_with(self, ctx: RequestContext) -> None:
        """Go on with another context of the same request: with its deadline, headers and record."""

    async def write(self, data: bytes) -> None:
        """Write bytes to the client. Raises ClientDisconnected."""

    async def write_last(self, data: bytes) -> None:
        """Write the last bytes of a complete attempt. Raises ClientDisconnected."""
        await self.write(data)

    def write_now(self, data: bytes) -> bool:
        """Write bytes to the client without waiting; False if that cannot be done, and nothing was written."""
        return False

    async def end(self) -> None:
        """End the response: all bytes of the attempt are written. Raises ClientDisconnected."""

    async def fail(self, fault: Fault) -> None:
        """End a response that has begun. Raises ClientDisconnected."""

    def close(self) -> None:
        """Stop the timers."""


def create_downstream_response(ctx: RequestContext) -> DownstreamResponse:
    """A stream if the client requests one. Raises Fault if its protocol has no streams."""
    return StreamedResponse(ctx) if ctx.pipeline.wants_stream else WholeResponse(ctx)


class WholeResponse(DownstreamResponse):
    """A response of one write."""

    __slots__ = ("_attempt", "_ctx", "_response")

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._attempt: Attempt | None = None
        self._response: SingleWriteResponse | None = None

    @property
    def response(self) -> SingleWriteResponse | None:
        return self._response

    def begin(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def continue_with(self, ctx: RequestContext) -> None:
        self._ctx = ctx

    async def write(self, data: bytes) -> None:
        ctx, attempt = self._ctx, self._attempt
        assert attempt is not None
        self._response = create_reply_response(attempt.answer.status, data, _create_headers(ctx, attempt))
        ctx.record.bytes = len(data)
        if (recording := ctx.recording) is not None:
            recording.add_copy(REPLY, data)

    async def end(self) -> None:
        ctx = self._ctx
        assert self._response is not None
        await send_large(self._response, ctx.request, ctx.deadline, ctx.server.write_stall)

    async def fail(self, fault: Fault) -> None:
        raise AssertionError("a whole response is complete when it begins")

    def close(self) -> None:
        """There are no timers."""


class StreamedResponse(DownstreamResponse):
    """A stream of events."""

    __slots__ = ("_attempt", "_ctx", "_stream")

    def __init__(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._attempt: Attempt | None = None
        server, writer = ctx.server, ctx.pipeline.open_stream()
        pings = Pings(server.keep_alive, writer.ping) if writer.ping and server.keep_alive is not None else None
        self._stream = EventStreamResponse(
            ctx.request, ctx.deadline, self._headers, server.hold_headers, server.write_stall, pings
        )

    @property
    def response(self) -> StreamResponse | None:
        return self._stream.response

    def begin(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def continue_with(self, ctx: RequestContext) -> None:
        self._ctx = ctx
        self._stream.deadline = ctx.deadline

    async def write(self, data: bytes) -> None:
        await self._write(self._stream.write, data)

    async def write_last(self, data: bytes) -> None:
        await self._write(self._stream.write_last, data)

    async def _write(self, write: Callable[[bytes], Awaitable[None]], data: bytes) -> None:
        ctx = self._ctx
        if ctx.record.events and ctx.record.first_token_ms is None:
            ctx.record.first_token_ms = ctx.record.elapsed_ms()
        if (recording := ctx.recording) is not None:
            recording.add(REPLY, data)
        await write(data)
        ctx.record.bytes = self._stream.bytes_written

    def write_now(self, data: bytes) -> bool:
        ctx = self._ctx
        if not self._stream.write_now(data):
            return False
        if ctx.recording is not None:
            ctx.recording.add(REPLY, data)
        ctx.record.bytes = self._stream.bytes_written
        return True

    async def end(self) -> None:
        await self._stream.end(broken=self._attempt is not None and self._attempt.answer.breaks_connection)

    async def fail(self, fault: Fault) -> None:
        """Write an error event: headers are sent, and no attempt has written one."""
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
        ctx, attempt = self._ctx, self._attempt
        if attempt is None:
            return {**ctx.headers, **STREAM_HEADERS}
        return _create_headers(ctx, attempt)


def _create_headers(ctx: RequestContext, attempt: Attempt) -> dict[str, str]:
    """The headers of a response with the bytes of an attempt."""
    headers = {**ctx.sent_secrets.mask_headers(attempt.headers, attempt.receipt), **ctx.headers}
    if ctx.server.target_header and (target := ctx.record.target) is not None:
        headers[_TARGET] = quote(target, _PRINTED)
    return headers
