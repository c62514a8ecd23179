"""The record of a stored response, which later requests can continue."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from dragoman.adapters.call import JsonObject

__all__ = ["StoredResponse", "new_response_id"]


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A stored response and its request.

    `created_at` is in seconds since 1970. `input` are the items of this request only, without those that it continues.
    `response` is the response object. `provider` names the provider that answered. `provider_id` is the provider's own
    id of the response, if the provider stores it too.
    """

    id: str
    previous_id: str | None
    created_at: float
    model: str
    input: list[JsonObject]
    response: JsonObject
    provider: str | None = None
    provider_id: str | None = None


def new_response_id() -> str:
    """Make an id that nobody can guess: `resp_` and 128 random bits in hexadecimal."""
    return f"resp_{secrets.token_hex(16)}"
