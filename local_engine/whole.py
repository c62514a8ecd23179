"""A whole reply from the events of its stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["whole"]

TEXTS = ("content", "reasoning_content", "refusal")


def whole(chunks: Iterable[JsonObject]) -> JsonObject:
    """The chat or text completion that these events tell. Raises ValueError where there are none."""
    reply: JsonObject = {}
    choices: dict[int, JsonObject] = {}
    for chunk in chunks:
        if not reply:
            kind = chunk["object"].removesuffix(".chunk")
            reply = {"id": chunk["id"], "object": kind, "created": chunk["created"], "model": chunk["model"]}
        for choice in chunk["choices"]:
            add = _add_text if reply["object"] == "text_completion" else _add_chat
            add(choices.setdefault(choice["index"], {"index": choice["index"]}), choice)
        if chunk.get("usage"):
            reply["usage"] = chunk["usage"]
    if not reply:
        raise ValueError("a reply has at least one event")
    usage = {"usage": reply.pop("usage")} if "usage" in reply else {}
    return {**reply, "choices": [choices[index] for index in sorted(choices)], **usage}


def _add_text(into: JsonObject, choice: JsonObject) -> None:
    into["text"] = into.get("text", "") + choice["text"]
    into["logprobs"] = _longer(into.get("logprobs"), choice.get("logprobs"))
    into["finish_reason"] = choice["finish_reason"] or into.get("finish_reason")


def _add_chat(into: JsonObject, choice: JsonObject) -> None:
    message = into.setdefault("message", {"role": "assistant", "content": None, "refusal": None})
    delta = choice["delta"]
    for key in TEXTS:
        if delta.get(key):
            message[key] = (message.get(key) or "") + delta[key]
    for call in delta.get("tool_calls", ()):
        _add_call(message.setdefault("tool_calls", []), call)
    if "function_call" in delta:
        function = message.setdefault("function_call", {"name": "", "arguments": ""})
        for key, text in delta["function_call"].items():
            function[key] += text
    into["logprobs"] = _longer(into.get("logprobs"), choice.get("logprobs"))
    into["finish_reason"] = choice["finish_reason"] or into.get("finish_reason")
    if into["finish_reason"] and message["content"] is None and not message.keys() & {"tool_calls", "function_call"}:
        message["content"] = ""


def _add_call(calls: list[JsonObject], call: JsonObject) -> None:
    if call["index"] == len(calls):
        function = {"name": call["function"]["name"], "arguments": ""}
        calls.append({"id": call["id"], "type": "function", "function": function})
    calls[call["index"]]["function"]["arguments"] += call["function"].get("arguments", "")


def _longer(found: Any, more: Any) -> Any:
    """Log probabilities with those of a further event."""
    if not found or not more:
        return found or more
    return {key: (found.get(key) or []) + (value or []) if value is not None else None for key, value in more.items()}
