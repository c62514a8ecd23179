"""What toxics do to the bytes of one direction of one connection."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Protocol

from .toxics import Toxic

__all__ = ["EFFECTS", "Connection", "Effect"]


class Connection(Protocol):
    """What an effect may do to its connection."""

    def close(self, *, reset: bool = False) -> None: ...


class Effect:
    """The effect of one toxic on one direction of one connection. This one changes nothing."""

    def __init__(self, toxic: Toxic, connection: Connection, chance: random.Random) -> None:
        self._toxic, self._connection, self._chance = toxic, connection, chance
        self._removed = asyncio.Event()

    def start(self) -> None:
        """Begin, when the connection opens or the toxic is added."""

    def stop(self) -> None:
        """End, when the toxic is removed: what waits goes on at once."""
        self._removed.set()

    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        """Pass on data that arrived at this time of the loop's clock."""
        yield data

    async def finish(self) -> bytes:
        """Return what is still held back, before the end of the data is passed on."""
        return b""

    async def _wait(self, seconds: float) -> None:
        """Wait that long, or until the toxic is removed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0)):
                await self._removed.wait()

    async def _wait_for_close(self, milliseconds: int) -> None:
        """Hold the data back; after that time, or when the toxic is removed, close the connection."""
        if milliseconds:
            await self._wait(milliseconds / 1000)
        else:
            await self._removed.wait()
        self._connection.close()


class Latency(Effect):
    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        jitter = self._toxic["jitter"]
        delay = (self._toxic["latency"] + self._chance.uniform(-jitter, jitter)) / 1000
        await self._wait(arrived + delay - asyncio.get_running_loop().time())
        yield data


class Bandwidth(Effect):
    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        rate = self._toxic["rate"] * 1000
        size = max(rate // 10, 1) if rate else len(data)
        for start in range(0, len(data), size):
            piece = data[start : start + size]
            if rate:
                await self._wait(len(piece) / rate)
            yield piece


class SlowClose(Effect):
    async def finish(self) -> bytes:
        await self._wait(self._toxic["delay"] / 1000)
        return b""


class Timeout(Effect):
    def start(self) -> None:
        self._closing = None
        if delay := self._toxic["timeout"]:
            self._closing = asyncio.get_running_loop().call_later(delay / 1000, self._connection.close)

    def stop(self) -> None:
        super().stop()
        if self._closing is not None:
            self._closing.cancel()
        self._connection.close()

    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        return
        yield  # this makes it a generator


class ResetPeer(Effect):
    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        await self._wait(self._toxic["timeout"] / 1000)
        if self._removed.is_set():
            yield data
        else:
            self._connection.close(reset=True)


class Slicer(Effect):
    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        average, variation = self._toxic["average_size"], self._toxic["size_variation"]
        start = 0
        while start < len(data):
            end = start + self._chance.randint(average - variation, average + variation)
            yield data[start:end]
            start = end
            if start < len(data):
                await self._wait(self._toxic["delay"] / 1_000_000)


class LimitData(Effect):
    _sent = 0

    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        left = self._toxic["bytes"] - self._sent
        self._sent += len(data[:left])
        if left > 0:
            yield data[:left]
        if len(data) >= left:
            self._connection.close()


class CorruptEvent(Effect):
    """Writes `}` for the `{` of an event, so that lengths stay right. A start of `data: {` at the end of a piece is
    held back until the rest arrives."""

    _EVENT = re.compile(rb"data: ?\{")
    _START = re.compile(rb"d(a(t(a(: ?)?)?)?)?\Z")
    _held = b""
    _events = 0

    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        data = self._EVENT.sub(self._corrupt, self._held + data)
        start = self._START.search(data)
        self._held = data[start.start() :] if start and not self._removed.is_set() else b""
        yield data[: len(data) - len(self._held)]

    def _corrupt(self, found: re.Match[bytes]) -> bytes:
        self._events += 1
        return found[0][:-1] + b"}" if self._toxic["event"] in (0, self._events) else found[0]

    async def finish(self) -> bytes:
        held, self._held = self._held, b""
        return held


class InterimFlood(Effect):
    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        if data.startswith(b"HTTP/1."):
            interim = b"HTTP/1.1 %d Interim\r\n\r\n" % self._toxic["status"]
            left = self._toxic["count"]
            while not left and not self._removed.is_set():
                yield interim * 100
            while left > 0 and not self._removed.is_set():
                yield interim * min(left, 100)
                left -= 100
        yield data


class HalfHead(Effect):
    async def apply(self, data: bytes, arrived: float) -> AsyncIterator[bytes]:
        if self._removed.is_set():
            yield data
            return
        yield data[: self._toxic["bytes"]]
        await self._wait_for_close(self._toxic["timeout"])


EFFECTS: Mapping[str, type[Effect]] = {
    "latency": Latency,
    "bandwidth": Bandwidth,
    "slow_close": SlowClose,
    "timeout": Timeout,
    "reset_peer": ResetPeer,
    "slicer": Slicer,
    "limit_data": LimitData,
    "corrupt_event": CorruptEvent,
    "interim_flood": InterimFlood,
    "half_head": HalfHead,
}
