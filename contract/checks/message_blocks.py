"""The order of the events of a Messages stream: one block after the other, each with its own deltas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman.contract.json_types import JsonObject, JsonValue

from .rule import Problems, shorten

__all__ = ["check_block_order"]

_DELTAS: Mapping[str, tuple[str, ...]] = {
    "text": ("text_delta", "citations_delta"),
    "thinking": ("thinking_delta", "signature_delta"),
    "redacted_thinking": (),
    "tool_use": ("input_json_delta",),
    "server_tool_use": ("input_json_delta",),
}
"""The deltas of a block; other blocks may have any."""


def check_block_order(events: Sequence[JsonObject]) -> Problems:
    """Check that message_start comes first and once, that blocks have the indexes 0, 1, ... and are closed before the
    next one, that deltas fit their block, and that message_delta comes once, after all blocks. A stream that ends with
    an error may end anywhere."""
    problems: Problems = []
    current: JsonObject | None = None
    blocks = deltas = starts = 0
    for event in events:
        match event.get("type"):
            case "message_start":
                starts += 1
                problems += ["message_start comes late"] if blocks or deltas else []
            case "content_block_start":
                problems += _check_start(event, blocks, current)
                current, blocks = event, blocks + 1
            case "content_block_delta":
                problems += _check_delta(event, current)
            case "content_block_stop":
                problems += _check_index(event, current)
                current = None
            case "message_delta":
                deltas += 1
                problems += ["message_delta inside a block"] if current is not None else []
            case "error":
                return list(dict.fromkeys(problems))
    problems += [f"{starts} message_start"] if starts != 1 else []
    problems += [f"{deltas} message_delta"] if deltas != 1 else []
    return list(dict.fromkeys(problems)) + (["the last block is never closed"] if current is not None else [])


def _check_start(event: JsonObject, blocks: int, current: JsonObject | None) -> Problems:
    problems = ["a block starts inside another one"] if current is not None else []
    index = event.get("index")
    return problems + ([f"block {blocks} has the index {shorten(index)}"] if index != blocks else [])


def _check_delta(event: JsonObject, current: JsonObject | None) -> Problems:
    problems = _check_index(event, current)
    delta, block = event.get("delta"), (current or {}).get("content_block")
    kind = _type(block)
    allowed = _DELTAS.get(kind)
    wrong = allowed is not None and _type(delta) not in allowed
    return problems + ([f"{_type(delta)} in a block of the type {kind}"] if wrong else [])


def _check_index(event: JsonObject, current: JsonObject | None) -> Problems:
    if current is None:
        return [f"{event.get('type')} outside a block"]
    fits = event.get("index") == current.get("index")
    return [] if fits else [f"{event.get('type')} of block {shorten(event.get('index'))} inside another one"]


def _type(value: JsonValue) -> str:
    return str(value.get("type")) if isinstance(value, dict) else ""
