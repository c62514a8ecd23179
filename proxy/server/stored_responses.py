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

from dragoman.adapters.call import Call, Context, JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.routes import Route
from dragoman.proxy.conversations.stores.interface import ResponseStore, StoredResponse, StoreError
from dragoman.proxy.conversations.stores.items import input_items
from dragoman.proxy.conversations.turn import PATIENCE, store_fault
from dragoman.proxy.http.deadline import Clock
from dragoman.proxy.http.json_response import as_response, encode
from dragoman.proxy.http.stream_response import ClientGone, send_large
from dragoman.proxy.routing.keys import Keys
from dragoman.proxy.telemetry.log import Log
from dragoman.proxy.telemetry.record import ExchangeRecord
from dragoman.schemas import load

__all__ = ["METHODS", "Retrieval"]

_SHOWN = 100  # characters of a client's value in a message


class Retrieval:
    """One request. Made inside the task that serves it."""

    def __init__(self, request: BaseRequest, note: ExchangeRecord, route: Route, response_id: str, part: str) -> None:
        self.clock = Clock()
        self._request = request
        self._note = note
        self._route = route
        self._id = response_id
        self._verb = _VERBS[part][request.method]

    async def run(self, keys: Keys, store: ResponseStore | None, log: Log, stall: float) -> StreamResponse:
        """Answer, with one line in the log."""
        try:
            response = await self._answered(keys, store)
            await send_large(response, self._request, self.clock, stall)
            return response
        except ClientGone:
            self._note.outcome = "client_left"
            return Response(status=499)
        except asyncio.CancelledError:
            self._note.outcome = "client_left"
            raise
        finally:
            self.clock.stop()
            log.info("exchange", **self._note.to_log_line())

    async def _answered(self, keys: Keys, store: ResponseStore | None) -> Response:
        note = self._note
        try:
            caller = keys.caller(self._request.headers)
            note.key = caller.name
            if store is None:
                raise _unknown(self._id, "this proxy keeps no responses (its store is of the kind none)")
            status, body = 200, await self._in_time(self._verb(self, store, caller.name or ""))
            headers: Mapping[str, str] = {}
        except StoreError as error:
            return self._refused(store_fault("the store of responses cannot be used", error), error)
        except Fault as fault:
            return self._refused(fault)
        return self._response(status, body, headers)

    async def _in_time(self, doing: Awaitable[JsonObject]) -> JsonObject:
        self.clock.enter("store", PATIENCE)
        try:
            return await doing
        except asyncio.CancelledError as stop:
            raise self.clock.verdict(stop) from None

    def _refused(self, fault: Fault, cause: BaseException | None = None) -> Response:
        self._note.record_fault(fault)
        self._note.cause = cause
        ctx = Context(self._route.profile, Call(self._request.method, "", {}), Receipt())
        reply = self._route.served.write_fault(fault, ctx)
        return self._response(reply.status, reply.body, reply.headers)

    def _response(self, status: int, body: JsonObject, headers: Mapping[str, str]) -> Response:
        data = encode(body)
        self._note.status, self._note.bytes = status, len(data)
        return as_response(status, data, {"x-request-id": self._note.request_id, **headers})

    # Verbs

    async def _retrieve(self, store: ResponseStore, owner: str) -> JsonObject:
        record = await self._record(store, owner)
        if self._request.query.get("stream", "").lower() == "true":
            text = "stream=true cannot be served: only a response in the background streams again, and there are none"
            raise Fault("invalid_request", text, ("stream",), True, code="unsupported_value")
        self._check_include()
        return record.response

    async def _delete(self, store: ResponseStore, owner: str) -> JsonObject:
        if not await store.delete(owner, self._id):
            raise _unknown(self._id)
        return {"id": self._id, "object": "response", "deleted": True}

    async def _items(self, store: ResponseStore, owner: str) -> JsonObject:
        record = await self._record(store, owner)
        self._check_include()
        return input_items(record.id, record.input, self._request.query)

    async def _cancel(self, store: ResponseStore, owner: str) -> JsonObject:
        await self._record(store, owner)
        text = "only a response in the background can be cancelled; this one is not"
        raise Fault("invalid_request", text, ("response_id",), self._id)

    async def _record(self, store: ResponseStore, owner: str) -> StoredResponse:
        record = await store.get(owner, self._id)
        if record is None:
            raise _unknown(self._id)
        return record

    def _check_include(self) -> None:
        """What can be included is kept, and shown, anyway; what cannot is refused."""
        query = self._request.query
        for i, word in enumerate([*query.getall("include[]", ()), *query.getall("include", ())]):
            if word not in _includable():
                text = f"include[{i}] is not valid: expected one of {', '.join(_includable())}, got {word[:_SHOWN]!r}"
                raise Fault("invalid_request", text, ("include", i), word, code="invalid_value")


_Verb = Callable[[Retrieval, ResponseStore, str], Awaitable[JsonObject]]

_VERBS: Mapping[str, Mapping[str, _Verb]] = {
    "": {"GET": Retrieval._retrieve, "DELETE": Retrieval._delete},
    "input_items": {"GET": Retrieval._items},
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
