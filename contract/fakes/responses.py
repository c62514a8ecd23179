"""Responses: the request converted to chat, so that one model serves both, and the answer as a response or as its
events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dragoman.contract.json_types import JsonObject, JsonValue

from .answers import Answer, ModelRequest, read_text, select_objects, split_words
from .forms import CREATED

__all__ = ["build_response_documents", "convert_to_chat"]

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def convert_to_chat(body: Mapping[str, JsonValue]) -> JsonObject:
    """Convert the request to chat, with the fields that the fake's model reads."""
    instructions = body.get("instructions")
    first = [{"role": "system", "content": instructions}] if instructions else []
    chat: JsonObject = {"messages": [*first, *_iterate_messages(body.get("input"))]}
    chat["tools"] = [
        {"type": "function", "function": tool.get("function", tool)} for tool in select_objects(body.get("tools"))
    ]
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping) and "name" in choice:
        choice = {"type": "function", "function": {"name": choice["name"]}}
    chat["tool_choice"] = choice
    text, reasoning = body.get("text"), body.get("reasoning")
    wanted = text.get("format") if isinstance(text, Mapping) else None
    if isinstance(wanted, Mapping):
        chat["response_format"] = {"type": wanted.get("type"), "json_schema": wanted.get("json_schema", wanted)}
    chat["reasoning_effort"] = reasoning.get("effort") if isinstance(reasoning, Mapping) else None
    chat["max_completion_tokens"] = body.get("max_output_tokens")
    chat["parallel_tool_calls"] = body.get("parallel_tool_calls")
    return chat


def _iterate_messages(given: JsonValue) -> Iterator[JsonObject]:
    if isinstance(given, str):
        yield {"role": "user", "content": given}
    for item in select_objects(given):
        match item.get("type", "message"):
            case "message":
                yield {"role": item.get("role"), "content": read_text(item)}
            case "function_call_output":
                yield {"role": "tool", "content": str(item.get("output"))}
            case "function_call":
                yield {"role": "assistant", "content": ""}


def build_response_documents(answer: Answer, request: ModelRequest) -> list[JsonObject]:
    """Build the JSON documents of the reply: the events of a stream, or one response. The caller may alter them."""
    items = list(_iterate_items(answer, request))
    if not request.stream:
        return [_build_response(answer, request, items)]
    return [
        {**event, "sequence_number": number} for number, event in enumerate(_iterate_events(answer, request, items))
    ]


def _iterate_items(answer: Answer, request: ModelRequest) -> Iterator[JsonObject]:
    status = "incomplete" if answer.finish in _INCOMPLETE else "completed"
    name = f"fake{request.number:06d}"
    if answer.reasoning:
        content = [{"type": "reasoning_text", "text": answer.reasoning}]
        yield {"id": f"rs_{name}", "type": "reasoning", "summary": [], "content": content, "status": "completed"}
    if answer.text or answer.refusal or not answer.calls:
        part: JsonObject = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        if answer.refusal:
            part = {"type": "refusal", "refusal": answer.refusal}
        head = {"id": f"msg_{name}", "type": "message", "role": "assistant"}
        yield {**head, "status": status, "content": [part]}
    for position, call in enumerate(answer.calls):
        fields = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        yield {"id": f"fc_{name}x{position}", "type": "function_call", **fields, "status": status}


def _build_response(answer: Answer, request: ModelRequest, output: list[JsonObject], status: str = "") -> JsonObject:
    """Build the response; `status` is given for a response in progress."""
    reason = None if status else _INCOMPLETE.get(answer.finish)
    ended = status or ("incomplete" if reason else "completed")
    asked = request.original
    return {
        "id": f"resp_fake{request.number:06d}",
        "object": "response",
        "created_at": CREATED,
        "completed_at": CREATED if ended == "completed" else None,
        "status": ended,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": request.model,
        "output": output,
        "usage": None if status else _build_usage(answer, request),
        "background": False,
        "service_tier": "default",
        **{key: asked.get(key, usual) for key, usual in _ECHOED_DEFAULTS.items()},
        "text": {"format": {"type": "text"}, **(asked.get("text") or {})},
        "reasoning": {"effort": None, "summary": None, **(asked.get("reasoning") or {})},
    }


_ECHOED_DEFAULTS: Mapping[str, JsonValue] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}


def _build_usage(answer: Answer, request: ModelRequest) -> JsonObject:
    """Count one token for each word."""
    read = sum(len(read_text(message).split()) for message in request.messages) + 1
    thought, spoken = len(split_words(answer.reasoning)), len(split_words(answer.text + answer.refusal))
    written = thought + spoken + sum(len(call.arguments.split()) + 1 for call in answer.calls)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": read + written,
    }


def _iterate_events(answer: Answer, request: ModelRequest, items: list[JsonObject]) -> Iterator[JsonObject]:
    begun = _build_response(answer, request, [], "in_progress")
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for position, item in enumerate(items):
        empty: JsonObject = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        yield _build_event("output_item.added", position, item={**item, **empty, "status": "in_progress"})
        iterate = _iterate_arguments if item["type"] == "function_call" else _iterate_parts
        yield from iterate(position, item)
        yield _build_event("output_item.done", position, item=item)
    whole = _build_response(answer, request, items)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _build_event(name: str, position: int, /, **more: JsonValue) -> JsonObject:
    return {"type": f"response.{name}", "output_index": position, **more}


def _iterate_arguments(position: int, item: JsonObject) -> Iterator[JsonObject]:
    for piece in re.findall(r".{1,6}", item["arguments"], re.DOTALL):
        yield _build_event("function_call_arguments.delta", position, item_id=item["id"], delta=piece)
    final = {"name": item["name"], "arguments": item["arguments"]}
    yield _build_event("function_call_arguments.done", position, item_id=item["id"], **final)


def _iterate_parts(position: int, item: JsonObject) -> Iterator[JsonObject]:
    for number, part in enumerate(item["content"]):
        kind = part["type"]
        key, where = ("refusal" if kind == "refusal" else "text"), {"item_id": item["id"], "content_index": number}
        more: JsonObject = {"logprobs": []} if kind == "output_text" else {}
        yield _build_event("content_part.added", position, **where, part={**part, key: ""})
        for piece in split_words(part[key]):
            yield _build_event(f"{kind}.delta", position, **where, delta=piece, **more)
        yield _build_event(f"{kind}.done", position, **where, **{key: part[key]}, **more)
        yield _build_event("content_part.done", position, **where, part=part)
