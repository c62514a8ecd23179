"""The content of one reply: texts, tool calls, finish reasons, usage; the same shape for every protocol, whole or
streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .json_types import JsonObject, JsonValue

__all__ = ["ChoiceContent", "ReplyContent", "ToolCall", "read_reply_content"]


@dataclass(slots=True)
class ToolCall:
    """A tool call; `arguments` is JSON text, `names` are the pieces of its name: a correct stream sends one."""

    id: str | None = None
    names: list[str] = field(default_factory=list)
    arguments: str = ""

    @property
    def name(self) -> str:
        return self.names[0] if self.names else ""


@dataclass(slots=True)
class ChoiceContent:
    """The content of one choice. `finishes` has every finish reason in order: a correct stream sends one."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: dict[int | str, ToolCall] = field(default_factory=dict)
    finishes: list[str] = field(default_factory=list)
    logprobs: list[JsonValue] = field(default_factory=list)


@dataclass(slots=True)
class ReplyContent:
    """The content of a reply by the index of the choice. `usages` has every usage object in order."""

    choices: dict[int, ChoiceContent] = field(default_factory=dict)
    usages: list[JsonObject] = field(default_factory=list)

    def choice(self, index: object) -> ChoiceContent:
        return self.choices.setdefault(index if isinstance(index, int) else 0, ChoiceContent())

    @property
    def texts(self) -> list[str]:
        return [choice.text for choice in self.choices.values()]

    @property
    def calls(self) -> list[ToolCall]:
        return [call for choice in self.choices.values() for call in choice.calls.values()]

    @property
    def finishes(self) -> list[str | None]:
        """The last finish reason of each choice, None for a choice without one."""
        return [choice.finishes[-1] if choice.finishes else None for choice in self.choices.values()]


def read_reply_content(protocol: str, objects: Sequence[JsonObject], *, stream: bool) -> ReplyContent:
    """Read the content of a reply: `objects` are the chunks or events of a stream, or the one body."""
    content = ReplyContent()
    for body in objects:
        _READERS.get(protocol, _read_nothing)(content, body, stream)
    return content


def _read_nothing(content: ReplyContent, body: JsonObject, stream: bool) -> None:
    pass


def _read_chat(content: ReplyContent, body: JsonObject, stream: bool) -> None:
    _read_usage(content, body)
    for item in _dicts(body.get("choices")):
        choice = content.choice(item.get("index"))
        message = item.get("delta" if stream else "message")
        if isinstance(message, dict):
            _read_message(choice, message, stream)
        _read_ending(choice, item)


def _read_message(choice: ChoiceContent, message: JsonObject, stream: bool) -> None:
    choice.text += _text(message.get("content"))
    choice.reasoning += _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
    choice.refusal += _text(message.get("refusal"))
    for position, call in enumerate(_dicts(message.get("tool_calls"))):
        key = call.get("index", position) if stream else position
        kept = choice.calls.setdefault(key if isinstance(key, int | str) else position, ToolCall())
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        kept.id = kept.id or call.get("id")
        kept.names += [name] if (name := _text(function.get("name"))) else []
        arguments = function.get("arguments")
        kept.arguments += arguments if isinstance(arguments, str) else ""


def _read_completion(content: ReplyContent, body: JsonObject, stream: bool) -> None:
    _read_usage(content, body)
    for item in _dicts(body.get("choices")):
        choice = content.choice(item.get("index"))
        choice.text += _text(item.get("text"))
        _read_ending(choice, item)


def _read_ending(choice: ChoiceContent, item: JsonObject) -> None:
    finish, logprobs = item.get("finish_reason"), item.get("logprobs")
    if isinstance(finish, str):
        choice.finishes.append(finish)
    if isinstance(logprobs, dict):
        choice.logprobs += [entry for value in logprobs.values() if isinstance(value, list) for entry in value]


