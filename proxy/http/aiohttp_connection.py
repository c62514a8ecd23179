"""One client connection of the HTTP server: it answers one request after the other.

The application answers requests that the HTTP parser rejects, in HTTP/1.1, and its answer quotes nothing of them. If a
client leaves, its handler is cancelled. Only the application writes a log.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast

from aiohttp import HttpVersion11
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpRequestParser
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import ERROR, RequestHandler, RequestPayloadError, _ErrInfo
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse
from aiohttp.web_server import Server

from dragoman.adapters.faults import Fault

from .aiohttp_bodies import KnownBody, ShortQueue, WholeBody, limit_waiting
from .aiohttp_request import Request, create_known_request, has_begun, share_fields
from .application import Application
from .head_rules import MOST_HEAD_BYTES, find_bad_head, head_too_large, measure_head
from .known_heads import KnownHead, KnownHeads, KnownRequest, measure_request
from .large_reads import PIECE, BoundedReads, ReadTurns
from .parser_errors import to_error_info, to_fault
from .write_turns import find_write_turns

__all__ = ["Connection", "Connections", "RequestPayloadError"]

_LINGER = 2.0  # seconds to read the rest of a refused body, so that the client can read the answer
_ERROR = ERROR._replace(version=HttpVersion11)
_HEAD_END = b"\r\n\r\n"
_MOST_UNSENT = 4 * 1024  # bytes that wait for the client before the next ones are written
_MOST_FRAMING = 512 * 1024  # bytes of chunks that are no content; the parser may hold back as much that it has not read
_PER_BYTE = 8  # that chunks of one byte have, their content included


class Connections(Server):
    """What a connection asks its server: whether every response is the last one of its connection, how many
    connections there may be, which heads of requests are known, and when a large body is read."""

    is_draining: bool
    most_connections: int
    known_heads: KnownHeads[Any]
    read_turns: ReadTurns


class Connection(RequestHandler):
    """One client connection."""

    __slots__ = (
        *("_application", "_framing_size", "_head_begun", "_head_size", "_known_body", "_last_head"),
        *("_missing", "_parser_needs", "_server", "_shared_fields", "write_turns"),
    )

    def __init__(self, application: Application, server: Connections, **options: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._messages = cast("deque[Any]", ShortQueue())
        self._application = application
        self._server = server
        self._head_begun = False  # a part of a request's head has arrived, but not all of it
        self._head_size = 0  # bytes of that part
        self._framing_size = 0  # bytes of a request after those that came with its head
        self._parser_needs: int | None = 0  # bytes until the parser is at the end of a request; None if unknown
        self._known_body: KnownBody | None = None  # one that arrives, and which the parser does not see
        self._missing = 0  # bytes of that body
        self._last_head: KnownHead[Any] | None = None  # the known head that came last
        self._shared_fields: dict[str, Any] | None = None  # of the requests with known heads
        self.write_turns = find_write_turns(self._loop)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Limit what waits for a client that does not read. Refuse a connection that is one too many, in HTTP."""
        super().connection_made(transport)
        cast(asyncio.Transport, transport).set_write_buffer_limits(high=_MOST_UNSENT)
        if len(self._server.connections) > self._server.most_connections:
            text = "the proxy has as many connections as it may (server.limits.connections)"
            self._reject(Fault("overloaded", text, code="overloaded", retry_after=1.0))

    def connection_lost(self, exc: BaseException | None) -> None:
        """Also let go of what refers to this connection: with it, that would be a cycle of references."""
        super().connection_lost(exc)
        self._known_body = self._shared_fields = None
        self._messages.clear()

    def force_close(self) -> None:
        """Close the connection, after what waits to be written."""
        self.write_turns.write_now(self.transport)
        super().force_close()

    async def start(self) -> None:
        """Answer one request after the other, in this task; aiohttp makes another task for each."""
        while not self._force_close:
            if not self._messages:
                await self._wait_for_request()
            else:
                self.write_turns.write_now(self.transport)  # the answer to the request before
            message, payload = self._messages.popleft()
            self._let_parser_go_on()
            try:
                stays_open = await self._answer(message, payload)
            except ConnectionError:
                break
            except Exception as error:  # noqa: BLE001 - nothing may end the connection without a trace
                self.log_exception(exc_info=error)
                self.force_close()
                break
            except BaseException:
                self.force_close()
                raise
            if not stays_open or self._close:
                break
            self._expect_next_request()
        if not self._force_close:
            self._task_handler = None
            self.write_turns.write_now(self.transport)
            if self.transport is not None:
                self.transport.close()

    async def _wait_for_request(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _let_parser_go_on(self) -> None:
        """Make room for the next request: the parser stops when too many wait."""
        if self._parser is not None:
            self._parser.message_consumed()
        if self._buffer_paused and len(self._messages) <= self._msg_queue_resume_size:
            self._resume_reading_if_drained()

    async def _answer(self, message: Any, payload: StreamReader) -> bool:
        """Answer one request, and say whether the connection stays open. Raises ConnectionError."""
        parsed = _ERROR if message.__class__ is _ErrInfo else message
        if payload.__class__ is WholeBody or payload.__class__ is KnownBody:
            self._shared_fields = shared = self._shared_fields or share_fields(self)
            request = create_known_request(shared, message, payload)
        else:
            no_task = cast(asyncio.Task[None], None)  # a traceback of it would be a cycle of references
            request = Request(parsed, payload, self, StreamWriter(self, self._loop), no_task, self._loop)
        self._request_in_progress, self._current_request = True, request
        self.write_turns.in_progress += 1
        try:
            try:
                if parsed is message:
                    response = await self._application.handle(request)
                else:
                    response = self.handle_error(request, message.status, message.exc, message.message)
            except Exception as error:  # noqa: BLE001 - it is logged, and the client learns of it
                response = self.handle_error(request, 500, error)
            finally:
                self._current_request = None
            if self._upgraded:  # which was declined: aiohttp knows how to go on
                if (await self.finish_response(request, response, None))[1]:  # the connection is lost
                    return False
            else:
                await response.prepare(request)
                await response.write_eof()
            if self._server.is_draining:
                response.force_close()
        finally:
            self._request_in_progress = False
            self.write_turns.in_progress -= 1
            if self._handler_waiter is not None:
                self._handler_waiter.set_result(None)
        self._keepalive = bool(response.keep_alive)
        if not payload.is_eof():
            await self._discard_rest(payload)
        return self._keepalive

    async def _discard_rest(self, payload: StreamReader) -> None:
        """Read the rest of a body that nobody has read, for some time, so that the client can read the answer."""
        try:
            async with asyncio.timeout(_LINGER):
                while not payload.is_eof() and not self._force_close:
                    await self.read_piece(payload)
        except TimeoutError:
            self.close()

    async def read_piece(self, content: StreamReader) -> bytes:
        """The next bytes of a large body, in the next turn that nobody else reads in; empty at its end. Raises what
        `readany` raises."""
        limit_waiting(content, PIECE)
        if self.transport is not None and not isinstance(self.transport.get_protocol(), BoundedReads):
            self.transport.pause_reading()
            self.transport.set_protocol(BoundedReads(self, self._server.read_turns.buffer))
            if not (self._reading_paused or self._buffer_paused):
                self.transport.resume_reading()
        await self._server.read_turns.wait()
        return await content.readany()

    def _expect_next_request(self) -> None:
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)

    def data_received(self, data: bytes) -> None:
        """Answer a request with a known head, and give everything else to the parser."""
        if self._known_body is not None:
            data = self._continue_known(self._known_body, data)
            if not data:
                return
        if self._parser_needs == 0 and not self._messages and self.is_idle and not (self._close or self._force_close):
            found = None if self._last_head is None else self._last_head.match(data)
            found = found or self._server.known_heads.find(data)
            if found is not None and found.rest + len(found.body) <= self._read_bufsize:
                self._take_known(found)
                return
        known = len(self._messages)
        needs, self._parser_needs = self._parser_needs, None
        self._parse(data, is_at_start=needs == 0)
        if needs:
            self._parser_needs = needs - len(data) if needs >= len(data) else None
        elif needs == 0:
            self._learn_head(data, self._messages[0] if known == 0 and len(self._messages) == 1 else None)

    def _take_known(self, found: KnownRequest[Any]) -> None:
        """Queue a request that the parser does not see."""
        self._last_head = found.head
        payload: WholeBody | KnownBody
        if found.rest:
            self._known_body = payload = KnownBody(self, self._read_bufsize, found.head, found.body)
            self._missing = found.rest
        else:
            payload = WholeBody(found.head, found.body)
        self._messages.append((found.message, payload))
        cast(asyncio.Future[None], self._waiter).set_result(None)

    def _continue_known(self, payload: KnownBody, data: bytes) -> bytes:
        """Add to a body that the parser does not see. What follows it is returned."""
        missing = self._missing
        payload.feed_data(data[:missing])
        self._missing -= min(missing, len(data))
        if not self._missing:
            self._known_body = None
            payload.feed_eof()
        return data[missing:]

    def _learn_head(self, data: bytes, parsed: tuple[Any, StreamReader] | None) -> None:
        """Remember the head of a request that the parser has made of these bytes, from the first one on; None if it has
        made anything else of them."""
        if not data:
            self._parser_needs = 0
        elif parsed is not None and parsed[0].__class__ is not _ErrInfo:
            self._parser_needs = measure_request(data, parsed[0])
            if self._parser_needs is not None:
                self._server.known_heads.add(data, parsed[0])

    def _parse(self, data: bytes, *, is_at_start: bool) -> None:
        """Give bytes to the parser, which is at the start of a request or not. Reject what it lets pass. Wake a handler
        that waits for a body if the parser rejects the body: aiohttp leaves it waiting."""
        known = len(self._messages)
        self._feed_parser(data)
        if known == 0 and len(self._messages) == 1 and self._messages[0][0].__class__ is not _ErrInfo:
            self._head_size = self._framing_size = 0
            self._head_begun = False
            self._check_head(0, len(data))
            return
        if len(self._messages) > known:
            if self._messages[-1][0].__class__ is _ErrInfo and not known and is_at_start:
                self._keep_good_requests(data)
            self._head_size = self._framing_size = 0
            for position in range(known, len(self._messages)):
                self._check_head(position, len(data))
        elif self._awaits_head():
            self._head_size += len(data)
            if self._head_size > MOST_HEAD_BYTES >= self._head_size - len(data):
                self._reject(head_too_large())
        elif self._current_request is not None:
            self._check_framing(self._current_request.content, len(data))
        self._head_begun = self.is_idle and (self._head_begun or bool(data.strip(b"\r\n")))
        if self._messages and self._current_request is not None and isinstance(self._messages[-1][0], _ErrInfo):
            self._current_request.content.set_exception(RequestPayloadError("the body is not valid"))

    def _feed_parser(self, data: bytes) -> None:
        """As aiohttp does it, but without the traceback of an error: aiohttp's frame in it has the error, a cycle."""
        RequestHandler.data_received(self, data)
        if self._messages and self._messages[-1][0].__class__ is _ErrInfo:
            self._messages[-1][0].exc.__traceback__ = None

    def _keep_good_requests(self, data: bytes) -> None:
        """Answer the requests before a bad one that came in the same data, of which the parser gives only the error.
        It parses the data once more, in parts that end with a head, if a request begins with them."""
        parts = data.split(_HEAD_END)
        if len(parts) == 1 or self._waiter is None:
            return
        self._messages.clear()
        self._parser = self._create_parser()
        for part in (*(part + _HEAD_END for part in parts[:-1]), parts[-1]):
            self._feed_parser(part)
            if self._messages and isinstance(self._messages[-1][0], _ErrInfo):
                break
        if len(self._messages) > 1 and not self._messages[-2][1].is_eof():
            del self._messages[-2]  # the error is in its body

    def _create_parser(self) -> HttpRequestParser:
        return HttpRequestParser(
            self,
            asyncio.get_running_loop(),
            self._read_bufsize,
            max_line_size=self.max_line_size,
            max_field_size=self.max_field_size,
            max_headers=self.max_headers,
            payload_exception=RequestPayloadError,
            auto_decompress=False,
            max_msg_queue_size=self._max_msg_queue_size,
        )

    def _check_framing(self, content: StreamReader, received: int) -> None:
        """Refuse a body that consists of little but the sizes and extensions of chunks; the parser accepts any."""
        self._framing_size += received
        if self._framing_size > _MOST_FRAMING and self._framing_size > _MOST_FRAMING + _PER_BYTE * content.total_bytes:
            content.set_exception(RequestPayloadError("the body is not valid"))

    def _check_head(self, position: int, received: int) -> None:
        """Replace a request of the queue by the error that it gets; `received` is how many bytes brought it."""
        message, _ = self._messages[position]
        if isinstance(message, _ErrInfo):
            return
        fault = find_bad_head(message.version, message.headers)
        if fault is None and received > MOST_HEAD_BYTES < measure_head(message.raw_headers):
            fault = head_too_large()
        if fault is not None:
            self._messages[position] = (to_error_info(fault), EMPTY_PAYLOAD)

    def _reject(self, fault: Fault) -> None:
        """Answer with a fault, after what was requested before."""
        self._messages.append((to_error_info(fault), EMPTY_PAYLOAD))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _awaits_head(self) -> bool:
        """True if what arrives belongs to the head of the next request."""
        return self.is_idle or (self._current_request is not None and self._current_request.content.at_eof())

    def _holds_part_of_head(self) -> bool:
        """Whether the parser has a part of a head. It cannot be used afterwards: what would end any head is fed."""
        if self._parser is None:
            return False
        try:
            messages, _, _ = self._parser.feed_data(b"\r\n\r\n")
        except HttpProcessingError:
            return True
        return bool(messages)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Do what aiohttp does, but only if reading is paused: a body asks for it after every read."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    @property
    def is_draining(self) -> bool:
        return self._server.is_draining

    @property
    def is_idle(self) -> bool:
        """True if it waits for a request, or for the rest of a request's head."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def has_request(self) -> bool:
        """True if a request, or a part of one, has arrived and is not answered."""
        return self._request_in_progress or self._head_begun or bool(self._messages)

    def _process_keepalive(self) -> None:
        """Answer a head that takes too long; aiohttp would only close the connection."""
        late = asyncio.get_running_loop().time() >= self._next_keepalive_close_time
        if late and self.is_idle and (self._head_begun or self._holds_part_of_head()):
            text = "the head of the request did not come in time"
            self._reject(Fault("request_timeout", text, code="request_timeout"))
        else:
            super()._process_keepalive()

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        """Answer what the parser rejected, or an exception that nothing handled."""
        if self.transport is None or has_begun(request):
            raise ConnectionResetError("too late for an answer")
        if status >= 500 and not isinstance(exc, Fault):
            self._application.log_defect(exc)
        response = self._application.reject(request, to_fault(status, exc))
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Use the application's log, which masks secrets."""
        error = kwargs.get("exc_info")
        if self.transport is not None and not isinstance(error, RequestPayloadError):
            self._application.log_defect(error)
