"""Faulty or unusual framings of a reply: each takes the frames (SSE events, or the one JSON text) and returns steps."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from .answers import ModelRequest
from .errors import Problem, write_error_event
from .forms import DONE
from .wire import Close, Hang, Pause, Reply, Reset, Step

__all__ = [
    "Framing",
    "add_comments",
    "break_one_event",
    "build_raw_reply",
    "close_before_reply",
    "close_halfway",
    "close_inside_body",
    "compress_frames",
    "delay_each_frame",
    "delay_first_frame",
    "drop_data_prefix",
    "drop_done_event",
    "drop_event_names",
    "end_with_bare_text",
    "end_with_error_event",
    "hang_after_headers",
    "hang_before_reply",
    "hang_halfway",
    "pause_halfway",
    "prepend_bom",
    "repeat_done_event",
    "repeat_events_after_end",
    "replace_line_ends",
    "reset_halfway",
    "send_gzip_bomb",
    "send_large_body",
    "send_only_error",
    "split_data_lines",
    "split_into_bytes",
]

Framing: TypeAlias = Callable[[list[bytes], ModelRequest], Iterable[Step]]
MIB = 1024 * 1024


def _take_half(frames: list[bytes], request: ModelRequest) -> list[bytes]:
    """Take the first half of the events or of the JSON text."""
    if request.stream:
        return frames[: len(frames) // 2]
    whole = b"".join(frames)
    return [whole[: len(whole) // 2]]


def delay_each_frame(frames: list[bytes], request: ModelRequest) -> Iterator[Step]:
    for frame in frames:
        yield frame
        yield Pause(request.number_arg("delay"))


def delay_first_frame(frames: list[bytes], request: ModelRequest) -> list[Step]:
    return [Pause(request.number_arg("delay")), *frames]


def pause_halfway(frames: list[bytes], request: ModelRequest) -> list[Step]:
    """Pause between the halves of a stream, or before a whole reply."""
    first = _take_half(frames, request) if request.stream else []
    return [*first, Pause(request.number_arg("delay")), *frames[len(first) :]]


def hang_before_reply(_frames: list[bytes], _request: ModelRequest) -> list[Step]:
    return [Hang()]


def hang_after_headers(_frames: list[bytes], _request: ModelRequest) -> list[Step]:
    return [b"", Hang()]


def hang_halfway(frames: list[bytes], request: ModelRequest) -> list[Step]:
    return [*_take_half(frames, request), Hang()]


def reset_halfway(frames: list[bytes], request: ModelRequest) -> list[Step]:
    return [*_take_half(frames, request), Pause(0.02), Reset()]


def close_halfway(frames: list[bytes], request: ModelRequest) -> list[Step]:
    return [*_take_half(frames, request), Close()]


def close_before_reply(_frames: list[bytes], _request: ModelRequest) -> list[Step]:
    return [Close()]


def close_inside_body(frames: list[bytes], request: ModelRequest) -> list[Step]:
    """Close before the end that Content-Length declares."""
    return [*_take_half(frames, request), Close()]


_ENDS = {"messages": b'event: message_stop\ndata: {"type":"message_stop"}\n\n'}
"""The event that ends a stream after everything has been said, if it is not `[DONE]`."""


def drop_done_event(frames: list[bytes], request: ModelRequest) -> list[bytes]:
    end = _ENDS.get(request.protocol, DONE)
    return [frame for frame in frames if frame != end]


def repeat_done_event(frames: list[bytes], request: ModelRequest) -> list[bytes]:
    return [*frames, _ENDS.get(request.protocol, DONE)] if request.stream else frames


def repeat_events_after_end(frames: list[bytes], request: ModelRequest) -> list[bytes]:
    """Repeat the first half of the events after the end."""
    return [*frames, *_take_half(frames, request)] if request.stream else frames


def break_one_event(frames: list[bytes], request: ModelRequest) -> list[bytes]:
    if not request.stream:
        return _take_half(frames, request)
    middle = len(frames) // 2
    name = b"event: content_block_delta\n" if request.protocol == "messages" else b""
    return [*frames[:middle], name + b'data: {"id":"broken","choices":[{"ind\n\n', *frames[middle:]]


def end_with_bare_text(frames: list[bytes], request: ModelRequest) -> list[bytes]:
    text = f"Engine callback timeout: {request.text_arg('reason')}".encode()
    return [*_take_half(frames, request), text] if request.stream else [text]


def drop_data_prefix(frames: list[bytes], _request: ModelRequest) -> list[bytes]:
    return [re.sub(rb"\A(event: .*\n)?data: ", b"", frame) for frame in frames]


def drop_event_names(frames: list[bytes], _request: ModelRequest) -> list[bytes]:
    return [re.sub(rb"\Aevent: .*\n", b"", frame) for frame in frames]


def end_with_error_event(frames: list[bytes], request: ModelRequest) -> list[bytes]:
    if not request.stream:
        return send_only_error(frames, request)
    half = _take_half(frames, request)
    return [*half, _write_error_frame(request, len(half))]


def send_only_error(_frames: list[bytes], request: ModelRequest) -> list[bytes]:
    """Send only the dialect's error object, as an event or as the body of a reply with the status 200."""
    return [_write_error_frame(request, 0) if request.stream else _write_error_object(request)]