def _read_response(content: ReplyContent, body: JsonObject, stream: bool) -> None:
    """The terminal event of a stream repeats the whole response; the other events are not read."""
    if stream:
        response = body.get("response")
        if body.get("type") not in _TERMINALS or not isinstance(response, dict):
            return
        body = response
    _read_usage(content, body)
    choice = content.choice(0)
    reason = body.get("incomplete_details")
    status = body.get("status")
    if isinstance(status, str):
        choice.finishes.append(str(reason.get("reason")) if isinstance(reason, dict) else status)
    for position, item in enumerate(_dicts(body.get("output"))):
        _read_output_item(choice, position, item)


_TERMINALS = ("response.completed", "response.incomplete", "response.failed")


def _read_output_item(choice: ChoiceContent, position: int, item: JsonObject) -> None:
    match item.get("type"):
        case "message":
            parts = _dicts(item.get("content"))
            choice.text += "".join(_text(part.get("text")) for part in parts)
            choice.refusal += "".join(_text(part.get("refusal")) for part in parts)
        case "reasoning":
            parts = [*_dicts(item.get("summary")), *_dicts(item.get("content"))]
            choice.reasoning += "".join(_text(part.get("text")) for part in parts)
        case "function_call":
            id_, name, arguments = item.get("call_id"), _text(item.get("name")), _text(item.get("arguments"))
            choice.calls[position] = ToolCall(id_ if isinstance(id_, str) else None, [name], arguments)


def _read_message_reply(content: ReplyContent, body: JsonObject, stream: bool) -> None:
    """A message, or one event of a stream of it; the usage of a later event completes that of the first one."""
    if not stream:
        _start_message(content, body)
        for position, block in enumerate(_dicts(body.get("content"))):
            _start_block(content.choice(0), position, block)
        return
    choice, index = content.choice(0), body.get("index")
    key = index if isinstance(index, int) else 0
    match body:
        case {"type": "message_start", "message": dict(message)}:
            _start_message(content, message)
        case {"type": "content_block_start", "content_block": dict(block)}:
            _start_block(choice, key, block, started="")
        case {"type": "content_block_delta", "delta": dict(delta)}:
            choice.text += _text(delta.get("text"))
            choice.reasoning += _text(delta.get("thinking"))
            if key in choice.calls:
                choice.calls[key].arguments += _text(delta.get("partial_json"))
        case {"type": "message_delta", "delta": dict(delta)}:
            _start_message(content, {**delta, "usage": body.get("usage")})


def _start_message(content: ReplyContent, message: JsonObject) -> None:
    choice, finish, usage = content.choice(0), message.get("stop_reason"), message.get("usage")
    if isinstance(finish, str):
        choice.finishes.append(finish)
    if isinstance(usage, dict):
        known = {key: value for key, value in usage.items() if value is not None}
        content.usages.append({**(content.usages[-1] if content.usages else {}), **known})


def _start_block(choice: ChoiceContent, position: int, block: JsonObject, started: str = "{}") -> None:
    """A block as it starts, or a whole one. `started` is the text of a call's input while it is empty."""
    choice.text += _text(block.get("text"))
    choice.reasoning += _text(block.get("thinking"))
    if block.get("type") == "tool_use":
        arguments = json.dumps(block["input"]) if block.get("input") else started
        id_ = block.get("id")
        choice.calls[position] = ToolCall(id_ if isinstance(id_, str) else None, [_text(block.get("name"))], arguments)


def _read_usage(content: ReplyContent, body: JsonObject) -> None:
    if isinstance(body.get("usage"), dict):
        content.usages.append(body["usage"])


def _text(value: JsonValue) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in _dicts(value))
    return value if isinstance(value, str) else ""


def _dicts(value: JsonValue) -> Iterable[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_READERS: Mapping[str, Callable[[ReplyContent, JsonObject, bool], None]] = {
    "chat": _read_chat,
    "completions": _read_completion,
    "messages": _read_message_reply,
    "responses": _read_response,
}
