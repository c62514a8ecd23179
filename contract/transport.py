"""Sending requests over HTTP, and keeping what comes back byte by byte."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import aiohttp

from .wire import Answer, Asked, Chunk, Unreachable

__all__ = ["Http"]

MOST_BYTES = 32 * 1024 * 1024


class Http:
    """`timeout` seconds are for the whole of a reply."""

    def __init__(self, timeout: float = 60.0, *, verify_tls: bool = True) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout, connect=min(timeout, 10.0))
        self._verify = verify_tls
        self._session: aiohttp.ClientSession | None = None

    async def send(self, asked: Asked) -> Answer:
        """Raises Unreachable where not even the head of a reply comes."""
        session = self._open()
        started = time.monotonic()
        try:
            reply = await session.request(
                asked.method, asked.url, data=asked.body or None, headers=asked.headers, allow_redirects=False
            )
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise Unreachable(f"{asked.method} {asked.url}: {str(error) or type(error).__name__}") from None
        async with reply:
            headers = tuple((name.lower(), value) for name, value in reply.headers.items())
            chunks: list[Chunk] = []
            broken = await self._read(reply, chunks, started, asked.until)
            if broken:
                reply.close()
            return Answer(reply.status, headers, tuple(chunks), broken)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(force_close=True, ssl=self._verify)
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=self._timeout,
                skip_auto_headers=("User-Agent", "Content-Type"),
                headers={"Accept-Encoding": "identity", "User-Agent": "dragoman-contract"},
            )
        return self._session

    async def _read(
        self,
        reply: aiohttp.ClientResponse,
        chunks: list[Chunk],
        started: float,
        until: Callable[[], Awaitable[None]] | None,
    ) -> str | None:
        size = 0
        try:
            async for data in reply.content.iter_any():
                chunks.append(Chunk(time.monotonic() - started, data))
                size += len(data)
                if until is not None:
                    await until()
                    return "the client left"
                if size > MOST_BYTES:
                    return f"given up after {MOST_BYTES} bytes"
        except TimeoutError:
            return f"no end within {self._timeout.total:g} s"
        except (aiohttp.ClientError, ConnectionError) as error:
            return f"the connection broke: {str(error) or type(error).__name__}"
        return None
