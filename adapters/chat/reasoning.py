"""Reads reasoning in the forms of all providers: one table of blocks, and the state of a choice that has them.

In the hub, `reasoning_content` is the readable text and `reasoning_signature` its signature. If a message has more than
one block and one of them is signed or sealed, `reasoning_details` lists all of them, because a provider accepts signed
reasoning only as it made it. Its objects have OpenRouter's form: {type: reasoning.text, text, signature} for a text,
{type: reasoning.encrypted, data} for a block that nobody but its maker can read. If a message has `reasoning_details`,
it is complete, and counts more than the other two keys.

In a stream, the text and the signatures come in their own keys as soon as they arrive, and a block also comes in
`reasoning_details` as soon as it is clear that there are several.

Sources: Databricks, Query reasoning models; Anthropic, Extended thinking; Mistral, Reasoning; OpenRouter, Reasoning
tokens; OpenAI, Reasoning models.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from dragoman.adapters.call import JsonObject
from dragoman.adapters.text_buffer import TextBuffer

__all__ = [
    "SEPARATOR",
    "ReasoningBlocks",
    "is_reasoning",
    "is_sealed",
    "list_blocks",
    "make_sealed_block",
    "make_text_block",
    "read_blocks",
    "set_reasoning",
]

SEPARATOR = "\n\n"  # between the texts of two blocks
_TEXT, _SEALED = "reasoning.text", "reasoning.encrypted"


class _Form(NamedTuple):
    """The keys of a block: one of `texts` holds a text, or a list of texts and blocks; `seals` hold what is sealed."""

    texts: tuple[str, ...] = ()
    seals: tuple[str, ...] = ()


_TEXT_PART = _Form(("text",))
_FORMS = {
    "reasoning": _Form(("summary", "content", "text"), ("encrypted_content",)),  # Databricks; items of Responses
    "summary_text": _TEXT_PART,
    "summary_encrypted_text": _Form(seals=("data",)),
    "reasoning_text": _TEXT_PART,
    "thinking": _Form(("thinking", "text")),  # Anthropic: a text; Mistral: a list of texts
    "redacted_thinking": _Form(seals=("data",)),
    _TEXT: _TEXT_PART,  # OpenRouter
    "reasoning.summary": _Form(("summary",)),
    _SEALED: _Form(seals=("data",)),
}


def is_reasoning(kind: Any) -> bool:
    """Whether a part of this type holds reasoning."""
    return kind in _FORMS if isinstance(kind, str) else False


def is_sealed(block: JsonObject) -> bool:
    """Whether a block has no readable text."""
    return bool(block["type"] == _SEALED)


def read_blocks(parts: Any) -> list[JsonObject]:
    """Read the parts of a content list, or of a provider's `reasoning_details`, into blocks in the hub's form.

    Other values than a list, and other parts than reasoning, are ignored. A signature without a text belongs to the
    unsigned text before it.
    """
    blocks: list[JsonObject] = []
    for block in (one for part in (parts if isinstance(parts, list) else ()) for one in _read_part(part)):
        last = blocks[-1] if blocks else None
        if last is not None and block.get("text") == "" and not is_sealed(last) and "signature" not in last:
            last.update(block, text=last["text"])
        else:
            blocks.append(block)
    return blocks


def _read_part(part: Any) -> Iterator[JsonObject]:
    kind = part.get("type") if isinstance(part, dict) else None
    if not is_reasoning(kind):
        return
    form = _FORMS[str(kind)]
    signature = part.get("signature")
    nested = next((value for key in form.texts if (value := part.get(key))), "")
    blocks = _read_list(nested) if isinstance(nested, list) else [make_text_block(nested)]
    if isinstance(signature, str) and signature:
        blocks = blocks or [make_text_block("")]
        blocks[-1]["signature"] = signature
    yield from (block for block in blocks if block.get("text") or block.get("signature") or block.get("data"))
    for key in form.seals:
        if isinstance(part.get(key), str) and part[key]:
            yield make_sealed_block(part[key])


def _read_list(parts: list[Any]) -> list[JsonObject]:
    """The blocks of a list in which adjacent fragments are one text."""
    blocks: list[JsonObject] = []
    is_open = False
    for part in parts:
        text = _read_fragment(part)
        if text is None:
            blocks += _read_list(part) if isinstance(part, list) else _read_part(part)
        elif is_open:
            blocks[-1]["text"] += text
        else:
            blocks.append(make_text_block(text))
        is_open = text is not None
    return blocks


def _read_fragment(part: Any) -> str | None:
    """A part of one text, as in Mistral's lists: a text, or an object with a text that is no block of its own."""
    if isinstance(part, dict) and not is_reasoning(part.get("type")):
        part = part.get("text")
    return part if isinstance(part, str) else None


