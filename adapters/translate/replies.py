"""Translates whole replies between chat and Responses, in hub form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.usage import normalize_usage
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object
from dragoman.adapters.paths import Path
from dragoman.adapters.responses.events import add_token_bytes
from dragoman.adapters.responses.response_object import new_response, to_responses_usage

from .annotations import NO_ANNOTATION, to_chat_annotation, to_responses_annotation
from .reasoning import join_reasoning, list_reasoning
from .tools import OriginalTool, decode_free_text, map_tool_names

__all__ = [
    "MORE_CHOICES",
    "NO_AUDIO",
    "read_failure",
    "to_chat_reply",
    "to_chat_usage",
    "to_output",
    "to_responses_reply",
]

MORE_CHOICES = "a response has only one choice"
NO_AUDIO = "Responses has no place for audio"

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_FINISH = {reason: finish for finish, reason in _INCOMPLETE.items()}


def to_responses_reply(reply: JsonObject, request: JsonObject, response_id: str, ctx: Context) -> JsonObject:
    """Translate a chat reply to a response to `request`, the Responses request in hub form."""
    choice = _take_first_choice(reply["choices"], ctx)
    finish = choice["finish_reason"]
    status = "incomplete" if finish in _INCOMPLETE else "completed"
    output = to_output(choice, map_tool_names(request), ctx)
    if output and status == "incomplete":
        output[-1]["status"] = "incomplete"
    return {
        **new_response(request, response_id, reply["model"], reply["created"]),
        "status": status,
        "completed_at": int(ctx.clock()) if status == "completed" else None,
        "incomplete_details": {"reason": _INCOMPLETE[finish]} if finish in _INCOMPLETE else None,
        "output": output,
        "usage": to_responses_usage(reply.get("usage")),
    }


def _take_first_choice(choices: list[JsonObject], ctx: Context) -> JsonObject:
    """Choice 0, which the reader guarantees. The others are recorded as dropped."""
    first = next(choice for choice in choices if choice["index"] == 0)
    for position, choice in enumerate(choices):
        if choice is not first:
            ctx.receipt.record_drop(("choices", position), MORE_CHOICES)
    return first


def to_output(choice: JsonObject, names: Mapping[str, OriginalTool], ctx: Context) -> list[JsonObject]:
    """Convert the message of a chat choice to items: its reasoning, its text, its calls.

    `names` maps names of functions to the tools that they replace.
    """
    message = choice["message"]
    items = [
        {**item, "id": ctx.new_id("rs"), "status": "completed"}
        for item in list_reasoning(message, summary=ctx.target.summarizes_reasoning)
    ]
    parts = _to_responses_parts(message, choice.get("logprobs"))
    if parts:
        items.append(
            {"type": "message", "id": ctx.new_id("msg"), "status": "completed", "role": "assistant", "content": parts}
        )
    if message.get("audio"):
        ctx.receipt.record_drop(("choices", 0, "message", "audio"), NO_AUDIO)
    return items + [
        _to_responses_call(call, names, ctx) for call in message.get("tool_calls") or _list_legacy_call(message, ctx)
    ]


def _to_responses_parts(message: JsonObject, logprobs: Any) -> list[JsonObject]:
    parts: list[JsonObject] = []
    if message.get("content"):
        found = add_token_bytes((logprobs or {}).get("content") or [])
        annotations = [to_responses_annotation(one) for one in message.get("annotations") or ()]
        parts.append({"type": "output_text", "text": message["content"], "annotations": annotations, "logprobs": found})
    if message.get("refusal"):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    return parts


def _list_legacy_call(message: JsonObject, ctx: Context) -> list[JsonObject]:
    """The call in the deprecated key `function_call`, with a new id, as a list."""
    function = message.get("function_call")
    return [{"id": ctx.new_id("call"), "function": function}] if function else []


def _to_responses_call(call: JsonObject, names: Mapping[str, OriginalTool], ctx: Context) -> JsonObject:
    said = call["custom"] if call.get("type") == "custom" else call["function"]
    original = names.get(said["name"]) or OriginalTool(said["name"])
    if "input" in said or original.takes_free_text:
        text = said["input"] if "input" in said else decode_free_text(said["arguments"])
        item = {"type": "custom_tool_call", "id": ctx.new_id("ctc"), "input": text}
    else:
        item = {"type": "function_call", "id": ctx.new_id("fc"), "arguments": said["arguments"]}
    return {**item, **original.name_keys(), "call_id": call["id"], "status": "completed"}


def to_chat_reply(response: JsonObject, ctx: Context) -> JsonObject:
    """Translate a response to a chat reply. Raises Fault if the response failed or was cancelled."""
    status = response.get("status")
    if status not in ("completed", "incomplete"):
        raise read_failure(response)
    message = _to_chat_message(response.get("output") or [], ctx)
    reason = (response.get("incomplete_details") or {}).get("reason")
    finish = _FINISH.get(str(reason), "length") if status == "incomplete" else "stop"
    if finish == "stop" and message.get("tool_calls"):
        finish = "tool_calls"
    logprobs = message.pop("logprobs", None)
    reply = {
        "id": response["id"],
        "object": "chat.completion",
        "created": int(response["created_at"]),
        "model": response["model"],
        "choices": [{"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}],
    }
    usage = to_chat_usage(response.get("usage"))
    return reply if usage is None else {**reply, "usage": usage}


def read_failure(response: JsonObject) -> Fault:
    """Make the fault of a response that is neither completed nor incomplete."""
    error = response.get("error") or {}
    text = error.get("message") or f"the provider's response has the status {response.get('status')}"
    code = error.get("native_code") or error.get("code")
    return read_error_object({"error": {**error, "message": text, "code": code}})


def to_chat_usage(usage: Any) -> JsonObject | None:
    """Convert the usage of a response to chat's names; None if counts are missing or invalid."""
    if not isinstance(usage, dict):
        return None
    named = {key: value for key, value in usage.items() if not key.endswith("_tokens_details")}
    for ours, theirs in (("prompt", "input"), ("completion", "output")):
        details = usage.get(f"{theirs}_tokens_details")
        if details:
            named[f"{ours}_tokens_details"] = details
    return normalize_usage(named)


