"""Converts the parts of chat messages to content blocks of Messages.

    text, refusal                       text
    image_url                           image: data in base64, or an address
    file: a PDF, file_url, file_id      document: base64, url, file
    file: a text                        document of text
    input_audio                         refused

Sources: anthropic 2.12.0, ContentBlockParam; OpenAI OpenAPI 2.3, ChatCompletionRequestUserMessageContentPart.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, Places, format_path

from .unused_keys import record_unused_keys

__all__ = ["to_block"]

_PROTOCOL = "Messages"
_SOURCES = ("file_data", "file_url", "file_id")
_FILE_KEYS = (*_SOURCES, "filename")
_PDF = "application/pdf"
_UNPACKED = "an address that holds its data becomes data with a type"


class _Data(NamedTuple):
    """The content of an address of the scheme `data`, in base64."""

    media_type: str
    text: str


def to_block(part: JsonObject, path: Path, ctx: Context) -> tuple[JsonObject, Places]:
    """Convert a part at `path`: the block, and pairs of a path in the part and the path in the block.

    Raises Fault if Messages does not support the part.
    """
    kind = part["type"]
    mark = part.get("cache_control")
    marked = {"cache_control": mark} if isinstance(mark, dict) else {}
    record_unused_keys(part, ("type", str(kind), "citations", *marked), path, ctx, _PROTOCOL)
    if kind == "text":
        return {"type": "text", "text": part["text"], **marked}, []
    if kind == "refusal":
        ctx.receipt.record_conversion(path, "a refusal is a text in Messages")
        return {"type": "text", "text": part["refusal"]}, [(("refusal",), ("text",))]
    if kind == "image_url":
        block, places = _to_image(part["image_url"], path, ctx)
        return {**block, **marked}, places
    if kind == "file" and (block_of_file := _to_document(part["file"], path, ctx)) is not None:
        return {**block_of_file, **marked}, _DOCUMENT_PLACES
    text = f"{format_path(ctx.receipt.unmap(path))}: Messages has no place for content of type {kind!r} like this"
    raise Fault("unsupported_parameter", text, path, kind, code="unsupported_parameter")


_DOCUMENT_PLACES: Places = [
    (("file", "file_data"), ("source", "data")),
    (("file", "file_url"), ("source", "url")),
    (("file", "file_id"), ("source", "file_id")),
    (("file", "filename"), ("title",)),
    (("file", "file_data"), ("source", "media_type")),
    (("file",), ("source",)),
]


def _to_image(given: Any, path: Path, ctx: Context) -> tuple[JsonObject, Places]:
    image = {"url": given} if isinstance(given, str) else given  # a string, as MindIE's clients may write it
    url = image["url"]
    neutral = ("detail",) if image.get("detail") == "auto" else ()
    record_unused_keys(image, ("url", *neutral), (*path, "image_url"), ctx, _PROTOCOL)
    place: Path = ("image_url", "url")
    if (data := _read_data(url)) is None:
        return _make_block("image", {"type": "url", "url": url}), [(place, ("source", "url")), (place, ("source",))]
    ctx.receipt.record_conversion((*path, *place), _UNPACKED)
    source = {"type": "base64", "media_type": data.media_type, "data": data.text}
    return _make_block("image", source), [(place, ("source", "data")), (place, ("source",))]


def _make_block(kind: str, source: JsonObject) -> JsonObject:
    return {"type": kind, "source": source}


def _to_document(file: JsonObject, path: Path, ctx: Context) -> JsonObject | None:
    record_unused_keys(file, _FILE_KEYS, (*path, "file"), ctx, _PROTOCOL)
    source = _to_document_source(file, (*path, "file"), ctx)
    if source is None:
        return None
    for key in [name for name in _SOURCES if file.get(name) is not None][1:]:
        ctx.receipt.record_drop((*path, "file", key), "a document has one source, and the file has another one")
    title = {"title": file["filename"]} if file.get("filename") else {}
    if title:
        ctx.receipt.record_conversion((*path, "file", "filename"), "the name of a file is a title in Messages")
    return {**_make_block("document", source), **title}


def _to_document_source(file: JsonObject, path: Path, ctx: Context) -> JsonObject | None:
    """The first of the sources that a file has; None if Messages does not support its type."""
    if file.get("file_data") is not None:
        data = _read_data(file["file_data"])
        if data is None:
            ctx.receipt.record_conversion((*path, "file_data"), "a file that names no type is sent as a PDF")
            data = _Data(_PDF, file["file_data"])
        else:
            ctx.receipt.record_conversion((*path, "file_data"), _UNPACKED)
        if data.media_type == _PDF:
            return {"type": "base64", "media_type": _PDF, "data": data.text}
        text = _decode_text(data.text) if data.media_type.startswith("text/") else None
        return None if text is None else {"type": "text", "media_type": "text/plain", "data": text}
    if file.get("file_url") is not None:
        return {"type": "url", "url": file["file_url"]}
    if file.get("file_id") is not None:
        return {"type": "file", "file_id": file["file_id"]}
    return None


def _read_data(url: str) -> _Data | None:
    """The content of an address of the scheme `data` in base64; None for any other address."""
    head, comma, data = url.partition(",")
    if not comma or not head.lower().startswith("data:") or not head.lower().endswith(";base64"):
        return None
    return _Data(head[len("data:") :].partition(";")[0].strip().lower(), data)


def _decode_text(data: str) -> str | None:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
