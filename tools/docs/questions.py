"""Requests that clients of a dialect may send, each to trace one value in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dragoman.adapters import dialects
from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Path
from dragoman.adapters.request_properties import hub_annotations
from dragoman.schemas import Schema, load

from .examples import Json, build_body, example_values
from .markdown import code
from .message_questions import SPECIAL_BODIES
from .shape import Field, Place, Step, names, read_shape
from .words import literal

__all__ = ["SPECIAL", "Question", "make_questions"]


@dataclass(frozen=True, slots=True)
class Question:
    """What happens to the value at the path of the body?

    `value` names it in a table. If `is_covered`, another question covers it, and it counts as carried.
    """

    body: JsonObject
    path: Path = ()
    value: str = ""
    is_covered: bool = False
    protocol: str = "chat"


_HELLO = {"role": "user", "content": "hello"}
_SYSTEM = {"role": "system", "content": "s"}
_TOOL = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
_CALLS = [{"id": f"call_{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in (1, 2)]
_CALLING = {"role": "assistant", "content": "I call.", "tool_calls": _CALLS}
_RESULTS = [{"role": "tool", "tool_call_id": f"call_{i}", "content": "1"} for i in (1, 2)]
_WIDE = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(16)}}

_TOGETHER: Mapping[str, JsonObject] = {
    "top_logprobs": {"logprobs": True},
    "tool_choice": {"tools": [{"type": "function", "function": _TOOL}]},
    "parallel_tool_calls": {"tools": [{"type": "function", "function": _TOOL}]},
    "stream_options": {"stream": True},
}
_BEFORE: Mapping[str, list[JsonObject]] = {
    "tool": [_HELLO, _CALLING],
    "assistant": [_HELLO],
    "function": [_HELLO],
}
_ALWAYS = (("model",), ("messages",), ("prompt",), ("input",))
_NEVER = frozenset({"thread"})
"""Parameters that dragoman refuses from every client."""
_BY_HAND = frozenset({(name, "messages") for name in ("messages", "system", "tool_choice")})
"""Parameters and their protocol, whose values need others around them: `SPECIAL` asks about them."""
_LEAST: Mapping[str, JsonObject] = {
    "chat": {"messages": [_HELLO]},
    "completions": {"prompt": "hello"},
    "embeddings": {"input": ["hello"]},
    "messages": {"max_tokens": 4096, "messages": [_HELLO]},
}
_INSTEAD_OF_TEXT = frozenset({"refusal", "audio", "function_call"})
"""With one of these keys an assistant's message has null content."""


def make_questions(dialect: str, profile: str, protocol: str = "chat") -> dict[Place, list[Question]]:
    """Make questions for every field of the dialect's request with a choice of values, one for each kind of value."""
    found: dict[Place, list[Question]] = {}
    for root, one in _fields(dialect, profile, protocol):
        asked = [_question(root, one, value, protocol) for value in _meaningful_values(root, one, protocol)]
        if asked:
            found[one.place] = asked
    return found


def _fields(dialect: str, profile: str, protocol: str) -> Iterator[tuple[Schema, Field]]:
    """Yield the dialect's fields and, for clients of the hub's own dialect, the hub's extensions."""
    own = read_shape(load(f"{dialect}/{protocol}.request", profile))
    for one in own.fields.values():
        path = names(one.place)
        is_asked = path not in _ALWAYS and path[0] not in _NEVER and (path[0], protocol) not in _BY_HAND
        if is_asked and "const" not in one.rule and one.rule.keys() & {"type", "$ref"}:
            yield own.root, one
    if dialects[dialect].is_hub_form:
        hub = read_shape(load(f"hub/{protocol}.request"))
        for one in hub.fields.values():
            owner = hub.fields[one.place[:1]] if len(one.place) > 1 and one.place[:1] in hub.fields else one
            if (one.rule.get("x-extension") or owner.rule.get("x-extension")) and one.place not in own.fields:
                yield hub.root, one


def _meaningful_values(root: Schema, one: Field, protocol: str) -> list[Json]:
    """The values that are not neutral."""
    path = names(one.place)
    neutral = [*one.rule.get("x-neutral", ()), *_hub(protocol).get(path, {}).get("x-neutral", ())]
    return [value for value in example_values(root, one.rule, path[-1]) if value not in neutral]


def _hub(protocol: str) -> Mapping[Path, Schema]:
    return hub_annotations(f"hub/{protocol}.request")


def _question(root: Schema, one: Field, value: Json, protocol: str) -> Question:
    place = one.place
    body: JsonObject = {"model": "m", **_LEAST[protocol], **_TOGETHER.get(place[0].name, {})}
    body.update(build_body(root, place, value))
    path = _path(place)
    if path[-1] in ("type", "role") and len(path) > 1:
        path = path[:-1]  # trace the whole object
    if place[0].name == "messages":
        before, after = _around(body["messages"][0])
        _complete(body["messages"][0], place)
        body["messages"] = [*before, *body["messages"], *after]
        path = ("messages", len(before), *path[2:])
    is_covered = names(place)[-2:] == ("content", "type") and value == "text"  # by the question for a list
    return Question(body, path, _format_value(value, "enum" in one.rule), is_covered, protocol)


