"""Renders the recorded messages of an exchange for the page: decoded, in events if they are streams, and masked."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from dragoman.adapters.call import JsonObject
from dragoman.adapters.decompression import BadEncoding, DecompressedTooLarge, Decompressor, create_decompressor
from dragoman.proxy.telemetry.content_mask import ContentMask
from dragoman.proxy.telemetry.recording import Message, ReplyHead, RequestHead, SentHead

__all__ = ["list_headers", "read_text", "render_message", "split_events"]

_EVENT_END = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2,}")
_MOST_TEXT = 32 * 1024**2  # bytes that a compressed body becomes


def render_message(message: Message, mask: ContentMask, began: float, *, keeps_bodies: bool) -> JsonObject:
    """The message as JSON: `began` is when the exchange did, by the clock of the message's times."""
    headers = list_headers(message)
    chunks, problem = _decompress(message, headers)
    body = b"".join(chunks)
    is_cut = message.kept < message.length
    rendered: JsonObject = {
        "line": mask.mask_text(_write_line(message)),
        "headers": [[name, mask.mask_header(name, value)] for name, value in headers],
        "body": None,
        "form": "none",
        "kept": message.kept,
        "bytes": message.length,
        "events": [],
        "why_not": problem or _explain_absence(message, is_cut=is_cut, keeps_bodies=keeps_bodies),
    }
    if not body:
        return rendered
    text = read_text(body)
    if text is None:
        return rendered | {"form": "binary"}
    if _is_stream(body, headers):
        times = [round((time - began) * 1000, 3) for time in message.times]
        events: list[JsonObject] = [
            {"at_ms": at, "text": mask.mask_text(part.decode("utf-8", "replace"), is_cut=is_cut and is_last)}
            for at, part, is_last in split_events(chunks, times)
        ]
        return rendered | {"form": "events", "events": events}
    form = "json" if body.lstrip()[:1] in (b"{", b"[") else "text"
    return rendered | {"form": form, "body": mask.mask_text(text, is_cut=is_cut)}


def list_headers(message: Message) -> list[tuple[str, str]]:
    """The headers, in the order in which they were sent."""
    head = message.head
    if isinstance(head, RequestHead):
        return [(_decode(name), _decode(value)) for name, value in head.headers]
    if isinstance(head, SentHead):
        _, *lines = _decode(b"".join(head)).split("\r\n")
        pairs = (line.partition(": ") for line in lines if line)
        return [(name, value) for name, _, value in pairs]
    return [] if head is None else [*head.headers.items()]


def read_text(body: bytes) -> str | None:
    """The body as text, or None if it is not text. The last character may be cut."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        return body[: error.start].decode() if error.start >= len(body) - 3 and error.start else None


def split_events(chunks: Sequence[bytes], times: Sequence[float]) -> Iterator[tuple[float, bytes, bool]]:
    """The events of a stream: the time of the chunk in which each ended, its bytes, and whether it is the last one."""
    body = b"".join(chunks)
    ends = [*accumulate(map(len, chunks))]
    start = 0
    for match in _EVENT_END.finditer(body):
        end = match.end()
        yield times[bisect_left(ends, end)], body[start:end], end == len(body)
        start = end
    if start < len(body):
        yield times[-1], body[start:], True


def _write_line(message: Message) -> str:
    head = message.head
    if isinstance(head, RequestHead):
        return f"{head.method} {head.path} HTTP/1.1"
    if isinstance(head, SentHead):
        return _decode(head.start).partition("\r\n")[0]
    return "" if head is None else f"HTTP/1.1 {head.status}"


def _decompress(message: Message, headers: Sequence[tuple[str, str]]) -> tuple[list[bytes], str | None]:
    """The chunks without compression, and why there are none. Clients' bodies are recorded without it."""
    coding = next((value for name, value in headers if name.lower() == "content-encoding"), None)
    if coding is None or not isinstance(message.head, ReplyHead) or not message.chunks:
        return message.chunks, None
    try:
        decompressor = create_decompressor(coding, _MOST_TEXT)
        if decompressor is None:
            return message.chunks, None
        return [_feed(decompressor, chunk) for chunk in message.chunks], None
    except (BadEncoding, DecompressedTooLarge) as error:
        return [], str(error)


def _feed(decompressor: Decompressor, chunk: bytes) -> bytes:
    parts = [decompressor.feed(chunk)]
    while decompressor.pending:
        parts.append(decompressor.feed(b""))
    return b"".join(parts)


def _is_stream(body: bytes, headers: Sequence[tuple[str, str]]) -> bool:
    kind = next((value for name, value in headers if name.lower() == "content-type"), "")
    return kind.startswith("text/event-stream") or body.startswith((b"data:", b"event:", b": "))


def _explain_absence(message: Message, *, is_cut: bool, keeps_bodies: bool) -> str | None:
    if message.head is None and not message.length:
        return "there was none"
    if not keeps_bodies and message.length:
        return "server.inspect is heads, which keeps no bodies"
    return f"only the first {message.kept} of {message.length} bytes are kept" if is_cut else None


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")
