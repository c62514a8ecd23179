"""The admin listener: metrics, health and the page, for the people and the programs that run the proxy.

It is a listener of its own, so that clients of the proxy never reach it. Without a key it listens only on loopback
addresses, and no page of another site may ask it (`browser_rules`).
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.faults import Fault
from dragoman.proxy.config.models import Server
from dragoman.proxy.http.aiohttp_server import HttpServer
from dragoman.proxy.http.browser_rules import BrowserRules
from dragoman.proxy.http.json_response import create_response, serialize
from dragoman.proxy.http.listener import write_local_url
from dragoman.proxy.http.request_body import get_host, get_path
from dragoman.proxy.telemetry.exposition import write_exposition
from dragoman.proxy.telemetry.metrics import ExchangeMetrics

from .gateway import HEALTH, Gateway
from .gauges import read_gauges
from .page.access import PageAccess, is_local_request
from .page.page import Page, is_page_path
from .page.state import list_limits
from .reload import ReloadStatus

__all__ = ["AdminListener", "MakeAnswer", "create_pages"]

MakeAnswer: TypeAlias = Callable[[BaseRequest], Awaitable[tuple[int, bytes, str]]]
"""Makes the status, the body and the content type of an answer."""

_MOST_CONNECTIONS = 100
_PUBLIC = frozenset({"/live", "/ready"})
"""What needs no key: it says nothing but whether the proxy serves."""


def create_pages(
    gateway: Gateway, server: HttpServer, metrics: ExchangeMetrics, reloads: ReloadStatus
) -> dict[str, MakeAnswer]:
    """What the admin listener answers, by path."""

    async def write_metrics(request: BaseRequest) -> tuple[int, bytes, str]:
        limits = [limit async for limit in list_limits(gateway.state)]
        gauges, counted = [*read_gauges(gateway, server, reloads, limits)], metrics.take_snapshot()
        accept = request.headers.get("Accept", "")
        return (200, *await asyncio.to_thread(write_exposition, counted, gauges, accept))

    async def write_health(request: BaseRequest) -> tuple[int, bytes, str]:
        path = get_path(request)
        status, body = gateway.describe_health(path)
        shown = {**body, "reload": reloads.to_json()} if path == "/health" else body
        return status, serialize(shown), "application/json"

    return {"/metrics": write_metrics, **dict.fromkeys(HEALTH, write_health)}


class AdminListener:
    """Answers GET at the paths of `pages`, and serves the page. Errors are `{"error": message}`. `listener` is set once
    it listens."""

    listener: asyncio.Server | None = None

    def __init__(
        self,
        server: Server,
        pages: Mapping[str, MakeAnswer],
        page: Page,
        log_defect: Callable[[BaseException | None], None],
    ) -> None:
        self._key: bytes | None = None
        self._access = PageAccess()
        self.configure(server)
        self._pages = pages
        self._page = page
        self.log_defect = log_defect
        self.server = HttpServer(self, server.header_timeout, _MOST_CONNECTIONS)

    def configure(self, server: Server) -> None:
        """Take the key of a new configuration. Another key ends the sessions of browsers."""
        key = None if server.admin_key is None else server.admin_key.get_secret_value().encode()
        if key != self._key:
            self._key, self._access = key, PageAccess(key)
        self._rules = BrowserRules(Server(host=server.admin_host), has_keys=self._key is not None)

    @property
    def url(self) -> str:
        """Its address for clients on this machine."""
        assert self.listener is not None
        host, port, *_ = self.listener.sockets[0].getsockname()
        return write_local_url(host, port)

    async def close(self) -> None:
        """End the listener and its connections."""
        if self.listener is not None:
            self.listener.close()
        await self.server.shutdown(0.1)

    async def handle(self, request: BaseRequest) -> StreamResponse:
        """Answer a request."""
        try:
            path, host = get_path(request).removesuffix("/"), get_host(request)
            self._rules.check(host, request.headers)
            if is_page_path(path):
                if self._key is None and not is_local_request(host, request.headers):
                    raise Fault("forbidden", "the page is for this machine, unless there is server.admin_key")
                return await self._page.answer(request, path, self._access)
            return await self._answer(request)
        except Fault as fault:
            return self.reject(request, fault)

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        """Answer a request that is refused."""
        headers = {"WWW-Authenticate": "Bearer"} if fault.status == 401 else {}
        return create_response(fault.status, serialize({"error": fault.message}), headers)

    async def _answer(self, request: BaseRequest) -> Response:
        path = get_path(request)
        page = self._pages.get(path)
        if path not in _PUBLIC:
            self._authenticate(request.headers)
        if page is None:
            raise Fault("not_found", f"nothing is here; there are {', '.join(self._pages)}")
        if request.method not in ("GET", "HEAD"):
            raise Fault("method_not_allowed", "this address allows GET and HEAD")
        status, body, content_type = await page(request)
        return create_response(status, body, {"Content-Type": content_type, "Cache-Control": "no-store"})

    def _authenticate(self, headers: Mapping[str, str]) -> None:
        if self._key is None:
            return
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        known = scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._key)
        if not known:
            raise Fault("auth", "send server.admin_key as `Authorization: Bearer KEY`")
