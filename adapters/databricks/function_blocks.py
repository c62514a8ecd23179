"""Calls of functions and their outputs: blocks in messages for the documented Databricks Responses API, items of their
own in the hub."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

__all__ = [
    "convert_refusal_part",
    "pack_input_messages",
    "pack_output_item",
    "pack_output_items",
    "unpack_input_items",
    "unpack_output_items",
]

_AUTHORS = {"function_call": "assistant", "function_call_output": "user"}
_OBJECTS = {"function_call": "arguments", "function_call_output": "output"}


def unpack_input_items(items: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """A client's input in hub form: blocks of functions as items, and the objects in them as JSON text."""
    made: list[JsonObject] = []
    places: list[tuple[Path, Path]] = []
    for i, item in enumerate(items):
        content: Any = item.get("content")
        for run in _runs(content):
            old: Path = ("input", i)
            new: Path = ("input", len(made))
            piece = item
            if run and content[run[0]].get("type") in _AUTHORS:
                piece, old = content[run[0]], (*old, "content", run[0])
                ctx.receipt.record_conversion(old, "calls and their outputs are items of their own", after=new)
            elif run:
                piece = {**item, "content": [content[j] for j in run]}
                places += [((*old, "content", j), (*new, "content", k)) for k, j in enumerate(run)]
            made.append(piece)
            places.append((old, new))
    ctx.receipt.map_paths(places)
    return [_with_text(item, ("input", i), ctx) for i, item in enumerate(made)]


def _runs(content: Any) -> list[list[int]]:
    """Positions of the blocks that stay together, each block of a function alone; one empty run where there is none."""
    blocks = content if isinstance(content, list) else []
    kinds = [isinstance(block, dict) and str(block.get("type")) in _AUTHORS for block in blocks]
    if not any(kinds):
        return [[]]
    return [list(run) for _, run in groupby(range(len(kinds)), lambda j: j if kinds[j] else -1)]


def _with_text(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    key = _OBJECTS.get(str(item.get("type")))
    if key is None or not isinstance(item.get(key), dict):
        return item
    ctx.receipt.record_conversion((*path, key), "an object is JSON text")
    return {**item, key: orjson.dumps(item[key]).decode()}


def pack_input_messages(items: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """A hub input for the documented API, which knows messages only. Reasoning has been taken out before."""
    return [_message(item, ("input", i), ctx) for i, item in enumerate(items)]


def _message(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    kind = str(item.get("type"))
    if kind not in _AUTHORS:
        return _plain_message(item, path, ctx)
    block = _call_block(item) if kind == "function_call" else {key: item[key] for key in ("type", "call_id", "output")}
    if kind == "function_call_output" and isinstance(block["output"], list) and _is_text(block["output"]):
        block["output"] = "".join(part["text"] for part in block["output"])
    ctx.receipt.record_conversion(path, "calls and their outputs are blocks of messages", after=(*path, "content", 0))
    ctx.receipt.map_paths([(path, (*path, "content", 0))])
    return {"role": _AUTHORS[kind], "content": [block]}


def _plain_message(item: JsonObject, path: Path, ctx: Context) -> JsonObject:
    content = item.get("content")
    if not isinstance(content, list) or not any(part.get("type") == "refusal" for part in content):
        return item
    ctx.receipt.record_conversion((*path, "content"), "a refusal is what the assistant said")
    return {**item, "content": [convert_refusal_part(part) for part in content]}


def _is_text(parts: list[JsonObject]) -> bool:
    return all(part.get("type") == "input_text" for part in parts)


def _call_block(item: JsonObject) -> JsonObject:
    """A call as a block, which always has an id."""
    told: JsonObject = {key: item[key] for key in ("call_id", "name", "arguments") if key in item}
    return {"type": "function_call", "id": item.get("id") or item.get("call_id"), **told}


def unpack_output_items(output: list[Any]) -> list[Any]:
    """A documented output with its calls as items of their own; an item that needs nothing is the very same."""
    made: list[Any] = []
    for item in output:
        content: Any = item.get("content") if isinstance(item, dict) else None
        for run in _runs(content):
            if not run:
                made.append(item)
            elif content[run[0]]["type"] == "function_call":
                made.append({"status": "completed", **content[run[0]]})
            else:
                made.append({**item, "content": [content[j] for j in run]})
    return made


def pack_output_items(output: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """The output of a hub response for the documented API. What it has no place for is left out, a loss."""
    made = []
    for i, item in enumerate(output):
        message = pack_output_item(item)
        if message is None:
            ctx.receipt.record_drop(("output", i), f"the documented output has no place for {item.get('type')} items")
        else:
            made.append(message)
    return made


def pack_output_item(item: JsonObject) -> JsonObject | None:
    """An item of a hub output as a message; None where it cannot be one."""
    content = item.get("content")
    if item.get("type") == "message":
        return (
            {**item, "content": [convert_refusal_part(part) for part in content]} if isinstance(content, list) else item
        )
    if item.get("type") != "function_call":
        return None
    known: JsonObject = {key: item[key] for key in ("id", "status") if key in item}
    return {"type": "message", **known, "role": "assistant", "content": [_call_block(item)]}


def convert_refusal_part(part: JsonObject) -> JsonObject:
    if part.get("type") != "refusal":
        return part
    return {"type": "output_text", "text": part["refusal"], "annotations": []}
