"""The usage of Messages: `input_tokens` are those that came from no cache and went into none.

Source: anthropic 2.12.0, Usage and MessageDeltaUsage.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.stream_changes import ChangeRecorder
from dragoman.adapters.counts import is_count

__all__ = ["normalize_messages_usage"]

_NAMES = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
_COUNTS = frozenset({"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"})
_PLACE = ("usage",)


def normalize_messages_usage(usage: Any, required: tuple[str, ...], changes: ChangeRecorder) -> JsonObject:
    """Make usage that has the `required` counts. A count that the provider did not give is 0, which is recorded.

    Counts that are no numbers are left out. `usage` is any value.
    """
    given: JsonObject = usage if isinstance(usage, dict) else {}
    named = {_NAMES.get(key, key): value for key, value in given.items()}
    made = {
        key: int(value) if key in _COUNTS and value is not None else value
        for key, value in named.items()
        if key not in _COUNTS or value is None or is_count(value)
    }
    if made != given or (usage is not None and given is not usage):
        changes.record_conversion(_PLACE, "the counts get the hub's names; what is no count is left out")
    for key in required:
        if made.get(key) is None:
            made[key] = 0
            changes.record_fill((*_PLACE, key), "the provider counted none")
    return made
