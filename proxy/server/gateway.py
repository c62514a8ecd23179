"""The HTTP server: which request goes where, and what is answered when none fits.

It is aiohttp's low-level server with the defaults of a gateway: what the HTTP parser rejects is answered in HTTP/1.1
and JSON without a byte of what came in, a client that leaves cancels its exchange, and there is no access log beside
our own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from aiohttp import HttpVersion11
from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import ERROR, RequestHandler, RequestPayloadError, _ErrInfo
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse
from aiohttp.web_server import Server

from dragoman.adapters.call import Call
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import render_fault
from dragoman.adapters.routes import Route, RouteTable
from dragoman.proxy.config.models import Config
from dragoman.proxy.conversations.stores.interface import ResponseStore
from dragoman.proxy.exchange.exchange import Exchange
from dragoman.proxy.http.json_response import create_fault_response, create_response, serialize
from dragoman.proxy.http.request_body import check_host, choose_request_id, get_path
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.telemetry.log import Log, Mask, Note

from .model_listing import Desk, Inquiry, told
from .stored_responses import METHODS, Retrieval

__all__ = ["Gateway", "GatewayServer"]

_MOST_HEADERS = 100
_LINGER = 2.0  # seconds in which the rest of a refused body is read, so that the client gets to read the answer
_ERROR = ERROR._replace(version=HttpVersion11)
_TWICE = re.compile("Duplicate .{1,40} header")
_STOPPING = Fault("overloaded", "the proxy is shutting down", code="shutting_down")


class Gateway:
    """Answers every request. `draining` makes /ready say 503."""

    def __init__(
        self,
        config: Config,
        dialects: Mapping[str, Dialect],
        state: RouterState,
        store: ResponseStore | None,
        log: Log,
        mask: Mask,
    ) -> None:
        self.state = state
        self.store = store
        self.draining = False
        self.running: set[Exchange | Retrieval] = set()
        self.idle = asyncio.Event()
        self.idle.set()
        self._server = config.server
        self._routes = RouteTable(dialects, config.server.profiles)
        self._desk = Desk(dialects)
        self.log = log
        self._mask = mask

    async def handle(self, request: BaseRequest) -> StreamResponse:
        identity = choose_request_id(request.headers)
        path = get_path(request)
        try:
            check_host(request.headers)
            if (route := self._routes.match(path)) is not None:
                if request.method == "POST":
                    return await self._exchange(request, identity, path, route)
                return self._other_method(request, identity, "POST")
            if (found := self._routes.match_stored(path)) is not None:
                return await self._stored(request, identity, *found)
            if (inquiry := self._desk.find(path)) is not None:
                return self._tell(request, identity, path, inquiry)
            if path in ("/live", "/ready"):
                return self._health(request, identity, path)
            raise self._routes.unknown_path(path)
        except Fault as fault:
            return self.refuse(request, fault, identity)

    def refuse(self, request: BaseRequest, fault: Fault, identity: str, **headers: str) -> Response:
        """Answer a request that belongs to no exchange, in the dialect that its path speaks of."""
        route = self._routes.closest_route(get_path(request))
        reply = render_fault(route, fault, Call(request.method, "", {}))
        response = create_fault_response(reply, request, {"x-request-id": identity, **headers}, self._mask)
        self.log.info("refused", request_id=identity, method=request.method, status=reply.status, fault=fault.code)
        return response

    def stop_exchanges(self) -> None:
        """End every running exchange with a fault."""
        for exchange in self.running:
            exchange.deadline.interrupt(Fault(_STOPPING.kind, _STOPPING.message, code=_STOPPING.code))

    async def _exchange(self, request: BaseRequest, identity: str, path: str, route: Route) -> StreamResponse:
        exchange = Exchange(request, identity, path, route, self.state, self.store, self._server, self.log, self._mask)
        self._begin(exchange)
        try:
            return await exchange.run()
        finally:
            self._end(exchange)

    async def _stored(
        self, request: BaseRequest, identity: str, route: Route, response_id: str, part: str
    ) -> StreamResponse:
        methods = METHODS.get(part)
        if methods is None:
            raise self._routes.unknown_path(get_path(request))
        if request.method not in methods:
            return self._other_method(request, identity, ", ".join(methods))
        retrieval = Retrieval(request, Note(identity, route.dialect.name, route.protocol), route, response_id, part)
        self._begin(retrieval)
        try:
            return await retrieval.run(self.state.keys, self.store, self.log, self._mask, self._server.write_stall)
        finally:
            self._end(retrieval)

    def _begin(self, exchange: Exchange | Retrieval) -> None:
        self.running.add(exchange)
        self.idle.clear()

    def _end(self, exchange: Exchange | Retrieval) -> None:
        self.running.discard(exchange)
        if not self.running:
            self.idle.set()

    def _tell(self, request: BaseRequest, identity: str, path: str, inquiry: Inquiry) -> Response:
        """Answer a question about models. Raises Fault."""
        if request.method not in ("GET", "HEAD"):
            return self._other_method(request, identity, "GET, HEAD")
        public = inquiry.information.about == "none"
        caller = ANYONE if public else self.state.keys.caller(request.headers)
        call = Call(request.method, path, {}, dict(request.query), request.headers)
        body = self._mask(serialize(told(inquiry, call, caller, self.state)))
        self.log.info("told", request_id=identity, dialect=inquiry.dialect.name, key=caller.name, bytes=len(body))
        return create_response(200, body, {"x-request-id": identity})

    def _other_method(self, request: BaseRequest, identity: str, allowed: str) -> Response:
        allow = f"{allowed}, OPTIONS"
        if request.method == "OPTIONS":
            return create_response(204, b"", {"x-request-id": identity, "Allow": allow})
        fault = Fault("method_not_allowed", f"this address takes {allow}", code="method_not_allowed")
        return self.refuse(request, fault, identity, Allow=allow)

    def _health(self, request: BaseRequest, identity: str, path: str) -> Response:
        if request.method not in ("GET", "HEAD"):
            return self._other_method(request, identity, "GET, HEAD")
        draining = self.draining and path == "/ready"
        body = {"status": "draining" if draining else "ok"}
        return create_response(503 if draining else 200, serialize(body), {"x-request-id": identity})


class GatewayServer(Server):
    """Makes a protocol for each connection. `header_timeout` bounds the time in which a request's head must come."""

    def __init__(self, gateway: Gateway, header_timeout: float) -> None:
        super().__init__(
            gateway.handle,
            request_factory=_request,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=header_timeout,
            max_headers=_MOST_HEADERS,
            auto_decompress=False,
            lingering_time=_LINGER,
        )
        self.gateway = gateway

    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(RequestHandler):
    """One client connection."""

    __slots__ = ("_begun",)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._begun = False  # something of a request's head has come, and not all of it
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Tell a handler that waits for a body when the parser gave up on it: aiohttp leaves it waiting."""
        RequestHandler.data_received(self, data)
        self._begun = self._is_idle() and (self._begun or bool(data.strip(b"\r\n")))
        if self._messages and self._current_request is not None and isinstance(self._messages[-1][0], _ErrInfo):
            self._current_request.content.set_exception(RequestPayloadError("the body is not valid"))

    def _is_idle(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def _process_keepalive(self) -> None:
        """Answer a head that does not come to its end; aiohttp would just hang up."""
        late = self._loop.time() >= self._next_keepalive_close_time
        if late and self._begun and self._is_idle() and self._waiter is not None:
            self._messages.append((_ErrInfo(status=408, exc=TimeoutError(), message=""), EMPTY_PAYLOAD))
            self._waiter.set_result(None)
        else:
            super()._process_keepalive()

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> StreamResponse:
        """Answer what the parser rejected, or what got past every other handler."""
        manager: Any = self._manager
        if manager is None or request.writer.output_size > 0:
            raise ConnectionResetError("too late for an answer")
        gateway: Gateway = manager.gateway
        if status >= 500:
            gateway.log.error("defect", exc_info=exc)
        response = gateway.refuse(request, _rejected(status, exc), choose_request_id(request.headers))
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Tell our own log, which masks secrets."""
        manager: Any = self._manager
        error = kwargs.get("exc_info")
        if manager is not None and not isinstance(error, RequestPayloadError):
            manager.gateway.log.error("defect", exc_info=error)


