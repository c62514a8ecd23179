"""A store that forgets everything when the process ends: for tests, and for those who want nothing on a disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .interface import StoredResponse, StoreError, StoreLimits
from .records import Packed, encode, gather, item_ids, pack, unpack, walk

__all__ = ["MemoryStore"]


class _Kept(NamedTuple):
    stored_at: float
    packed: Packed
    items: set[str]


class MemoryStore:
    """A ResponseStore for one process. `clock` gives seconds since 1970."""

    def __init__(self, limits: StoreLimits | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._limits = limits or StoreLimits()
        self._clock = clock
        self._kept: dict[tuple[str, str], _Kept] = {}  # oldest first
        self._holders: dict[tuple[str, str], str] = {}  # (owner, item) -> response
        self._size = 0
        self._closed = False

    async def put(self, owner: str, record: StoredResponse) -> None:
        self._check_open()
        packed = pack(encode(record, self._limits.max_response))
        self._drop((owner, record.id))
        self._kept[owner, record.id] = _Kept(self._clock(), packed, item_ids(record))
        self._holders.update(((owner, item), record.id) for item in self._kept[owner, record.id].items)
        self._size += len(packed.body)
        self._drop_oldest()

    async def get(self, owner: str, response_id: str) -> StoredResponse | None:
        packed = self._read(owner, response_id)
        return unpack(packed) if packed else None

    async def delete(self, owner: str, response_id: str) -> bool:
        found = self._read(owner, response_id) is not None
        self._drop((owner, response_id))
        return found

    async def chain(self, owner: str, response_id: str, most: int) -> list[StoredResponse] | None:
        return walk(lambda each: self._read(owner, each), response_id, most, self._limits.max_chain)

    async def holders(self, owner: str, item_ids: Sequence[str], most: int) -> list[StoredResponse]:
        self._check_open()
        found = [self._holders[owner, item] for item in item_ids if (owner, item) in self._holders]
        return gather(lambda each: self._read(owner, each), found, most, self._limits.max_chain)

    async def close(self) -> None:
        self._closed = True
        self._kept.clear()
        self._holders.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("closed", "the store of responses is closed")

    def _read(self, owner: str, response_id: str) -> Packed | None:
        self._check_open()
        kept = self._kept.get((owner, response_id))
        return kept.packed if kept and kept.stored_at > self._clock() - self._limits.retention else None

    def _drop(self, key: tuple[str, str]) -> None:
        if kept := self._kept.pop(key, None):
            self._size -= len(kept.packed.body)
            for item in kept.items:
                if self._holders.get((key[0], item)) == key[1]:
                    del self._holders[key[0], item]

    def _drop_oldest(self) -> None:
        """Those past their time, and as many more as it takes to be within the size; never the last one put."""
        cutoff = self._clock() - self._limits.retention
        while len(self._kept) > 1:
            key, kept = next(iter(self._kept.items()))
            if kept.stored_at > cutoff and self._size <= self._limits.max_size:
                return
            self._drop(key)
