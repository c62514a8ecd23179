"""The official SDK, and its transport that records."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2 as httpx
from openai import AsyncOpenAI

from dragoman.contract.exchange import Request, Transport, UnreachableError

__all__ = ["TIMEOUT", "TransportAdapter", "create_client"]

TIMEOUT = 120.0  # seconds


class _Chunks(httpx.AsyncByteStream):
    """The body of a response, in the pieces in which it arrived."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class TransportAdapter(httpx.AsyncBaseTransport):
    """Lets the SDK send through a transport of the contract suite, which records or replays."""

    def __init__(self, transport: Transport, base_url: str) -> None:
        self._transport, self._base_url = transport, base_url

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = str(request.url)
        kept = {name: request.headers[name] for name in ("authorization", "content-type") if name in request.headers}
        asked = Request(request.method, url, url.removeprefix(self._base_url), kept, await request.aread())
        try:
            reply = await self._transport.send(asked)
        except UnreachableError as error:
            raise httpx.ConnectError(str(error)) from None
        headers = [
            (name, value) for name, value in reply.headers if name not in ("content-length", "transfer-encoding")
        ]
        return httpx.Response(reply.status, headers=headers, stream=_Chunks([chunk.data for chunk in reply.chunks]))

    async def aclose(self) -> None:
        await self._transport.close()


def create_client(base_url: str, api_key: str, transport: httpx.AsyncBaseTransport | None = None) -> AsyncOpenAI:
    """Return a client of the SDK that never asks twice."""
    http = httpx.AsyncClient(transport=transport, timeout=TIMEOUT, trust_env=False)
    return AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, http_client=http)
