"""The interface of a store of responses: its record, its limits, its errors and its methods.

A response belongs to the client key that created it. `owner` is that key's name, or "" if no keys are configured. The
responses of other owners are not found.

A response continues another by its `previous_id`. A record has only the new input and the reply, so a conversation is
the chain of records from the first to the last: input, output, input, output, ... Instructions belong to one reply and
do not carry over to the next. If a link is deleted or expires, the responses after it can be read by id, but not
continued.

A store that fails raises StoreError. The caller decides whether the exchange fails with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from dragoman.adapters.responses.stored import StoredResponse, new_response_id

__all__ = ["OverLimit", "Reason", "ResponseStore", "StoreError", "StoreLimits", "StoredResponse", "new_response_id"]

Reason = Literal[
    "chain_too_long",
    "clock_changed",
    "closed",
    "corrupt",
    "disk_full",
    "failed",
    "file_gone",
    "locked",
    "newer_version",
    "not_ours",
    "too_large",
    "unstorable",
    "unusable_path",
]


class StoreError(Exception):
    """The store failed. The text is for the log: it names the file, and never quotes a response."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class OverLimit(StoreError):
    """A response is larger than `max_response`, or a chain exceeds its limits."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Limits in seconds and bytes. A response counts as JSON text; the whole store counts compressed, as it is
    stored."""

    retention: float = 30 * 24 * 3600.0
    """How long a response is stored after `put`."""
    max_size: int = 1024**3
    """For all responses together; beyond it the oldest are deleted, whoever owns them."""
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
    """All methods raise StoreError. A response older than `retention` is not found by any of them."""

    async def put(self, owner: str, record: StoredResponse) -> None:
        """Store a response, in place of one with the same id and owner. After it returns, the response is durable; if
        it raises or is cancelled, the response may be stored or not. The caller may alter the record as soon as this
        has been called. Raises OverLimit if the response is too large."""

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt to write has failed."""

    async def check(self) -> None:
        """Try to write, if the last attempt to write has failed."""

    async def get(self, owner: str, response_id: str) -> StoredResponse | None:
        """The response with this id, or None."""

    async def delete(self, owner: str, response_id: str) -> bool:
        """Delete a response. True if there was one."""

    async def load_chain(self, owner: str, response_id: str, most: int) -> list[StoredResponse] | None:
        """The chain that ends with this response, oldest first; None if a link is missing.
        Raises OverLimit for more than `most` responses, or more bytes than `max_chain`."""

    async def find_by_items(self, owner: str, item_ids: Sequence[str], most: int) -> list[StoredResponse]:
        """For each item id, the latest response whose output has an item with that id; each response once.
        Raises OverLimit for more than `most` responses, or more bytes than `max_chain`."""

    async def close(self) -> None:
        """Finish what has begun. Calling it again does nothing; any other verb raises StoreError from here on."""
