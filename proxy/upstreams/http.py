"""The upstream over HTTP, with one pool of connections for each provider.

Nothing that a client sends can choose the host, the scheme or the credentials: the address is the provider's base
address followed by the call's path, which is checked as text and never normalized. The upstream follows no redirects,
keeps no cookies and uses no proxies of the environment.

Credentials may change while the proxy runs, so they are not part of the cached head. If the provider answers 401 and
other credentials are available, the call is sent once more with those; the client sees nothing of the 401.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from urllib.parse import quote, urlsplit

import aiohttp
import orjson
from multidict import CIMultiDict
from yarl import URL

from dragoman import __version__
from dragoman.adapters.call import Call, Headers
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Provider
from dragoman.proxy.config.traffic import Timeouts
from dragoman.proxy.http.aiohttp_bodies import read_available, take_available, take_rest
from dragoman.proxy.http.tls import create_tls_context
from dragoman.proxy.telemetry.recording import RequestRecorder
from dragoman.proxy.telemetry.sent_secrets import find_credentials, find_secret_headers

from .aiohttp_client import Connector, HttpClient, HttpResponse
from .credentials import Credentials
from .errors import CLIENT_ERRORS, PROXY_REFUSED, to_fault
from .interface import UpstreamResponse
from .whole_reply import WholeReply

__all__ = ["HttpUpstream", "HttpUpstreamResponse"]

_PATH = re.compile(r"(?:/(?!(?:\.|%2[eE]){1,2}(?:/|$))(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%(?!5[cC]|00)[0-9A-Fa-f]{2})*)+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_FIXED_HEADERS = {
    "Content-Type": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": f"dragoman/{__version__}",
}
_LARGE = 1024 * 1024  # bytes of a body
_LINGER = 0.1  # seconds to wait for the end of a body whose stream has ended


class HttpUpstream:
    """The upstream of one provider. Created inside a running event loop. `connector` replaces the one for TCP."""

    def __init__(
        self,
        name: str,
        provider: Provider,
        timeouts: Timeouts,
        credentials: Credentials,
        connector: aiohttp.BaseConnector | None = None,
    ) -> None:
        self._name = name
        self._base_path = urlsplit(provider.base_address).path.rstrip("/")
        self._fixed_headers = CIMultiDict(provider.headers)
        self._fixed_headers.update(_FIXED_HEADERS)
        self._credentials = credentials
        self._own_headers = CIMultiDict(dict.fromkeys((*self._fixed_headers, *credentials.templates), ""))
        self._lingering: set[asyncio.Task[None]] = set()
        self._head = lru_cache(maxsize=256)(self._write_head)
        origin = URL(provider.base_address, encoded=True)
        proxy = None if provider.proxy is None else URL(provider.proxy.get_secret_value())
        opener, idle = connector or _create_connector(provider), provider.pool.idle
        self._client = HttpClient(origin, opener, timeouts.connect, proxy, idle)
        self._sent = (*find_secret_headers(provider.headers), *find_credentials(self._client.proxy_lines.encode()))
        self._find_sent = lru_cache(maxsize=8)(self._find_sent_secrets)

    async def send(
        self,
        call: Call,
        *,
        stream: bool,
        forwarded: Headers,
        recorder: RequestRecorder | None = None,
        written: bytes | None = None,
    ) -> UpstreamResponse:
        """Send a call. Raises Fault."""
        query = _write_query(call.query) if call.query else ""
        head = self._head(call.method, call.path, query, stream, tuple(call.headers.items()))
        body = b"" if call.method == "GET" else written or orjson.dumps(call.body)
        if len(body) > _LARGE:
            await asyncio.sleep(0)  # others run between writing a large body and sending it
        rest = b"%bContent-Length: %d\r\n\r\n" % (self._write_forwarded(forwarded), len(body))
        try:
            credentials = self._credentials.header_lines()
            if credentials is None:
                credentials = await self._credentials.fetch_header_lines()
            if recorder is not None:
                recorder.record_request((head, credentials, rest), body)
            response = await self._client.send(head + credentials + rest, body)
            if not isinstance(response, WholeReply) and response.status == 401:
                response, credentials = await self._send_again(response, credentials, (head, rest, body))
                if recorder is not None:
                    recorder.record_request((head, credentials, rest), body)
        except CLIENT_ERRORS as error:
            raise to_fault(error, self._name) from error
        sent = self._find_sent(credentials)
        if isinstance(response, WholeReply):
            return _WholeResponse(response, sent)
        if response.status == 407:
            response.close()
            text = f"{self._name}: its HTTP proxy refused the request (407)"
            raise Fault("upstream_unreachable", text, code=PROXY_REFUSED)
        return HttpUpstreamResponse(self._name, response, self._lingering, sent)

    async def close(self) -> None:
        for task in self._lingering:
            task.cancel()
        await self._credentials.close()
        await self._client.close()

    async def _send_again(
        self, response: HttpResponse, refused: bytes, call: tuple[bytes, bytes, bytes]
    ) -> tuple[HttpResponse | WholeReply, bytes]:
        """The response to the call with other credentials, and those; the 401 if there are none."""
        head, rest, body = call
        try:
            replacement = await self._credentials.replace_header_lines(refused)
        except BaseException:
            response.close()
            raise
        if replacement is None:
            return response, refused
        response.close()
        return await self._client.send(head + replacement + rest, body), replacement

    def _find_sent_secrets(self, credentials: bytes) -> tuple[bytes, ...]:
        return (*self._sent, *find_credentials(credentials))

    def _write_head(
        self, method: str, path: str, query: str, stream: bool, call_headers: tuple[tuple[str, str], ...]
    ) -> bytes:
        """Write the cacheable part of the head. Credentials and the headers of HTTP itself replace the call's headers
        of the same names."""
        client = self._client
        target = client.target_prefix + self._write_target(path, query)
        headers = CIMultiDict(call_headers)
        headers.update(self._fixed_headers, Accept="text/event-stream" if stream else "application/json")
        for name in self._credentials.templates:
            headers.popall(name, None)
        lines = (f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {target} HTTP/1.1\r\nHost: {client.host}\r\n{client.proxy_lines}{''.join(lines)}".encode()

    def _write_forwarded(self, forwarded: Headers) -> bytes:
        """Write the client's headers, except those that the provider's configuration sets, and values that are not
        valid."""
        lines = [
            f"{name}: {value}\r\n"
            for name, value in forwarded.items()
            if name not in self._own_headers and _VALUE.fullmatch(value)
        ]
        return "".join(lines).encode("utf-8", "surrogateescape")

    def _write_target(self, path: str, query: str) -> str:
        if not _PATH.fullmatch(path):
            raise Fault(
                "invalid_request",
                "the name of this model cannot be part of an address",
                ("model",),
                code="invalid_value",
            )
        return f"{self._base_path}{path}?{query}" if query else self._base_path + path


class HttpUpstreamResponse:
    """The reply of an HTTP upstream. What is read of a stream at once is bounded."""

    __slots__ = ("_lingering", "_name", "_response", "headers", "sent_secrets", "status")

    def __init__(
        self,
        name: str,
        response: HttpResponse,
        lingering: set[asyncio.Task[None]],
        sent_secrets: tuple[bytes, ...],
    ) -> None:
        self._lingering = lingering
        self._name = name
        self._response = response
        self.status = response.status
        self.headers = response.headers
        self.sent_secrets = sent_secrets

    @property
    def is_at_end(self) -> bool:
        return self._response.content.at_eof()

    async def read_chunk(self) -> bytes:
        """The next bytes, empty at the end. Raises Fault."""
        content = self._response.content
        if data := take_available(content):
            return data
        try:
            return await read_available(content)
        except CLIENT_ERRORS as error:
            error.__traceback__ = None  # aiohttp keeps the error: with its frames it would be a cycle of references
            raise to_fault(error, self._name) from error

    def take_whole(self) -> bytes | None:
        """The whole body if it has arrived in one piece."""
        return take_rest(self._response.content)

    async def deliver(self, take: Callable[[bytes], bool]) -> None:
        """Give the next bytes to `take` in the connection's own callback. Raises what `take` raises."""
        await self._response.deliver(take)

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
            pass  # the reply is complete; only the connection is lost
        finally:
            self.close()

    def close(self) -> None:
        self._response.close()


