"""Requests of the page itself: an exchange that is sent again, and the playground. They go through the gateway as those
of clients do, and are recorded like them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.proxy.config.choices import PolicyChoice, list_policies
from dragoman.proxy.http.aiohttp_server import create_inner_request
from dragoman.proxy.http.internal_requests import serve_without_client
from dragoman.proxy.http.request_body import create_request_id
from dragoman.proxy.routing.replay import ReplayChoice, ReplayRouter
from dragoman.proxy.telemetry.inspector import Inspector
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.proxy.telemetry.recording import Recording, RequestHead

from .exports import NO_BODY

if TYPE_CHECKING:
    from dragoman.proxy.server.gateway import Gateway
    from dragoman.proxy.server.serving_state import ServingState

__all__ = ["Replayer", "send_from_page"]

_DROPPED = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "origin",
        "referer",
        "transfer-encoding",
        "x-csrf-token",
        "x-request-id",
    }
)
"""Headers of HTTP itself, of browsers, and those that a request of the page sets."""

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]{0,8000}")
_PATH = re.compile(r"/[\x21-\x7e]{0,4000}")
_MOST_RUNNING = 16


class Replayer:
    """Sends recorded requests again."""

    def __init__(self, gateway: Gateway, inspector: Inspector) -> None:
        self._gateway = gateway
        self._inspector = inspector
        self._tasks: set[asyncio.Task[None]] = set()

    def replay(self, record: ExchangeRecord, asked: JsonObject) -> str:
        """Begin to send the request of an exchange again, as `asked` says: model, target, policy, profile. Returns the
        id of the new exchange. Raises Fault if that cannot be done."""
        recording = record.unfold_recording()
        if recording is None or not recording.keeps_bodies:
            text = "the request is not kept; set server.inspect to bodies, and send it once more"
            raise Fault("invalid_request", text, code="not_kept")
        if not recording.request.length:
            raise Fault("invalid_request", NO_BODY, code="not_kept")
        if recording.request.kept < recording.request.length:
            raise Fault("invalid_request", "only a part of the request is kept (server.inspect_bytes)", code="not_kept")
        if len(self._tasks) >= _MOST_RUNNING:
            raise Fault("overloaded", f"{_MOST_RUNNING} replays are running; wait for one of them")
        choice = _read_choice(record, asked)
        serving = self._gateway.states.current
        ReplayRouter(serving.router, serving.config, choice)  # raises Fault
        request_id = create_request_id()
        request = _write_request(recording, request_id, _read_text(asked, "model"))
        self._inspector.expect_replay(request_id, record.reference)
        task = asyncio.get_running_loop().create_task(
            serve_without_client(_ReplayedRequest(self._gateway, choice), request)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._inspector.forget_replay(request_id))
        return request_id


class _ReplayedRequest:
    """Answers the only request of a connection that has no client."""

    def __init__(self, gateway: Gateway, choice: ReplayChoice) -> None:
        self._gateway = gateway
        self._adapt = partial(_create_router, choice)

    async def handle(self, request: BaseRequest) -> StreamResponse:
        return await self._gateway.handle(request, self._adapt)

    def reject(self, request: BaseRequest, fault: Fault) -> Response:
        return self._gateway.reject(request, fault)

    def log_defect(self, error: BaseException | None) -> None:
        self._gateway.log_defect(error)


async def send_from_page(gateway: Gateway, request: BaseRequest, asked: JsonObject) -> StreamResponse:
    """Send what the playground asks for, and answer with the reply as it is. Raises Fault for what is no request."""
    path, headers = _read_text(asked, "path") or "", asked.get("headers") or {}
    if not _PATH.fullmatch(path):
        raise Fault("invalid_request", "path must begin with / and contain no spaces", code="invalid_value")
    if not isinstance(headers, dict) or not all(_is_header(name, value) for name, value in headers.items()):
        raise Fault("invalid_request", "headers must be an object of header names and texts", code="invalid_value")
    body = orjson.dumps(asked.get("body"))
    given = {name: value for name, value in headers.items() if name.lower() not in _DROPPED}
    return await gateway.handle(create_inner_request(request, path, {**given, **_own_headers(body)}, body))


def _create_router(choice: ReplayChoice, serving: ServingState) -> ReplayRouter:
    return ReplayRouter(serving.router, serving.config, choice)


def _read_choice(record: ExchangeRecord, asked: JsonObject) -> ReplayChoice:
    policy = _read_policy(asked.get("policy") or {})
    return ReplayChoice(record.key, _read_text(asked, "target"), policy, _read_text(asked, "profile"))


def _read_policy(given: object) -> PolicyChoice:
    if not isinstance(given, dict):
        raise Fault("invalid_request", "policy must be an object", code="bad_policy")
    policies, chosen = list_policies(), {}
    for name, value in given.items():
        known, text = policies.get(name, {}), str(value).lower()
        if text not in known:
            expected = f"it is one of: {', '.join(known)}" if known else f"policies are: {', '.join(policies)}"
            raise Fault(
                "invalid_request", f"the policy is not valid: {name} cannot be {value}; {expected}", code="bad_policy"
            )
        chosen[name] = known[text]
    return PolicyChoice(**chosen)


def _write_request(recording: Recording, request_id: str, model: str | None) -> bytes:
    """The recorded request, with another id, and for another model if one is given."""
    head = recording.request.head
    assert isinstance(head, RequestHead)
    body = b"".join(recording.request.chunks)
    if model is not None:
        body = orjson.dumps({**_parse_object(body), "model": model})
    kept = [line for line in head.headers if line[0].decode("latin-1").lower() not in _DROPPED]
    own = {**_own_headers(body), "x-request-id": request_id, "Connection": "close"}
    lines = [b"%b: %b\r\n" % line for line in (*kept, *((k.encode(), v.encode()) for k, v in own.items()))]
    return b"POST %b HTTP/1.1\r\n%b\r\n%b" % (head.path.encode("utf-8", "surrogateescape"), b"".join(lines), body)


def _own_headers(body: bytes) -> Mapping[str, str]:
    return {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body))}


def _parse_object(body: bytes) -> JsonObject:
    try:
        found: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise Fault("invalid_request", "the request is no JSON object, so it has no model", code="invalid_value")
    return found


def _read_text(asked: JsonObject, name: str) -> str | None:
    value = asked.get(name)
    if value is not None and not isinstance(value, str):
        raise Fault("invalid_request", f"{name} must be a text", code="invalid_value")
    return value or None


def _is_header(name: Any, value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(name) is not None and _VALUE.fullmatch(value) is not None
