"""Recordings: the bytes of an exchange, for people who look at it on the page.

A recording is decoded, masked and rendered only when someone looks. It has a limit for each message and one for all of
them; what comes later is counted, and not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from dragoman.adapters.changes import Change, Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import TargetPlan

__all__ = [
    "CALL_SIZE",
    "CHANGE_SIZE",
    "CHUNK_SIZE",
    "MESSAGES",
    "REPLY",
    "REQUEST",
    "CallRecording",
    "Message",
    "Recording",
    "ReplyHead",
    "RequestHead",
    "RequestRecorder",
    "SentHead",
    "TryRecording",
]

_COUNTED = 16 * 1024  # bytes that are counted at once
CHUNK_SIZE, CALL_SIZE, CHANGE_SIZE = 96, 2048, 320
"""Bytes of memory that a chunk takes besides its content, a call besides its chunks, and a change."""
MESSAGES = 4
"""At least as many share the memory of an exchange."""
_SORTING = Lock()  # the event loop and the page's thread sort what was recorded
REQUEST, REPLY = 0, 1
"""The sources of what is recorded of the client."""


class RequestHead(NamedTuple):
    """The head of a client's request."""

    method: str
    path: str
    """With the query."""
    headers: Sequence[tuple[bytes, bytes]]


class SentHead(NamedTuple):
    """The head of a call in the parts of which it was made: without credentials, the credentials, the rest."""

    start: bytes
    credentials: bytes
    rest: bytes


class ReplyHead(NamedTuple):
    """The head of a reply."""

    status: int
    headers: Mapping[str, str]


class Message:
    """One message: `head` as far as it is known, and the body in `chunks`, with the `times` when they came, by
    time.perf_counter. `length` is the size of the whole body, `kept` that of its chunks, in bytes."""

    __slots__ = ("chunks", "head", "kept", "length", "times")

    def __init__(self) -> None:
        self.head: RequestHead | SentHead | ReplyHead | None = None
        self.chunks: list[bytes] = []
        self.times: list[float] = []
        self.kept = 0
        self.length = 0


class RequestRecorder(Protocol):
    """Gets what a call sends."""

    def record_request(self, head: tuple[bytes, bytes, bytes], body: bytes) -> None:
        """Record the parts of a SentHead, and the body, which orjson may have written."""


class CallRecording:
    """One call to a provider. `attempt` counts the tries of the exchange from 1, `number` the calls of one try from
    0. `secrets` are the credentials that the call carried. `request` and `reply` are those of `Recording.calls`."""

    request: Message
    reply: Message
    secrets: tuple[bytes, ...] = ()
    ended: float | None = None
    fault: str | None = None
    is_cancelled = False
    _sent: tuple[bytes, bytes, bytes] | None = None
    _answered: tuple[int, Mapping[str, str]] | None = None

    def __init__(self, recording: Recording, source: int, target: str, attempt: int, number: int, began: float) -> None:
        self._recording: Recording | None = recording  # until the call has ended, because it is a cycle of references
        self._source = source
        self.target = target
        self.attempt = attempt
        self.number = number
        self.began = began

    def record_request(self, head: tuple[bytes, bytes, bytes], body: bytes, at: float | None = None) -> None:
        """Record what is sent, now or at another time: the parts of a SentHead, and the body, which orjson may have
        written. If a call is sent once more, its last head counts; the body is the same."""
        if self._recording is not None and self._sent is None:
            self._recording.add_copy(self._source, body, at)
        self._sent = head

    def record_reply(self, status: int, headers: Mapping[str, str], secrets: tuple[bytes, ...]) -> None:
        """Record the head of a reply, and the credentials that the call carried."""
        self._answered = status, headers
        self.secrets = secrets

    def add_reply(self, data: bytes, at: float | None = None) -> None:
        """Record more bytes of the reply, which come now or came at another time."""
        if (recording := self._recording) is not None:
            recording.add(self._source + 1, data, at)

    def end(self, fault: Fault | None, at: float | None = None, *, is_cancelled: bool = False) -> None:
        """Record how the call ended, now or at another time. Nothing more of it is recorded. It is cancelled if nobody
        waits for the rest of its reply, as when the client left."""
        self._recording, self.is_cancelled = None, is_cancelled
        if fault is not None:
            self.fault = fault.code or fault.kind
        self.ended = perf_counter() if at is None else at

    def show(self, request: Message, reply: Message) -> None:
        """Take the messages of this call, and give them their heads."""
        self.request, self.reply = request, reply
        request.head = None if self._sent is None else SentHead(*self._sent)
        reply.head = None if self._answered is None else ReplyHead(*self._answered)


