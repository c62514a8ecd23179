"""The accumulator of a stream: its chunks become one complete reply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.adapters.call import JsonObject

__all__ = ["collect_reply"]

TEXT_FIELDS = ("content", "reasoning_content", "refusal")


def collect_reply(chunks: Iterable[JsonObject]) -> JsonObject:
    """Collect the chunks of a chat or text completion into a reply. Raises ValueError if there are no chunks."""
    reply: JsonObject = {}
    choices: dict[int, JsonObject] = {}
    for chunk in chunks:
        if not reply:
            kind = chunk["object"].removesuffix(".chunk")
            reply = {"id": chunk["id"], "object": kind, "created": chunk["created"], "model": chunk["model"]}
        for choice in chunk["choices"]:
            add = _add_text_choice if reply["object"] == "text_completion" else _add_chat_choice
            add(choices.setdefault(choice["index"], {"index": choice["index"]}), choice)
        if chunk.get("usage"):
            reply["usage"] = chunk["usage"]
    if not reply:
        raise ValueError("a reply must have at least one chunk")
    usage = {"usage": reply.pop("usage")} if "usage" in reply else {}
    return {**reply, "choices": [choices[index] for index in sorted(choices)], **usage}


def _add_text_choice(target: JsonObject, choice: JsonObject) -> None:
    target["text"] = target.get("text", "") + choice["text"]
    target["logprobs"] = _extend_logprobs(target.get("logprobs"), choice.get("logprobs"))
    target["finish_reason"] = choice["finish_reason"] or target.get("finish_reason")


def _add_chat_choice(target: JsonObject, choice: JsonObject) -> None:
    message = target.setdefault("message", {"role": "assistant", "content": None, "refusal": None})
    delta = choice["delta"]
    for key in TEXT_FIELDS:
        if delta.get(key):
            message[key] = (message.get(key) or "") + delta[key]
    for call in delta.get("tool_calls", ()):
        _add_call(message.setdefault("tool_calls", []), call)
    if "function_call" in delta:
        function = message.setdefault("function_call", {"name": "", "arguments": ""})
        for key, text in delta["function_call"].items():
            function[key] += text
    target["logprobs"] = _extend_logprobs(target.get("logprobs"), choice.get("logprobs"))
    target["finish_reason"] = choice["finish_reason"] or target.get("finish_reason")
    if target["finish_reason"] and message["content"] is None and not message.keys() & {"tool_calls", "function_call"}:
        message["content"] = ""


def _add_call(calls: list[JsonObject], call: JsonObject) -> None:
    if call["index"] == len(calls):
        function = {"name": call["function"]["name"], "arguments": ""}
        calls.append({"id": call["id"], "type": "function", "function": function})
    calls[call["index"]]["function"]["arguments"] += call["function"].get("arguments", "")


def _extend_logprobs(found: Any, more: Any) -> Any:
    """Append the log probabilities of the next chunk."""
    if not found or not more:
        return found or more
    return {key: (found.get(key) or []) + (value or []) if value is not None else None for key, value in more.items()}
