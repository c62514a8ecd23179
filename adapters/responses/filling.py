"""Keys that items, parts and events of Responses always have, for providers that leave them out."""

from __future__ import annotations

from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject

from .events import BY_DELTA, BY_DONE, OUTPUT_TEXT, add_token_bytes

__all__ = ["fill_event", "fill_output", "new_item_id"]

_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
_CARRIED = {"function_call": "arguments", "custom_tool_call": "input"}


def new_item_id(item: JsonObject, ctx: Context) -> str:
    """An id with the prefix of the item's type."""
    return ctx.new_id(_PREFIXES.get(str(item.get("type")), "item"))


def fill_event(body: JsonObject, ctx: Context) -> None:
    """Alters the event, the items and the parts in it."""
    kind = BY_DELTA.get(body["type"]) or BY_DONE.get(body["type"])
    if kind is not None and kind.index:
        _set_defaults(body, {kind.index: 0})
    if kind is OUTPUT_TEXT:
        _set_defaults(body, {"logprobs": []})
    fill_part(body.get("part"))
    fill_item(body.get("item"), ctx, "in_progress" if body["type"].endswith(".added") else "completed")
    if isinstance(body.get("response"), dict):
        fill_output(body["response"], ctx)


def fill_output(response: JsonObject, ctx: Context) -> None:
    """Alters the items of a response's output."""
    for item in _as_list(response.get("output")):
        fill_item(item, ctx)


def fill_item(item: Any, ctx: Context, status: str = "completed") -> None:
    """Alters the item of an output. Arguments that are an object become text, content that is text becomes a part."""
    kind = str(item.get("type")) if isinstance(item, dict) else None
    if kind not in _PREFIXES:
        return
    if not item.get("id"):
        item["id"] = new_item_id(item, ctx)
    _set_defaults(item, {"status": status})
    if kind == "message":
        _set_defaults(item, {"role": "assistant", "content": []})
        if isinstance(item["content"], str):
            item["content"] = [{"type": "output_text", "text": item["content"]}]
        for part in _as_list(item["content"]):
            fill_part(part)
    elif kind == "reasoning":
        _set_defaults(item, {"summary": []})
    else:
        carried = _CARRIED[kind]
        _set_defaults(item, {"call_id": item["id"], carried: ""})
        if isinstance(item[carried], dict):
            item[carried] = orjson.dumps(item[carried]).decode()


def fill_part(part: Any) -> None:
    """Alters the part of a message."""
    if isinstance(part, dict) and part.get("type") == "output_text":
        _set_defaults(part, {"text": "", "annotations": []})
        if isinstance(part.get("logprobs"), list):
            part["logprobs"] = add_token_bytes(part["logprobs"])


def _set_defaults(body: JsonObject, values: JsonObject) -> None:
    body.update({key: value for key, value in values.items() if body.get(key) is None})


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
