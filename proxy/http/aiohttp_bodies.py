"""The bodies of requests, replies and responses, in the fewest steps: what has arrived is taken at once, and what is
written is one write.

This module uses parts of aiohttp's streams that aiohttp does not document; `test_aiohttp_server_internals.py` names
them, and the releases that have them.
"""

from __future__ import annotations

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_writer import StreamWriter
from aiohttp.streams import StreamReader
from aiohttp.web_request import BaseRequest

__all__ = ["has_plain_chunks", "read_some", "take_rest", "write_chunk", "write_chunk_now"]


def take_rest(content: StreamReader) -> bytes | None:
    """The whole rest of a body of which all has arrived, in one piece; None if that is not so. Most bodies arrive in
    one read, and `readany` would do twelve times as much."""
    if type(content) is not StreamReader or not content.is_eof() or content.exception() is not None:
        return None
    buffer = content._buffer
    if len(buffer) != 1 or content._buffer_offset or content._size > content._low_water:  # reading may be paused
        return None
    content._size = 0
    return buffer.popleft()


async def read_some(content: StreamReader, most: int) -> bytes:
    """The next bytes of a body, at most so many; empty at its end. Does what `read` does, in fewer steps if one piece
    has arrived. Raises what `read` raises."""
    while not content._buffer and not content._eof and content._exception is None:
        await content._wait("read")
    buffer = content._buffer
    if len(buffer) == 1 and len(buffer[0]) <= most and not content._buffer_offset and content._exception is None:
        return content._read_nowait_chunk(-1)
    return await content.read(most)


def has_plain_chunks(request: BaseRequest) -> bool:
    """Whether what follows a response's head, which is sent, is written in chunks, and nothing else is done with it:
    then `write_chunk` may write it."""
    writer = request.writer
    if not isinstance(writer, StreamWriter) or not writer.chunked:
        return False
    return writer.length is None and writer._compress is None


def write_chunk_now(protocol: BaseProtocol, data: bytes) -> bool:
    """Write bytes as `write_chunk` does, but only if the client is there and has taken most of what was written."""
    transport = protocol.transport
    if transport is None or protocol._paused or transport.is_closing():
        return False
    transport.write(b"%x\r\n%b\r\n" % (len(data), data))
    return True


def write_chunk(request: BaseRequest, data: bytes) -> None:
    """Write bytes of a response that `has_plain_chunks`, as one chunk. Raises ConnectionError."""
    transport = request.transport
    if transport is None or transport.is_closing():
        raise ConnectionResetError("the client has left")
    transport.write(b"%x\r\n%b\r\n" % (len(data), data))
