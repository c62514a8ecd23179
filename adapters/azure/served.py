"""The azure dialect of chat, served.

`api-version` is required. Keys that the API does not define are refused, dropped or passed on, as the header
`extra-parameters` says. An image part may have the reference's form, with the image in `content`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from dragoman.adapters.call import Call, Context, JsonObject, Reply
from dragoman.adapters.chat.answers import each_choice, without_nulls, without_refusal, written_finish
from dragoman.adapters.chat.requests import check_request
from dragoman.adapters.chat.writer import RenderingWriter
from dragoman.adapters.dialect import Served
from dragoman.adapters.extras import extra_parameters
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, dotted
from dragoman.adapters.suggestions import nearest
from dragoman.adapters.validation import judge

from .faults import error_event, write_fault

__all__ = ["SERVED"]

_VERSION = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(-preview)?")
_FINISH = {"function_call": "tool_calls"}
_OLDER = {"content", "detail"}
_MEDIA = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lG": "image/gif", "UklG": "image/webp"}


def read_request(call: Call, ctx: Context) -> JsonObject:
    _check_version(call.query.get("api-version"))
    rules = judge("azure/chat.request", ctx.profile)
    check_request(call.body, rules, ctx.receipt)
    body = dict(call.body)
    _settle_extras(body, rules.known, call, ctx)
    body["messages"] = [_message(message, ("messages", i), ctx) for i, message in enumerate(body["messages"])]
    return body


def _check_version(version: str | None) -> None:
    if version is None:
        text = "the query parameter api-version is required, as in ?api-version=2024-05-01-preview"
        raise Fault("invalid_request", text, ("api-version",), code="missing_required_parameter")
    if not _VERSION.fullmatch(version):
        text = "api-version must have the form YYYY-MM-DD or YYYY-MM-DD-preview"
        raise Fault("invalid_request", text, ("api-version",), version, code="invalid_value")


def _settle_extras(body: JsonObject, known: Collection[str], call: Call, ctx: Context) -> None:
    extras = [name for name in body if name not in known]
    choice = extra_parameters(call.headers) or "error"
    if not extras or choice == "pass-through":
        return
    if choice == "error":
        text = (
            f"Extra parameters {extras} are not allowed when extra-parameters is not set or set to be 'error'. "
            f"Set extra-parameters to 'pass-through' to pass to the model.{_meant(extras, known)}"
        )
        raise Fault("extra_parameter", text, (extras[0],), body[extras[0]], code="unknown_parameter")
    for name in extras:
        ctx.receipt.dropped((name,), "not a parameter of this API, and extra-parameters says drop")
        del body[name]


def _meant(extras: list[str], known: Collection[str]) -> str:
    """A question for each name that comes close to a known one."""
    found = ((name, nearest(name, known)) for name in extras)
    return "".join(f" Did you mean {close[0]} by {name}?" for name, close in found if close)


def _message(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    content = message.get("content")
    if message.get("role") == "tool" and content is None:
        ctx.receipt.filled((*path, "content"), "a tool result without content is an empty one")
        return {**message, "content": ""}
    if not isinstance(content, list) or not any(_OLDER & part.keys() for part in content):
        return message
    return {**message, "content": [_part(part, (*path, "content", i), ctx) for i, part in enumerate(content)]}


def _part(part: JsonObject, path: Path, ctx: Context) -> JsonObject:
    """A part of the reference's form, `{type, content, detail}`, as the newer API has it. Raises Fault."""
    if not _OLDER & part.keys():
        return part
    place = "text" if part.get("type") == "text" else "image_url"
    if "content" in part and place in part:
        text = f"{dotted(path)} has both content and {place}"
        raise Fault("invalid_request", text, (*path, "content"), code="invalid_value")
    if place == "text":
        ctx.receipt.renamed((*path, "content"), (*path, "text"), "the hub's name for it")
        return {"type": "text", "text": part["content"]}
    return _image(part, path, ctx)


def _image(part: JsonObject, path: Path, ctx: Context) -> JsonObject:
    image = {"url": _url(part["content"])} if "content" in part else dict(part["image_url"])
    if part.get("detail"):
        image["detail"] = part["detail"]
    for name, place in (("type", "type"), ("content", "image_url"), ("detail", "image_url")):
        if name in part:
            ctx.receipt.converted((*path, name), "the image as the newer API has it", after=(*path, place))
    ctx.receipt.rerouted(
        [((*path, "content"), (*path, "image_url", "url")), ((*path, "detail"), (*path, "image_url", "detail"))]
    )
    return {"type": "image_url", "image_url": image}


def _url(image: str) -> str:
    """An address as it is; bare base64 as a data address of the type that its first letters tell."""
    if image.startswith(("http:", "https:", "data:")):
        return image
    media = next((media for start, media in _MEDIA.items() if image.startswith(start)), "image/jpeg")
    return f"data:{media};base64,{image}"


def write_reply(reply: JsonObject, ctx: Context) -> Reply:
    return Reply(200, _written(reply, "message", ctx))


def _written(body: JsonObject, part: str, ctx: Context) -> JsonObject:
    def rewrite(choice: JsonObject, holder: JsonObject, path: Path) -> None:
        written_finish(choice, _FINISH, path, ctx)
        without_nulls(choice, "logprobs")
        without_refusal(holder, (*path, part), ctx)

    return each_choice(body, part, rewrite)


def write_stream(ctx: Context) -> RenderingWriter:
    def render(chunk: JsonObject) -> JsonObject:
        return _written(chunk, "delta", ctx)

    # This dialect's client overlooks error events, so the connection breaks after one.
    return RenderingWriter(error_event, render, "beside the finish", aborts_on_fault=True)


SERVED = Served(read_request, write_reply, write_stream, write_fault)