class TryRecording(NamedTuple):
    """One try of one target. Of the changes, the first `request_changes` are made to the request."""

    plan: TargetPlan
    changes: list[Change]
    request_changes: int


class Recording:
    """The messages of one exchange. `most` bytes are kept of it, and a quarter of them of each message; 0 keeps heads
    alone. `head` has the parts of a RequestHead. `count_memory` is called from time to time; `uncounted` are the bytes
    that were kept since then.

    While the exchange runs, its bytes only go to a log: source, bytes, time, and so on. A source is the number of a
    message: 0 and 1 are the client's request and reply, 2 and 3 those of the first call. `_sort` makes messages of the
    log: when someone looks, or when the log has so much that a limit may apply. Without bodies the log has their sizes
    as soon as the exchange has ended."""

    uncounted = 0
    _logged = 0  # bytes of the log, without those for which there was room
    _room = _COUNTED
    _messages: list[Message] | None = None
    _answered: tuple[int, Mapping[str, str]] | None = None
    _is_closed = False

    def __init__(
        self, head: tuple[str, str, Sequence[tuple[bytes, bytes]]], most: int, count_memory: Callable[[], None]
    ) -> None:
        self.head = head
        self._most = self._left = most
        self._count_memory = count_memory
        self._log: list[Any] = []
        self._calls: list[CallRecording] = []
        self._tries: list[tuple[TargetPlan, list[Change], int]] = []

    @property
    def keeps_bodies(self) -> bool:
        return self._most > 0

    @property
    def request(self) -> Message:
        """The client's request, as far as it is recorded now."""
        return self._show()[REQUEST]

    @property
    def reply(self) -> Message:
        """The client's reply, as far as it is recorded now."""
        return self._show()[REPLY]

    @property
    def calls(self) -> list[CallRecording]:
        """The calls, with what is recorded of their messages now."""
        messages = self._show()
        for call, request, reply in zip(self._calls, messages[2::2], messages[3::2], strict=True):
            call.show(request, reply)
        return self._calls

    @property
    def tries(self) -> list[TryRecording]:
        """The tries in their order."""
        return [TryRecording(*one) for one in self._tries]

    def begin_try(self, plan: TargetPlan, receipt: Receipt) -> None:
        """Record the calls that follow as those of another try."""
        self.add_try(plan, receipt.changes, len(receipt.changes))

    def add_try(self, plan: TargetPlan, changes: list[Change], request_changes: int) -> None:
        """Record the parts of a TryRecording; the list may still grow."""
        self._tries.append((plan, changes, request_changes))

    def continue_try(self, plan: TargetPlan, receipt: Receipt) -> None:
        """Record that the try goes on with another receipt, which has the same changes to the request."""
        self._tries[-1:] = [(plan, receipt.changes, len(receipt.changes))]

    def begin_call(self, target: str, receipt: Receipt, number: int) -> CallRecording:
        """Record a call of the try with this receipt."""
        tries = self._tries
        attempt = len(tries)
        while attempt and tries[attempt - 1][1] is not receipt.changes:
            attempt -= 1
        return self.add_call(target, attempt, number, perf_counter())

    def add_call(self, target: str, attempt: int, number: int, began: float) -> CallRecording:
        """Record a call of the try with this number, which began at this time."""
        calls = self._calls
        call = CallRecording(self, 2 * len(calls) + 2, target, attempt, number, began)
        calls.append(call)
        self.uncounted += CALL_SIZE
        return call

    def continue_call(self) -> CallRecording | None:
        """What the last call is recorded in; None if the exchange has made room for others."""
        return self._calls[-1] if self._calls else None

    def record_answer(self, status: int, headers: Mapping[str, str]) -> None:
        """Record the head of the client's reply."""
        self._answered = status, headers

    def add(self, source: int, data: bytes, at: float | None = None) -> None:
        """Keep more bytes of a message's body, which come now or came at another time, as far as the limits allow."""
        self._log += (source, data, perf_counter() if at is None else at)
        self._room = room = self._room - len(data) - CHUNK_SIZE
        if room < 0:
            self._count()

    def add_copy(self, source: int, data: bytes, at: float | None = None) -> None:
        """Keep a copy of bytes that orjson may have written: they may take eight times as much memory as their length
        says. Of a request that is sent as it came, one text is kept."""
        known = self._log[1:2]  # in one step: the page's thread may empty the log
        self.add(source, known[0] if known and known[0] == data else b"%b" % data, at)

    def end(self) -> int:
        """The exchange has ended: forget what only a running exchange needs, and keep nothing more. Returns the bytes
        that were not counted before."""
        for _, changes, _ in self._tries:
            self.uncounted += CHANGE_SIZE * len(changes)
        if not self._most:
            with _SORTING:
                self._log[1::3] = map(len, self._log[1::3])
            self._logged, self._room = 0, _COUNTED
        if not self._is_closed:
            self._count_log()
            self.close()
        return self.uncounted

    def close(self) -> None:
        """Keep nothing more."""
        self._is_closed, self._room, self._count_memory = True, 0, _count_nothing

    def release(self) -> None:
        """Keep nothing more, and nothing of what was kept: the exchange has made room for others."""
        self.close()
        self._log.clear()
        self._messages, self._calls, self._tries = None, [], []

    def _count(self) -> None:
        """Count what the log has got."""
        if self._is_closed:
            del self._log[-3:]
            return
        self._count_log()
        self._count_memory()

    def _count_log(self) -> None:
        """Count as logged what has taken room, and make room again. No limit applies as long as everything together is
        less than a message may have."""
        used, self._room = _COUNTED - self._room, _COUNTED
        self._logged += used
        self.uncounted += used
        if self._most - self._left + self._logged > self._most // MESSAGES:
            self._sort()

    def _show(self) -> list[Message]:
        """All messages as far as they are recorded now."""
        if not self._is_closed:
            self._count_log()
        messages = self._sort()
        messages[REQUEST].head = RequestHead(*self.head)
        messages[REPLY].head = None if self._answered is None else ReplyHead(*self._answered)
        return messages

    def _sort(self) -> list[Message]:
        """Give what is in the log to the messages, as far as the limits allow, and count what that takes instead. The
        page's thread does so too: one of them at a time, and what comes meanwhile stays in the log."""
        with _SORTING:
            messages = self._messages = self._messages or []
            messages += [Message() for _ in range(2 * len(self._calls) + 2 - len(messages))]
            taken, before = self._log[:], self._left
            entries = iter(taken)
            for source, data, at in zip(entries, entries, entries, strict=True):
                self._keep(messages[source], data, at)
            del self._log[: len(taken)]
            self.uncounted += before - self._left - self._logged
            self._logged = 0
        return messages

    def _keep(self, message: Message, data: bytes | int, at: float) -> None:
        if isinstance(data, int):
            message.length += data
            return
        message.length += len(data)
        size = min(len(data), self._left, self._most // MESSAGES - message.kept)
        if size > 0:
            message.chunks.append(data[:size])
            message.times.append(at)
            message.kept += size
            self._left -= size + CHUNK_SIZE


def _count_nothing() -> None:
    """The memory of what is not kept does not count."""
