"""Converts content blocks of Messages, which are texts, images, documents and search results, to parts of chat, and
back.

    text                                    text
    image: base64, url                      image_url: an address of data, an address
    image: file                             file: file_id, a loss, because chat does not say what the file is
    document: a PDF in base64, url, file    file: file_data, file_url, file_id; its title is the filename
    document of text or of blocks           text, with its title and its context before it; its blocks
    search_result                           text, with its title and its source before it
    tool_reference                          text that names the tool: chat offers every tool from the beginning

Sources: anthropic 2.12.0, ContentBlockParam; OpenAI OpenAPI 2.3, ChatCompletionRequestUserMessageContentPart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, Places, format_path, nest_places

from .unused_keys import record_unused_keys

__all__ = ["PlacedBlock", "PlacedPart", "keep_marks", "list_part_places", "to_content", "to_parts"]

_MARK = "cache_control"
_TEXT_KEYS = frozenset({"type", "text", "citations", _MARK})
_PLAIN_TEXT = {"type", "text"}
_FILE_NAME = "document.pdf"
_SEPARATOR = "\n\n"


class PlacedBlock(NamedTuple):
    """A content block, and its path in the client's request."""

    block: JsonObject
    path: Path


class PlacedPart(NamedTuple):
    """A part of chat, and pairs of a path in the client's request and the path inside the part."""

    part: JsonObject
    places: Places


def to_parts(blocks: list[PlacedBlock], ctx: Context) -> list[PlacedPart]:
    """Convert blocks to parts of chat. Raises Fault if chat does not support one."""
    return [part for placed in blocks for part in _to_parts(placed, ctx)]


def to_content(parts: list[PlacedPart]) -> str | list[JsonObject]:
    """The content of a chat message: the text of its only part, if that is nothing but a text, else the parts."""
    if len(parts) == 1 and parts[0].part.keys() == _PLAIN_TEXT:
        return str(parts[0].part["text"])
    return [part for part, _ in parts]


def list_part_places(parts: list[PlacedPart], content: Any, message: Path) -> Places:
    """Pair the paths in the client's request with those in the content of the chat message at `message`."""
    if isinstance(content, str):
        return [(before, (*message, "content")) for part in parts for before, _ in part.places[-1:]]
    placed = enumerate(parts)
    return [place for k, part in placed for place in nest_places(part.places, (), (*message, "content", k))]


def keep_marks(block: JsonObject, path: Path, ctx: Context) -> JsonObject:
    """The mark of prompt caching of a block or a tool, for models that read it; else it is dropped and recorded.

    Only providers of Claude are known to read it in chat; Groq and Cerebras refuse it (yetone/alma-releases#59).
    """
    mark = block.get(_MARK)
    if mark is None:
        return {}
    if ctx.target.facts.is_claude or _MARK in ctx.target.takes:
        return {_MARK: mark}
    ctx.receipt.record_drop((*path, _MARK), "the model is not known to read marks of prompt caching")
    return {}


def _to_parts(placed: PlacedBlock, ctx: Context) -> list[PlacedPart]:
    block, path = placed
    kind, source = block["type"], block.get("source")
    if kind == "text":
        return [_to_text_part(placed, ctx)]
    if kind == "search_result":
        return _convert_search_result(placed, ctx)
    if kind == "tool_reference":
        return [_name_tool(placed, ctx)]
    if kind == "image" and isinstance(source, dict):
        record_unused_keys(block, ("type", "source", _MARK), path, ctx, "chat")
        if (image := _to_image(placed, ctx)) is not None:
            return [image]
    if kind == "document" and isinstance(source, dict):
        if source["type"] in ("text", "content"):
            return _convert_text_document(placed, ctx)
        if (file := _to_file(placed, ctx)) is not None:
            return [file]
    where = f"{kind} from {source.get('type')}" if isinstance(source, dict) else kind
    text = f"{format_path(path)}: chat has no place for content of type {where!r}"
    raise Fault("unsupported_parameter", text, (*path, "type"), kind, code="unsupported_parameter")


def _to_text_part(placed: PlacedBlock, ctx: Context) -> PlacedPart:
    block, path = placed
    if block.keys() == _PLAIN_TEXT:
        return PlacedPart(block, [(path, ())])
    record_unused_keys(block, _TEXT_KEYS, path, ctx, "chat")
    cited = {"citations": block["citations"]} if block.get("citations") else {}
    part = {"type": "text", "text": block["text"], **cited, **keep_marks(block, path, ctx)}
    return PlacedPart(part, [(path, ())])


