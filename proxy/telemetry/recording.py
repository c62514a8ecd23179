"""Recordings: the bytes of an exchange, for people who look at it on the page.

A recording is decoded, masked and rendered only when someone looks. It has a limit for each message and one for all of
them; what comes later is counted, and not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from dragoman.adapters.changes import Change, Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import TargetPlan

__all__ = [
    "CHANGE_SIZE",
    "CallRecording",
    "Message",
    "Recording",
    "ReplyHead",
    "RequestHead",
    "SentHead",
    "TryRecording",
]

_CHUNK = 96  # bytes of memory that a chunk takes besides its content
_CALL = 2048  # of a call
_COUNTED = 16 * 1024  # bytes that are counted at once
CHANGE_SIZE = 320
"""Bytes of memory that a change takes."""


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
    """One message: `head` as far as it is known, and the body. `length` is the size of the whole body, `kept` that of
    its chunks, in bytes."""

    __slots__ = ("head", "kept", "length", "parts")

    def __init__(self, head: RequestHead | SentHead | ReplyHead | None = None) -> None:
        self.head = head
        self.parts: list[Any] | None = None  # chunk, time, chunk, time, ...
        self.kept = 0
        self.length = 0

    @property
    def chunks(self) -> list[bytes]:
        """The body as it came."""
        return (self.parts or [])[::2]

    @property
    def times(self) -> list[float]:
        """When each chunk came, by time.perf_counter."""
        return (self.parts or [])[1::2]


class CallRecording:
    """One call to a provider. `attempt` counts the tries of the exchange from 1, `number` the calls of one try from
    0. `secrets` are the credentials that the call carried. `add_reply` records more bytes of the reply."""

    __slots__ = (
        "_recording",
        "add_reply",
        "attempt",
        "began",
        "ended",
        "fault",
        "number",
        "reply",
        "request",
        "secrets",
        "target",
    )

    def __init__(self, recording: Recording, target: str, attempt: int, number: int) -> None:
        self._recording: Recording | None = recording  # until the call has ended, because it is a cycle of references
        self.target = target
        self.attempt = attempt
        self.number = number
        self.began = perf_counter()
        self.ended: float | None = None
        self.fault: str | None = None
        self.request = Message()
        self.reply = Message()
        self.add_reply: Callable[[bytes], None] = partial(recording.add, self.reply)  # a cycle too
        self.secrets: tuple[bytes, ...] = ()

    def record_request(self, head: SentHead, body: bytes) -> None:
        """Record what is sent; only the last request of a call that is sent again with other credentials."""
        self.request = Message(head)
        if self._recording is not None:
            self._recording.add_copy(self.request, body)

    def record_reply(self, status: int, headers: Mapping[str, str], secrets: tuple[bytes, ...]) -> None:
        """Record the head of a reply, and the credentials that the call carried."""
        self.reply.head = ReplyHead(status, headers)
        self.secrets = secrets

    def end(self, fault: Fault | None) -> None:
        """Record how the call ended."""
        self.ended = perf_counter()
        self.fault = None if fault is None else fault.code or fault.kind
        self._recording = None
        self.add_reply = _keep_nothing


class TryRecording(NamedTuple):
    """One try of one target. Of the receipt's changes, the first `request_changes` are made to the request."""

    plan: TargetPlan
    receipt: Receipt
    request_changes: int

    @property
    def changes(self) -> list[Change]:
        return self.receipt.changes


class Recording:
    """The messages of one exchange. `most` bytes are kept of it, and a quarter of them of each message; 0 keeps heads
    alone. `count_memory` is called from time to time; `uncounted` are the bytes that were kept since then."""

    __slots__ = (
        "_count_memory",
        "_left",
        "_most_of_message",
        "calls",
        "keeps_bodies",
        "reply",
        "request",
        "tries",
        "uncounted",
    )

    def __init__(self, head: RequestHead, most: int, count_memory: Callable[[], None]) -> None:
        self._count_memory = count_memory
        self.uncounted = 0
        self.keeps_bodies = most > 0
        self._left = most
        self._most_of_message = most // 4
        self.request = Message(head)
        self.reply = Message()
        self.calls: list[CallRecording] = []
        self.tries: list[TryRecording] = []

    def begin_try(self, plan: TargetPlan, receipt: Receipt) -> None:
        """Record the calls that follow as those of another try."""
        self.tries.append(TryRecording(plan, receipt, len(receipt.changes)))

    def continue_try(self, plan: TargetPlan, receipt: Receipt) -> None:
        """Record that the try goes on with another receipt, which has the same changes to the request."""
        self.tries[-1:] = [TryRecording(plan, receipt, len(receipt.changes))]

    def begin_call(self, target: str, receipt: Receipt, number: int) -> CallRecording:
        """Record a call of the try with this receipt."""
        attempt = len(self.tries)
        while attempt and self.tries[attempt - 1].receipt is not receipt:
            attempt -= 1
        call = CallRecording(self, target, attempt, number)
        self.calls.append(call)
        self.uncounted += _CALL
        return call

    def end(self, status: int | None, headers: Mapping[str, str] | None) -> None:
        """Record the head of the client's reply, if it has got one."""
        if status is not None:
            self.reply.head = ReplyHead(status, headers or {})
        for one in self.tries:
            self.uncounted += CHANGE_SIZE * len(one.receipt.changes)

    def release(self) -> None:
        """Count nothing more: the exchange has ended, or is not kept any more."""
        self._left = 0
        self._count_memory = _count_nothing

    def add(self, message: Message, data: bytes) -> None:
        """Keep more bytes of a message's body, as far as the limits allow."""
        size = len(data)
        message.length += size
        if size > self._left or size > self._most_of_message - message.kept:
            size = min(self._left, self._most_of_message - message.kept)
            if size <= 0:
                return
            data = data[:size]
        message.kept += size
        if message.parts is None:
            message.parts = [data, perf_counter()]
        else:
            message.parts += (data, perf_counter())
        size += _CHUNK
        self._left -= size
        self.uncounted += size
        if self.uncounted >= _COUNTED:
            self._count_memory()

    def add_copy(self, message: Message, data: bytes) -> None:
        """Keep a copy of bytes that orjson may have written: they may take eight times as much memory as
        their length says."""
        self.add(message, b"%b" % data)


def _keep_nothing(data: bytes) -> None:
    """The call has ended."""


def _count_nothing() -> None:
    """The memory of what is not kept does not count."""
