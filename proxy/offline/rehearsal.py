"""An upstream that goes as far as the real one, up to the moment of sending."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from dragoman.adapters.call import Call
from dragoman.proxy.clock import Clock
from dragoman.proxy.config.models import Provider, Timeouts
from dragoman.proxy.over_http import HttpUpstream

__all__ = ["Rehearsal", "Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """What would be sent; credentials are in `headers`."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes


class _Stop(Exception):
    def __init__(self, request: Request) -> None:
        self.request = request


class _Stage:
    """Stands in for the HTTP client, and stops the play."""

    async def request(self, method: str, url: Any, *, data: Any, headers: Mapping[str, str], **_: Any) -> NoReturn:
        plain = {str(name): value for name, value in headers.items()}
        raise _Stop(Request(method, str(url), plain, data if isinstance(data, bytes) else data.read()))

    async def close(self) -> None:
        pass


class Rehearsal(HttpUpstream):
    """Made inside a running event loop, as the real one; it opens no connection."""

    def __init__(self, name: str, provider: Provider, timeouts: Timeouts, auth: Mapping[str, str]) -> None:
        super().__init__(name, provider, timeouts, auth)
        self._real: Any = self._session
        self._session: Any = _Stage()

    async def prepare(self, call: Call, *, stream: bool, passed: Mapping[str, str]) -> Request:
        """What sending this call would send. Raises Fault where it cannot be sent."""
        clock = Clock()
        try:
            await self.open(call, stream=stream, passed=passed, clock=clock)
        except _Stop as stop:
            return stop.request
        finally:
            clock.stop()
        raise AssertionError("the call was sent")

    async def close(self) -> None:
        await super().close()
        await self._real.close()