def _to_image(placed: PlacedBlock, ctx: Context) -> PlacedPart | None:
    block, path = placed
    source, mark = block["source"], keep_marks(block, path, ctx)
    where = (*path, "source")
    if source["type"] == "base64":
        url, key = f"data:{source['media_type']};base64,{source['data']}", "data"
    elif source["type"] == "url":
        url, key = source["url"], "url"
    elif source["type"] == "file":
        ctx.receipt.record_conversion(path, "chat names a stored file without saying that it is an image", "loss")
        return PlacedPart({"type": "file", "file": {"file_id": source["file_id"]}, **mark}, _file_places(path))
    else:
        return None
    places: Places = [((*where, key), ("image_url", "url")), (where, ("image_url",)), (path, ())]
    return PlacedPart({"type": "image_url", "image_url": {"url": url}, **mark}, places)


def _to_file(placed: PlacedBlock, ctx: Context) -> PlacedPart | None:
    block, path = placed
    source, title = block["source"], block.get("title")
    record_unused_keys(block, ("type", "source", "title", "citations", _MARK), path, ctx, "chat")
    _record_citing(block, path, ctx)
    named = {"filename": title} if title else {}
    if source["type"] == "base64":
        if not title:
            ctx.receipt.record_fill((*path, "title"), "chat needs the name of a file")
        named = {"filename": title or _FILE_NAME}
        file: JsonObject = {"file_data": f"data:{source['media_type']};base64,{source['data']}"}
    elif source["type"] in ("url", "file"):
        key = "file_url" if source["type"] == "url" else "file_id"
        file = {key: source[source["type"] if source["type"] == "url" else key]}
    else:
        return None
    if title:
        ctx.receipt.record_conversion((*path, "title"), "a title is the name of a file in chat")
    return PlacedPart({"type": "file", "file": {**file, **named}, **keep_marks(block, path, ctx)}, _file_places(path))


def _file_places(path: Path) -> Places:
    source: Path = (*path, "source")
    return [
        ((*source, "data"), ("file", "file_data")),
        ((*source, "url"), ("file", "file_url")),
        ((*source, "file_id"), ("file", "file_id")),
        ((*path, "title"), ("file", "filename")),
        (source, ("file",)),
        (path, ()),
    ]


def _convert_text_document(placed: PlacedBlock, ctx: Context) -> list[PlacedPart]:
    block, path = placed
    source = block["source"]
    record_unused_keys(block, ("type", "source", "title", "context", "citations", _MARK), path, ctx, "chat")
    _record_citing(block, path, ctx)
    ctx.receipt.record_conversion(path, "a document of text becomes text")
    head = _join_texts(block.get("title"), block.get("context"))
    inner: Path = (*path, "source", "data" if source["type"] == "text" else "content")
    content = source[inner[-1]]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
        parts = [PlacedPart(content[0], [(inner, ()), (path, ())])]
    else:
        parts = to_parts([PlacedBlock(one, (*inner, k)) for k, one in enumerate(content)], ctx)
    return _finish_text(placed, head, parts, ctx)


def _convert_search_result(placed: PlacedBlock, ctx: Context) -> list[PlacedPart]:
    block, path = placed
    record_unused_keys(block, ("type", "title", "source", "content", "citations", _MARK), path, ctx, "chat")
    _record_citing(block, path, ctx)
    ctx.receipt.record_conversion(path, "a search result becomes text")
    blocks = [PlacedBlock(one, (*path, "content", k)) for k, one in enumerate(block["content"])]
    return _finish_text(placed, _join_texts(block["title"], block["source"]), to_parts(blocks, ctx), ctx)


def _name_tool(placed: PlacedBlock, ctx: Context) -> PlacedPart:
    block, path = placed
    record_unused_keys(block, ("type", "tool_name", _MARK), path, ctx, "chat")
    ctx.receipt.record_conversion(path, "a reference to a tool becomes text; the request offers the tool itself")
    text = f"The tool {block['tool_name']} is available."
    return PlacedPart({"type": "text", "text": text, **keep_marks(block, path, ctx)}, [(path, ())])


def _finish_text(placed: PlacedBlock, head: str, parts: list[PlacedPart], ctx: Context) -> list[PlacedPart]:
    """The parts of a document, after its heading; the last one gets the document's mark of prompt caching."""
    block, path = placed
    if head:
        parts = [PlacedPart({"type": "text", "text": head + _SEPARATOR}, [(path, ())]), *parts]
    if (mark := keep_marks(block, path, ctx)) and parts:
        parts[-1] = parts[-1]._replace(part={**parts[-1].part, **mark})
    return parts


def _record_citing(block: JsonObject, path: Path, ctx: Context) -> None:
    citing = block.get("citations")
    if isinstance(citing, dict) and citing.get("enabled"):
        ctx.receipt.record_drop((*path, "citations"), "chat cannot ask for citations")


def _join_texts(*texts: Any) -> str:
    return "\n".join(text for text in texts if isinstance(text, str) and text)
