"""Requests as raw bytes: the corpus of data files, and a client that sends bytes and reads whatever comes back."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "BODY",
    "MARKER",
    "POST",
    "PROBE",
    "Response",
    "Variant",
    "converse",
    "expand",
    "load_corpus",
    "split_responses",
]

FOLDER = Path(__file__).parent / "http_corpus"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'
_MARKER_BODY = BODY.replace(b"hello", b"smuggled-marker")
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
MARKER = b"%sContent-Length: %d\r\n\r\n%s" % (POST, len(_MARKER_BODY), _MARKER_BODY)
PROBE = b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

_MACROS = {
    "post": POST,
    "line": b"POST /v1/chat/completions HTTP/1.1\r\n",
    "host": b"Host: 127.0.0.1\r\n",
    "json": b"Content-Type: application/json\r\n",
    "get": b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "body": BODY,
    "n": b"%d" % len(BODY),
    "hex": b"%x" % len(BODY),
    "chunk": b"%x\r\n%s\r\n" % (len(BODY), BODY),
    "chunked": b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    "request": b"%sContent-Length: %d\r\n\r\n%s" % (POST, len(BODY), BODY),
    "marker": MARKER,
    "marker_n": b"%d" % len(MARKER),
    "n_and_marker": b"%d" % (len(BODY) + len(MARKER)),
    "n_minus_1": b"%d" % (len(BODY) - 1),
}
_MACRO = re.compile(rb"\{(?:(\w+)|([^{}])\*(\d+))\}")


def expand(text: str) -> bytes:
    """Replace `{name}` by what the name stands for, and `{x*9000}` by 9000 x. Raises KeyError for other names."""

    def replace(found: re.Match[bytes]) -> bytes:
        return found[2] * int(found[3]) if found[2] else _MACROS[found[1].decode()]

    return _MACRO.sub(replace, text.encode("latin-1"))


@dataclass(frozen=True)
class Variant:
    """Bytes to send, the statuses of all answers in order, and what then becomes of the connection: `open` if it serves
    the next request, `closed` if the server closes it, `cut` if the client ends it in the middle of its request."""

    name: str
    data: bytes
    answers: tuple[int, ...]
    then: str

    @property
    def sent(self) -> bytes:
        """The bytes, and behind them a request that only an open connection answers."""
        refused = self.answers[-1:] > (399,)
        return self.data + PROBE if self.then == "open" or refused else self.data

    @property
    def expected(self) -> list[int]:
        return [*self.answers, *([200] if self.then == "open" else [])]


def load_corpus() -> list[Variant]:
    """The variants of all files, named `file/name`."""
    variants = []
    for file in sorted(FOLDER.glob("*.json")):
        for name, row in json.loads(file.read_text("utf-8")).items():
            data = expand(row["send"])
            variants.append(Variant(f"{file.stem}/{name}", data, tuple(row["answers"]), row["then"]))
    return variants


@dataclass(frozen=True)
class Response:
    status: int
    head: bytes
    body: bytes


def split_responses(data: bytes) -> list[Response]:
    """Split what one connection answered; interim responses are left out. Raises ValueError for what is no HTTP."""
    responses = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        matched = re.match(rb"HTTP/1\.[01] (\d{3}) ", head)
        if matched is None or not end:
            raise ValueError(f"no HTTP response: {head[:200]!r}")
        if int(matched[1]) >= 200:
            body, data = _take_body(head, data)
            responses.append(Response(int(matched[1]), head, body))
    return responses


def _take_body(head: bytes, data: bytes) -> tuple[bytes, bytes]:
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    if length is not None:
        return data[: int(length[1])], data[int(length[1]) :]
    if not re.search(rb"(?i)\r\ntransfer-encoding: chunked", head):
        return data, b""
    body = b""
    while True:
        line, _, data = data.partition(b"\r\n")
        size = int(line, 16)
        body, data = body + data[:size], data[size + 2 :]
        if not size:
            return body, data


async def converse(port: int, pieces: Sequence[bytes], *, half_close: bool = False, within: float = 20.0) -> bytes:
    """Send bytes, and read until the server closes the connection. Raises TimeoutError if it does not."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(within):
            received = asyncio.create_task(_read_all(reader))
            try:
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                if half_close:
                    writer.write_eof()
            except OSError:
                pass  # the server has closed: what it answered was read
            return await received
    finally:
        writer.close()


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    data = b""
    try:
        while piece := await reader.read(65536):
            data += piece
    except ConnectionError:
        pass  # a reset ends the answer too
    return data
