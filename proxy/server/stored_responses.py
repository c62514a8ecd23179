"""Asking for responses that are kept, below the address that made them (OpenAI OpenAPI 2.3):

    GET /{id}                the response          DELETE /{id}          deletes it, here
    GET /{id}/input_items    what it answered      POST /{id}/cancel     refused: nothing runs in the background

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
from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.http.json_response import create_fault_response, create_response, serialize
from dragoman.proxy.http.stream_response import ClientDisconnected, send_large
from dragoman.proxy.routing.keys import Keys
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.telemetry.mask import Mask
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.schemas import load

__all__ = ["METHODS", "Retrieval"]

_SHOWN = 100  # characters of a client's value in a message


class Retrieval:
    """One request. Made inside the task that serves it."""

    def __init__(self, request: BaseRequest, record: ExchangeRecord, route: Route, response_id: str, part: str) -> None:
        self.deadline = Deadline()
        self._request = request
        self._record = record
        self._route = route
        self._id = response_id
        self._verb = _VERBS[part][request.method]

    async def run(self, keys: Keys, store: ResponseStore | None, log: Log, mask: Mask, stall: float) -> StreamResponse:
        """Answer, with one line in the log. Raises CancelledError if the client has left."""
        try:
            response = await self._respond(keys, store, mask)
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
            log.info("exchange", **self._record.to_log_line())

    async def _respond(self, keys: Keys, store: ResponseStore | None, mask: Mask) -> Response:
        record, headers = self._record, {"x-request-id": self._record.request_id}
        try:
            caller = keys.caller(self._request.headers)
            record.key = caller.name
            if store is None:
                raise _unknown(self._id, "this proxy keeps no responses (its store is of the kind none)")
            body = await self._verb(self, OwnerStore(store, caller.name or "", self.deadline))
            response = create_response(200, serialize(body), headers)
        except Fault as fault:
            record.record_fault(fault)
            reply = render_fault(self._route, fault, Call(self._request.method, "", {}))
            response = create_fault_response(reply, self._request, headers, mask)
        record.status = response.status
        record.bytes = len(response.body) if isinstance(response.body, bytes) else 0
        return response

    # Verbs

    async def _retrieve(self, store: OwnerStore) -> JsonObject:
        stored = await self._load(store)
        if self._request.query.get("stream", "").lower() == "true":
            text = "stream=true cannot be served: only a response in the background streams again, and there are none"
            raise Fault("invalid_request", text, ("stream",), True, code="unsupported_value")
        self._check_include()
        return stored.response

    async def _delete(self, store: OwnerStore) -> JsonObject:
        if not await store.delete(self._id):
            raise _unknown(self._id)
        return {"id": self._id, "object": "response", "deleted": True}

    async def _list_input_items(self, store: OwnerStore) -> JsonObject:
        stored = await self._load(store)
        self._check_include()
        return list_input_items(stored.id, stored.input, self._request.query)

    async def _cancel(self, store: OwnerStore) -> JsonObject:
        await self._load(store)
        text = "only a response in the background can be cancelled; this one is not"
        raise Fault("invalid_request", text, ("response_id",), self._id)

    async def _load(self, store: OwnerStore) -> StoredResponse:
        stored = await store.load(self._id)
        if stored is None:
            raise _unknown(self._id)
        return stored

    def _check_include(self) -> None:
        """Whatever can be included is kept and shown anyway; anything else is refused."""
        query = self._request.query
        for i, word in enumerate([*query.getall("include[]", ()), *query.getall("include", ())]):
            if word not in _includable():
                text = f"include[{i}] is not valid: expected one of {', '.join(_includable())}, got {word[:_SHOWN]!r}"
                raise Fault("invalid_request", text, ("include", i), word, code="invalid_value")


_Verb = Callable[[Retrieval, OwnerStore], Awaitable[JsonObject]]

_VERBS: Mapping[str, Mapping[str, _Verb]] = {
    "": {"GET": Retrieval._retrieve, "DELETE": Retrieval._delete},
    "input_items": {"GET": Retrieval._list_input_items},
    "cancel": {"POST": Retrieval._cancel},
}

METHODS: Mapping[str, tuple[str, ...]] = {part: tuple(verbs) for part, verbs in _VERBS.items()}
"""What may be done with a response, and with a part of it."""


@cache
def _includable() -> tuple[str, ...]:
    words: list[str] = load("openai/responses.request")["properties"]["include"]["items"]["enum"]
    return tuple(words)


def _unknown(response_id: str, why: str = "it is unknown, deleted, or too old") -> Fault:
    text = f"there is no response {response_id[:_SHOWN]!r}: {why}"
    return Fault("not_found", text, ("response_id",), response_id, code="response_not_found")
