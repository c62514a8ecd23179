"""The record of a response that is kept, so that later requests can continue it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from dragoman.adapters.call import JsonObject

__all__ = ["StoredResponse", "new_response_id"]


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """`created_at` is in seconds since 1970, `input` the items of this request alone, `response` the reply's object.

    `provider` names the provider that answered; `provider_id` is the provider's own id for the response, if it keeps
    the response too.
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
    """An id that nobody can guess: `resp_` and 128 random bits in hexadecimal."""
    return f"resp_{secrets.token_hex(16)}"
