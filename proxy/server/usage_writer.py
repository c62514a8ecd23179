"""Writes what keys have used to the store: each second in one transaction, and at the end. Every ten seconds it reads
the sums back, because other processes may share the store.

What a process that is killed has counted in its last second is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from dragoman.proxy.conversations.stores.interface import StoreError
from dragoman.proxy.conversations.stores.usage import UsageStore
from dragoman.proxy.telemetry.usage_ledger import UsageLedger

__all__ = ["UsageWriter"]

_TICK = 1.0  # seconds
_REFRESH = 10  # ticks
_KEPT = timedelta(days=400)


class UsageWriter:
    """Writes the ledger of one proxy. `open` it with its store, None if there is none, and `close` it before that.
    `report` gets errors of the store; what could not be written is written later."""

    def __init__(self, ledger: UsageLedger, report: Callable[[StoreError], Any]) -> None:
        self.ledger = ledger
        self._report = report
        self._store: UsageStore | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_failing = False

    async def open(self, store: UsageStore | None) -> None:
        """Begin with what the store knows. Raises StoreError."""
        self._store = store
        if store is not None:
            self.ledger.set_sums(await store.load_key_days(self.ledger.month_start))
        self._task = asyncio.get_running_loop().create_task(self._write_on())

    async def close(self) -> None:
        """Write what is left."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.flush()

    async def flush(self) -> None:
        """Write what was counted since the last time. Without a store only the sums of the keys remain."""
        rows = self.ledger.take_rows()
        if self._store is None or not rows:
            return
        try:
            await self._store.add_usage(rows, f"{datetime.now(UTC) - _KEPT:%Y-%m-%d}")
        except StoreError as error:
            self.ledger.return_rows(rows)
            if not self._is_failing:
                self._report(error)
            self._is_failing = True
        else:
            self._is_failing = False

    async def _write_on(self) -> None:
        number = 0
        while True:
            await asyncio.sleep(_TICK)
            await asyncio.shield(self.flush())  # rows that are being written must not be lost at the end
            number += 1
            if number % _REFRESH == 0 and not self._is_failing:
                await self._refresh()

    async def _refresh(self) -> None:
        """Take the sums from the store."""
        if self._store is None:
            return
        month = self.ledger.month_start
        try:
            stored = await self._store.load_key_days(month)
        except StoreError as error:
            self._report(error)
            return
        if month == self.ledger.month_start:
            self.ledger.set_sums(stored)
