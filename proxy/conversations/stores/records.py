"""Encoding of stored responses, and the walk along a chain: shared by all stores."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import NamedTuple

import orjson

from dragoman.adapters.responses.stored import find_response_id

from .interface import OverLimit, StoredResponse, StoreError

__all__ = ["Packed", "collect_responses", "encode", "item_ids", "pack", "unnamed_item_ids", "unpack", "walk_chain"]

_LEVEL = 1  # zlib's fastest: speed matters more than a few per cent of size
_SMALL = 16 * 1024  # bytes
_WINDOW, _MEMORY = 14, 6  # of zlib, for small texts: its defaults take 256 KB for each


class Packed(NamedTuple):
    """A compressed record. `raw_size` is its size in bytes before compression."""

    raw_size: int
    body: bytes


def encode(record: StoredResponse, most: int) -> bytes:
    """The record as JSON text of at most `most` bytes. Raises OverLimit, and StoreError for values that JSON lacks."""
    try:
        raw = orjson.dumps(_list_fields(record))
    except orjson.JSONEncodeError as error:
        raise StoreError("unstorable", f"a response cannot be stored, it is not plain JSON: {error}") from error
    if len(raw) > most:
        text = f"a response of {len(raw)} bytes is not stored: store.max_response is {most} bytes"
        raise OverLimit("too_large", text)
    return raw


def _list_fields(record: StoredResponse) -> dict[str, object]:
    """What is stored of a record. A response that has been written already is not written again."""
    return {
        "id": record.id,
        "previous_id": record.previous_id,
        "created_at": record.created_at,
        "model": record.model,
        "input": record.input,
        "response": record.response if record.written is None else orjson.Fragment(record.written),
        "provider": record.provider,
        "provider_id": record.provider_id,
    }


def pack(raw: bytes) -> Packed:
    """Compress the JSON text of a record."""
    if len(raw) > _SMALL:
        return Packed(len(raw), zlib.compress(raw, _LEVEL))
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY)
    return Packed(len(raw), compressor.compress(raw) + compressor.flush())


def item_ids(record: StoredResponse) -> set[str]:
    """The ids of the items in a response's output."""
    items = record.response.get("output") or ()
    return {item["id"] for item in items if isinstance(item.get("id"), str)}


def unnamed_item_ids(record: StoredResponse) -> set[str]:
    """Those of `item_ids` from which `find_response_id` does not find the response."""
    return {each for each in item_ids(record) if find_response_id(each) != record.id}


def unpack(packed: Packed) -> StoredResponse:
    """Reverse `encode` and `pack`. Raises StoreError if the bytes are damaged."""
    try:
        return StoredResponse(**orjson.loads(zlib.decompress(packed.body)))
    except (zlib.error, ValueError, TypeError) as error:
        raise StoreError("corrupt", f"a stored response cannot be read, its bytes are damaged: {error}") from error


def collect_responses(
    read: Callable[[str], Packed | None], response_ids: Iterable[str], most: int, most_bytes: int
) -> list[StoredResponse]:
    """The responses with these ids that `read` finds. Raises OverLimit."""
    found: list[StoredResponse] = []
    size = 0
    for response_id in dict.fromkeys(response_ids):
        packed = read(response_id)
        if packed is None:
            continue
        size += packed.raw_size
        if len(found) == most or size > most_bytes:
            text = f"the items referred to are in more than {most} stored responses, or {most_bytes} bytes of them"
            raise OverLimit("chain_too_long", text)
        found.append(unpack(packed))
    return found


def walk_chain(
    read: Callable[[str], Packed | None], response_id: str, most: int, most_bytes: int
) -> list[StoredResponse] | None:
    """The chain that ends with this response, oldest first; None if `read` does not find a link. Raises OverLimit.

    Nothing beyond a limit is unpacked, so a chain with a cycle ends as one that is too long.
    """
    chain: list[StoredResponse] = []
    size = 0
    following: str | None = response_id
    while following is not None:
        if len(chain) == most:
            raise OverLimit("chain_too_long", f"a chain of more than {most} stored responses cannot be continued")
        packed = read(following)
        if packed is None:
            return None
        size += packed.raw_size
        if size > most_bytes:
            raise OverLimit("chain_too_long", f"a chain of more than {most_bytes} bytes cannot be continued")
        chain.append(unpack(packed))
        following = chain[-1].previous_id
    return chain[::-1]
