"""A cache of responses, so that cases with the same request send it once.

Two requests are the same if method, URL, headers and body are equal, byte for byte. A response is not reused if the
next attempt may get another one (429, 5xx, a refused key, a broken connection). A case that sends a request twice gets
two responses, and so does a case that is retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from .exchange import Request, Response, Transport
from .model import Case
from .placeholders import MissingValueError
from .target import Target, build_request

__all__ = ["CaseCost", "RequestKey", "ResponseCache", "list_unsent_requests", "request_key"]

RequestKey: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...], bytes]

_TRANSIENT = (401, 403, 408, 429)


class ResponseCache:
    """The responses so far. `requests` counts the requests that were sent."""

    def __init__(self, transport: Transport) -> None:
        self.requests = 0
        self._transport = transport
        self._responses: dict[RequestKey, asyncio.Future[Response]] = {}

    @property
    def keys(self) -> Collection[RequestKey]:
        return self._responses.keys()

    async def send(self, request: Request) -> Response:
        """Send the request without the cache. Raises UnreachableError."""
        self.requests += 1
        return await self._transport.send(request)

    async def fetch(self, request: Request) -> Response:
        """Return the response that another case got or waits for; send the request if there is none. Raises
        UnreachableError."""
        key = request_key(request)
        if (pending := self._responses.get(key)) is not None:
            await asyncio.wait([pending])
            if _is_reusable(pending):
                return pending.result()
        self._responses[key] = mine = asyncio.ensure_future(self.send(request))
        try:
            return await mine
        finally:
            if not _is_reusable(mine) and self._responses.get(key) is mine:
                del self._responses[key]


@dataclass(frozen=True, slots=True)
class CaseCost:
    """How many requests a case sends, and the most tokens that the model writes for them."""

    case: Case
    requests: int
    tokens: int


def _is_reusable(pending: asyncio.Future[Response]) -> bool:
    if not pending.done() or pending.cancelled() or pending.exception() is not None:
        return False
    response = pending.result()
    return response.status < 500 and response.status not in _TRANSIENT and response.broken is None


def request_key(request: Request) -> RequestKey:
    return request.method, request.url, tuple(sorted(request.headers.items())), request.body


def list_unsent_requests(case: Case, target: Target, known: Collection[RequestKey | None]) -> list[RequestKey | None]:
    """List the requests of the case that are not in `known`. None means a request that needs an earlier reply."""
    mine: list[RequestKey] = []
    found: list[RequestKey | None] = []
    for step in case.steps:
        try:
            key = request_key(build_request(step, case, target, {})[0])
        except MissingValueError:
            found.append(None)
            continue
        if key in mine or key not in known:
            found.append(key)
        mine.append(key)
    return found
