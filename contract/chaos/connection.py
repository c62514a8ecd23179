"""One connection through a fault proxy: two pipes, each with the effects of its toxics."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from .effects import EFFECTS, Effect
from .toxics import STREAMS, Toxic

__all__ = ["ProxiedConnection"]

_PIECE = 16 * 1024
_QUEUED = 32  # pieces that wait for an effect; then the sender has to wait
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s


class ProxiedConnection:
    """A client's connection and the one to the upstream. `seed` decides whatever chance decides in its toxics."""

    def __init__(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        seed: str,
    ) -> None:
        self._writers = (client[1], upstream[1])
        self._pipes = {
            "upstream": _Pipe(self, client[0], upstream[1], f"{seed}/upstream"),
            "downstream": _Pipe(self, upstream[0], client[1], f"{seed}/downstream"),
        }
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self, toxics: Sequence[Toxic]) -> None:
        """Move the bytes until both sides have ended, or the connection is closed."""
        self.set_toxics(toxics)
        self._tasks = [asyncio.create_task(pipe.run()) for pipe in self._pipes.values()]
        try:
            results = await asyncio.gather(*self._tasks, return_exceptions=True)
            if any(isinstance(result, OSError) for result in results):
                self.close(reset=True)
        finally:
            self.close()

    def set_toxics(self, toxics: Sequence[Toxic]) -> None:
        """Replace the toxics; those that stay go on as they are."""
        for stream in STREAMS:
            self._pipes[stream].set_toxics([toxic for toxic in toxics if toxic.stream == stream])

    def close(self, *, reset: bool = False) -> None:
        """Close both sides: after what was written, or with a TCP reset."""
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            if reset and not writer.transport.is_closing():
                with suppress(OSError):
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()
            else:
                writer.close()


class _Pipe:
    """One direction. A task reads and one writes, so that delayed bytes do not delay those behind them twice."""

    def __init__(
        self, connection: ProxiedConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seed: str
    ) -> None:
        self._connection, self._reader, self._writer, self._seed = connection, reader, writer, seed
        self._queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_QUEUED)
        self._effects: list[tuple[Toxic, Effect | None]] = []

    def set_toxics(self, toxics: Sequence[Toxic]) -> None:
        """Start the effects of new toxics, and stop those of removed ones."""
        known = {id(toxic): effect for toxic, effect in self._effects}
        self._effects = [
            (toxic, known.pop(id(toxic)) if id(toxic) in known else self._begin(toxic)) for toxic in toxics
        ]
        for effect in known.values():
            if effect is not None:
                effect.stop()

    def _begin(self, toxic: Toxic) -> Effect | None:
        """Start the effect of a toxic, unless its toxicity spares this connection."""
        chance = random.Random(f"{self._seed}/{toxic.name}")
        if chance.random() >= toxic.toxicity:
            return None
        effect = EFFECTS[toxic.type](toxic, self._connection, chance)
        effect.start()
        return effect

    async def run(self) -> None:
        reading = asyncio.create_task(self._read())
        try:
            await self._write()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self) -> None:
        now = asyncio.get_running_loop().time
        try:
            while data := await self._reader.read(_PIECE):
                await self._queue.put((now(), data))
        except OSError:
            self._connection.close(reset=True)
        await self._queue.put((now(), b""))

    async def _write(self) -> None:
        while True:
            arrived, data = await self._queue.get()
            effects = [effect for _, effect in self._effects if effect is not None]
            if not data:
                break
            await self._send(data, arrived, effects)
        while effects:
            if rest := await effects.pop(0).finish():
                await self._send(rest, arrived, effects)
        if self._writer.can_write_eof():
            self._writer.write_eof()

    async def _send(self, data: bytes, arrived: float, effects: Sequence[Effect]) -> None:
        if effects:
            async for piece in effects[0].apply(data, arrived):
                await self._send(piece, arrived, effects[1:])
        elif data:
            self._writer.write(data)
            await self._writer.drain()