def _to_chat_message(output: list[JsonObject], ctx: Context) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    thoughts: list[tuple[JsonObject, Path]] = []
    for i, item in enumerate(output):
        kind = item.get("type")
        if kind == "message":
            _add_parts(message, item.get("content") or [], ("output", i, "content"), ctx)
        elif kind == "reasoning":
            thoughts.append((item, ("output", i)))
        elif kind in ("function_call", "custom_tool_call"):
            message.setdefault("tool_calls", []).append(_to_chat_call(item))
        else:
            ctx.receipt.record_drop(("output", i), f"chat has no place for {kind} items")
    join_reasoning(message, thoughts, ctx)
    return message


def _add_parts(message: JsonObject, parts: list[JsonObject], path: Path, ctx: Context) -> None:
    for k, part in enumerate(parts):
        if part.get("type") == "refusal":
            message["refusal"] = (message["refusal"] or "") + str(part.get("refusal", ""))
            continue
        message["content"] = (message["content"] or "") + str(part.get("text", ""))
        for annotation in part.get("annotations") or ():
            if (found := to_chat_annotation(annotation)) is None:
                ctx.receipt.record_drop((*path, k, "annotations"), NO_ANNOTATION)
            else:
                message.setdefault("annotations", []).append(found)
        if part.get("logprobs"):
            message.setdefault("logprobs", {"content": [], "refusal": None})["content"] += part["logprobs"]


def _to_chat_call(item: JsonObject) -> JsonObject:
    if item["type"] == "custom_tool_call":
        return {"id": item["call_id"], "type": "custom", "custom": {"name": item["name"], "input": item["input"]}}
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}
