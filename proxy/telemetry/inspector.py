"""The inspector: the latest exchanges, for the page. It is a ring buffer that is bounded in bytes.
The last 16 kB of each exchange that runs may come on top, and on the short way its bodies, which it holds anyway.

An exchange that begins is only taken note of. It gets its place in the buffer together with others: when someone looks,
or when one has ended. Most have ended by then, and what runs for many in a row costs half as much.

With `server.inspect: off` it keeps what the log says of each exchange, of 1,000 at most. With `heads` and `bodies` it
also keeps recordings. If no page can be served, it keeps nothing.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, count
from typing import Literal, TypeAlias

from .record import ExchangeRecord
from .recording import CHANGE_SIZE, Recording
from .short_recording import ShortRecording

__all__ = ["InspectMode", "Inspector"]

InspectMode: TypeAlias = Literal["off", "heads", "bodies"]

_ENTRY = 2560  # bytes of memory that an exchange takes besides its recording
_MOST_LISTED = 1_000  # exchanges, if nothing is recorded
_SHARE = 16  # one exchange takes at most this part of the memory
_SMALLEST = 256 * 1024  # bytes of one exchange that are always kept
_HEADER = 100  # bytes of memory that a header takes besides its name and value
_MOST_NEW = 256  # exchanges that wait for their place


class Inspector:
    """Keeps exchanges. `limit` is in bytes, `size` what is kept, `dropped` how many exchanges made room for others.
    `before_reading`, which is called before anyone looks, hands over the exchanges that have ended meanwhile."""

    def __init__(self, mode: InspectMode = "off", limit: int = 0, *, is_used: bool = False) -> None:
        self._kept: deque[ExchangeRecord] = deque()
        self._replays: dict[str, str] = {}
        self.before_reading: Callable[[], None] = lambda: None
        self._new: list[ExchangeRecord] = []
        self._numbers = count(1)
        self._headers: Sequence[tuple[bytes, bytes]] = ()  # those that were measured last, and their size
        self._headers_size = 0
        self.size = 0
        self.dropped = 0
        self.configure(mode, limit, is_used=is_used)

    def configure(self, mode: InspectMode, limit: int, *, is_used: bool) -> None:
        """Set what is kept from now on. `is_used` says whether a page can be served; if not, nothing is."""
        self._take_new()
        self.mode, self.limit, self.is_used = mode, limit, is_used
        share = min(max(limit // _SHARE, _SMALLEST), limit)
        self._most_of_exchange = share if mode == "bodies" else 0
        self._most_listed = _MOST_LISTED if mode == "off" else sys.maxsize
        while self._kept and (self.size > limit or len(self._kept) > self._most_listed or not is_used):
            self._drop_oldest()

    @property
    def count(self) -> int:
        """How many exchanges are kept."""
        self._prepare_reading()
        return len(self._kept)

    def begin(self, record: ExchangeRecord, path: str) -> None:
        """Keep an exchange that begins; `path` is with the query."""
        record.raw_path = path
        self._new.append(record)
        if len(self._new) > _MOST_NEW:
            self._take_new()

    def begin_recording(
        self,
        record: ExchangeRecord,
        method: str,
        path: str,
        headers: Sequence[tuple[bytes, bytes]],
        *,
        is_short: bool = False,
    ) -> None:
        """Give the record of an exchange that is about to begin the recording to write to. `is_short` says that it
        begins the short way."""
        head = (method, path, headers)
        if is_short:
            record.recording = ShortRecording(head, self._most_of_exchange)
        else:
            record.recording = Recording(head, self._most_of_exchange, partial(self._count, record))

    def leave_short_way(self, record: ExchangeRecord) -> Recording | None:
        """The recording of an exchange that goes on in the long way, if it has one: everything can be written to it."""
        recording = record.recording
        if isinstance(recording, ShortRecording):
            recording = record.recording = recording.unfold(partial(self._count, record))
        return recording

    def expect_replay(self, request_id: str, replayed: str) -> None:
        """Take note that the exchange with this id, which is about to begin, repeats another one."""
        self._replays[request_id] = replayed

    def forget_replay(self, request_id: str) -> None:
        """Expect it no more: it has ended, perhaps before an exchange began."""
        self._take_new()
        self._replays.pop(request_id, None)

    def end(self, record: ExchangeRecord) -> None:
        """Keep what is known of an exchange that has ended."""
        if self._new:
            self._take_new()
        if not record.kept_bytes:
            record.recording = None
            return
        receipt = record.receipt
        if receipt is not None and receipt.changes:
            receipt.forget_paths()
        if (recording := record.recording) is not None:
            size = self._end_recording(record, recording)
        else:
            size = 0 if receipt is None else CHANGE_SIZE * len(receipt.changes)
        if size:
            self._grow(record, size)

    def _end_recording(self, record: ExchangeRecord, recording: Recording | ShortRecording) -> int:
        """Nothing more is recorded of an exchange that has ended. Returns the bytes that were not counted before."""
        if isinstance(recording, ShortRecording):
            if (size := recording.end()) is not None:
                return size
            recording = record.recording = recording.unfold()
        return recording.end()

    def find(self, name: str) -> ExchangeRecord | None:
        """The exchange with this reference, or else the latest one with this id."""
        self._prepare_reading()
        return next((one for one in reversed(self._kept) if name in (one.request_id, one.reference)), None)

    def list_newest(self) -> Iterator[ExchangeRecord]:
        """The exchanges, the latest first. The buffer must not change meanwhile."""
        self._prepare_reading()
        return reversed(self._kept)

    def _prepare_reading(self) -> None:
        self.before_reading()
        self._take_new()

    def _take_new(self) -> None:
        """Give the exchanges that have begun their places."""
        new, self._new = self._new, []
        for record in new:
            record.number = next(self._numbers)
            if self._replays:
                record.replayed_from = self._replays.pop(record.request_id, None)
            if len(self._kept) >= self._most_listed:
                self._drop_oldest()
            self._kept.append(record)
            size = _ENTRY + len(record.raw_path)
            if record.recording is not None:
                size += self._measure_headers(record.recording.head[2])
            self._grow(record, size)

    def _measure_headers(self, headers: Sequence[tuple[bytes, bytes]]) -> int:
        """The bytes of memory that headers take. Requests of one client often have the same."""
        if headers is not self._headers:
            self._headers = headers
            self._headers_size = len(b"".join(chain.from_iterable(headers))) + _HEADER * len(headers)
        return self._headers_size

    def _count(self, record: ExchangeRecord) -> None:
        """Count what is kept of an exchange since the last time."""
        self._take_new()
        if record.kept_bytes and isinstance(recording := record.recording, Recording):
            size, recording.uncounted = recording.uncounted, 0
            self._grow(record, size)

    def _grow(self, record: ExchangeRecord, size: int) -> None:
        """Count what an exchange takes more."""
        record.kept_bytes += size
        self.size += size
        while self.size > self.limit and self._kept:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        record = self._kept.popleft()
        self.size -= record.kept_bytes
        self.dropped += 1
        record.kept_bytes = 0
        if record.has_ended:
            record.recording = None
        elif isinstance(recording := record.recording, Recording):
            recording.release()