def make_sealed_block(data: str) -> JsonObject:
    """A block that only its maker can read."""
    return {"type": _SEALED, "data": data}


def make_text_block(text: Any, signature: str | None = None) -> JsonObject:
    """A block of text; anything but a text counts as empty."""
    if signature:
        return {**make_text_block(text), "signature": signature}
    return {"type": _TEXT, "text": text if isinstance(text, str) else ""}


def set_reasoning(holder: JsonObject, blocks: list[JsonObject]) -> None:
    """Put the blocks of a whole message into it, in place."""
    texts = [str(block["text"]) for block in blocks if block.get("text")]
    signatures = [str(block["signature"]) for block in blocks if block.get("signature")]
    if texts:
        holder["reasoning_content"] = SEPARATOR.join(texts)
    if len(signatures) == 1:
        holder["reasoning_signature"] = signatures[0]
    if _need_details(blocks):
        holder["reasoning_details"] = [{**block, "index": i} for i, block in enumerate(blocks)]


def _need_details(blocks: list[JsonObject]) -> bool:
    """Whether text and signature cannot hold the blocks."""
    return any(is_sealed(block) or (len(blocks) > 1 and block.get("signature")) for block in blocks)


def list_blocks(message: JsonObject) -> list[JsonObject]:
    """The blocks of a message in hub form: its `reasoning_details`, or one of its text and signature."""
    if blocks := read_blocks(message.get("reasoning_details")):
        return blocks
    text, signature = message.get("reasoning_content"), message.get("reasoning_signature")
    if not text and not signature:
        return []
    return [make_text_block(text, signature)]


class ReasoningBlocks:
    """The reasoning blocks of one choice of a stream. A signature ends a text, and a sealed block is always whole."""

    def __init__(self) -> None:
        self._blocks: list[JsonObject] = []
        self._texts = TextBuffer()  # of the open block
        self._has_text = False
        self._sent = 0

    @property
    def is_open(self) -> bool:
        """Whether a text is open, so that more of it needs no separator."""
        return bool(self._texts)

    def add_fragments(self, fragments: list[bytes]) -> None:
        """Add raw JSON fragments to the open text."""
        self._texts.add_fragments(fragments)

    def add(self, delta: JsonObject, blocks: list[JsonObject]) -> None:
        """Put the blocks of one chunk, which continue the open one, into its delta, in place."""
        content = ""
        for block in blocks:
            if is_sealed(block):
                self.end_text()
                self._blocks.append(block)
            if text := block.get("text"):
                content += SEPARATOR + text if self._has_text and not self._texts else text
                self._texts.add(text)
                self._has_text = True
            if signature := block.get("signature"):
                delta["reasoning_signature"] = signature
                self.end_text(signature)
        if content:
            delta["reasoning_content"] = content
        self._send(delta)

    def end_text(self, signature: str | None = None) -> None:
        """End the open block."""
        if self._texts or signature:
            self._blocks.append(make_text_block(self._texts.text(), signature))
            self._texts = TextBuffer()

    def finish(self, delta: JsonObject) -> bool:
        """Put the last block into the last delta, in place, if earlier ones were listed. Returns True if it did."""
        if not self._sent or not self._texts:
            return False
        self.end_text()
        self._send(delta)
        return True

    def _send(self, delta: JsonObject) -> None:
        if self._sent < len(self._blocks) and _need_details(self._blocks):
            start, self._sent = self._sent, len(self._blocks)
            delta["reasoning_details"] = [{**block, "index": i} for i, block in enumerate(self._blocks[start:], start)]
