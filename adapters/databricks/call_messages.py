"""Messages with calls in the documented profile: its reference allows no text next to them."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

__all__ = ["separate_calls"]


def separate_calls(messages: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Make two messages of each that has a text and calls: one with the text, then one with the calls."""
    if not any(map(_has_both, messages)):
        return messages
    made: list[JsonObject] = []
    places: list[tuple[Path, Path]] = []
    for i, message in enumerate(messages):
        places.append((("messages", i), ("messages", len(made))))
        if _has_both(message):
            made.append({key: value for key, value in message.items() if key != "tool_calls"})
            before, after = ("messages", i, "tool_calls"), ("messages", len(made), "tool_calls")
            places.append((before, after))
            ctx.receipt.record_move(before, after, "a message with calls has no text here")
            ctx.receipt.record_fill(("messages", len(made)), "a message with the calls")
            message = {"role": "assistant", "content": None, "tool_calls": message["tool_calls"]}
        made.append(message)
    ctx.receipt.map_paths(places)
    return made


def _has_both(message: object) -> bool:
    return isinstance(message, dict) and bool(message.get("tool_calls")) and bool(message.get("content"))
