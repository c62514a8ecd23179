"""The envelope of a message: its id, its type, its role and the name of the model, whole and in a stream."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.stream_changes import ChangeRecorder

from .events import new_message

__all__ = ["make_envelope"]

_KEYS = ("id", "type", "role", "model")


def make_envelope(message: JsonObject, changes: ChangeRecorder, ctx: Context) -> JsonObject:
    """The envelope of a provider's message: its own id and model, or others if it has none. Records what it lacks."""
    base = new_message(message.get("id") or ctx.new_id("msg"), message.get("model") or ctx.target.model)
    for key in _KEYS:
        if message.get(key) is None:
            changes.record_fill((key,), f"a message has its {key}")
        elif message[key] != base[key]:
            changes.record_conversion((key,), f"the {key} of a message is {base[key]!r}", "loss")
    return {key: base[key] for key in _KEYS}
