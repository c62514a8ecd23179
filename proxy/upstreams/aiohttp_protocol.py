"""The protocol of a connection to an upstream: what happens with bytes that arrive.

This module uses parts of aiohttp's client that aiohttp does not document; `test_aiohttp_client_internals.py` names
them, and the releases that have them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from dragoman.proxy.http.aiohttp_bodies import ShortQueue, forget_chunks, take_available
from dragoman.proxy.http.write_turns import find_write_turns

from .chunks import BadChunk, ChunkReader, find_chunks
from .whole_reply import WholeReply, read_whole_reply

__all__ = [
    "MOST_INTERIM",
    "READ_SIZE",
    "RESPONSE_PARAMETERS",
    "Delivery",
    "ResponseProtocol",
    "too_many_responses",
]

READ_SIZE = 16 * 1024
"""Bytes that are read at once, and that a body holds before reading pauses."""

MOST_INTERIM = 16
"""The interim responses that an upstream may send before the response to a request."""

RESPONSE_PARAMETERS: Any = {"read_until_eof": True, "auto_decompress": False, "read_bufsize": READ_SIZE // 2}
"""How aiohttp parses responses."""


class Delivery:
    """Gives what arrives of a body to a function, until `end` is done."""

    __slots__ = ("_content", "_is_going_on", "_take", "end")

    def __init__(self, content: aiohttp.StreamReader, take: Callable[[bytes], bool]) -> None:
        self._content = content
        self._take = take
        self._is_going_on = False
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def give(self, data: bytes) -> bool:
        """Give bytes that are not in the body's buffer. False if others come before them, or nobody takes them."""
        if self._is_going_on or self._content._buffer or self.end.done():
            return False
        self._is_going_on = True
        try:
            if not self._take(data):
                self.end.set_result(None)
        except Exception as error:  # noqa: BLE001 - raised where the end is awaited
            self.end.set_exception(error)
        finally:
            self._is_going_on = False
        return True

    def go_on(self) -> None:
        """Give what has arrived. Reading may make the parser go on, which calls this once more meanwhile."""
        if self._is_going_on or self.end.done():
            return
        self._is_going_on = True
        content = self._content
        try:
            while data := take_available(content):
                if not self._take(data):
                    self.end.set_result(None)
                    return
                if not content._buffer:
                    break
            if content._eof or content._exception is not None:
                self.end.set_result(None)
        except Exception as error:  # noqa: BLE001 - raised where the end is awaited
            self.end.set_exception(error)
        finally:
            self._is_going_on = False


class ResponseProtocol(ResponseHandler):
    """aiohttp's protocol, except that

    - it resumes reading only if reading is paused: a body asks for it after every read;
    - it is not used again if a response came before the request was sent;
    - it gives up an upstream that sends response after response: nobody waits for more than one, and for the few
      interim ones before it;
    - its `delivery` learns when something was received, or nothing will be;
    - aiohttp does not parse a response that comes in one read, nor the plain chunks of a body whose head comes in one
      read."""

    delivery: Delivery | None = None
    _chunks: ChunkReader | None = None
    _content: aiohttp.StreamReader | None = None
    _first_read: asyncio.Future[WholeReply | None] | None = None

    def expect_response(self) -> None:
        """A request is being sent."""
        self._first_read = self._loop.create_future()

    async def read_whole(self) -> WholeReply | None:
        """The response; None if aiohttp parses it, or if there is none: then `read` it. Call it once."""
        return None if self._first_read is None else await self._first_read

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._buffer = cast("deque[Any]", ShortQueue())
        self._turns = find_write_turns(loop)

    @property
    def should_close(self) -> bool:
        if self._parser is None and self._exception is None:
            return self._should_close or bool(self._tail)
        return super().should_close

    def data_received(self, data: bytes) -> None:
        if self._first_read is not None:
            if self.transport is not None and self._turns.has_waiting(self.transport):
                self.force_close()  # this is no answer to the request, which is not sent: another answer will come
            reply = read_whole_reply(data)
            self._begin_response(reply)
            if reply is not None:
                return
            data = self._read_first_chunks(data)
            if not data:
                return
        elif data and self._chunks is not None:  # without data, aiohttp's parser goes on with what it has held back
            data = self._read_chunks(self._chunks, data)
            if not data:
                return
        ResponseHandler.data_received(self, data)
        if self.delivery is not None:
            self.delivery.go_on()

    def _begin_response(self, reply: WholeReply | None) -> None:
        """The first bytes of a response have come, or none will. aiohttp gets its parser only if it needs one."""
        first, self._first_read = self._first_read, None
        if reply is None:
            self.set_response_params(**RESPONSE_PARAMETERS)
        else:
            self._parser = self._payload = None  # those of the response before
        if first is not None and not first.done():
            first.set_result(reply)

    def _read_first_chunks(self, data: bytes) -> bytes:
        """Read the first bytes of a response, if they are a head, which aiohttp parses, and plain chunks. Returns the
        bytes that aiohttp has to parse: all or none."""
        self._chunks = self._content = None
        if (start := find_chunks(data)) is None:
            return data
        chunks = ChunkReader()
        try:
            found, rest = chunks.read(data[start:])
        except BadChunk:
            return data
        if rest:
            return data
        ResponseHandler.data_received(self, data[:start])
        if self._content is not None:  # aiohttp accepts the head
            self._chunks = chunks
            self._content.feed_data(found)
        return b""

    def _read_chunks(self, chunks: ChunkReader, data: bytes) -> bytes:
        """Read the chunks in these bytes. Returns the bytes that aiohttp has to parse."""
        content = self._content
        assert content is not None
        try:
            found, rest = chunks.read(data)
        except BadChunk as error:
            self.set_exception(aiohttp.ClientPayloadError(str(error)))
            content.set_exception(aiohttp.ClientPayloadError(str(error)))
            self.close()
            found, rest = b"", b""
        if found and (self.delivery is None or not self.delivery.give(found)):
            content.feed_data(found)
        if rest:
            self._chunks = self._content = None
        elif self.delivery is not None:
            self.delivery.go_on()
        return rest

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._first_read is not None:
            self._begin_response(None)
        super().connection_lost(exc)
        self._content = None  # it refers to its error, and that to the frames of this connection
        if self.delivery is not None:
            self.delivery.go_on()

    def feed_data(self, data: Any, size: int = 0) -> None:
        if len(self._buffer) < MOST_INTERIM:
            content = data[1]
            if content.__class__ is aiohttp.StreamReader:
                forget_chunks(content)
            self._content = content
            super().feed_data(data, size)
        elif not self.should_close:
            self.set_exception(too_many_responses())
            self.close()

    def pause_reading(self) -> None:
        """Pause the connection, and aiohttp's parser only if it feeds the body: else it would stop at the next bytes
        that it gets."""
        if self._chunks is None:
            super().pause_reading()
        else:
            self._reading_paused = True
            self._pause_transport_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        if self._reading_paused:
            super().resume_reading(resume_parser)


def too_many_responses() -> HttpProcessingError:
    """The error of an upstream that sends response after response."""
    return HttpProcessingError(message=f"the upstream sends more than {MOST_INTERIM} interim responses")
