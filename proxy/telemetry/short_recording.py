"""The recording of an exchange that goes the short way: one call, one try, and each body in one piece.

Most exchanges do. So it only takes note of what happens, in one object: what is kept is freed a thousand exchanges
later, when it is in no cache any more, and each object would cost a wait for memory. If someone looks, if the exchange
leaves the short way, or if a limit applies, `unfold` makes the `Recording` that would have been written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from dragoman.adapters.changes import Change, Receipt
from dragoman.adapters.pipeline import TargetPlan

from .recording import CALL_SIZE, CHANGE_SIZE, CHUNK_SIZE, MESSAGES, REPLY, REQUEST, Recording

__all__ = ["ShortRecording"]

_SIZE = CALL_SIZE + 4 * CHUNK_SIZE  # bytes of memory besides the bodies and the changes


@dataclass(eq=False, repr=False, slots=True)
class ShortRecording:
    """`head` and `most` are those of a Recording. Of what a step records, the field that may be None is set last: a
    thread that renders the exchange meanwhile sees all of the step, or nothing. Times are by time.perf_counter. If no
    bodies are kept, the sizes of all four take their places when the exchange has ended."""

    head: tuple[str, str, Sequence[tuple[bytes, bytes]]]
    _most: int
    _came: float = field(init=False)
    _request: bytes | int | Iterable[bytes] | None = field(default=None, init=False)
    _changes: list[Change] = field(init=False)
    _request_changes: int = field(init=False)
    _target: str = field(init=False)
    _began: float = field(init=False)
    _plan: TargetPlan | None = field(default=None, init=False)
    _body: bytes | int = field(init=False)
    _left: float = field(init=False)
    _sent: tuple[bytes, bytes, bytes] | None = field(default=None, init=False)
    _secrets: tuple[bytes, ...] = field(init=False)
    _reply: bytes | int = field(init=False)
    _replied: float = field(init=False)
    _reply_status: int = field(init=False)
    _reply_headers: Mapping[str, str] | None = field(default=None, init=False)
    _answered: float = field(init=False)
    _answer: bytes | int | None = field(default=None, init=False)
    _answer_status: int = field(init=False)
    _answer_headers: Mapping[str, str] | None = field(default=None, init=False)

    def add_request(self, body: bytes | Iterable[bytes]) -> None:
        """Record the body of the client's request, which is in pieces if it is large."""
        self._came, self._request = perf_counter(), body

    def begin_call(self, plan: TargetPlan, receipt: Receipt, target: str) -> None:
        """Record that the only call begins."""
        self._changes = changes = receipt.changes
        self._request_changes = len(changes)
        self._target, self._began, self._plan = target, perf_counter(), plan

    def record_request(self, head: tuple[bytes, bytes, bytes], body: bytes) -> None:
        """Record what is sent, as a CallRecording does."""
        self._body = self._request if self._request == body else b"%b" % body
        self._left, self._sent = perf_counter(), head

    def record_whole_reply(
        self, status: int, headers: Mapping[str, str], secrets: tuple[bytes, ...], data: bytes
    ) -> None:
        """Record a reply all of which has come, and that the call has ended with it."""
        self._secrets, self._reply, self._replied = secrets, data, perf_counter()
        self._reply_status, self._reply_headers = status, headers

    def add_answer(self, data: bytes) -> None:
        """Record the body of the client's reply. If it is the provider's, one text is kept."""
        self._answered = perf_counter()
        self._answer = self._reply if data == self._reply else b"%b" % data

    def record_answer(self, status: int, headers: Mapping[str, str]) -> None:
        """Record the head of the client's reply."""
        self._answer_status, self._answer_headers = status, headers

    def end(self) -> int | None:
        """The exchange has ended: keep the sizes of its bodies alone, if no bodies are kept. Returns the bytes of
        memory that the recording takes. None if a limit may apply, or if there was no answer: then `unfold` it."""
        if self._answer is None or type(self._request) is not bytes:
            return None
        bodies: tuple[Any, ...] = self._request, self._body, self._reply, self._answer
        sizes = [*map(len, bodies)]
        changes = CHANGE_SIZE * len(self._changes)
        if not self._most:
            self._request, self._body, self._reply, self._answer = sizes
            return CALL_SIZE + changes
        size = sum(sizes) + _SIZE
        return None if size > self._most // MESSAGES else size + changes

    def unfold(self, count_memory: Callable[[], None] = lambda: None) -> Recording:
        """The recording of all that was noted; more can be recorded there."""
        made = Recording(self.head, self._most, count_memory)
        if (request := self._request) is not None:
            for piece in (_fill(request),) if isinstance(request, bytes | int) else request:
                made.add(REQUEST, piece, self._came)
        if self._plan is not None:
            self._unfold_call(made, self._plan)
        if (answer := self._answer) is not None:
            made.add(REPLY, _fill(answer), self._answered)
        if self._answer_headers is not None:
            made.record_answer(self._answer_status, self._answer_headers)
        return made

    def _unfold_call(self, made: Recording, plan: TargetPlan) -> None:
        made.add_try(plan, self._changes, self._request_changes)
        call = made.add_call(self._target, 1, 0, self._began)
        if self._sent is not None:
            call.record_request(self._sent, _fill(self._body), self._left)
        if self._reply_headers is not None:
            call.record_reply(self._reply_status, self._reply_headers, self._secrets)
            call.add_reply(_fill(self._reply), self._replied)
            call.end(None, self._replied)


def _fill(body: bytes | int) -> bytes:
    """The body, or zeros in its place if only its size is known, which is all that counts then."""
    return bytes(body)
