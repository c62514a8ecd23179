"""How Responses are asked for and written: the request as chat, so that one model serves both, and the answer as a
response or as the events that build it up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .answers import Answer, Ask, Json, objects, text_of
from .forms import CREATED

__all__ = ["as_chat", "response_documents"]

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def as_chat(body: Mapping[str, Any]) -> Json:
    """The request as a chat request, as far as the fake's model looks at it."""
    instructions = body.get("instructions")
    first = [{"role": "system", "content": instructions}] if instructions else []
    chat: Json = {"messages": [*first, *_messages(body.get("input"))]}
    chat["tools"] = [
        {"type": "function", "function": tool.get("function", tool)} for tool in objects(body.get("tools"))
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


def _messages(given: Any) -> Iterator[Json]:
    if isinstance(given, str):
        yield {"role": "user", "content": given}
    for item in objects(given):
        match item.get("type", "message"):
            case "message":
                yield {"role": item.get("role"), "content": text_of(item)}
            case "function_call_output":
                yield {"role": "tool", "content": str(item.get("output"))}
            case "function_call":
                yield {"role": "assistant", "content": ""}


def response_documents(answer: Answer, ask: Ask) -> list[Json]:
    """The reply's JSON documents: a stream's events, or the one response. Fresh, so the caller may alter them."""
    items = list(_items(answer, ask))
    if not ask.stream:
        return [_response(answer, ask, items)]
    return [{**event, "sequence_number": number} for number, event in enumerate(_events(answer, ask, items))]


def _items(answer: Answer, ask: Ask) -> Iterator[Json]:
    status = "incomplete" if answer.finish in _INCOMPLETE else "completed"
    name = f"fake{ask.number:06d}"
    if answer.reasoning:
        told = [{"type": "reasoning_text", "text": answer.reasoning}]
        yield {"id": f"rs_{name}", "type": "reasoning", "summary": [], "content": told, "status": "completed"}
    if answer.text or answer.refusal or not answer.calls:
        part: Json = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        if answer.refusal:
            part = {"type": "refusal", "refusal": answer.refusal}
        head = {"id": f"msg_{name}", "type": "message", "role": "assistant"}
        yield {**head, "status": status, "content": [part]}
    for place, call in enumerate(answer.calls):
        said = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        yield {"id": f"fc_{name}x{place}", "type": "function_call", **said, "status": status}


def _response(answer: Answer, ask: Ask, output: list[Json], status: str = "") -> Json:
    """With `status` one that is not yet ended; else as the answer ended it."""
    reason = None if status else _INCOMPLETE.get(answer.finish)
    ended = status or ("incomplete" if reason else "completed")
    asked = ask.asked
    return {
        "id": f"resp_fake{ask.number:06d}",
        "object": "response",
        "created_at": CREATED,
        "completed_at": CREATED if ended == "completed" else None,
        "status": ended,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": ask.model,
        "output": output,
        "usage": None if status else _usage(answer, ask),
        "background": False,
        "service_tier": "default",
        **{key: asked.get(key, usual) for key, usual in _ECHOED.items()},
        "text": {"format": {"type": "text"}, **(asked.get("text") or {})},
        "reasoning": {"effort": None, "summary": None, **(asked.get("reasoning") or {})},
    }


_ECHOED: Mapping[str, Any] = {
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


def _usage(answer: Answer, ask: Ask) -> Json:
    """Words stand for tokens."""
    read = sum(len(text_of(message).split()) for message in ask.messages) + 1
    thought, said = len(_pieces(answer.reasoning)), len(_pieces(answer.text + answer.refusal))
    written = thought + said + sum(len(call.arguments.split()) + 1 for call in answer.calls)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": read + written,
    }


def _events(answer: Answer, ask: Ask, items: list[Json]) -> Iterator[Json]:
    begun = _response(answer, ask, [], "in_progress")
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for place, item in enumerate(items):
        empty: Json = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        yield _event("output_item.added", place, item={**item, **empty, "status": "in_progress"})
        grown = _arguments if item["type"] == "function_call" else _parts
        yield from grown(place, item)
        yield _event("output_item.done", place, item=item)
    whole = _response(answer, ask, items)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _event(name: str, place: int, /, **more: Any) -> Json:
    return {"type": f"response.{name}", "output_index": place, **more}


def _arguments(place: int, item: Json) -> Iterator[Json]:
    for piece in re.findall(r".{1,6}", item["arguments"], re.DOTALL):
        yield _event("function_call_arguments.delta", place, item_id=item["id"], delta=piece)
    told = {"name": item["name"], "arguments": item["arguments"]}
    yield _event("function_call_arguments.done", place, item_id=item["id"], **told)


def _parts(place: int, item: Json) -> Iterator[Json]:
    for number, part in enumerate(item["content"]):
        kind = part["type"]
        key, where = ("refusal" if kind == "refusal" else "text"), {"item_id": item["id"], "content_index": number}
        more: Json = {"logprobs": []} if kind == "output_text" else {}
        yield _event("content_part.added", place, **where, part={**part, key: ""})
        for piece in _pieces(part[key]):
            yield _event(f"{kind}.delta", place, **where, delta=piece, **more)
        yield _event(f"{kind}.done", place, **where, **{key: part[key]}, **more)
        yield _event("content_part.done", place, **where, part=part)


def _pieces(text: str) -> list[str]:
    """About one word each; together they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)
