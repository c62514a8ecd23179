"""Convert function calls and their outputs between blocks in messages and items.

The documented Databricks Responses API has blocks in the content of messages; the hub has separate items.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.carried_keys import copy_carried_keys
from dragoman.adapters.paths import Path

__all__ = [
    "convert_refusal_part",
    "pack_input_messages",
    "pack_output_item",
    "pack_output_items",
    "record_packing",
    "unpack_input_items",
    "unpack_output_items",
]

_AUTHORS = {"function_call": "assistant", "function_call_output": "user"}
_OBJECTS = {"function_call": "arguments", "function_call_output": "output"}


def unpack_input_items(items: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Convert a client's input to hub form: function blocks become items, objects in them become JSON texts."""
    made: list[JsonObject] = []
    places: list[tuple[Path, Path]] = []
    for i, item in enumerate(items):
        content: Any = item.get("content")
        for run in _group_blocks(content):
            old: Path = ("input", i)
            new: Path = ("input", len(made))
            piece = item
            if run and content[run[0]].get("type") in _AUTHORS:
                piece, old = content[run[0]], (*old, "content", run[0])
                ctx.receipt.record_conversion(
                    old, "function calls and outputs are separate items in the hub", after=new
                )
            elif run:
                piece = {**item, "content": [content[j] for j in run]}
                places += [((*old, "content", j), (*new, "content", k)) for k, j in enumerate(run)]
            made.append(piece)
            places.append((old, new))
    ctx.receipt.map_paths(places)
    return [_write_json_text(item, ("input", i), ctx) for i, item in enumerate(made)]


def _group_blocks(content: Any) -> list[list[int]]:
    """Group the positions of the blocks that stay in one item; each function block is a group of its own.

    Return one empty group if there are no function blocks.
    """
    blocks = content if isinstance(content, list) else []
    kinds = [isinstance(block, dict) and str(block.get("type")) in _AUTHORS for block in blocks]
    if not any(kinds):
        return [[]]
    return [list(run) for _, run in groupby(range(len(kinds)), lambda j: j if kinds[j] else -1)]


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "function_call"


def _write_json_text(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    key = _OBJECTS.get(str(item.get("type")))
    if key is None or not isinstance(item.get(key), dict):
        return item
    ctx.receipt.record_conversion((*path, key), "the hub has the object as JSON text")
    return {**item, key: orjson.dumps(item[key]).decode()}


def pack_input_messages(items: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Convert a hub input, without reasoning, for the documented API, which has only messages."""
    return [_pack_item(item, ("input", i), ctx) for i, item in enumerate(items)]


def _pack_item(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    kind = str(item.get("type"))
    if kind not in _AUTHORS:
        return _convert_refusals(item, path, ctx)
    block = _call_block(item) if kind == "function_call" else {key: item[key] for key in ("type", "call_id", "output")}
    _record_carried_keys(item, path, ctx)
    if kind == "function_call_output" and isinstance(block["output"], list) and _is_text(block["output"]):
        block["output"] = "".join(part["text"] for part in block["output"])
    ctx.receipt.record_conversion(
        path, "function calls and outputs are blocks in messages", after=(*path, "content", 0)
    )
    ctx.receipt.map_paths([(path, (*path, "content", 0))])
    return {"role": _AUTHORS[kind], "content": [block]}


def _convert_refusals(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    content = item.get("content")
    if not isinstance(content, list) or not any(part.get("type") == "refusal" for part in content):
        return item
    ctx.receipt.record_conversion((*path, "content"), "a refusal becomes text of the assistant")
    return {**item, "content": [convert_refusal_part(part) for part in content]}


def _is_text(parts: list[JsonObject]) -> bool:
    return all(part.get("type") == "input_text" for part in parts)


def _call_block(item: JsonObject) -> JsonObject:
    """Return a function call as a block, which always has an id."""
    known: JsonObject = {key: item[key] for key in ("call_id", "name", "arguments") if key in item}
    return {"type": "function_call", "id": item.get("id") or item.get("call_id"), **known}


def unpack_output_items(output: list[Any]) -> list[Any]:
    """Convert a documented output to hub form: function calls become items. Other items are returned unchanged."""
    made: list[Any] = []
    for item in output:
        content: Any = item.get("content") if isinstance(item, dict) else None
        for run in _group_blocks(content):
            if not run:
                made.append(item)
            elif _is_call(content[run[0]]):
                made.append({"status": "completed", **content[run[0]]})
            else:
                made.append({**item, "content": [content[j] for j in run]})
    return made


def pack_output_items(output: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Convert a hub response's output for the documented API. Drop, as a loss, all but messages and function calls."""
    made = []
    for i, item in enumerate(output):
        message = pack_output_item(item)
        record_packing(item, ("output", i), ctx)
        if message is None:
            ctx.receipt.record_drop(("output", i), f"the documented output does not have {item.get('type')} items")
        else:
            made.append(message)
    return made


def record_packing(item: JsonObject, path: Path, ctx: Context) -> None:
    """Record what an item of the output becomes in a message, and what is lost of it."""
    _record_carried_keys(item, path, ctx)
    content = item.get("content")
    if item.get("type") == "function_call":
        ctx.receipt.record_conversion(path, "a function call is a block in a message")
    elif item.get("type") == "message" and isinstance(content, list) and any(map(_is_refusal, content)):
        ctx.receipt.record_conversion((*path, "content"), "a refusal becomes text")


def pack_output_item(item: JsonObject) -> JsonObject | None:
    """Convert an item of a hub output to a message; None if it is neither a message nor a function call."""
    content = item.get("content")
    if item.get("type") == "message":
        return (
            {**item, "content": [convert_refusal_part(part) for part in content]} if isinstance(content, list) else item
        )
    if item.get("type") != "function_call":
        return None
    known: JsonObject = {key: item[key] for key in ("id", "status") if key in item}
    return {"type": "message", **known, "role": "assistant", "content": [_call_block(item)]}


def _record_carried_keys(item: JsonObject, path: Path, ctx: Context) -> None:
    """Record as losses the keys of a call that its block cannot hold."""
    for key in copy_carried_keys(item):
        ctx.receipt.record_drop((*path, key), "the documented function call does not have it")


def _is_refusal(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "refusal"


def convert_refusal_part(part: Any) -> Any:
    """Return a refusal as a part of text, and anything else unchanged."""
    if not _is_refusal(part):
        return part
    return {"type": "output_text", "text": part["refusal"], "annotations": []}
