"""Questions about requests of Messages that are no single parameter: the blocks of turns, and what surrounds them."""

from __future__ import annotations

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Path

__all__ = ["SPECIAL_BODIES"]

_HELLO: JsonObject = {"role": "user", "content": "hello"}
_TEXT: JsonObject = {"type": "text", "text": "hello"}
_UNKNOWN: JsonObject = {"x_unknown": 1}
_MARK: JsonObject = {"cache_control": {"type": "ephemeral"}}
_PNG: JsonObject = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
_IMAGE: JsonObject = {"type": "image", "source": _PNG}
_PDF: JsonObject = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
_PLAIN: JsonObject = {"type": "text", "media_type": "text/plain", "data": "hello"}
_URL: JsonObject = {"type": "url", "url": "https://example.com/file"}
_CALL: JsonObject = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
_RESULT: JsonObject = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}
_PAGE: JsonObject = {"type": "page_location", "cited_text": "c", "document_index": 0, "document_title": "d"}
_PAGE |= {"start_page_number": 1, "end_page_number": 2}


def _ask(*blocks: JsonObject) -> JsonObject:
    return {"messages": [{"role": "user", "content": [*blocks, _TEXT]}]}


def _answer(*blocks: JsonObject) -> JsonObject:
    return {"messages": [_HELLO, {"role": "assistant", "content": [*blocks, _TEXT]}, _HELLO]}


def _give(result: JsonObject) -> JsonObject:
    turns = [{"role": "assistant", "content": [_CALL]}, {"role": "user", "content": [result]}]
    return {"messages": [_HELLO, *turns]}


def _at(turn: int, *rest: str | int) -> Path:
    return ("messages", turn, "content", 0, *rest)


def _choose(**choice: str | bool) -> JsonObject:
    return {"tools": [{"name": "f", "input_schema": {"type": "object", "properties": {}}}], "tool_choice": choice}


SPECIAL_BODIES: dict[str, tuple[JsonObject, Path]] = {
    "`tool_choice` `any`": (_choose(type="any"), ("tool_choice", "type")),
    "`tool_choice` of one tool": (_choose(type="tool", name="f"), ("tool_choice",)),
    "`tool_choice` `none`": (_choose(type="none"), ("tool_choice",)),
    "`disable_parallel_tool_use`": (
        _choose(type="auto", disable_parallel_tool_use=True),
        ("tool_choice", "disable_parallel_tool_use"),
    ),
    "system blocks": ({"system": [_TEXT, _TEXT]}, ("system",)),
    "an image": (_ask(_IMAGE), _at(0)),
    "an image by its address": (_ask({"type": "image", "source": _URL}), _at(0)),
    "a document, PDF": (_ask({"type": "document", "source": _PDF}), _at(0)),
    "a document, text": (_ask({"type": "document", "source": _PLAIN, "title": "d"}), _at(0)),
    "a document by its address": (_ask({"type": "document", "source": _URL}), _at(0)),
    "a mark of the cache": (_ask({**_TEXT, **_MARK}), _at(0, "cache_control")),
    "a call": (_give(_RESULT), ("messages", 1, "content", 0, "input")),
    "a result": (_give(_RESULT), _at(2, "content")),
    "a result with an image": (
        _give({**_RESULT, "content": [{"type": "image", "source": _PNG}]}),
        _at(2, "content", 0),
    ),
    "a result that is an error": (_give({**_RESULT, "is_error": True}), _at(2, "is_error")),
    "thinking with a signature": (_answer({"type": "thinking", "thinking": "t", "signature": "EqQB"}), _at(1)),
    "redacted thinking": (_answer({"type": "redacted_thinking", "data": "EqQB"}), _at(1)),
    "citations of an answer": (_answer({**_TEXT, "citations": [_PAGE]}), _at(1, "citations", 0)),
    "a system message after others": (
        {"messages": [_HELLO, {"role": "system", "content": "be brief"}, _HELLO]},
        ("messages", 1),
    ),
    "an answer to go on with": ({"messages": [_HELLO, {"role": "assistant", "content": "Dear"}]}, ("messages", 1)),
    "an unknown key": (_UNKNOWN, ("x_unknown",)),
    "an unknown key in a turn": ({"messages": [{**_HELLO, **_UNKNOWN}]}, ("messages", 0, "x_unknown")),
    "an unknown key in a block": (_ask({**_TEXT, **_UNKNOWN}), _at(0, "x_unknown")),
}
"""What is shown -> what a request has in addition, and the path of what is traced."""
