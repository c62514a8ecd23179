"""The addresses of the page: its files at `/` and `/page/NAME`, and what it asks at `/page/api/...`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qs

import orjson
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman import __version__
from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.choices import list_policies
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.http.json_response import SERVER, serialize
from dragoman.proxy.http.request_body import get_host, read_plain_body
from dragoman.proxy.telemetry.content_mask import ContentMask
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.record import ExchangeRecord

from .access import SECURITY_HEADERS, PageAccess
from .assets import INDEX, LOGIN, read_asset
from .capabilities import list_addresses, list_models
from .choices import list_profiles, list_targets
from .configuration import describe_configuration
from .event_feed import MOST_AT_ONCE, EventFeed
from .exchanges import create_content_mask, describe_buffer, render_exchange, summarize
from .exports import EXPORTS
from .replay import Replayer, send_from_page
from .state import describe_state, read_gauges

if TYPE_CHECKING:
    from dragoman.proxy.server.gateway import Gateway
    from dragoman.proxy.server.reload import Reloader

__all__ = ["Page", "is_page_path"]

_API = "/page/api/"
_MOST_LISTED = 1000
_MOST_FEEDS = 32
_JSON = "application/json"
_MOST_FORM = 8 * 1024  # bytes
_BODY_TIME = 10.0  # seconds
_FAILED = "That is not the key (server.admin_key)."

_Handler: TypeAlias = Callable[[BaseRequest, str], Awaitable[StreamResponse]]


def is_page_path(path: str) -> bool:
    """Whether the page serves this path, which has no slash at its end."""
    return path in ("", "/page") or path.startswith("/page/")


class Page:
    """Serves the page of one proxy, to who has access. `reloader` knows the file of the configuration."""

    def __init__(self, gateway: Gateway, inspector: Inspector, mask: Mask) -> None:
        self._gateway = gateway
        self._inspector = inspector
        self._mask = mask
        self._replayer = Replayer(gateway, inspector)
        self._feeds = 0
        self.reloader: Reloader | None = None
        self.client_port = 0  # of the listener for clients
        self._readers: Mapping[str, _Handler] = {
            "exchanges": self._answer_exchanges,
            "events": self._answer_events,
            "state": self._answer_state,
            "configuration": self._answer_configuration,
        }
        self._writers: Mapping[str, _Handler] = {"exchanges": self._replay, "send": self._send}

    async def answer(self, request: BaseRequest, path: str, access: PageAccess) -> StreamResponse:
        """Answer a request at a path of the page. Errors are JSON, `{"error": sentence}`."""
        try:
            access.check_origin(get_host(request), request.headers)
            if path.startswith(_API):
                return await self._answer_api(request, path.removeprefix(_API), access)
            if path in ("/page/login", "/page/logout"):
                return await self._answer_session(request, path, access)
            return _answer_file(request, path, access)
        except Fault as fault:
            headers = {} if fault.retry_after is None else {"Retry-After": "1"}
            return _respond_json({"error": self._mask(fault.message.encode()).decode()}, fault.status, headers)

    async def _answer_api(self, request: BaseRequest, path: str, access: PageAccess) -> StreamResponse:
        token = access.find_csrf_token(request.headers)
        if token is None:
            raise Fault("auth", "sign in at /")
        name, _, rest = path.partition("/")
        if request.method in ("GET", "HEAD"):
            if name == "about":
                return self._answer_about(token, access)
            handlers = self._readers
        elif request.method == "POST":
            access.check_csrf(request.headers)
            handlers = self._writers
        else:
            raise Fault("method_not_allowed", "the page asks with GET and POST")
        if (handler := handlers.get(name)) is None:
            raise Fault("not_found", "the page has no such address")
        return await handler(request, rest)

    async def _answer_session(self, request: BaseRequest, path: str, access: PageAccess) -> Response:
        """Sign in or out, as a form asks for it, and go to `/`."""
        if request.method != "POST" or not access.has_key:
            return _respond(b"", "text/plain", 303, {"Location": "/"})
        if path == "/page/logout":
            return _respond(b"", "text/plain", 303, {"Location": "/", "Set-Cookie": access.sign_out(request.headers)})
        form = parse_qs((await _read_body(request, _MOST_FORM)).decode("utf-8", "replace"))
        cookie = await access.sign_in(form.get("key", [""])[0])
        if cookie is None:
            return _show_login(_FAILED)
        return _respond(b"", "text/plain", 303, {"Location": "/", "Set-Cookie": cookie})

    def _answer_about(self, token: str, access: PageAccess) -> Response:
        gateway = self._gateway
        return _respond_json(
            {
                "version": __version__,
                "configuration": gateway.describe_health("/health")[1]["configuration"],
                "inspect": self._inspector.mode,
                "csrf": token,
                "signed_in": access.has_key,
                "client_port": self.client_port,
                "needs_key": bool(gateway.states.current.config.keys),
                "now": time.time(),
                "models": list_models(gateway.state),
                "serves": list_addresses(gateway.dialects, gateway.state),
                "policies": [{"name": name, "values": [*texts.values()]} for name, texts in list_policies().items()],
                "targets": list_targets(gateway.states.current.config),
                "profiles": list_profiles(gateway.states.current.config, gateway.dialects),
                "buffer": describe_buffer(self._inspector),
            }
        )

    async def _answer_exchanges(self, request: BaseRequest, path: str) -> Response:
        if not path:
            return self._answer_list(request)
        request_id, _, action = path.partition("/")
        record = self._find(request_id)
        if not action:
            return _respond_json(await asyncio.to_thread(self._render, record))
        write = EXPORTS.get(request.query.get("as", "")) if action == "export" else None
        if write is None:
            raise Fault("not_found", f"an exchange can be exported as {', '.join(EXPORTS)}")
        config = self._gateway.states.current.config
        name, text = await asyncio.to_thread(lambda: write(self._render(record), config))
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return _respond(text.encode("utf-8", "replace"), "text/plain; charset=utf-8", headers=headers)

    def _render(self, record: ExchangeRecord) -> JsonObject:
        """Everything that is kept of an exchange. It may be megabytes: to be called in a thread."""
        return render_exchange(record, create_content_mask(record, self._mask))

    def _find(self, request_id: str) -> ExchangeRecord:
        """Raises Fault if the exchange is not kept."""
        record = self._inspector.find(request_id)
        if record is None:
            raise Fault("not_found", "the exchange is not kept any more")
        return record

    def _answer_list(self, request: BaseRequest) -> Response:
        before, limit = _read_number(request, "before", None), _read_number(request, "limit", 200) or 1
        chosen = (one for one in self._inspector.list_newest() if before is None or one.number < before)
        lines = [self._summarize(one) for one in islice(chosen, min(limit, _MOST_LISTED))]
        return _respond_json({"exchanges": lines, "buffer": describe_buffer(self._inspector)})

    async def _answer_events(self, request: BaseRequest, _: str) -> StreamResponse:
        if self._feeds >= _MOST_FEEDS:
            raise Fault("overloaded", f"{_MOST_FEEDS} browsers look at the page already")
        response = StreamResponse(headers=_write_headers("text/event-stream", {}))
        most = _read_number(request, "most", None) or MOST_AT_ONCE
        feed = EventFeed(self._inspector, self._summarize, self._read_gauges, lambda: self._gateway.draining, most)
        self._feeds += 1
        try:
            await feed.run(request, response)
        except (ConnectionError, TimeoutError):
            pass  # the browser has left
        finally:
            self._feeds -= 1
        return response

    async def _replay(self, request: BaseRequest, path: str) -> Response:
        request_id, _, action = path.partition("/")
        if action != "replay":
            raise Fault("not_found", "the page has no such address")
        record = self._find(request_id)
        return _respond_json({"id": self._replayer.replay(record, await _read_object(request, _MOST_FORM))})

    async def _send(self, request: BaseRequest, _: str) -> StreamResponse:
        limit = 2 * self._gateway.states.current.config.server.body_limit
        return await send_from_page(self._gateway, request, await _read_object(request, limit))

    def _read_gauges(self) -> JsonObject:
        return read_gauges(self._gateway)

    async def _answer_state(self, request: BaseRequest, _: str) -> Response:
        state = await describe_state(self._gateway)
        status = None if self.reloader is None else self.reloader.status.to_json()
        return _respond_json(ContentMask(self._mask).mask_values({**state, "reload": status}))

    async def _answer_configuration(self, request: BaseRequest, _: str) -> Response:
        text = None if self.reloader is None else self.reloader.text
        config = self._gateway.states.current.config
        return _respond_json(describe_configuration(config, text, ContentMask(self._mask)))

    def _summarize(self, record: ExchangeRecord) -> JsonObject:
        return summarize(record, ContentMask(self._mask))


async def _read_body(request: BaseRequest, limit: int) -> bytes:
    deadline = Deadline()
    deadline.enter_phase("body", _BODY_TIME)
    try:
        return await read_plain_body(request, limit, deadline)
    finally:
        deadline.stop()


async def _read_object(request: BaseRequest, limit: int) -> JsonObject:
    """The JSON object of a body; an empty one is {}. Raises Fault."""
    body = await _read_body(request, limit)
    try:
        found = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise Fault("invalid_request", "the body must be a JSON object", code="invalid_json")
    return found


def _answer_file(request: BaseRequest, path: str, access: PageAccess) -> Response:
    if request.method not in ("GET", "HEAD"):
        raise Fault("method_not_allowed", "this address allows GET and HEAD")
    name = path.removeprefix("/page").removeprefix("/") or INDEX
    if name == INDEX and access.find_csrf_token(request.headers) is None:
        return _show_login("")
    if (found := read_asset(name)) is None:
        raise Fault("not_found", "the page has no such file")
    return _respond(*found)


def _show_login(message: str) -> Response:
    """The form to sign in. A browser says where a form comes from only if the page lets it."""
    body, content_type = read_asset(LOGIN) or (b"", "text/html")
    body = body.replace(b"<!-- message -->", message.encode())
    return _respond(body, content_type, 401, {"WWW-Authenticate": "Bearer", "Referrer-Policy": "same-origin"})


def _respond_json(body: JsonObject, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return _respond(serialize(body), _JSON, status, headers)


def _respond(body: bytes, content_type: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status=status, body=body, headers=_write_headers(content_type, headers or {}))


def _write_headers(content_type: str, headers: Mapping[str, str]) -> dict[str, str]:
    return {**SECURITY_HEADERS, "Content-Type": content_type, "Server": SERVER, **headers}


def _read_number(request: BaseRequest, name: str, default: int | None) -> int | None:
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Fault("invalid_request", f"{name} must be a number")
    return int(text)
