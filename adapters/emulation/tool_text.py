"""Tools as text: how an instruction describes them, how a model writes a call, and how earlier turns are written.

    a call      <tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>
    a result    <tool_response>{"tool_call_id": "call_1", "name": "get_weather", "content": "..."}</tool_response>

Many open models were trained on these tags. A result cannot end its own tags: `<` in it is written as `\\u003c`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.paths import Places

from .instructions import add_text
from .json_formats import parse_json

__all__ = ["CLOSE", "OPEN", "describe_tools", "write_turns"]

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_OPEN_RESULT, _CLOSE_RESULT = "<tool_response>", "</tool_response>"

_HOW = f"""You can call the functions below. To call one, write a JSON object with its name and its arguments between \
tags:
{OPEN}
{{"name": "the name of the function", "arguments": {{"the name of a parameter": "its value"}}}}
{CLOSE}"""
_AFTERWARDS = (
    f"Write nothing after your calls. The results follow in the next message, between {_OPEN_RESULT} and "
    f"{_CLOSE_RESULT}."
)


def describe_tools(tools: Sequence[JsonObject], choice: Any, *, one_call: bool) -> str:
    """The instruction for functions in chat's form, with the wishes of `tool_choice` and `parallel_tool_calls`."""
    lines = [orjson.dumps(tool["function"]).decode() for tool in tools]
    number = "Make one call at most." if one_call else "For several calls write several pairs of tags."
    rules = f"{number} {_AFTERWARDS} {_describe_choice(choice)}"
    return "\n".join([_HOW, rules, "", "Functions, one on each line:", *lines])


def _describe_choice(choice: Any) -> str:
    if choice == "required":
        return "You must call a function now."
    if isinstance(choice, dict):
        return f"You must call the function {choice['function']['name']} now."
    return "If you need no function, answer without a call."


def write_turns(messages: Sequence[JsonObject]) -> tuple[list[JsonObject], Places]:
    """The messages with earlier calls and results as text, and where each message is now."""
    made: list[JsonObject] = []
    places: Places = []
    names = dict(_list_calls(messages))
    is_result = False  # whether the last message has results
    for position, message in enumerate(messages):
        if message.get("role") == "tool":
            if not is_result:
                made.append({"role": "user", "content": ""})
            made[-1]["content"] = _add_result(made[-1]["content"], message, names)
        else:
            made.append(_write_calls(message) if message.get("tool_calls") else message)
        is_result = message.get("role") == "tool"
        places.append((("messages", position), ("messages", len(made) - 1)))
    return made, places


def _list_calls(messages: Sequence[JsonObject]) -> Iterator[tuple[Any, str]]:
    for message in messages:
        for call in message.get("tool_calls") or ():
            yield call.get("id"), _read_call(call)["name"]


def _write_calls(message: JsonObject) -> JsonObject:
    """The message of an assistant with its calls as text."""
    texts = [f"{OPEN}\n{_encode(_read_call(call))}\n{CLOSE}" for call in message["tool_calls"]]
    rest = {key: value for key, value in message.items() if key != "tool_calls"}
    return {**rest, "content": add_text(message.get("content"), "\n".join(texts))}


def _read_call(call: JsonObject) -> JsonObject:
    """A call as the model would have written it. The input of a custom tool is its arguments."""
    function = call.get("function") or call.get("custom") or {}
    arguments = function.get("arguments", function.get("input", ""))
    value = parse_json(arguments or "{}") if isinstance(arguments, str) else (arguments,)
    return {"name": function.get("name", ""), "arguments": arguments if value is None else value[0]}


def _add_result(content: str | list[Any], message: JsonObject, names: dict[Any, str]) -> str | list[Any]:
    """The content of a user's message with the result of a further call. Parts that are no text follow the result."""
    given = message.get("content")
    parts = given if isinstance(given, list) else []
    texts = [given] if isinstance(given, str) else [part["text"] for part in parts if part.get("type") == "text"]
    called = message.get("tool_call_id")
    result = {"tool_call_id": called, "name": names.get(called, ""), "content": "".join(texts)}
    text = f"{_OPEN_RESULT}\n{_encode(result)}\n{_CLOSE_RESULT}"
    others = [part for part in parts if part.get("type") != "text"]
    if not others:
        return add_text(content, text)
    before = [{"type": "text", "text": content}] if isinstance(content, str) and content else content or []
    return [*before, {"type": "text", "text": text}, *others]


def _encode(value: JsonObject) -> str:
    return orjson.dumps(value).decode().replace("<", "\\u003c")
