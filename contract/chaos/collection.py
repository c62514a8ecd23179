"""The proxies of one process, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from dragoman.contract.json_types import JsonObject, JsonValue

from .proxy import ChaosProxy
from .toxics import ChaosError

__all__ = ["ChaosProxies"]


class ChaosProxies:
    """Proxies that start when they are added, and stop at exit: `async with ChaosProxies() as proxies`."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._proxies: dict[str, ChaosProxy] = {}

    def __iter__(self) -> Iterator[ChaosProxy]:
        return iter(tuple(self._proxies.values()))

    def find(self, name: str) -> ChaosProxy:
        """Raises ChaosError, with status 404."""
        if name not in self._proxies:
            raise ChaosError("proxy not found", 404)
        return self._proxies[name]

    async def add(self, name: str, upstream: str, listen: str = "127.0.0.1:0", enabled: bool = True) -> ChaosProxy:
        """Start a proxy. Raises ChaosError, with status 409 if its name is taken, and OSError."""
        if name in self._proxies:
            raise ChaosError("proxy already exists", 409)
        proxy = ChaosProxy(name, upstream, listen, enabled=enabled, seed=self._seed)
        await proxy.start()
        self._proxies[name] = proxy
        return proxy

    async def add_json(self, value: JsonValue) -> ChaosProxy:
        """Start a proxy from the JSON of the API: `name`, `upstream`, `listen`, `enabled`. Raises ChaosError and
        OSError."""
        fields = _read_fields(value)
        return await self.add(fields["name"], fields["upstream"], fields["listen"], fields["enabled"])

    async def populate(self, values: JsonValue) -> Sequence[ChaosProxy]:
        """Create or replace proxies; one that already has the same addresses stays. Raises ChaosError and OSError."""
        if not isinstance(values, list):
            raise ChaosError("bad request body: expected an array of proxies")
        every = [_read_fields(value) for value in values]
        if len({fields["name"] for fields in every}) < len(every):
            raise ChaosError("bad request body: two proxies have the same name")
        return [await self._put(fields) for fields in every]

    async def _put(self, fields: JsonObject) -> ChaosProxy:
        proxy = self._proxies.get(fields["name"])
        if proxy is None or (proxy.listen, proxy.upstream) != (fields["listen"], fields["upstream"]):
            if proxy is not None:
                await self.remove(proxy.name)
            return await self.add_json(fields)
        await proxy.update({"enabled": fields["enabled"]})
        return proxy

    async def remove(self, name: str) -> None:
        """Stop a proxy. Raises ChaosError, with status 404."""
        proxy = self.find(name)
        del self._proxies[name]
        await proxy.stop()

    async def reset(self) -> None:
        """Enable all proxies, and remove all toxics. Raises OSError."""
        for proxy in self:
            proxy.remove_toxics()
            await proxy.update({"enabled": True})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for proxy in self:
            await self.remove(proxy.name)


def _read_fields(value: JsonValue) -> JsonObject:
    """Check the fields of a proxy, and add the defaults. Raises ChaosError."""
    if not isinstance(value, dict):
        raise ChaosError("bad request body: expected an object")
    fields = {"listen": "127.0.0.1:0", "enabled": True, **value}
    for key in ("name", "upstream"):
        if not fields.get(key):
            raise ChaosError(f"missing required field: {key}")
    if not all(isinstance(fields[key], str) for key in ("name", "upstream", "listen")):
        raise ChaosError("bad request body: name, listen and upstream are strings")
    if not isinstance(fields["enabled"], bool):
        raise ChaosError("bad request body: enabled is true or false")
    return fields
