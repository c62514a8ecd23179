"""Converts content parts, which are text, images and files, between chat and Responses."""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, Places, format_path

from .unused_keys import record_unused_keys

__all__ = ["list_chat_places", "list_part_places", "to_chat_parts", "to_responses_parts"]

_MARK = "prompt_cache_breakpoint"
_FILE_KEYS = ("file_id", "file_data", "filename", "file_url")
_TEXTS = ("input_text", "output_text", "text")
_PLAIN_TEXT = {"type", "text"}
_CHAT_USES = {
    **dict.fromkeys(_TEXTS, ("text",)),
    "input_image": ("image_url", "detail"),
    "input_file": _FILE_KEYS,
    "refusal": ("refusal",),
}
_RESPONSES_USES = {"image_url": ("url", "detail"), "file": _FILE_KEYS}


def to_chat_parts(parts: list[JsonObject], path: Path, ctx: Context) -> str | list[JsonObject]:
    """Convert the parts of a Responses item to chat; parts that are texts and nothing else become one string.

    Raises Fault if chat does not support a part.
    """
    made = [_to_chat_part(part, (*path, i), ctx) for i, part in enumerate(parts)]
    if all(part.keys() == _PLAIN_TEXT for part in made):
        return "".join(part["text"] for part in made)
    return made


def to_responses_parts(parts: list[JsonObject], path: Path, ctx: Context) -> list[JsonObject]:
    """Convert the parts of a chat message to Responses. Raises Fault if Responses does not support a part."""
    return [_to_responses_part(part, (*path, i), ctx) for i, part in enumerate(parts)]


def list_part_places(parts: list[JsonObject]) -> Places:
    """Pair the paths inside the parts of a chat message with those inside the same parts in Responses."""
    places: Places = []
    for i, part in enumerate(parts):
        kind = str(part.get("type"))
        inner = part.get(kind)
        for key in inner if isinstance(inner, dict) else ():
            places.append(((i, kind, key), (i, "image_url" if key == "url" else key)))
    return places


def list_chat_places(part: JsonObject) -> Places:
    """Pair the keys of a part in Responses with those of the same part in chat."""
    if part.get("type") == "input_image":
        return [(("image_url",), ("image_url", "url")), (("detail",), ("image_url", "detail"))]
    return [((key,), ("file", key)) for key in part if key in _FILE_KEYS]


def _to_chat_part(part: JsonObject, path: Path, ctx: Context) -> JsonObject:
    kind = part.get("type")
    if part.keys() != _PLAIN_TEXT:
        neutral = ("detail",) if part.get("detail") == "auto" else ()
        record_unused_keys(part, ("type", _MARK, *_CHAT_USES.get(str(kind), ()), *neutral), path, ctx, "chat")
    return _convert_to_chat(part, kind, path) | _copy_mark(part)


def _convert_to_chat(part: JsonObject, kind: Any, path: Path) -> JsonObject:
    if kind in _TEXTS:
        return {"type": "text", "text": str(part.get("text", ""))}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        image: JsonObject = {"url": part["image_url"]}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if kind == "input_file":
        return {"type": "file", "file": {key: part[key] for key in _FILE_KEYS if part.get(key) is not None}}
    if kind == "refusal":
        return {"type": "text", "text": str(part.get("refusal", ""))}
    raise _refuse_part(kind, path, "chat")


def _to_responses_part(part: JsonObject, path: Path, ctx: Context) -> JsonObject:
    kind = part.get("type")
    record_unused_keys(part, ("type", str(kind), _MARK), path, ctx, "Responses")
    inner = part.get(str(kind))
    if isinstance(inner, dict):
        record_unused_keys(inner, _RESPONSES_USES.get(str(kind), ()), (*path, str(kind)), ctx, "Responses")
    return _convert_to_responses(part, kind, path) | _copy_mark(part)


def _convert_to_responses(part: JsonObject, kind: Any, path: Path) -> JsonObject:
    if kind == "text":
        return {"type": "input_text", "text": part["text"]}
    if kind == "image_url":
        image: Any = part["image_url"]
        if isinstance(image, str):  # as MindIE's clients may write it
            image = {"url": image}
        return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail") or "auto"}
    if kind == "file":
        return {"type": "input_file", **{key: part["file"][key] for key in _FILE_KEYS if key in part["file"]}}
    raise _refuse_part(kind, path, "Responses")


def _copy_mark(part: JsonObject) -> JsonObject:
    """The mark of prompt caching, which chat and Responses have in the same kinds of parts."""
    return {_MARK: part[_MARK]} if part.get(_MARK) else {}


def _refuse_part(kind: Any, path: Path, protocol: str) -> Fault:
    text = f"{format_path(path)}: {protocol} has no place for content of type {kind!r} like this"
    return Fault("unsupported_parameter", text, path, kind, code="unsupported_parameter")
