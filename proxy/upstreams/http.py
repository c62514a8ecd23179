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
from dragoman.proxy.http.deadline import Clock
from dragoman.proxy.http.decompression import BadEncoding, Inflater, TooMuch, codec
from dragoman.proxy.http.tls import tls_context

from .aiohttp_client import Connector, HttpClient, HttpResponse
from .credentials import Credentials
from .errors import CLIENT_ERRORS, PROXY_REFUSED, to_fault
from .interface import REPLY_LIMIT

__all__ = ["HttpIncoming", "HttpUpstream"]

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

    async def open(self, call: Call, *, stream: bool, passed: Headers, clock: Clock) -> HttpIncoming:
        query = _query(call.query) if call.query else ""
        head = self._head(call.method, call.path, query, stream, tuple(call.headers.items()))
        body = orjson.dumps(call.body)
        rest = b"%bContent-Length: %d\r\n\r\n" % (self._passed(passed), len(body))
        try:
            shown = self._credentials.header_lines()
            if shown is None:
                shown = await self._credentials.fetch_header_lines()
            response = await self._client.send(head + shown + rest, body)
            if response.status == 401:
                response = await self._asked_again(response, shown, (head, rest, body))
        except asyncio.CancelledError as stop:
            raise clock.verdict(stop) from None
        except CLIENT_ERRORS as error:
            raise to_fault(error, self._name) from error
        try:
            return HttpIncoming(self._name, response, clock, self._lingering)
        except BaseException:
            response.close()
            raise

    async def close(self) -> None:
        for task in self._lingering:
            task.cancel()
        await self._credentials.close()
        await self._client.close()

    async def _asked_again(
        self, response: HttpResponse, shown: bytes, call: tuple[bytes, bytes, bytes]
    ) -> HttpResponse:
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

    def _passed(self, passed: Headers) -> bytes:
        """A client's headers; what could end a line, and what the provider's own headers say, stays here."""
        lines = [
            f"{name}: {value}\r\n"
            for name, value in passed.items()
            if name not in self._own and _VALUE.fullmatch(value)
        ]
        return "".join(lines).encode("utf-8", "surrogateescape")

    def _target(self, path: str, query: str) -> str:
        if not _PATH.fullmatch(path):
            raise Fault(
                "invalid_request", "this model's name cannot be part of an address", ("model",), code="invalid_value"
            )
        return f"{self._base}{path}?{query}" if query else self._base + path


class HttpIncoming:
    """A reply of an HTTP upstream."""

    __slots__ = ("_clock", "_inflater", "_lingering", "_name", "_response", "headers", "media_type", "status", "whole")

    def __init__(self, name: str, response: HttpResponse, clock: Clock, lingering: set[asyncio.Task[None]]) -> None:
        self._lingering = lingering
        self._name = name
        self._response = response
        self._clock = clock
        self.status = response.status
        self.headers = response.headers
        self.media_type = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        self.whole = "Content-Length" in self.headers or "Transfer-Encoding" in self.headers
        if 300 <= self.status < 400:
            raise self._invalid("it redirects, which is not followed", "upstream_redirect")
        if self.status == 407:
            raise Fault("upstream_unreachable", f"{name}: its HTTP proxy refused the request (407)", code=PROXY_REFUSED)
        self._inflater: Inflater | None = None
        if encoding := self.headers.get("Content-Encoding"):
            try:
                self._inflater = codec(encoding, REPLY_LIMIT)
            except BadEncoding as error:
                raise self._invalid(str(error), "upstream_invalid_encoding") from None

    async def read(self) -> bytes:
        if int(self.headers.get("Content-Length") or 0) > REPLY_LIMIT:
            raise self._too_large()
        body = await self.chunk()
        if self._inflater is None and self._response.content.at_eof():
            return body
        parts, size = [body], len(body)
        while part := await self.chunk():
            parts.append(part)
            size += len(part)
            if size > REPLY_LIMIT:
                raise self._too_large()
        return b"".join(parts)

    async def chunk(self) -> bytes:
        inflater = self._inflater
        if inflater is None:
            return await self._received()
        while True:
            if inflater.pending:
                await asyncio.sleep(0)  # what a few bytes swell to must not keep others waiting
                data, last = b"", False
            else:
                data = await self._received()
                last = not data
            plain = self._inflate(inflater, data, last)
            if plain or last:
                return plain

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
            pass  # everything that matters was said
        finally:
            self.close()

    def close(self) -> None:
        self._response.close()

    async def _received(self) -> bytes:
        try:
            return await self._response.content.readany()
        except asyncio.CancelledError as stop:
            raise self._clock.verdict(stop) from None
        except CLIENT_ERRORS as error:
            raise to_fault(error, self._name) from error

    def _inflate(self, inflater: Inflater, data: bytes, last: bool) -> bytes:
        try:
            if not last:
                return inflater.feed(data)
            inflater.close()
            return b""
        except TooMuch:
            raise self._too_large() from None
        except BadEncoding as error:
            raise self._invalid(str(error), "upstream_invalid_encoding") from None

    def _too_large(self) -> Fault:
        return self._invalid(f"its reply is larger than {REPLY_LIMIT // 1024**2} MiB", "upstream_response_too_large")

    def _invalid(self, text: str, code: str) -> Fault:
        return Fault("upstream_invalid_response", f"{self._name}: {text}", code=code)


def _query(query: Mapping[str, str]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items())


def _over_tcp(provider: Provider) -> Connector:
    return Connector(
        limit=provider.pool.connections,
        keepalive_timeout=provider.pool.idle,
        resolver=aiohttp.ThreadedResolver(),
        ssl=tls_context(provider.tls),
    )
