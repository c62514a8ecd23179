"""The events of a Responses stream: the kinds of text that they carry, and a constructor for each event.

No event made here has a `sequence_number`: only the writer numbers events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = [
    "ANNOTATION_ADDED",
    "ARGUMENTS",
    "BEGINNINGS",
    "BY_DELTA",
    "BY_DONE",
    "INPUT",
    "OUTPUT_TEXT",
    "REASONING_TEXT",
    "REFUSAL",
    "SUMMARY_TEXT",
    "TERMINALS",
    "TOKEN_BYTES",
    "TextKind",
    "add_token_bytes",
    "annotation_added",
    "error_event",
    "item_added",
    "item_done",
    "lifecycle_event",
    "new_part",
    "part_added",
    "part_done",
    "read_position",
    "text_delta",
    "text_done",
]

ANNOTATION_ADDED = "response.output_text.annotation.added"
BEGINNINGS = frozenset({"response.created", "response.queued", "response.in_progress"})
TERMINALS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
TOKEN_BYTES = "tokens have their bytes there"
"""The reason of the change that `add_token_bytes` makes, for receipts."""


@dataclass(frozen=True, slots=True, eq=False)  # compared by identity, which is fast
class TextKind:
    """A kind of text that streams in deltas.

    `holder` is the type of the part or item that holds the whole text under `key`. `place` is the item's list that
    holds the part, and `index` the events' key for its position in it; both are empty if the item itself holds the
    text. The other fields are types of events.
    """

    holder: str
    key: str
    delta: str
    done: str
    place: str = ""
    index: str = ""
    part_added: str = ""
    part_done: str = ""


def read_position(event: JsonObject, key: str) -> int:
    """The position that an event has under a key, such as `TextKind.index`; 0 if it has none, or the key is empty."""
    index = event.get(key) if key else None
    return index if type(index) is int else 0


def _in_part(holder: str, key: str, event: str, place: str = "content", part: str = "content_part") -> TextKind:
    index = "summary_index" if place == "summary" else "content_index"
    added, done = f"response.{part}.added", f"response.{part}.done"
    return TextKind(holder, key, f"response.{event}.delta", f"response.{event}.done", place, index, added, done)


def _in_item(holder: str, key: str, event: str) -> TextKind:
    return TextKind(holder, key, f"response.{event}.delta", f"response.{event}.done")


OUTPUT_TEXT = _in_part("output_text", "text", "output_text")
REFUSAL = _in_part("refusal", "refusal", "refusal")
REASONING_TEXT = _in_part("reasoning_text", "text", "reasoning_text")
SUMMARY_TEXT = _in_part("summary_text", "text", "reasoning_summary_text", "summary", "reasoning_summary_part")
ARGUMENTS = _in_item("function_call", "arguments", "function_call_arguments")
INPUT = _in_item("custom_tool_call", "input", "custom_tool_call_input")
_MCP_ARGUMENTS = _in_item("mcp_call", "arguments", "mcp_call_arguments")
_CODE = _in_item("code_interpreter_call", "code", "code_interpreter_call_code")

_KINDS = (OUTPUT_TEXT, REFUSAL, REASONING_TEXT, SUMMARY_TEXT, ARGUMENTS, INPUT, _MCP_ARGUMENTS, _CODE)
BY_DELTA = {kind.delta: kind for kind in _KINDS}
BY_DONE = {kind.done: kind for kind in _KINDS}


def lifecycle_event(word: str, response: JsonObject) -> JsonObject:
    """The event `response.{word}` with the response object: `created`, `in_progress`, or a terminal."""
    return {"type": f"response.{word}", "response": response}


def item_added(output_index: int, item: JsonObject) -> JsonObject:
    """The event that begins an item of the output."""
    return {"type": "response.output_item.added", "output_index": output_index, "item": item}


def item_done(output_index: int, item: JsonObject) -> JsonObject:
    """The event that completes an item of the output."""
    return {"type": "response.output_item.done", "output_index": output_index, "item": item}


def part_added(kind: TextKind, item_id: str, output_index: int, index: int, part: JsonObject) -> JsonObject:
    """The event that begins a part of an item; `index` is the part's position in the item's list."""
    return {
        "type": kind.part_added,
        "item_id": item_id,
        "output_index": output_index,
        kind.index: index,
        "part": part,
    }


def part_done(kind: TextKind, item_id: str, output_index: int, index: int, part: JsonObject) -> JsonObject:
    """The event that completes a part of an item; `index` is the part's position in the item's list."""
    return {
        "type": kind.part_done,
        "item_id": item_id,
        "output_index": output_index,
        kind.index: index,
        "part": part,
    }


def text_delta(
    kind: TextKind, item_id: str, output_index: int, index: int, delta: str, logprobs: list[Any] | None = None
) -> JsonObject:
    """The event of a piece of text. `index` is used only for a text in a part, `logprobs` only for output text."""
    event: JsonObject = {"type": kind.delta, "item_id": item_id, "output_index": output_index, "delta": delta}
    if kind.index:
        event[kind.index] = index
    if kind is OUTPUT_TEXT:
        event["logprobs"] = logprobs or []
    return event


def text_done(
    kind: TextKind, item_id: str, output_index: int, index: int, text: str, logprobs: list[Any] | None = None
) -> JsonObject:
    """The event that completes a text. `index` and `logprobs` are used as in `text_delta`."""
    event: JsonObject = {"type": kind.done, "item_id": item_id, "output_index": output_index, kind.key: text}
    if kind.index:
        event[kind.index] = index
    if kind is OUTPUT_TEXT:
        event["logprobs"] = logprobs or []
    return event


def annotation_added(item_id: str, output_index: int, index: int, position: int, annotation: JsonObject) -> JsonObject:
    """The event of an annotation; `index` is the position of its part, `position` its own among the part's."""
    return {
        "type": ANNOTATION_ADDED,
        "item_id": item_id,
        "output_index": output_index,
        "content_index": index,
        "annotation_index": position,
        "annotation": annotation,
    }


def error_event(error: JsonObject) -> JsonObject:
    """The event `error`: flat keys, as OpenAI documents them, and nested ones, which OpenAI's SDK reads."""
    error = {"type": "server_error", "code": None, "message": "", "param": None, **error}
    flat = {key: error[key] for key in ("code", "message", "param")}
    return {"type": "error", **flat, "error": error}


def new_part(
    kind: TextKind, text: str = "", annotations: list[Any] | None = None, logprobs: list[Any] | None = None
) -> JsonObject:
    """A part that holds this kind of text. `annotations` and `logprobs` are used only for output text."""
    part: JsonObject = {"type": kind.holder, kind.key: text}
    if kind is OUTPUT_TEXT:
        part.update(annotations=annotations or [], logprobs=logprobs or [])
    return part


def add_token_bytes(tokens: list[Any]) -> list[Any]:
    """Add the missing `bytes` to tokens with log probabilities, as Responses requires. Other values stay unchanged."""
    return [
        _add_bytes(token, top_logprobs=_list_alternatives(token)) if isinstance(token, dict) else token
        for token in tokens
    ]


def _list_alternatives(token: JsonObject) -> Any:
    found: Any = token.get("top_logprobs") or []
    return [_add_bytes(one) for one in found] if isinstance(found, list) else found


def _add_bytes(token: Any, **more: Any) -> Any:
    if not isinstance(token, dict):
        return token
    lacks_bytes = isinstance(token.get("token"), str) and token.get("bytes") is None
    return {**token, **({"bytes": list(token["token"].encode())} if lacks_bytes else {}), **more}
