"""What a store of responses is: the record it keeps, its limits, its errors and its verbs.

A response belongs to the key that made it. `owner` is that key's name, or "" where no keys are configured; what belongs
to another owner is as if it did not exist.

A response continues another by its `previous_id`. Only the input that is new and the reply are kept with each, so the
conversation so far is the chain of responses from the first to the last: input, output, input, output, ...
Instructions are part of one reply only and never pass on to the next. Where a link is deleted or has grown too old,
everything after it can still be read by id, but not be continued.

A store that fails says so with a StoreError. Whether the exchange fails with it is for the caller to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from dragoman.adapters.responses.stored import StoredResponse, new_response_id

__all__ = ["OverLimit", "Reason", "ResponseStore", "StoreError", "StoreLimits", "StoredResponse", "new_response_id"]

Reason = Literal[
    "chain_too_long",
    "closed",
    "corrupt",
    "disk_full",
    "failed",
    "locked",
    "newer_version",
    "not_ours",
    "too_large",
    "unstorable",
    "unusable_path",
]


class StoreError(Exception):
    """The store could not do it. The text is for the log: it tells of the file, never of what is kept in it."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class OverLimit(StoreError):
    """The store works, but this response is larger than `max_response`, or this chain longer than it may be."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Seconds and bytes. A response is measured as JSON text, the whole store as it is kept, which is compressed."""

    retention: float = 30 * 24 * 3600.0
    """How long a response is kept after it was put."""
    max_size: int = 1024**3
    """For all responses together; beyond it the oldest go, whoever owns them."""
    max_response: int = 32 * 1024**2
    """For one response with its input."""
    max_chain: int = 64 * 1024**2
    """For all responses of a chain together."""

    def __post_init__(self) -> None:
        if not 0 < self.max_response <= self.max_size:
            raise ValueError("max_response must be above 0, and not above max_size")
        if self.retention <= 0 or self.max_chain <= 0:
            raise ValueError("retention and max_chain must be above 0")


class ResponseStore(Protocol):
    """All verbs raise StoreError. A response older than `retention` is gone for all of them."""

    async def put(self, owner: str, record: StoredResponse) -> None:
        """Keep a response, in place of one with the same id and owner. When this returns it is kept for good; when it
        raises or is cancelled it may be kept or not. The record may be altered as soon as this has been called.
        Raises OverLimit for one that is too large."""

    async def get(self, owner: str, response_id: str) -> StoredResponse | None: ...

    async def delete(self, owner: str, response_id: str) -> bool:
        """True where there was one to delete."""

    async def chain(self, owner: str, response_id: str, most: int) -> list[StoredResponse] | None:
        """The conversation that ends with this response, oldest first; None where a link is missing.
        Raises OverLimit for more than `most` links, or more bytes than `max_chain`."""

    async def holders(self, owner: str, item_ids: Sequence[str], most: int) -> list[StoredResponse]:
        """For each item with such an id, the latest response whose output has it; each response once.
        Raises OverLimit for more than `most` responses, or more bytes than `max_chain`."""

    async def close(self) -> None:
        """Finish what has begun. Calling it again does nothing; any other verb raises StoreError from here on."""
