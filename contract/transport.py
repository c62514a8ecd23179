"""The HTTP transport: it sends requests, and keeps the bytes of each response with their times."""

from __future__ import annotations

import time

import aiohttp

from .exchange import NO_END, TOO_LONG, Chunk, DroppedError, Request, Response, SlowReplyError, UnreachableError

__all__ = ["HttpTransport"]

MOST_BYTES = 32 * 1024 * 1024


class HttpTransport:
    """Sends requests over HTTP, each on a connection of its own. A complete response may take `timeout` seconds."""

    def __init__(self, timeout: float = 60.0, *, verify_tls: bool = True) -> None:
        self._timeout = timeout
        self._verify = verify_tls
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: Request) -> Response:
        """Send one request. Raises UnreachableError without a connection, DroppedError if it is closed without a
        response, SlowReplyError without one in time."""
        session = self._open_session()
        started = time.monotonic()
        seconds = min(request.timeout or self._timeout, self._timeout)
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=min(seconds, 10.0))
        try:
            reply = await session.request(
                request.method,
                request.url,
                data=request.body or None,
                headers=request.headers,
                allow_redirects=False,
                timeout=timeout,
            )
        except aiohttp.ConnectionTimeoutError as error:
            raise UnreachableError(f"{request.method} {request.url}: {error}") from None
        except TimeoutError:
            message = f"{request.method} {request.url}: no reply within {seconds:g} s"
            raise SlowReplyError(message) from None
        except (aiohttp.ClientError, ValueError) as error:
            message = f"{request.method} {request.url}: {str(error) or type(error).__name__}"
            raise (DroppedError if _is_dropped(error) else UnreachableError)(message) from None
        async with reply:
            headers = tuple((name.lower(), value) for name, value in reply.headers.items())
            chunks: list[Chunk] = []
            broken = await self._read_body(reply, request, chunks, started, seconds)
            if broken:
                reply.close()
            return Response(reply.status, headers, tuple(chunks), broken)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(force_close=True, ssl=self._verify)
            self._session = aiohttp.ClientSession(
                connector=connector,
                skip_auto_headers=("User-Agent", "Content-Type"),
                headers={"Accept-Encoding": "identity", "User-Agent": "dragoman-contract"},
            )
        return self._session

    async def _read_body(
        self, reply: aiohttp.ClientResponse, request: Request, chunks: list[Chunk], started: float, seconds: float
    ) -> str | None:
        """Append the body to `chunks`; return how it ended if it is incomplete."""
        size = 0
        try:
            async for data in reply.content.iter_any():
                chunks.append(Chunk(time.monotonic() - started, data))
                size += len(data)
                if request.wait_for_upstream is not None:
                    await request.wait_for_upstream()
                    return "the client left"
                if size > MOST_BYTES:
                    return f"{TOO_LONG} {MOST_BYTES} bytes"
        except TimeoutError:
            return f"{NO_END} {seconds:g} s"
        except (aiohttp.ClientError, ConnectionError) as error:
            return f"the connection broke: {str(error) or type(error).__name__}"
        return None


def _is_dropped(error: Exception) -> bool:
    """Whether there was a connection, and the server closed it."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False
    return isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
