"""A store in memory: for tests, and for deployments that must not write responses to a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dragoman.proxy.telemetry.usage_rows import KeyDay, UsageRow, merge_usage

from .guarded_clock import measure_time
from .interface import StoredResponse, StoreError, StoreLimits
from .records import Packed, collect_responses, encode, item_ids, pack, unpack, walk_chain

__all__ = ["MemoryStore"]

_LARGE = 64 * 1024  # bytes that are compressed in a thread: zlib lets others run meanwhile


class _Entry(NamedTuple):
    stored_at: float
    packed: Packed
    items: set[str]


class MemoryStore:
    """A ProxyStore for one process. `clock` gives seconds that pass, from any moment."""

    def __init__(self, limits: StoreLimits | None = None, *, clock: Callable[[], float] = measure_time) -> None:
        self._limits = limits or StoreLimits()
        self._clock = clock
        self._entries: dict[tuple[str, str], _Entry] = {}  # oldest first
        self._by_item: dict[tuple[str, str], str] = {}  # (owner, item) -> response
        self._usage: dict[tuple[object, ...], UsageRow] = {}
        self._size = 0
        self._closed = False

    async def put(self, owner: str, record: StoredResponse) -> None:
        raw = encode(record, self._limits.max_response)
        packed = pack(raw) if len(raw) <= _LARGE else await asyncio.to_thread(pack, raw)
        self._check_open()
        self._drop((owner, record.id))
        self._entries[owner, record.id] = _Entry(self._clock(), packed, item_ids(record))
        self._by_item.update(((owner, item), record.id) for item in self._entries[owner, record.id].items)
        self._size += len(packed.body)
        self._drop_oldest()

    @property
    def is_failing(self) -> bool:
        return False

    async def check(self) -> None:
        """Nothing fails here."""

    async def get(self, owner: str, response_id: str) -> StoredResponse | None:
        packed = self._read(owner, response_id)
        return unpack(packed) if packed else None

    async def delete(self, owner: str, response_id: str) -> bool:
        found = self._read(owner, response_id) is not None
        self._drop((owner, response_id))
        return found

    async def load_chain(self, owner: str, response_id: str, most: int) -> list[StoredResponse] | None:
        return walk_chain(lambda each: self._read(owner, each), response_id, most, self._limits.max_chain)

    async def find_by_items(self, owner: str, item_ids: Sequence[str], most: int) -> list[StoredResponse]:
        self._check_open()
        found = [self._by_item[owner, item] for item in item_ids if (owner, item) in self._by_item]
        return collect_responses(lambda each: self._read(owner, each), found, most, self._limits.max_chain)

    async def add_usage(self, rows: Sequence[UsageRow], forget_before: str) -> None:
        self._check_open()
        for row in rows:
            known = self._usage.get(row[:4])
            self._usage[row[:4]] = row if known is None else merge_usage(known, row)
        self._usage = {names: row for names, row in self._usage.items() if row.day >= forget_before}

    async def load_usage(self, since: str) -> list[UsageRow]:
        return sorted(row for row in self._usage.values() if row.day >= since)

    async def load_key_days(self, since: str) -> list[KeyDay]:
        return [
            KeyDay(row.day, row.key, row.input_tokens + row.output_tokens, row.cost)
            for row in await self.load_usage(since)
        ]

    async def close(self) -> None:
        self._closed = True
        self._entries.clear()
        self._by_item.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("closed", "the store of responses is closed")

    def _read(self, owner: str, response_id: str) -> Packed | None:
        self._check_open()
        entry = self._entries.get((owner, response_id))
        return entry.packed if entry and entry.stored_at > self._clock() - self._limits.retention else None

    def _drop(self, key: tuple[str, str]) -> None:
        if entry := self._entries.pop(key, None):
            self._size -= len(entry.packed.body)
            for item in entry.items:
                if self._by_item.get((key[0], item)) == key[1]:
                    del self._by_item[key[0], item]

    def _drop_oldest(self) -> None:
        """Delete expired responses, then the oldest until the store is within its size; never the last one put."""
        cutoff = self._clock() - self._limits.retention
        while len(self._entries) > 1:
            key, entry = next(iter(self._entries.items()))
            if entry.stored_at > cutoff and self._size <= self._limits.max_size:
                return
            self._drop(key)
