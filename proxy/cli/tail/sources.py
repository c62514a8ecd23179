"""Where lines come from: a pipe, a file that grows, or the events of a running proxy's page."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import orjson

from dragoman.adapters.sse import Event, Framer, TooLong

__all__ = ["SourceError", "follow_events", "follow_file", "read_lines"]

_POLL = 0.2  # seconds between two looks at a file
_READ = 65536  # bytes
_CONNECT = 10.0  # seconds
_EVENTS = "/page/api/events"


class SourceError(Exception):
    """The source cannot be read; the text says why, and what to do."""


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a stream, as they come."""
    yield from iter(stream.readline, b"")


def follow_file(path: str, *, follow: bool) -> Generator[bytes]:
    """The lines of a file; if it is followed, also those that are added later, to a new file of that name too. A last
    line without its end counts if the file is not followed. Raises SourceError."""
    while True:
        with _open(path) as stream:
            yield from _read_to_end(path, stream, follow=follow)
        if not follow:
            return


def _read_to_end(path: str, stream: BinaryIO, *, follow: bool) -> Iterator[bytes]:
    """The lines of a file until its end; if it is followed, until another one has taken its place."""
    begun = b""
    while True:
        for line in read_lines(stream):
            begun += line
            if begun.endswith(b"\n"):
                yield begun
                begun = b""
        if follow and not _is_replaced(path, stream):
            time.sleep(_POLL)
            continue
        if begun:
            yield begun
        return


def follow_events(url: str, key: str | None) -> Iterator[bytes]:
    """A line, as the log has it, for each exchange that ends at a running proxy. `url` is that of the listener that has
    the page. Raises SourceError."""
    parts = urlsplit(url)
    connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        connection = connect(parts.hostname or "", parts.port, timeout=_CONNECT)
    except (HTTPException, ValueError) as error:
        raise SourceError(f"nothing answers at {url}: {error}") from None
    with closing(connection), _ask_for_events(connection, url, key) as answer:
        if answer.status != 200:
            raise SourceError(_explain_status(url, answer.status))
        if connection.sock is not None:
            connection.sock.settimeout(None)
        yield from _read_exchanges(answer, url)


def _ask_for_events(connection: HTTPConnection, url: str, key: str | None) -> HTTPResponse:
    """The response, whose body has not been read. Raises SourceError."""
    try:
        connection.request("GET", _EVENTS, headers={"Authorization": f"Bearer {key}"} if key else {})
        return connection.getresponse()
    except (OSError, HTTPException, ValueError) as error:
        raise SourceError(f"nothing answers at {url}: {error}") from None


def _read_exchanges(answer: HTTPResponse, url: str) -> Iterator[bytes]:
    """The lines of exchanges in a stream of events. Raises SourceError."""
    framer = Framer()
    try:
        while data := answer.read1(_READ):
            for item in framer.feed(data):
                if isinstance(item, Event) and item.event == b"exchange" and (line := _to_line(item.data)) is not None:
                    yield line
    except (OSError, HTTPException, TooLong) as error:
        raise SourceError(f"the connection to {url} broke: {error}") from None


def _open(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None


def _is_replaced(path: str, stream: BinaryIO) -> bool:
    """Whether another file has the name now, or the file was emptied. It may be missing for a moment."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return found.st_ino != os.fstat(stream.fileno()).st_ino or found.st_size < stream.tell()


def _explain_status(url: str, status: int) -> str:
    if status == 401:
        return f"{url} needs a key: give server.admin_key as --admin-key or in DRAGOMAN_ADMIN_KEY"
    if status == 404:
        return f"{url} has no list of exchanges: is it the address of server.admin_port?"
    return f"{url} answers with status {status}"


def _to_line(data: bytes) -> bytes | None:
    """The log line of an exchange of the page; None if the exchange has not ended."""
    try:
        summary: Any = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(summary, dict) or summary.get("outcome") == "running":
        return None
    ended = summary.get("began", 0) + (summary.get("duration_ms") or 0) / 1000
    level = "info" if summary.get("outcome") == "ok" else "warning"
    line = {name: value for name, value in summary.items() if value is not None}
    timestamp = datetime.fromtimestamp(ended, UTC).isoformat()
    return orjson.dumps({**line, "timestamp": timestamp, "level": level, "event": "exchange"}) + b"\n"
