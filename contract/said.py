"""What a model said in one reply: texts, calls, endings, usage; read alike from every protocol, whole or streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .model import Json

__all__ = ["Said", "ToolCall", "Turn", "said_by"]


@dataclass(slots=True)
class ToolCall:
    id: str | None = None
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Turn:
    """One choice. `finishes` holds every ending that was told, in order: a good stream tells one."""

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: dict[Any, ToolCall] = field(default_factory=dict)
    finishes: list[str] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Said:
    """`usages` holds every usage object that was told, in order."""

    turns: dict[int, Turn] = field(default_factory=dict)
    usages: list[Json] = field(default_factory=list)

    def turn(self, index: object) -> Turn:
        return self.turns.setdefault(index if isinstance(index, int) else 0, Turn())

    @property
    def texts(self) -> list[str]:
        return [turn.text for turn in self.turns.values()]

    @property
    def calls(self) -> list[ToolCall]:
        return [call for turn in self.turns.values() for call in turn.calls.values()]

    @property
    def finishes(self) -> list[str | None]:
        """The last ending of each choice, None where there is none."""
        return [turn.finishes[-1] if turn.finishes else None for turn in self.turns.values()]


def said_by(protocol: str, objects: Sequence[Json], *, stream: bool) -> Said:
    said = Said()
    for body in objects:
        _READERS.get(protocol, _nothing)(said, body, stream)
    return said


def _nothing(said: Said, body: Json, stream: bool) -> None:
    pass


def _chat(said: Said, body: Json, stream: bool) -> None:
    _usage(said, body)
    for choice in _dicts(body.get("choices")):
        turn = said.turn(choice.get("index"))
        message = choice.get("delta" if stream else "message")
        if isinstance(message, dict):
            _message(turn, message, stream)
        _ending(turn, choice)


def _message(turn: Turn, message: Mapping[str, Any], stream: bool) -> None:
    turn.text += _text(message.get("content"))
    turn.reasoning += _text(message.get("reasoning_content"))
    turn.refusal += _text(message.get("refusal"))
    for place, call in enumerate(_dicts(message.get("tool_calls"))):
        key = call.get("index", place) if stream else place
        kept = turn.calls.setdefault(key if isinstance(key, int | str) else place, ToolCall())
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        kept.id = kept.id or call.get("id")
        kept.name += _text(function.get("name")) if not kept.name else ""
        arguments = function.get("arguments")
        kept.arguments += arguments if isinstance(arguments, str) else ""


def _completions(said: Said, body: Json, stream: bool) -> None:
    _usage(said, body)
    for choice in _dicts(body.get("choices")):
        turn = said.turn(choice.get("index"))
        turn.text += _text(choice.get("text"))
        _ending(turn, choice)


def _ending(turn: Turn, choice: Mapping[str, Any]) -> None:
    finish, logprobs = choice.get("finish_reason"), choice.get("logprobs")
    if isinstance(finish, str):
        turn.finishes.append(finish)
    if isinstance(logprobs, dict):
        turn.logprobs += [entry for value in logprobs.values() if isinstance(value, list) for entry in value]


def _responses(said: Said, body: Json, stream: bool) -> None:
    """A stream tells everything once more in its terminal event, and only that is read."""
    if stream:
        told = body.get("response")
        if body.get("type") not in _TERMINALS or not isinstance(told, dict):
            return
        body = told
    _usage(said, body)
    turn = said.turn(0)
    reason = body.get("incomplete_details")
    status = body.get("status")
    if isinstance(status, str):
        turn.finishes.append(str(reason.get("reason")) if isinstance(reason, dict) else status)
    for place, item in enumerate(_dicts(body.get("output"))):
        _item(turn, place, item)


_TERMINALS = ("response.completed", "response.incomplete", "response.failed")


def _item(turn: Turn, place: int, item: Mapping[str, Any]) -> None:
    match item.get("type"):
        case "message":
            parts = _dicts(item.get("content"))
            turn.text += "".join(_text(part.get("text")) for part in parts)
            turn.refusal += "".join(_text(part.get("refusal")) for part in parts)
        case "reasoning":
            parts = [*_dicts(item.get("summary")), *_dicts(item.get("content"))]
            turn.reasoning += "".join(_text(part.get("text")) for part in parts)
        case "function_call":
            id_, name, arguments = item.get("call_id"), _text(item.get("name")), _text(item.get("arguments"))
            turn.calls[place] = ToolCall(id_ if isinstance(id_, str) else None, name, arguments)


def _usage(said: Said, body: Json) -> None:
    if isinstance(body.get("usage"), dict):
        said.usages.append(body["usage"])


def _text(value: Any) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in _dicts(value))
    return value if isinstance(value, str) else ""


def _dicts(value: Any) -> Iterable[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_READERS: Mapping[str, Callable[[Said, Json, bool], None]] = {
    "chat": _chat,
    "completions": _completions,
    "responses": _responses,
}
