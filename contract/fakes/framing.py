"""Mischief with a reply's bytes: each framing takes the frames (SSE events, or the one JSON text) and gives steps."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from .answers import Ask
from .errors import Problem, native_event
from .forms import DONE
from .wire import Close, Hang, Pause, Reply, Reset, Step

__all__ = [
    "Framing",
    "after_done",
    "bare_json",
    "bare_text",
    "bom",
    "bytewise",
    "comments",
    "cut",
    "cut_before",
    "cut_body",
    "cut_fin",
    "error_event",
    "first_error",
    "flood",
    "gzip_bomb",
    "gzipped",
    "hang",
    "line_ends",
    "malformed",
    "multiline",
    "no_done",
    "pause",
    "raw_reply",
    "silent",
    "slow",
    "slow_first",
    "stall",
    "two_done",
]

Framing: TypeAlias = Callable[[list[bytes], Ask], Iterable[Step]]
MIB = 1024 * 1024


def _half(frames: list[bytes], ask: Ask) -> list[bytes]:
    """The first half: of the events, or of the JSON text."""
    if ask.stream:
        return frames[: len(frames) // 2]
    whole = b"".join(frames)
    return [whole[: len(whole) // 2]]


def slow(frames: list[bytes], ask: Ask) -> Iterator[Step]:
    for frame in frames:
        yield frame
        yield Pause(ask.figure("delay"))


def slow_first(frames: list[bytes], ask: Ask) -> list[Step]:
    return [Pause(ask.figure("delay")), *frames]


def pause(frames: list[bytes], ask: Ask) -> list[Step]:
    """Silence between the halves of a stream, or before a reply."""
    first = _half(frames, ask) if ask.stream else []
    return [*first, Pause(ask.figure("delay")), *frames[len(first) :]]


def hang(_frames: list[bytes], _ask: Ask) -> list[Step]:
    return [Hang()]


def silent(_frames: list[bytes], _ask: Ask) -> list[Step]:
    return [b"", Hang()]


def stall(frames: list[bytes], ask: Ask) -> list[Step]:
    return [*_half(frames, ask), Hang()]


def cut(frames: list[bytes], ask: Ask) -> list[Step]:
    return [*_half(frames, ask), Pause(0.02), Reset()]


def cut_fin(frames: list[bytes], ask: Ask) -> list[Step]:
    return [*_half(frames, ask), Close()]


def cut_before(_frames: list[bytes], _ask: Ask) -> list[Step]:
    return [Close()]


def cut_body(frames: list[bytes], ask: Ask) -> list[Step]:
    """For a reply whose Content-Length promises more."""
    return [*_half(frames, ask), Close()]


def no_done(frames: list[bytes], _ask: Ask) -> list[bytes]:
    return [frame for frame in frames if frame != DONE]


def two_done(frames: list[bytes], ask: Ask) -> list[bytes]:
    return [*frames, DONE] if ask.stream else frames


def after_done(frames: list[bytes], ask: Ask) -> list[bytes]:
    """The first half of the events once more, after the end."""
    return [*frames, *_half(frames, ask)] if ask.stream else frames


def malformed(frames: list[bytes], ask: Ask) -> list[bytes]:
    if not ask.stream:
        return _half(frames, ask)
    middle = len(frames) // 2
    return [*frames[:middle], b'data: {"id":"broken","choices":[{"ind\n\n', *frames[middle:]]


def bare_text(frames: list[bytes], ask: Ask) -> list[bytes]:
    text = f"Engine callback timeout: {ask.word('reason')}".encode()
    return [*_half(frames, ask), text] if ask.stream else [text]


def bare_json(frames: list[bytes], _ask: Ask) -> list[bytes]:
    return [frame.removeprefix(b"data: ") for frame in frames]


def error_event(frames: list[bytes], ask: Ask) -> list[bytes]:
    error = first_error(frames, ask)
    return [*_half(frames, ask), *error] if ask.stream else error


def first_error(_frames: list[bytes], ask: Ask) -> list[bytes]:
    """The dialect's error object alone, as an event or as the body of a reply that claims success."""
    body = native_event(ask.dialect, ask.profile, Problem(int(ask.figure("status")), "The fake failed on purpose"))
    return [b"data: " + body + b"\n\n"] if ask.stream else [body]


def bytewise(frames: list[bytes], _ask: Ask) -> Iterator[Step]:
    for frame in frames:
        for byte in frame:
            yield bytes((byte,))


def line_ends(mark: bytes) -> Framing:
    def framing(frames: list[bytes], _ask: Ask) -> list[bytes]:
        return [frame.replace(b"\n", mark) for frame in frames]

    return framing


def bom(frames: list[bytes], _ask: Ask) -> list[bytes]:
    return [b"\xef\xbb\xbf" + frames[0], *frames[1:]]


def comments(frames: list[bytes], ask: Ask) -> list[bytes]:
    return [b": keep-alive\n\n" + frame for frame in frames] if ask.stream else frames


def multiline(frames: list[bytes], _ask: Ask) -> list[bytes]:
    """Each event's JSON over several data lines."""
    return [_spread(frame) if frame.startswith(b"data: {") else frame for frame in frames]


def _spread(frame: bytes) -> bytes:
    value = json.loads(frame.removeprefix(b"data: "))
    lines = json.dumps(value, ensure_ascii=False, indent=1).encode().split(b"\n")
    return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


def flood(frames: list[bytes], ask: Ask) -> Iterator[bytes]:
    """One event over and over, or one endless string, up to `size` MiB."""
    times = int(ask.figure("size"))
    if ask.stream:
        head, block, tail = frames[:1], frames[1] * (MIB // len(frames[1]) + 1), frames[2:]
    else:
        head, block, tail = [b'{"padding":"'], b"x" * MIB, [b'",' + frames[0][1:]]
    yield from head
    for _ in range(times):
        yield block
    yield from tail


def gzipped(frames: Iterable[bytes], _ask: Ask) -> Iterator[Step]:
    packer = zlib.compressobj(wbits=31)
    for frame in frames:
        yield packer.compress(frame) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


def gzip_bomb(frames: list[bytes], ask: Ask) -> Iterator[Step]:
    return iter(gzipped(flood(frames, ask), ask))


def raw_reply(*lines: bytes, more: bytes = b"") -> Callable[[Ask], Reply]:
    """A reply with that head to the letter. Bytes after the end of its body come on a connection that stays open."""
    body = b'{"choices":[]}'
    head = [b"HTTP/1.1 200 OK", b"Content-Type: application/json", b"Content-Length: %d" % len(body), *lines]
    if not more:
        head.append(b"Connection: close")
    sent = b"\r\n".join(head) + b"\r\n\r\n" + body + more

    def reply(_ask: Ask) -> Reply:
        return Reply(raw=True, steps=(sent, Hang()) if more else (sent,))

    return reply
