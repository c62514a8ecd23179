"""Fills required keys of Responses events, items and parts, for providers that omit them."""

from __future__ import annotations

from typing import Any

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path

from .endings import fill_item_status
from .events import BY_DELTA, BY_DONE, OUTPUT_TEXT, add_token_bytes
from .text_annotations import complete_annotations

__all__ = ["HUB_FORMS", "fill_event", "fill_output", "new_item_id"]

HUB_FORMS = "tools, formats and calls are converted to the hub's forms"
"""The reason of the change, for receipts."""

_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
_CARRIED = {"function_call": "arguments", "custom_tool_call": "input"}


def new_item_id(item: JsonObject, ctx: Context) -> str:
    """Make an id with the prefix of the item's type."""
    return ctx.new_id(_PREFIXES.get(str(item.get("type")), "item"))


def fill_event(body: JsonObject, ctx: Context) -> None:
    """Fill the keys of an event, and of the items and parts in it, in place."""
    kind = BY_DELTA.get(body["type"]) or BY_DONE.get(body["type"])
    if kind is not None and kind.index:
        _set_defaults(body, {kind.index: 0})
    if kind is OUTPUT_TEXT:
        _set_defaults(body, {"logprobs": []})
    fill_part(body.get("part"), ("output",), ctx)
    fill_item(body.get("item"), ctx, "in_progress" if body["type"].endswith(".added") else "completed")
    if isinstance(body.get("response"), dict):
        fill_output(body["response"], ctx)


def fill_output(response: JsonObject, ctx: Context) -> None:
    """Fill the keys of all items of a response's output, in place."""
    for position, item in enumerate(_as_list(response.get("output"))):
        path: Path = ("output", position)
        given = {key for key, value in item.items() if value} if isinstance(item, dict) else set()
        fill_item(item, ctx, path=path)
        for key in (key for key, value in item.items() if value and key not in given) if given else ():
            ctx.receipt.record_fill((*path, key), "the provider gave none")


def fill_item(item: Any, ctx: Context, status: str = "completed", path: Path = ("output",)) -> None:
    """Fill the keys of the output item at `path`, in place; `status` is its status if it has none, or one that nobody
    knows.

    Arguments that are an object become text, and content that is text becomes a part.
    """
    kind = str(item.get("type")) if isinstance(item, dict) else None
    if kind not in _PREFIXES:
        return
    if not item.get("id"):
        item["id"] = new_item_id(item, ctx)
    fill_item_status(item, status, path, ctx)
    if kind == "message":
        _set_defaults(item, {"role": "assistant", "content": []})
        if isinstance(item["content"], str):
            item["content"] = [{"type": "output_text", "text": item["content"]}]
        for index, part in enumerate(_as_list(item["content"])):
            fill_part(part, (*path, "content", index), ctx)
    elif kind == "reasoning":
        _set_defaults(item, {"summary": []})
    else:
        carried = _CARRIED[kind]
        _set_defaults(item, {carried: ""})
        item["call_id"] = item.get("call_id") or item["id"]
        if isinstance(item[carried], dict):
            item[carried] = orjson.dumps(item[carried]).decode()


def fill_part(part: Any, path: Path, ctx: Context) -> None:
    """Fill the keys of the message's part at `path`, in place."""
    if isinstance(part, dict) and part.get("type") == "output_text":
        _set_defaults(part, {"text": "", "annotations": []})
        complete_annotations(part, path, ctx)
        if isinstance(part.get("logprobs"), list):
            part["logprobs"] = add_token_bytes(part["logprobs"])


def _set_defaults(body: JsonObject, values: JsonObject) -> None:
    body.update({key: value for key, value in values.items() if body.get(key) is None})


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
