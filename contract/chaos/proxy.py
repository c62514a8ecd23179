"""One fault proxy: it listens on an address, and forwards each connection to its upstream through its toxics."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from dragoman.contract.json_types import JsonObject, JsonValue

from .connection import ProxiedConnection
from .toxics import ChaosError, Toxic

__all__ = ["ChaosProxy", "split_address"]

_BUFFER = 64 * 1024


def split_address(address: str) -> tuple[str, int]:
    """Split `host:port`; IPv6 addresses are written `[::1]:80`, and no host is every interface. Raises ChaosError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ChaosError(f"an address is written host:port, not {address!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


class ChaosProxy:
    """Forwards TCP connections to `upstream`. Port 0 of `listen` takes a free one; `listen` then has its number.

    Whatever chance decides follows from `seed`, the proxy's name and the number of the connection.
    Raises ChaosError for an address that is not `host:port`, and OSError if it cannot listen there.
    """

    def __init__(
        self, name: str, upstream: str, listen: str = "127.0.0.1:0", *, enabled: bool = True, seed: int = 0
    ) -> None:
        split_address(listen)
        split_address(upstream)
        self.name, self.upstream, self.listen, self.enabled = name, upstream, listen, enabled
        self.connections = 0
        self._seed = seed
        self._toxics: dict[str, Toxic] = {}
        self._open: set[ProxiedConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen, if the proxy is enabled."""
        if self._server is None and self.enabled:
            host, port = split_address(self.listen)
            self._server = await asyncio.start_server(self._accept, host or None, port, limit=_BUFFER)
            port = self._server.sockets[0].getsockname()[1]
            self.listen = f"{self.listen.rpartition(':')[0]}:{port}"

    async def stop(self) -> None:
        """Stop listening, and drop the open connections."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def update(self, fields: Mapping[str, JsonValue]) -> None:
        """Change `listen`, `upstream` and `enabled`. New addresses drop the open connections. Raises ChaosError and
        OSError."""
        wanted = {"listen": self.listen, "upstream": self.upstream, "enabled": self.enabled}
        wanted |= {key: value for key, value in fields.items() if key in wanted}
        addresses = [wanted["listen"], wanted["upstream"]]
        if not all(isinstance(address, str) for address in addresses) or not isinstance(wanted["enabled"], bool):
            raise ChaosError("bad request body: listen and upstream are strings, enabled is true or false")
        for address in addresses:
            split_address(str(address))
        if addresses != [self.listen, self.upstream] or not wanted["enabled"]:
            await self.stop()
        self.listen, self.upstream, self.enabled = str(addresses[0]), str(addresses[1]), wanted["enabled"]
        await self.start()

    @property
    def toxics(self) -> list[Toxic]:
        return list(self._toxics.values())

    def find_toxic(self, name: str) -> Toxic:
        """Raises ChaosError, with status 404."""
        if name not in self._toxics:
            raise ChaosError("toxic not found", 404)
        return self._toxics[name]

    def add_toxic(self, toxic: Toxic) -> Toxic:
        """Add a toxic to the open and to later connections. Raises ChaosError, status 409, if its name is taken."""
        if toxic.name in self._toxics:
            raise ChaosError("toxic already exists", 409)
        return self._set_toxics({**self._toxics, toxic.name: toxic})[toxic.name]

    def update_toxic(self, name: str, fields: JsonValue) -> Toxic:
        """Change the attributes and the toxicity of a toxic; it begins anew. Raises ChaosError."""
        toxic = self.find_toxic(name).update(fields)
        return self._set_toxics({**self._toxics, name: toxic})[name]

    def remove_toxic(self, name: str) -> None:
        """Raises ChaosError, with status 404."""
        self.find_toxic(name)
        self._set_toxics({key: toxic for key, toxic in self._toxics.items() if key != name})

    def remove_toxics(self) -> None:
        self._set_toxics({})

    def _set_toxics(self, toxics: dict[str, Toxic]) -> dict[str, Toxic]:
        self._toxics = toxics
        for connection in tuple(self._open):
            connection.set_toxics(self.toxics)
        return toxics

    def to_json(self) -> JsonObject:
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": self.upstream,
            "enabled": self.enabled,
            "toxics": [toxic.to_json() for toxic in self.toxics],
        }

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._forward(reader, writer, f"{self._seed}/{self.name}/{self.connections}"))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seed: str) -> None:
        """Serve one client. If the upstream cannot be reached, its connection is closed."""
        try:
            upstream = await asyncio.open_connection(*split_address(self.upstream), limit=_BUFFER)
        except OSError:
            writer.close()
            return
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        connection = ProxiedConnection((reader, writer), upstream, seed)
        self._open.add(connection)
        try:
            await connection.run(self.toxics)
        finally:
            self._open.discard(connection)
