"""The gateway: which request goes where, and what is answered when no address fits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

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
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.record import ExchangeRecord

from .model_listing import Desk, Inquiry, told
from .stored_responses import METHODS, Retrieval

__all__ = ["Gateway"]

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
            if (found := self._routes.match_stored_response(path)) is not None:
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

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        """Answer what the HTTP server rejected, or what got past every handler."""
        return self.refuse(request, fault, choose_request_id(request.headers))

    def log_defect(self, error: BaseException | None) -> None:
        self.log.error("defect", exc_info=error)

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
        record = ExchangeRecord(identity, route.dialect.name, route.protocol)
        retrieval = Retrieval(request, record, route, response_id, part)
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
