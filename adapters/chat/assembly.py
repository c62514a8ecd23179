"""Assembles the chunks of a chat stream into a whole reply, for a client that asked for no stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.adapters.call import JsonObject
from dragoman.adapters.common.choice_assembly import assemble_choices, merge_lists

from .citations import CITATIONS, drop_number

__all__ = ["assemble_chat"]

_ONCE = frozenset({"role", "id", "type", "name"})
"""Texts of a delta that come once. All others come in pieces."""
_NUMBERED = (CITATIONS, "annotations")


def assemble_chat(chunks: Sequence[JsonObject]) -> JsonObject:
    """The hub reply of a stream's hub chunks, of which there is at least one. The inverse of `restream`."""
    return assemble_choices(chunks, "chat.completion", _make_choice, _add_piece)


def _make_choice(index: int) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    return {"index": index, "message": message, "logprobs": None, "finish_reason": None}


def _add_piece(choice: JsonObject, piece: JsonObject) -> None:
    for key, value in piece.items():
        if key == "delta":
            _add_delta(choice["message"], value)
        elif key == "logprobs" and value is not None:
            choice["logprobs"] = merge_lists(choice["logprobs"], value)
        elif value is not None:
            choice[key] = value


def _add_delta(message: JsonObject, delta: JsonObject) -> None:
    for key, value in delta.items():
        if key == "tool_calls":
            _add_calls(message.setdefault("tool_calls", []), value)
        elif key in _NUMBERED and isinstance(value, list):
            message[key] = _join(key, message.get(key), [drop_number(one) for one in value])
        elif value is not None:
            message[key] = _join(key, message.get(key), value)


def _add_calls(calls: list[JsonObject], pieces: list[JsonObject]) -> None:
    """Add pieces of calls. The hub counts them from 0 without gaps."""
    for piece in pieces:
        index = piece["index"]
        while len(calls) <= index:
            calls.append({})
        call = calls[index]
        for key, value in piece.items():
            if key != "index" and value is not None:
                call[key] = _join(key, call.get(key), value)


def _join(key: str, before: Any, value: Any) -> Any:
    """The value so far and one more piece of it: texts are joined, lists extended, objects joined key by key."""
    if isinstance(before, str) and isinstance(value, str):
        return value if key in _ONCE else before + value
    if isinstance(before, list) and isinstance(value, list):
        return before + value
    if isinstance(before, dict) and isinstance(value, dict):
        return {**before, **{name: _join(name, before.get(name), one) for name, one in value.items()}}
    return value
