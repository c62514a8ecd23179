"""Requests for stored responses, at addresses below the one that creates them (OpenAI OpenAPI 2.3):

    GET /{id}                the response          DELETE /{id}          deletes it from dragoman's store
    GET /{id}/input_items    its input             POST /{id}/cancel     refused: no response runs in the background

A response that belongs to another key is not found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cache

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response, StreamResponse

from dragoman.adapters.call import Call, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import render_fault
from dragoman.adapters.responses.stored import StoredResponse
from dragoman.adapters.routes import Route
from dragoman.proxy.conversations.owner_store import OwnerStore
from dragoman.proxy.conversations.stores.input_items import list_input_items
from dragoman.proxy.conversations.stores.interface import ResponseStore
from dragoman.proxy.http.aiohttp_responses import SingleWriteResponse
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.http.json_response import create_fault_response, create_reply_response, serialize
from dragoman.proxy.http.stream_response import ClientDisconnected, send_large
from dragoman.proxy.routing.keys import Keys
from dragoman.proxy.telemetry.journal import Journal
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.schemas import load

__all__ = ["METHODS", "StoredResponseHandler"]

_MAX_QUOTED = 100  # characters of a client's value in a message


class StoredResponseHandler:
    """Answers one request. Created inside the task that serves the request.

    `headers` are those of every response to it. `part` is the end of the path, after the response's id: "",
    `input_items` or `cancel`.
    """

    def __init__(
        self,
        request: BaseRequest,
        headers: Mapping[str, str],
        record: ExchangeRecord,
        route: Route,
        response_id: str,
        part: str,
    ) -> None:
        self.deadline = Deadline()
        self._request = request
        self._headers = headers
        self._record = record
        self._route = route
        self._id = response_id
        self._action = _ACTIONS[part][request.method]

    async def run(
        self, keys: Keys, store: ResponseStore | None, journal: Journal, mask: Mask, stall: float
    ) -> StreamResponse:
        """Answer the request, and log one line. Raises CancelledError if the client has left."""
        try:
            response = await self._respond(keys, store, mask)
            if isinstance(response, SingleWriteResponse):
                await send_large(response, self._request, self.deadline, stall)
            return response
        except ClientDisconnected:
            self._record.outcome = "client_left"
            return Response(status=499)
        except asyncio.CancelledError:
            self._record.outcome = "client_left"
            raise
        finally:
            self.deadline.stop()
            journal.write(self._record)

    async def _respond(self, keys: Keys, store: ResponseStore | None, mask: Mask) -> Response | SingleWriteResponse:
        record, headers = self._record, self._headers
        try:
            caller = keys.authenticate(self._request.headers)
            record.key = caller.name
            if store is None:
                raise _not_found(self._id, "this proxy stores no responses (store.kind is none)")
            body = await self._action(self, OwnerStore(store, caller.name or "", self.deadline))
            response: Response | SingleWriteResponse = create_reply_response(200, serialize(body), headers)
        except Fault as fault:
            record.record_fault(fault)
            reply = render_fault(self._route, fault, Call(self._request.method, "", {}))
            response = create_fault_response(reply, self._request, headers, mask)
        record.status = response.status
        record.bytes = len(response.body) if isinstance(response.body, bytes) else 0
        return response

    async def _retrieve(self, store: OwnerStore) -> JsonObject:
        stored = await self._load(store)
        if self._request.query.get("stream", "").lower() == "true":
            text = "stream=true is not supported: only background responses can be streamed again"
            raise Fault("invalid_request", text, ("stream",), True, code="unsupported_value")
        self._check_include()
        return stored.response

    async def _delete(self, store: OwnerStore) -> JsonObject:
        if not await store.delete(self._id):
            raise _not_found(self._id)
        return {"id": self._id, "object": "response", "deleted": True}

    async def _list_input_items(self, store: OwnerStore) -> JsonObject:
        stored = await self._load(store)
        self._check_include()
        return list_input_items(stored.id, stored.input, self._request.query)

    async def _cancel(self, store: OwnerStore) -> JsonObject:
        await self._load(store)
        text = "only a background response can be cancelled, and this is none"
        raise Fault("invalid_request", text, ("response_id",), self._id)

    async def _load(self, store: OwnerStore) -> StoredResponse:
        stored = await store.load(self._id)
        if stored is None:
            raise _not_found(self._id)
        return stored

    def _check_include(self) -> None:
        """Refuse unknown values of `include`. The known ones have no effect: dragoman always includes everything."""
        query = self._request.query
        for i, word in enumerate([*query.getall("include[]", ()), *query.getall("include", ())]):
            if word not in _list_includable():
                expected = ", ".join(_list_includable())
                text = f"include[{i}] is not valid: expected one of {expected}, got {word[:_MAX_QUOTED]!r}"
                raise Fault("invalid_request", text, ("include", i), word, code="invalid_value")


_Action = Callable[[StoredResponseHandler, OwnerStore], Awaitable[JsonObject]]

_ACTIONS: Mapping[str, Mapping[str, _Action]] = {
    "": {"GET": StoredResponseHandler._retrieve, "DELETE": StoredResponseHandler._delete},
    "input_items": {"GET": StoredResponseHandler._list_input_items},
    "cancel": {"POST": StoredResponseHandler._cancel},
}

METHODS: Mapping[str, tuple[str, ...]] = {part: tuple(actions) for part, actions in _ACTIONS.items()}
"""The methods of a response's address, and of the addresses below it."""


@cache
def _list_includable() -> tuple[str, ...]:
    words: list[str] = load("openai/responses.request")["properties"]["include"]["items"]["enum"]
    return tuple(words)


def _not_found(response_id: str, why: str = "it is unknown, deleted, or too old") -> Fault:
    text = f"there is no response {response_id[:_MAX_QUOTED]!r}: {why}"
    return Fault("not_found", text, ("response_id",), response_id, code="response_not_found")
