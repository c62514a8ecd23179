"""Upstreams that prepare a request as the real ones do, and stop before they send it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlsplit

import orjson

from dragoman.adapters.call import Call
from dragoman.proxy.config.models import Provider
from dragoman.proxy.config.traffic import Timeouts
from dragoman.proxy.upstreams.credentials import Credentials, FixedKey
from dragoman.proxy.upstreams.http import HttpUpstream
from dragoman.proxy.upstreams.interface import Upstream
from dragoman.proxy.upstreams.litellm.protocol import FUNCTIONS
from dragoman.proxy.upstreams.litellm.upstream import function_arguments

__all__ = ["HttpDryRun", "LitellmDryRun", "PreparedRequest", "create_dry_run"]

_MASKED = "***"
_TRANSPORT_HEADERS = ("Host", "Content-Length")


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """The request that would be sent. `headers` contain the credentials, or stars if the provider issues them."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


def create_dry_run(name: str, provider: Provider, timeouts: Timeouts, credentials: Credentials) -> Upstream:
    """The dry run of the provider's upstream."""
    if provider.engine == "litellm":
        return LitellmDryRun(provider)
    return HttpDryRun(name, provider, timeouts, credentials)


class _Captured(Exception):
    """Carries the request out of the upstream that wanted to send it."""

    def __init__(self, request: PreparedRequest) -> None:
        self.request = request


class _CapturingClient:
    """Replaces the HTTP client: raises _Captured instead of sending. Leaves out what is meant for an HTTP proxy."""

    target_prefix = proxy_lines = ""

    def __init__(self, host: str, origin: str) -> None:
        self.host = host
        self._origin = origin

    async def send(self, head: bytes, body: bytes) -> NoReturn:
        first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
        method, target, _ = first.split(" ")
        headers = dict(line.split(": ", 1) for line in lines if line)
        for name in _TRANSPORT_HEADERS:
            del headers[name]
        raise _Captured(PreparedRequest(method, self._origin + target, headers, body))

    async def close(self) -> None:
        pass


class HttpDryRun(HttpUpstream):
    """Created inside a running event loop, as the real upstream. It opens no connection and requests no token."""

    def __init__(self, name: str, provider: Provider, timeouts: Timeouts, credentials: Credentials) -> None:
        known = credentials if isinstance(credentials, FixedKey) else FixedKey(credentials.templates, _MASKED)
        super().__init__(name, provider, timeouts, known)
        self._real_client = self._client
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(provider.base_address))
        self._client: Any = _CapturingClient(self._real_client.host, origin)

    async def prepare(self, call: Call, *, stream: bool, forwarded: Mapping[str, str]) -> PreparedRequest:
        """The request that `send` would send. Raises Fault if it cannot be sent."""
        try:
            await self.send(call, stream=stream, forwarded=forwarded)
        except _Captured as captured:
            return captured.request
        raise AssertionError("the call was sent")

    async def close(self) -> None:
        await super().close()
        await self._real_client.close()


class LitellmDryRun:
    """Shows the arguments of litellm's function: only litellm knows the request that it would send. It starts no
    process."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    async def prepare(self, call: Call, *, stream: bool, forwarded: Mapping[str, str]) -> PreparedRequest:
        function = f"litellm.{FUNCTIONS[call.path]}"
        return PreparedRequest("CALL", function, {}, orjson.dumps(function_arguments(self._provider, call)))

    async def send(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("a dry run sends nothing")

    async def close(self) -> None:
        """Nothing is open."""