def _write_error_object(request: ModelRequest) -> bytes:
    problem = Problem(int(request.number_arg("status")), "The fake failed on purpose")
    return write_error_event(request.dialect, request.profile, problem)


def _write_error_frame(request: ModelRequest, sequence: int) -> bytes:
    """Write the error as an event; in a Responses stream, OpenAI's event `error` (API reference, streaming events); in
    a Messages stream, Anthropic's event of that name."""
    body = _write_error_object(request)
    if request.protocol == "messages":
        return b"event: error\ndata: " + body + b"\n\n"
    if request.protocol != "responses":
        return b"data: " + body + b"\n\n"
    given = json.loads(body)
    error = given.get("error", given)
    code = error.get("code") or error.get("type") or error.get("error_code")
    event = {"type": "error", "code": code, "message": error["message"], "param": None, "sequence_number": sequence}
    return b"event: error\ndata: " + json.dumps(event).encode() + b"\n\n"


def split_into_bytes(frames: list[bytes], _request: ModelRequest) -> Iterator[Step]:
    for frame in frames:
        for byte in frame:
            yield bytes((byte,))


def replace_line_ends(mark: bytes) -> Framing:
    def framing(frames: list[bytes], _request: ModelRequest) -> list[bytes]:
        return [frame.replace(b"\n", mark) for frame in frames]

    return framing


def prepend_bom(frames: list[bytes], _request: ModelRequest) -> list[bytes]:
    return [b"\xef\xbb\xbf" + frames[0], *frames[1:]]


def add_comments(frames: list[bytes], request: ModelRequest) -> list[bytes]:
    return [b": keep-alive\n\n" + frame for frame in frames] if request.stream else frames


def split_data_lines(frames: list[bytes], _request: ModelRequest) -> list[bytes]:
    """Split each event's JSON into several data lines."""
    return [_split_data(frame) if b"data: {" in frame else frame for frame in frames]


def _split_data(frame: bytes) -> bytes:
    name, _, data = frame.partition(b"data: ")
    lines = json.dumps(json.loads(data), ensure_ascii=False, indent=1).encode().split(b"\n")
    return name + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


def send_large_body(frames: list[bytes], request: ModelRequest) -> Iterator[bytes]:
    """Repeat one event, or one long string, up to `size` MiB."""
    times = int(request.number_arg("size"))
    if request.stream:
        middle = len(frames) // 2
        head, block, tail = frames[:middle], frames[middle] * (MIB // len(frames[middle]) + 1), frames[middle + 1 :]
    else:
        head, block, tail = [b'{"padding":"'], b"x" * MIB, [b'",' + frames[0][1:]]
    yield from head
    for _ in range(times):
        yield block
    yield from tail


def compress_frames(frames: Iterable[bytes], _request: ModelRequest) -> Iterator[Step]:
    packer = zlib.compressobj(wbits=31)
    for frame in frames:
        yield packer.compress(frame) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


def send_gzip_bomb(frames: list[bytes], request: ModelRequest) -> Iterator[Step]:
    return iter(compress_frames(send_large_body(frames, request), request))


def build_raw_reply(*lines: bytes, more: bytes = b"") -> Callable[[ModelRequest], Reply]:
    """Build a reply with exactly these header lines. If there is `more` after its body, the connection stays open."""
    body = b'{"choices":[]}'
    head = [b"HTTP/1.1 200 OK", b"Content-Type: application/json", b"Content-Length: %d" % len(body), *lines]
    if not more:
        head.append(b"Connection: close")
    sent = b"\r\n".join(head) + b"\r\n\r\n" + body + more

    def reply(_request: ModelRequest) -> Reply:
        return Reply(raw=True, steps=(sent, Hang()) if more else (sent,))

    return reply
