"""The keys next to the name and the arguments of a tool call that its provider may want back in the next turn.

They have the same names in calls of chat and in items of Responses. Some hold a signature that only Google's models
accept, and Gemini refuses the next turn without it.

Sources: Google, OpenAI compatibility: thought signatures; earendil-works/pi#6733: `vertex` instead of `google`;
BerriAI/litellm, provider_specific_fields.
"""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path, lookup

__all__ = ["CARRIED_KEYS", "GOOGLE_SIGNATURE", "copy_carried_keys", "drop_signature", "has_signature"]

CARRIED_KEYS = ("extra_content", "provider_specific_fields")

GOOGLE_SIGNATURE: Path = ("extra_content", "google", "thought_signature")
"""Where a call has its signature in the hub."""

_SIGNATURES: tuple[Path, ...] = (
    GOOGLE_SIGNATURE,
    ("extra_content", "vertex", "thought_signature"),
    ("provider_specific_fields", "thought_signature"),
)


def copy_carried_keys(call: JsonObject) -> JsonObject:
    """These keys of a call, or of an item with one."""
    return {key: call[key] for key in CARRIED_KEYS if call.get(key) is not None}


def has_signature(call: JsonObject) -> bool:
    """Whether the call has Google's signature, whatever its key."""
    return any(isinstance(lookup(call, place), str) for place in _SIGNATURES)


def drop_signature(call: JsonObject, path: Path, ctx: Context) -> JsonObject:
    """The call, or the item, at `path` without Google's signature, whatever its key; the same object if it has none."""
    foreign = {str(place[0]) for place in _SIGNATURES if isinstance(lookup(call, place), str)}
    for key in sorted(foreign):
        ctx.receipt.record_drop((*path, key), "only the vendor of the model that made it can read it")
    return {key: value for key, value in call.items() if key not in foreign} if foreign else call
