"""Put the citations of earlier answers into the blocks of their content, where Databricks' models send them."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.citations import CITATIONS, cite_blocks, drop_citations, take_citations
from dragoman.adapters.chat.messages import convert_messages
from dragoman.adapters.paths import Path

__all__ = ["write_citations"]


def write_citations(messages: list[JsonObject], ctx: Context) -> list[JsonObject]:
    """Write the citations of messages into their content; the documented message does not have them."""
    if ctx.profile == "documented":
        return drop_citations(messages, ctx)
    cited = [i for i, message in enumerate(messages) if CITATIONS in message]
    return convert_messages(messages, cited, lambda message, path: _convert_message(message, path, ctx))


def _convert_message(message: JsonObject, path: Path, ctx: Context) -> JsonObject:
    message = dict(message)
    text = message.get("content")
    citations = take_citations(message)
    blocks = [block for block in cite_blocks(text, citations) if block["text"]] if isinstance(text, str) else []
    written = sum(len(block.get(CITATIONS, ())) for block in blocks)
    if written:
        message["content"] = blocks
        reason = "the blocks of the content have the citations"
        ctx.receipt.record_conversion((*path, "content"), reason)
        ctx.receipt.record_conversion((*path, CITATIONS), reason, after=(*path, "content"))
    if written < len(citations):
        ctx.receipt.record_drop((*path, CITATIONS), "the service refuses a block without text")
    if message.pop(CITATIONS, None):
        ctx.receipt.record_drop((*path, CITATIONS), "a block cannot have citations in this form")
    return message