class _WholeResponse(UpstreamResponse):
    """A reply that came as a whole. Nothing is left to do for its connection."""

    __slots__ = ("_data", "headers", "sent_secrets", "status")

    def __init__(self, reply: WholeReply, sent_secrets: tuple[bytes, ...]) -> None:
        self.status = 200
        self.headers: Headers = reply.headers
        self._data = reply.body
        self.sent_secrets = sent_secrets

    @property
    def is_at_end(self) -> bool:
        return not self._data

    def take_whole(self) -> bytes:
        """The whole body, once."""
        data, self._data = self._data, b""
        return data

    async def read_chunk(self) -> bytes:
        """The whole body, then nothing."""
        return self.take_whole()

    async def deliver(self, take: Callable[[bytes], bool]) -> None:
        """Give the whole body to `take`."""
        if data := self.take_whole():
            take(data)

    def finish(self) -> None:
        """The connection is in the pool."""

    def close(self) -> None:
        """The connection is in the pool."""


def _write_query(query: Mapping[str, str]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query.items())


def _create_connector(provider: Provider) -> Connector:
    proxies = () if provider.proxy is None else (provider.proxy.get_secret_value(),)
    return Connector(
        limit=0,  # `CallSlots` limits the calls
        resolver=aiohttp.ThreadedResolver(),
        ssl=create_tls_context(provider.tls, provider.base_address, *proxies),
    )