def _request(
    message: Any, payload: Any, protocol: RequestHandler, writer: Any, task: asyncio.Task[None]
) -> BaseRequest:
    return BaseRequest(_ERROR if message is ERROR else message, payload, protocol, writer, task, protocol._loop)


def _rejected(status: int, exc: BaseException | None) -> Fault:
    if status >= 500:
        return Fault("internal", "something went wrong in the proxy", code="internal_error")
    if isinstance(exc, LineTooLong):
        if isinstance(exc.args[0], bytearray):  # the parser keeps the address in one of these, header lines in bytes
            return Fault("invalid_request", "the address is too long", status=414, code="uri_too_long")
        return Fault("invalid_request", "a header is longer than 8190 bytes", status=431, code="headers_too_large")
    if status == 408:
        return Fault("request_timeout", "the head of the request did not come in time", code="request_timeout")
    if exc is not None and exc.args[:1] == ("Too many headers received",):
        return Fault(
            "invalid_request", f"there are more than {_MOST_HEADERS} headers", status=431, code="headers_too_large"
        )
    if exc is not None and _TWICE.search(str(exc)):
        return Fault("invalid_request", "a header that may come once came twice", code="bad_http")
    return Fault("invalid_request", "this is not valid HTTP/1.1", code="bad_http")
