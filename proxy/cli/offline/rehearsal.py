"""An upstream that goes as far as the real one, up to the moment of sending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlsplit

import orjson

from dragoman.adapters.call import Call
from dragoman.proxy.config.models import Provider, Timeouts
from dragoman.proxy.upstreams.credentials import Credentials, FixedKey
from dragoman.proxy.upstreams.http import HttpUpstream
from dragoman.proxy.upstreams.interface import Upstream
from dragoman.proxy.upstreams.litellm.protocol import FUNCTIONS
from dragoman.proxy.upstreams.litellm.upstream import function_arguments

__all__ = ["LitellmRehearsal", "Rehearsal", "Request", "rehearsed"]

_HIDDEN = "***"
_OF_TRANSPORT = ("Host", "Content-Length")


@dataclass(frozen=True, slots=True)
class Request:
    """What would be sent; credentials are in `headers`, or stars where they are not known before the call."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


def rehearsed(name: str, provider: Provider, timeouts: Timeouts, credentials: Credentials) -> Upstream:
    """The rehearsal of what the provider has for an upstream."""
    if provider.engine == "litellm":
        return LitellmRehearsal(provider)
    return Rehearsal(name, provider, timeouts, credentials)


class _Stop(Exception):
    def __init__(self, request: Request) -> None:
        self.request = request


class _Stage:
    """Stands in for the HTTP client, and stops the play. What is for a proxy on the way is not shown."""

    prefix = to_proxy = ""

    def __init__(self, host: str, origin: str) -> None:
        self.host = host
        self._origin = origin

    async def send(self, head: bytes, body: bytes) -> NoReturn:
        first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
        method, target, _ = first.split(" ")
        headers = dict(line.split(": ", 1) for line in lines if line)
        for name in _OF_TRANSPORT:
            del headers[name]
        raise _Stop(Request(method, self._origin + target, headers, body))

    async def close(self) -> None:
        pass


class Rehearsal(HttpUpstream):
    """Made inside a running event loop, as the real one; it opens no connection and asks for no token."""

    def __init__(self, name: str, provider: Provider, timeouts: Timeouts, credentials: Credentials) -> None:
        known = credentials if isinstance(credentials, FixedKey) else FixedKey(credentials.templates, _HIDDEN)
        super().__init__(name, provider, timeouts, known)
        self._real = self._client
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(provider.base_address))
        self._client: Any = _Stage(self._real.host, origin)

    async def prepare(self, call: Call, *, stream: bool, forwarded: Mapping[str, str]) -> Request:
        """What sending this call would send. Raises Fault where it cannot be sent."""
        try:
            await self.send(call, stream=stream, forwarded=forwarded)
        except _Stop as stop:
            return stop.request
        raise AssertionError("the call was sent")

    async def close(self) -> None:
        await super().close()
        await self._real.close()


class LitellmRehearsal:
    """What litellm's function would be called with. Only litellm knows what it would send. Starts no process."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def prepare(self, call: Call, *, stream: bool, forwarded: Mapping[str, str]) -> Request:
        function = f"litellm.{FUNCTIONS[call.path]}"
        return Request("CALL", function, {}, orjson.dumps(function_arguments(self._provider, call)))

    async def send(self, call: Call, *, stream: bool, forwarded: Mapping[str, str]) -> NoReturn:
        raise AssertionError("a rehearsal sends nothing")

    async def close(self) -> None:
        """Nothing is open."""
