"""The upstream that is reached over HTTP: one pool of connections for each provider.

Nothing that a client sends can choose the host, the scheme or the credentials: the address is the provider's base
address with the call's path after it, as text that is checked and never normalised. Redirects are not followed, cookies
not kept, environment proxies not used.

Credentials may change while the proxy runs, so they are no part of the head that is kept for each address. Where the
upstream answers 401 and others can be had, it is asked once more with those: nothing of the 401 has gone to the client.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, urlsplit

import aiohttp
import orjson
from multidict import CIMultiDict
from yarl import URL

from dragoman import __version__
from dragoman.adapters.call import Call, Headers
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Provider, Timeouts
from dragoman.proxy.http.tls import tls_context

from .aiohttp_client import Connector, HttpClient, HttpResponse
from .credentials import Credentials
from .errors import CLIENT_ERRORS, PROXY_REFUSED, to_fault

__all__ = ["HttpUpstream", "HttpUpstreamResponse"]

_PATH = re.compile(r"(?:/(?!(?:\.|%2[eE]){1,2}(?:/|$))(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%(?!5[cC]|00)[0-9A-Fa-f]{2})*)+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_FIXED = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": f"dragoman/{__version__}"}
_LINGER = 0.1  # seconds to wait for the end of a body whose stream has ended


class HttpUpstream:
    """One provider. Made inside a running event loop. `connector` is another way to it than TCP."""

    def __init__(
        self,
        name: str,
        provider: Provider,
        timeouts: Timeouts,
        credentials: Credentials,
        connector: aiohttp.BaseConnector | None = None,
    ) -> None:
        self._name = name
        self._base = urlsplit(provider.base_address).path.rstrip("/")
        self._fixed = CIMultiDict(provider.headers)
        self._fixed.update(_FIXED)
        self._credentials = credentials
        self._own = CIMultiDict(dict.fromkeys((*self._fixed, *credentials.templates), ""))
        self._lingering: set[asyncio.Task[None]] = set()
        self._head = lru_cache(maxsize=256)(self._written)
        origin = URL(provider.base_address, encoded=True)
        proxy = None if provider.proxy is None else URL(provider.proxy.get_secret_value())
        self._client = HttpClient(origin, connector or _over_tcp(provider), timeouts.connect, proxy)

    async def send(self, call: Call, *, stream: bool, forwarded: Headers) -> HttpUpstreamResponse:
        """Raises Fault."""
        query = _query(call.query) if call.query else ""
        head = self._head(call.method, call.path, query, stream, tuple(call.headers.items()))
        body = orjson.dumps(call.body)
        rest = b"%bContent-Length: %d\r\n\r\n" % (self._forward(forwarded), len(body))
        try:
            shown = self._credentials.header_lines()
            if shown is None:
                shown = await self._credentials.fetch_header_lines()
            response = await self._client.send(head + shown + rest, body)
            if response.status == 401:
                response = await self._send_again(response, shown, (head, rest, body))
        except CLIENT_ERRORS as error:
            raise to_fault(error, self._name) from error
        if response.status == 407:
            response.close()
            text = f"{self._name}: its HTTP proxy refused the request (407)"
            raise Fault("upstream_unreachable", text, code=PROXY_REFUSED)
        return HttpUpstreamResponse(self._name, response, self._lingering)

    async def close(self) -> None:
        for task in self._lingering:
            task.cancel()
        await self._credentials.close()
        await self._client.close()

    async def _send_again(self, response: HttpResponse, shown: bytes, call: tuple[bytes, bytes, bytes]) -> HttpResponse:
        """The answer to the call with other credentials, or the refusal where there are none."""
        head, rest, body = call
        try:
            others = await self._credentials.replace_header_lines(shown)
        except BaseException:
            response.close()
            raise
        if others is None:
            return response
        response.close()
        return await self._client.send(head + others + rest, body)

    def _written(self, method: str, path: str, query: str, stream: bool, said: tuple[tuple[str, str], ...]) -> bytes:
        """The head, but for what differs from call to call. Whatever the call says, the provider's credentials and what
        HTTP needs have the last word."""
        client = self._client
        target = client.prefix + self._target(path, query)
        headers = CIMultiDict(said)
        headers.update(self._fixed, Accept="text/event-stream" if stream else "application/json")
        for name in self._credentials.templates:
            headers.popall(name, None)
        lines = (f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {target} HTTP/1.1\r\nHost: {client.host}\r\n{client.to_proxy}{''.join(lines)}".encode()

    def _forward(self, forwarded: Headers) -> bytes:
        """A client's headers; what could end a line, and what the provider's own headers say, stays here."""
        lines = [
            f"{name}: {value}\r\n"
            for name, value in forwarded.items()
            if name not in self._own and _VALUE.fullmatch(value)
        ]
        return "".join(lines).encode("utf-8", "surrogateescape")

    def _target(self, path: str, query: str) -> str:
        if not _PATH.fullmatch(path):
            raise Fault(
                "invalid_request", "this model's name cannot be part of an address", ("model",), code="invalid_value"
            )
        return f"{self._base}{path}?{query}" if query else self._base + path


class HttpUpstreamResponse:
    """A reply of an HTTP upstream."""

    __slots__ = ("_lingering", "_name", "_response", "headers", "status")

    def __init__(self, name: str, response: HttpResponse, lingering: set[asyncio.Task[None]]) -> None:
        self._lingering = lingering
        self._name = name
        self._response = response
        self.status = response.status
        self.headers = response.headers

    @property
    def is_at_end(self) -> bool:
        return self._response.content.at_eof()

    async def read_chunk(self) -> bytes:
        """The next bytes, empty at the end. Raises Fault."""
        try:
            return await self._response.content.readany()
        except CLIENT_ERRORS as error:
            raise to_fault(error, self._name) from error

    def finish(self) -> None:
        if self._response.content.at_eof():
            self.close()
            return
        task = asyncio.get_running_loop().create_task(self._linger())
        self._lingering.add(task)
        task.add_done_callback(self._lingering.discard)

    async def _linger(self) -> None:
        try:
            async with asyncio.timeout(_LINGER):
                await self._response.content.readany()
        except CLIENT_ERRORS:
            pass  # the answer is complete, only the connection is lost
        finally:
            self.close()

    def close(self) -> None:
        self._response.close()


def _query(query: Mapping[str, str]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items())


def _over_tcp(provider: Provider) -> Connector:
    return Connector(
        limit=provider.pool.connections,
        keepalive_timeout=provider.pool.idle,
        resolver=aiohttp.ThreadedResolver(),
        ssl=tls_context(provider.tls),
    )
