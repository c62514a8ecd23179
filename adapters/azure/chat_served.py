"""The azure dialect of chat, served.

`api-version` is required. Keys that the API does not define are refused, dropped or passed through, as the header
`extra-parameters` says. An image part may have the older form of the reference, with the image in `content`.
"""

from __future__ import annotations

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.reply_rewrites import (
    drop_empty,
    drop_nulls,
    move_refusal_to_content,
    rewrite_choices,
    write_finish_reason,
)
from dragoman.adapters.chat.requests import check_request
from dragoman.adapters.chat.writer import RenderingStreamWriter
from dragoman.adapters.dialect import Served
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, format_path
from dragoman.adapters.validation import load_validator

from .calls import apply_extras_header, check_version
from .faults import error_event, write_fault

__all__ = ["SERVED"]

_FINISH = {"function_call": "tool_calls"}
_OLDER = {"content", "detail"}
_OLDER_TYPES = ("text", "image", "image_url")
_MEDIA = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lG": "image/gif", "UklG": "image/webp"}


def read_request(call: Call, ctx: Context) -> JsonObject:
    check_version(call)
    rules = load_validator("azure/chat.request", ctx.profile)
    has_extras = check_request(call.body, rules)
    body = dict(call.body)
    apply_extras_header(body, rules, call, ctx, inside=has_extras)
    body["messages"] = [_convert_message(message, ("messages", i), ctx) for i, message in enumerate(body["messages"])]
    return body


def _convert_message(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    content = message.get("content")
    if message.get("role") == "tool" and content is None:
        ctx.receipt.record_fill((*path, "content"), "the hub requires content, so it is an empty text")
        return {**message, "content": ""}
    if not isinstance(content, list) or not any(_OLDER & part.keys() for part in content):
        return message
    return {**message, "content": [_convert_part(part, (*path, "content", i), ctx) for i, part in enumerate(content)]}


def _convert_part(part: JsonObject, path: Path, ctx: Context) -> JsonObject:
    """Convert a part of the older form, `{type, content, detail}`, to the newer one. Raises Fault for a mixture."""
    if part.get("type") not in _OLDER_TYPES or not _OLDER & part.keys():
        return part
    place = "text" if part.get("type") == "text" else "image_url"
    if "content" in part and place in part:
        text = f"{format_path(path)} has both content and {place}"
        raise Fault("invalid_request", text, (*path, "content"), code="invalid_value")
    if place == "text":
        ctx.receipt.record_rename((*path, "content"), (*path, "text"), "the hub's name for it")
        return {"type": "text", "text": part["content"]}
    return _convert_image(part, path, ctx)


def _convert_image(part: JsonObject, path: Path, ctx: Context) -> JsonObject:
    image = {"url": _image_url(part["content"])} if "content" in part else dict(part["image_url"])
    if part.get("detail"):
        image["detail"] = part["detail"]
    for name, place in (("type", "type"), ("content", "image_url"), ("detail", "image_url")):
        if name in part:
            ctx.receipt.record_conversion((*path, name), "an image has its newer form in the hub", after=(*path, place))
    places = (("content", "url"), ("detail", "detail"))
    ctx.receipt.map_paths([((*path, name), (*path, "image_url", key)) for name, key in places if name in part])
    return {"type": "image_url", "image_url": image}


def _image_url(image: str) -> str:
    """Return a URL as it is, and bare base64 as a data: URL; its first letters show the media type."""
    if image.startswith(("http:", "https:", "data:")):
        return image
    media = next((media for start, media in _MEDIA.items() if image.startswith(start)), "image/jpeg")
    return f"data:{media};base64,{image}"


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, _write_choices(reply, "message", ctx))


def _write_choices(body: JsonObject, part: str, ctx: Context) -> JsonObject:
    def rewrite(choice: JsonObject, holder: JsonObject, path: Path) -> None:
        write_finish_reason(choice, _FINISH, path, ctx)
        drop_nulls(choice, "logprobs")
        move_refusal_to_content(holder, (*path, part), ctx)
        drop_empty(holder)

    return rewrite_choices(body, part, rewrite)


def write_stream(ctx: Context) -> RenderingStreamWriter:
    def render(chunk: JsonObject) -> JsonObject:
        return _write_choices(chunk, "delta", ctx)

    # This dialect's client ignores error events, so the connection is aborted after one.
    return RenderingStreamWriter(error_event, render, "with the finish", ctx.receipt, aborts_on_fault=True)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
