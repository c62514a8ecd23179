"""The record of a stored response, which later requests can continue."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field

from dragoman.adapters.call import JsonObject

__all__ = ["ITEM_PREFIXES", "StoredResponse", "find_response_id", "new_item_id", "new_response_id"]

ITEM_PREFIXES = frozenset({"msg", "rs", "fc", "ctc"})
"""Prefixes of the ids of items that no provider is shown later: they may name the response."""

_ITEM_ID = re.compile(
    rf"(?:{'|'.join(sorted(ITEM_PREFIXES))})_(?:([0-9a-f]{{44}})[0-9a-f]{{2,}}|([0-9a-f]{{32}})[0-9a-f]{{2,11}})"
)
"""With the digits of a response's id: 44, or the 32 that earlier versions made."""


@dataclass(slots=True)
class StoredResponse:
    """A stored response and its request.

    `created_at` is in seconds since 1970. `input` are the items of this request only, without those that it continues.
    `response` is the response object. `provider` names the provider that answered. `provider_id` is the provider's own
    id of the response, if the provider stores it too. `written` is the JSON text of `response`, if the client gets
    exactly this; it is not stored for itself.
    """

    id: str
    previous_id: str | None
    created_at: float
    model: str
    input: list[JsonObject]
    response: JsonObject
    provider: str | None = None
    provider_id: str | None = None
    written: bytes | None = field(default=None, compare=False, repr=False)


def new_response_id() -> str:
    """Make an id that nobody can guess: `resp_`, the milliseconds since 1970 in 48 bits, and 128 random bits, all in
    hexadecimal. Ids of the same time are next to each other in the index of a store, which writes fewer pages for
    them than for random ids (as UUIDs of version 7, RFC 9562)."""
    return f"resp_{time.time_ns() // 1_000_000:012x}{os.urandom(16).hex()}"


def new_item_id(response_id: str, prefix: str, number: int) -> str:
    """Make the id of a response's item: the prefix, the response's digits, and the number, so that a store needs no
    list of items to find the response."""
    return f"{prefix}_{response_id[5:]}{number:02x}"


def find_response_id(item_id: str) -> str | None:
    """The id of the response that `new_item_id` made an item's id for; None if it did not make this one."""
    found = _ITEM_ID.fullmatch(item_id)
    return None if found is None else f"resp_{found[1] or found[2]}"
