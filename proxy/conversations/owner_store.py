"""The part of the store that belongs to one key. Every operation has a timeout, and every error is a Fault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import orjson

from dragoman.adapters.faults import Fault
from dragoman.adapters.pipeline import INSTEAD, PREVIOUS, Recall
from dragoman.adapters.responses.stored import StoredResponse
from dragoman.proxy.http.deadline import Deadline

from .stores.interface import OverLimit, ResponseStore, StoreError

__all__ = ["MAX_TURNS", "STORE_TIMEOUT", "OwnerStore", "mask_record"]

MAX_TURNS = 256
"""Responses in a conversation that is continued by `previous_response_id`."""

STORE_TIMEOUT = 10.0
"""Seconds for one operation of the store."""

_UNSAVED = "the response cannot be stored (send store: false to continue without storing it)"

_T = TypeVar("_T")


class OwnerStore:
    """The stored responses of one owner; those of others are not found. All methods raise Fault."""

    def __init__(self, store: ResponseStore, owner: str, deadline: Deadline) -> None:
        self._store = store
        self._owner = owner
        self._deadline = deadline

    async def recall(self, needed: Recall) -> tuple[list[StoredResponse] | None, list[StoredResponse]]:
        """The chain that ends with `previous_id`, None if a link is missing; and the responses that hold the items."""
        holders = await self._load_holders(needed.item_ids) if needed.item_ids else []
        chain = None if needed.previous_id is None else await self._load_chain(needed.previous_id)
        return chain, holders

    @property
    def is_failing(self) -> bool:
        """Whether the last response could not be saved."""
        return self._store.is_failing

    async def check(self) -> None:
        """Raise a Fault if the last response could not be saved, and another one could not be now: before a provider
        makes one that nobody gets."""
        try:
            await self._wait(self._store.check())
        except StoreError as error:
            raise _create_fault(_UNSAVED, error, status=503) from error

    async def save(self, record: StoredResponse) -> None:
        """Save a response. Clients are asked not to repeat a request that fails here, because it was paid."""
        try:
            await self._wait(self._store.put(self._owner, record))
        except StoreError as error:
            fault = _create_fault(_UNSAVED, error)
            fault.is_exhausted = True
            raise fault from error

    async def load(self, response_id: str) -> StoredResponse | None:
        """Load a response; None if the owner has none with this id."""
        try:
            return await self._wait(self._store.get(self._owner, response_id))
        except StoreError as error:
            raise _create_fault("the store of responses cannot be used", error) from error

    async def delete(self, response_id: str) -> bool:
        """Delete a response. True if there was one."""
        try:
            return await self._wait(self._store.delete(self._owner, response_id))
        except StoreError as error:
            raise _create_fault("the store of responses cannot be used", error) from error

    async def _load_chain(self, previous_id: str) -> list[StoredResponse] | None:
        try:
            return await self._wait(self._store.load_chain(self._owner, previous_id, MAX_TURNS))
        except OverLimit as error:
            raise Fault("invalid_request", f"{error}; {INSTEAD}", PREVIOUS, code=error.reason) from None
        except StoreError as error:
            raise _create_fault("the previous response cannot be read", error) from error

    async def _load_holders(self, item_ids: tuple[str, ...]) -> list[StoredResponse]:
        try:
            return await self._wait(self._store.find_by_items(self._owner, item_ids, MAX_TURNS))
        except OverLimit as error:
            raise Fault("invalid_request", str(error), ("input",), code=error.reason) from None
        except StoreError as error:
            raise _create_fault("the items that input refers to cannot be read", error) from error

    async def _wait(self, work: Awaitable[_T]) -> _T:
        self._deadline.enter_phase("store", STORE_TIMEOUT)
        with self._deadline:
            return await work


def mask_record(record: StoredResponse, mask: Callable[[bytes], bytes]) -> StoredResponse:
    """The record without secrets in what the provider says: the response, and its id there."""
    response_text = orjson.dumps(record.response) if record.written is None else record.written
    written = b"[%b,%b]" % (response_text, orjson.dumps(record.provider_id))
    masked = mask(written)
    if masked == written:
        return record
    response, provider_id = orjson.loads(masked)
    return replace(record, response=response, provider_id=provider_id, written=None)


def _create_fault(text: str, error: StoreError, status: int = 0) -> Fault:
    """The error's own text is for the log: it may name files."""
    reason = str(error) if isinstance(error, OverLimit) else error.reason.replace("_", " ")
    return Fault("internal", f"{text}: {reason}", status=status, code="store_failed")