def _path(place: Place) -> Path:
    return tuple(part for step in place for part in ((step.name, 0) if step.many else (step.name,)))


def _around(message: JsonObject) -> tuple[list[JsonObject], list[JsonObject]]:
    role = message["role"]
    return _BEFORE.get(role, []), [_HELLO] if role in ("system", "developer") else []


def _complete(message: JsonObject, place: Place) -> None:
    """Add to a message what the conversation requires but the schema does not."""
    if message["role"] == "tool":
        message.setdefault("tool_call_id", "call_1")
    if message["role"] != "assistant":
        return
    if place[1] == Step("role") or not message.keys() & {"content", "tool_calls"}:
        message["content"] = None if message.keys() & _INSTEAD_OF_TEXT else "text"
    content = message.get("content")
    if isinstance(content, list) and all(part.get("type") in ("reasoning", "refusal") for part in content):
        content.append({"type": "text", "text": "text"})


def _format_value(value: Json, word: bool) -> str:
    if isinstance(value, dict):
        return literal(value["type"]) if "type" in value else f"with {', '.join(map(code, value))}"
    if isinstance(value, list):
        return f"a list of {len(value)}" if len(value) > 1 else "a list"
    return "a string" if isinstance(value, str) and not word else literal(value)


def _talk(*messages: JsonObject) -> Question:
    return Question({"model": "m", "messages": list(messages)})


def _with(body: JsonObject, *path: str | int) -> Question:
    return Question({"model": "m", "messages": [_HELLO], **body}, path)


def _tools(function: Iterable[JsonObject]) -> JsonObject:
    return {"tools": [{"type": "function", "function": one} for one in function]}


_UNKNOWN = {"x_unknown": 1}

_CHAT: Mapping[str, Question] = {
    "two system messages": _talk(_SYSTEM, _SYSTEM, _HELLO),
    "a system message after others": _talk(_HELLO, _SYSTEM, _HELLO),
    "tool results in another order than their calls": _talk(_HELLO, _CALLING, *reversed(_RESULTS)),
    "33 tools": _with(_tools({**_TOOL, "name": f"f{i}"} for i in range(33)), "tools"),
    "a tool with 16 parameters": _with(_tools([{**_TOOL, "parameters": _WIDE}]), "tools"),
    "a tool without description": _with(_tools([{"name": "f", "parameters": _TOOL["parameters"]}]), "tools"),
    "an unknown key": _with(_UNKNOWN, "x_unknown"),
    "an unknown key in a message": _with({"messages": [{**_HELLO, **_UNKNOWN}]}, "messages", 0, "x_unknown"),
    "an unknown key in a content part": _with(
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hello", **_UNKNOWN}]}]},
        *("messages", 0, "content", 0, "x_unknown"),
    ),
    "an unknown key in a tool": _with(
        {"tools": [{"type": "function", "function": _TOOL, **_UNKNOWN}]}, "tools", 0, "x_unknown"
    ),
}


def _embed(given: Json, *path: str | int, **body: Json) -> Question:
    return Question({"model": "m", "input": given, **body}, path or ("input",), protocol="embeddings")


_EMBEDDINGS: Mapping[str, Question] = {
    "`input`, a string": _embed("hello"),
    "`input`, a list of tokens": _embed([1, 2]),
    "`input`, lists of tokens": _embed([[1, 2], [3]]),
    "an unknown key": _embed(["hello"], "x_unknown", **_UNKNOWN),
}


def _complete_prompt(given: Json, *path: str | int, **body: Json) -> Question:
    return Question({"model": "m", "prompt": given, **body}, path or ("prompt",), protocol="completions")


_COMPLETIONS: Mapping[str, Question] = {
    "several prompts": _complete_prompt(["hello", "goodbye"]),
    "a prompt of tokens": _complete_prompt([1, 2]),
    "several prompts of tokens": _complete_prompt([[1, 2], [3]]),
    "null as prompt": _complete_prompt(None),
    "an unknown key": _complete_prompt("hello", "x_unknown", **_UNKNOWN),
}
_MESSAGES: Mapping[str, Question] = {
    what: Question({"model": "m", **_LEAST["messages"], **body}, path, protocol="messages")
    for what, (body, path) in SPECIAL_BODIES.items()
}
SPECIAL: Mapping[str, Mapping[str, Question]] = {
    "chat": _CHAT,
    "messages": _MESSAGES,
    "completions": _COMPLETIONS,
    "embeddings": _EMBEDDINGS,
}
"""Questions about more than one field, for each protocol."""
