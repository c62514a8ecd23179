"""The gateway: it routes each request by its address, and answers those that no route matches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman import __version__
from dragoman.adapters.call import Call
from dragoman.adapters.dialect import Dialect
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import render_fault
from dragoman.adapters.routes import Route
from dragoman.proxy.config.models import Config
from dragoman.proxy.conversations.stores.interface import ResponseStore
from dragoman.proxy.exchange.exchange import Exchange
from dragoman.proxy.exchange.large_bodies import BodyWorker
from dragoman.proxy.exchange.short_way import allows_short_way
from dragoman.proxy.http.aiohttp_request import get_known_head
from dragoman.proxy.http.json_response import create_fault_response, create_response, serialize
from dragoman.proxy.http.request_body import choose_request_id, create_request_id, get_host, get_path
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.journal import CallLater, Journal, find_level
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.metrics import ExchangeMetrics
from dragoman.proxy.telemetry.record import MAX_PATH, ExchangeRecord
from dragoman.proxy.telemetry.tracing import Tracing

from .memory_return import MemoryReturn, find_trim
from .model_listing import ModelQuery, ModelRoutes, list_models
from .overload import OverloadGuard, Pressure
from .page.access import PageAccess, can_serve_page, is_local_request, is_open_page
from .page.page import Page, is_page_path
from .serving_state import ServingState, ServingStates
from .stored_responses import METHODS, StoredResponseHandler
from .usage_writer import UsageWriter

__all__ = ["HEALTH", "Gateway"]

HEALTH = ("/live", "/ready", "/health")
"""Addresses that say how the proxy is. /live is about the process alone; /health has its version too, and a digest of
its configuration without secrets, by which people see whether two proxies have the same one; it needs a key if the
proxy has keys."""

AdaptRouter: TypeAlias = Callable[[ServingState], RouterState]

_STOPPING = Fault("overloaded", "the proxy is shutting down", code="shutting_down")


class HeadFacts(NamedTuple):
    """What the head of a POST request decides, as long as the configuration stays: its path and route, the headers of
    every response to it, `request_id` if the client has chosen one, and whether the short way may take it."""

    serving: ServingState
    path: str
    route: Route
    headers: Mapping[str, str]
    request_id: str | None
    is_plain: bool


class Gateway:
    """Answers every request, each from beginning to end by the state that is current when it comes. `draining` makes
    /ready answer 503."""

    def __init__(
        self,
        first: ServingState,
        dialects: Mapping[str, Dialect],
        store: ResponseStore | None,
        log: Log,
        mask: Mask,
        usage: UsageWriter,
        metrics: ExchangeMetrics | None = None,
        tracing: Tracing | None = None,
        call_later: CallLater | None = None,
    ) -> None:
        self.states: ServingStates[Exchange | StoredResponseHandler] = ServingStates(first, mask)
        self.store = store
        self.draining = False
        server = first.config.server
        self.overload = OverloadGuard(server.limits)
        self.memory_return = MemoryReturn(self.overload.take_peak, find_trim())
        self.worker = BodyWorker(server.limits.large_requests, log.warning)
        self.dialects = dialects
        self._model_routes = ModelRoutes(dialects)
        self.log = log
        self.inspector = Inspector(server.inspect, server.inspect_bytes, is_used=can_serve_page(first.config))
        self.journal = Journal(log, metrics, self.inspector, tracing, usage.ledger, call_later)
        self.usage = usage
        self._metrics = metrics
        self._mask = mask
        self.page = Page(self, self.inspector, mask)
        self._page_access = PageAccess()

    @property
    def state(self) -> RouterState:
        """What new requests look up."""
        return self.states.current.router

    @property
    def running(self) -> Collection[Exchange | StoredResponseHandler]:
        """The requests that have not ended."""
        return self.states.running

    async def handle(self, request: BaseRequest, adapt: AdaptRouter | None = None) -> StreamResponse:
        """Answer a request. `adapt` makes the state that it is served with, of that for other requests."""
        serving, known = self.states.current, get_known_head(request)
        if known is not None and (facts := known.facts) is not None and facts.serving is serving:
            headers = {"x-request-id": facts.request_id or create_request_id(), **facts.headers}
            try:
                return await self._run_exchange(request, headers, facts, adapt)
            except Fault as fault:
                return self._refuse(serving, request, headers, fault)
        headers = _create_headers(serving, request)
        path = get_path(request).removesuffix("/")
        try:
            host = get_host(request)
            serving.browser_rules.check(host, request.headers)
            if request.method == "OPTIONS":
                preflight = serving.browser_rules.answer_preflight(request.headers)
                if preflight is not None:
                    return create_response(204, b"", {**headers, **preflight})
            if (route := serving.routes.match(path)) is not None:
                if request.method == "POST":
                    facts = _find_facts(serving, request, path, route, headers)
                    if known is not None:
                        known.facts = facts
                    return await self._run_exchange(request, headers, facts, adapt)
                return self._answer_other_method(serving, request, headers, "POST")
            if (found := serving.routes.match_stored_response(path)) is not None:
                return await self._handle_stored(serving, request, headers, *found)
            if (query := self._model_routes.match(path, request.headers)) is not None:
                return await self._list_models(serving, request, headers, path, query)
            if path in HEALTH:
                return self._answer_health(serving, request, headers, path)
            is_page = is_page_path(path) and request.method != "CONNECT"  # whose target is no path
            if is_page and is_open_page(serving.config) and is_local_request(host, request.headers):
                return await self.page.answer(request, path, self._page_access)
            raise serving.routes.unknown_path(path, request.headers)
        except Fault as fault:
            return self._refuse(serving, request, headers, fault)

    def _refuse(
        self, serving: ServingState, request: BaseRequest, headers: Mapping[str, str], fault: Fault
    ) -> Response:
        """Answer a request that has no exchange, in the dialect of the closest route."""
        route = serving.routes.closest_route(get_path(request), request.headers)
        reply = render_fault(route, fault, Call(request.method, "", {}), headers["x-request-id"])
        response = create_fault_response(reply, request, _name_request(headers, route.dialect), self._mask)
        seen = {"request_id": headers["x-request-id"], "method": request.method, "path": get_path(request)[:MAX_PATH]}
        line = {**seen, "client": request.remote, "status": reply.status, "fault": fault.code or fault.kind}
        self.log.write_event(find_level(fault), "refused", {**line, "message": fault.message})
        if self._metrics is not None and fault.owner == "proxy":
            self._metrics.count_refusal(route.dialect.name, route.protocol, fault, reply.status)
        return response

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        """Answer a request that the HTTP server rejected, or an exception that no handler caught."""
        serving = self.states.current
        return self._refuse(serving, request, _create_headers(serving, request), fault)

    def log_defect(self, error: BaseException | None) -> None:
        self.log.error("defect", exc_info=error)

    def configure(self, config: Config) -> None:
        """Take the limits of a new configuration."""
        server = config.server
        self.overload.configure(server.limits)
        self.worker.most_waiting = server.limits.large_requests
        self.inspector.configure(server.inspect, server.inspect_bytes, is_used=can_serve_page(config))

    def stop_exchanges(self) -> None:
        """End every running exchange with a fault."""
        for exchange in self.states.running:
            exchange.deadline.interrupt(Fault(_STOPPING.kind, _STOPPING.message, code=_STOPPING.code))

    async def _run_exchange(
        self, request: BaseRequest, headers: Mapping[str, str], facts: HeadFacts, adapt: AdaptRouter | None
    ) -> StreamResponse:
        serving, running = facts.serving, self.states.running
        router = serving.router if adapt is None else adapt(serving)
        if (pressure := self.overload.judge(len(running))) != "none":
            self._shed(router, request, pressure)
        exchange = Exchange(
            request,
            _name_request(headers, facts.route.dialect),
            facts.path,
            facts.route,
            router,
            self.store,
            serving.config.server,
            self.log,
            self._mask,
            self.worker,
            self.journal,
            is_plain=facts.is_plain,
        )
        running[exchange] = serving
        try:
            return await exchange.run()
        finally:
            del running[exchange]
            if serving is not self.states.current:
                self.states.leave(serving)

    def _shed(self, router: RouterState, request: BaseRequest, pressure: Pressure) -> None:
        """Refuse a request that comes at a bad time. Raises Fault."""
        if pressure == "full" or router.keys.authenticate(request.headers).can_wait:
            raise self.overload.create_fault(len(self.running))

    async def _handle_stored(
        self,
        serving: ServingState,
        request: BaseRequest,
        headers: Mapping[str, str],
        route: Route,
        response_id: str,
        part: str,
    ) -> StreamResponse:
        methods = METHODS.get(part)
        if methods is None:
            raise serving.routes.unknown_path(get_path(request), request.headers)
        if request.method not in methods:
            return self._answer_other_method(serving, request, headers, ", ".join(methods))
        record = ExchangeRecord(headers["x-request-id"], route.dialect.name, route.protocol)
        record.path, record.client = get_path(request)[:MAX_PATH], request.remote
        handler = StoredResponseHandler(request, headers, record, route, response_id, part)
        self.states.running[handler] = serving
        stall = serving.config.server.write_stall
        try:
            return await handler.run(serving.router.keys, self.store, self.journal, self._mask, stall)
        finally:
            del self.states.running[handler]
            if serving is not self.states.current:
                self.states.leave(serving)

    async def _list_models(
        self, serving: ServingState, request: BaseRequest, headers: Mapping[str, str], path: str, query: ModelQuery
    ) -> Response:
        """Answer a request about models. Raises Fault."""
        if request.method not in ("GET", "HEAD"):
            return self._answer_other_method(serving, request, headers, "GET, HEAD")
        is_public = query.information.about == "none"
        caller = ANYONE if is_public else serving.router.keys.authenticate(request.headers)
        call = Call(request.method, path, {}, dict(request.query), request.headers)
        if query.information.about == "all":
            with self.states.hold(serving):
                await serving.router.refresh_catalogs()
        body = self._mask(serialize(list_models(query, call, caller, serving.router)))
        seen = {"request_id": headers["x-request-id"], "dialect": query.dialect.name, "key": caller.name}
        self.log.info("model_list", **seen, bytes=len(body))
        return create_response(200, body, _name_request(headers, query.dialect))

    def _answer_other_method(
        self, serving: ServingState, request: BaseRequest, headers: Mapping[str, str], allowed: str
    ) -> Response:
        allow = f"{allowed}, OPTIONS"
        headers = {**headers, "Allow": allow}
        if request.method == "OPTIONS":
            return create_response(204, b"", headers)
        fault = Fault("method_not_allowed", f"this address allows the methods {allow}", code="method_not_allowed")
        return self._refuse(serving, request, headers, fault)

    def _answer_health(
        self, serving: ServingState, request: BaseRequest, headers: Mapping[str, str], path: str
    ) -> Response:
        if request.method not in ("GET", "HEAD"):
            return self._answer_other_method(serving, request, headers, "GET, HEAD")
        if path == "/health":
            serving.router.keys.authenticate(request.headers)
        status, body = self.describe_health(path)
        return create_response(status, serialize(body), headers)

    def describe_health(self, path: str) -> tuple[int, dict[str, str]]:
        """The status and the body of an answer at one of HEALTH."""
        word = "ok" if path == "/live" else "draining" if self.draining else "late" if self.overload.is_late else "ok"
        about = {"version": __version__, "configuration": self.states.current.digest} if path == "/health" else {}
        return 200 if word == "ok" else 503, {"status": word, **about}


def _find_facts(
    serving: ServingState, request: BaseRequest, path: str, route: Route, headers: Mapping[str, str]
) -> HeadFacts:
    """The facts of a head that the browser rules allow. `headers` are those of the response to its request."""
    given, request_id = request.headers, headers["x-request-id"]
    return HeadFacts(
        serving,
        path,
        route,
        serving.browser_rules.write_headers(given),
        request_id if given.get("x-request-id") == request_id else None,
        allows_short_way(given, request.raw_path, route, serving.config.server),
    )


def _create_headers(serving: ServingState, request: BaseRequest) -> dict[str, str]:
    """The headers of every response to the request."""
    given = request.headers
    return {"x-request-id": choose_request_id(given), **serving.browser_rules.write_headers(given)}


def _name_request(headers: Mapping[str, str], dialect: Dialect) -> Mapping[str, str]:
    """The headers, with the request's id where clients of the dialect look for it."""
    name = dialect.request_id_header
    return headers if name is None else {**headers, name: headers["x-request-id"]}
