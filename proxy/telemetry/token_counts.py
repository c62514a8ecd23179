"""The tokens of an exchange, from a usage in the canonical form of any protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["TokenCounts", "complete_token_counts", "read_token_counts"]

_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_MOST = 10**12  # of one exchange; a provider that says more does not count, and sums must fit into a database
_BYTES_PER_TOKEN = 4


class TokenCounts(NamedTuple):
    """Numbers of tokens; None if the provider does not say. `input` includes those that were read from a cache and
    written to one; `cached` are those that were read."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None

    @property
    def total(self) -> int:
        """The tokens of prompt and answer together, as far as they are known."""
        return (self.input or 0) + (self.output or 0)


def read_token_counts(usage: Mapping[str, Any] | None) -> TokenCounts:
    """What a usage says. Messages counts the tokens of its cache apart; the other protocols name those that were read
    among the details of the input."""
    if not usage:
        return TokenCounts()
    prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if prompt is not None:
        return TokenCounts(_count(prompt), _count(output), _find_cached(usage))
    given, output = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
    read, written = _count(usage.get("cache_read_input_tokens")), _count(usage.get("cache_creation_input_tokens"))
    if given is None or (read is None and written is None):
        return TokenCounts(given, output, _find_cached(usage))
    return TokenCounts(given + (read or 0) + (written or 0), output, read)


def complete_token_counts(found: TokenCounts, request_bytes: int, events: int) -> TokenCounts:
    """The tokens of an answer that was cut, with an estimate of what its usage does not say: an event of a stream has
    one at least. Messages begins with a usage of the prompt, and of one token or none."""
    given = found.input or -(-request_bytes // _BYTES_PER_TOKEN)
    return TokenCounts(given, max(found.output or 0, events), found.cached)


def _find_cached(usage: Mapping[str, Any]) -> int | None:
    for name in _DETAILS:
        if type(details := usage.get(name)) is dict:
            return _count(details.get("cached_tokens"))
    return None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST else None
