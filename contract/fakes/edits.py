"""Edits of a reply's JSON documents (chunks, or the one completion) that make them faulty or unusual."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeAlias

from dragoman.contract.json_types import JsonObject

from .answers import ModelRequest

__all__ = [
    "Edit",
    "add_empty_choices",
    "add_huge_text",
    "add_partial_usage",
    "begin_arguments_with_placeholder",
    "drop_call_indexes",
    "drop_choices",
    "drop_ending",
    "drop_fields",
    "edit_each_part",
    "keep_first_half",
    "merge_finish_reason",
    "move_usage_to_last_chunk",
    "move_usage_to_own_chunk",
    "number_calls_from_one",
    "repeat_call_ids",
    "set_fields",
    "use_plural_object",
    "vary_creation_time",
    "vary_id",
    "write_arguments_as_object",
    "write_content_as_list",
    "zero_call_indexes",
]

Edit: TypeAlias = Callable[[list[JsonObject], ModelRequest], list[JsonObject]]
Part: TypeAlias = Callable[[JsonObject, JsonObject], Any]


def set_fields(**values: Any) -> Edit:
    """Make an edit that sets top-level fields of each document."""

    def edit(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
        return [{**document, **values} for document in documents]

    return edit


def drop_fields(*keys: str) -> Edit:
    """Make an edit that drops top-level fields of each document."""

    def edit(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
        return [{key: value for key, value in document.items() if key not in keys} for document in documents]

    return edit


def edit_each_part(change: Part) -> Edit:
    """Make an edit of each delta or message, in completions of each choice; `change` gets it and its choice."""

    def edit(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
        for part, choice in _iterate_parts(documents):
            change(part, choice)
        return documents

    return edit


def _iterate_parts(documents: list[JsonObject]) -> Iterator[tuple[JsonObject, JsonObject]]:
    for document in documents:
        for choice in document["choices"]:
            yield choice.get("delta", choice.get("message", choice)), choice


def write_content_as_list(part: JsonObject, _choice: JsonObject) -> None:
    if isinstance(part.get("content"), str):
        part["content"] = [{"type": "text", "text": part["content"]}]


def drop_ending(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Drop the finish reasons and the second half of a stream."""
    for _, choice in _iterate_parts(documents):
        choice["finish_reason"] = None
    return documents[: len(documents) // 2] if request.stream else documents


def keep_first_half(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Keep the first half of a stream; set a whole response to in_progress."""
    if request.stream:
        return documents[: len(documents) // 2]
    return [{**document, "status": "in_progress", "completed_at": None} for document in documents]


def drop_call_indexes(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    for call in _iterate_call_deltas(documents, request):
        del call["index"]
    return documents


def number_calls_from_one(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    for call in _iterate_call_deltas(documents, request):
        call["index"] = 2 * call["index"] + 1
    return documents


def repeat_call_ids(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    heads: dict[int, JsonObject] = {}
    for call in _iterate_call_deltas(documents, request):
        head = heads.setdefault(call["index"], call)
        call.update(id=head["id"], type=head["type"])
        call["function"]["name"] = head["function"]["name"]
    return documents


def zero_call_indexes(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Set every index to 0, so that only the ids distinguish the calls."""
    for call in _iterate_call_deltas(repeat_call_ids(documents, request), request):
        call["index"] = 0
    return documents


def begin_arguments_with_placeholder(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    for call in _iterate_call_deltas(documents, request):
        if "id" in call:
            call["function"]["arguments"] = "{}"
    return documents


def write_arguments_as_object(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Write the arguments as one object; later deltas of a stream become empty."""
    whole = _join_arguments(documents)
    for part, _ in _iterate_parts(documents):
        for position, call in enumerate(part.get("tool_calls", [])):
            call["function"]["arguments"] = whole[call.get("index", position)]
        if request.stream and not any("id" in call for call in part.get("tool_calls", [])):
            part.pop("tool_calls", None)
    return documents


def _join_arguments(documents: list[JsonObject]) -> dict[int, Any]:
    texts: dict[int, str] = {}
    for part, choice in _iterate_parts(documents):
        if choice["index"] == 0:
            for position, call in enumerate(part.get("tool_calls", [])):
                index = call.get("index", position)
                texts[index] = texts.get(index, "") + call["function"]["arguments"]
    return {index: json.loads(text) for index, text in texts.items()}


def _iterate_call_deltas(documents: list[JsonObject], request: ModelRequest) -> Iterator[JsonObject]:
    for part, _ in _iterate_parts(documents):
        yield from part.get("tool_calls", []) if request.stream else []


def add_empty_choices(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Add a first chunk with only filter results, and a chunk before the last whose choice has no delta."""
    results = {"hate": {"filtered": False, "severity": "safe"}}
    prompt = [{"prompt_index": 0, "content_filter_results": results}]
    if not request.stream:
        return [{**document, "prompt_filter_results": prompt} for document in documents]
    blank = {"id": "", "object": "", "created": 0, "model": ""}
    offsets = {"check_offset": 0, "start_offset": 0, "end_offset": 44}
    judged = {"index": 0, "finish_reason": None, "content_filter_results": results, "content_filter_offsets": offsets}
    first = {**blank, "choices": [], "prompt_filter_results": prompt}
    head = [] if not documents[0]["choices"] else [first]
    return [*head, *documents[:-1], {**blank, "choices": [judged]}, documents[-1]]


def drop_choices(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
    return [{**document, "choices": []} for document in documents]


def add_partial_usage(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Add a usage with nulls to each chunk, and a complete one to the last; a completion gets only nulls."""
    for number, document in enumerate(documents, 1):
        written = number if request.stream and number == len(documents) else None
        total = None if written is None else number + 9
        document["usage"] = {"prompt_tokens": 9, "completion_tokens": written, "total_tokens": total}
    return documents


def move_usage_to_last_chunk(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Move the usage to the chunk with the finish reason, requested or not."""
    if not request.stream:
        return documents
    kept = [document for document in documents if document["choices"] or "usage" not in document]
    for document in kept:
        document.pop("usage", None)
    kept[-1]["usage"] = {"prompt_tokens": 9, "completion_tokens": len(kept), "total_tokens": len(kept) + 9}
    return kept


def move_usage_to_own_chunk(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Set a usage that no count of the text gives. A stream has it, if requested, in a chunk whose choice is empty."""
    usage = {"prompt_tokens": 1065, "completion_tokens": 2251, "total_tokens": 3316}
    if not request.stream:
        return [{**document, "usage": usage} for document in documents]
    wanted = request.include_usage or "usage" in documents[-1]
    kept = [_drop_usage(document) for document in documents if document["choices"]]
    empty: JsonObject = {"text": ""} if "text" in kept[-1]["choices"][0] else {"delta": {}}
    carrier = {**kept[-1], "choices": [{"index": 0, **empty, "finish_reason": None}], "usage": usage}
    return [*kept, carrier] if wanted else kept


def _drop_usage(document: JsonObject) -> JsonObject:
    return {key: value for key, value in document.items() if key != "usage"}


def merge_finish_reason(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Move a stream's finish reason to the chunk of the last text or arguments."""
    kept: list[JsonObject] = []
    latest: dict[int, JsonObject] = {}
    for document in documents:
        ended = [choice for choice in document["choices"] if request.stream and choice["finish_reason"] is not None]
        endings = [choice for choice in ended if choice["index"] in latest]
        for choice in endings:
            latest[choice["index"]]["finish_reason"] = choice["finish_reason"]
        latest.update((choice["index"], choice) for choice in document["choices"])
        if not endings:
            kept.append(document)
        elif "usage" in document:
            kept[-1]["usage"] = document["usage"]
    return kept


def vary_creation_time(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
    for document, offset in zip(documents, count(), strict=False):
        document["created"] += offset
    return documents


def vary_id(documents: list[JsonObject], _request: ModelRequest) -> list[JsonObject]:
    for number, document in enumerate(documents):
        document["id"] += f"-{number}"
    return documents


def use_plural_object(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Use the object `chat.completions`, and add `extra_fields` as a string to each completed choice."""
    for document in documents:
        document["object"] = document["object"] if request.stream else "chat.completions"
    for _, choice in _iterate_parts(documents):
        if choice["finish_reason"] is not None:
            choice["extra_fields"] = '{"safetyRating":"NEGLIGIBLE"}'
    return documents


def add_huge_text(documents: list[JsonObject], request: ModelRequest) -> list[JsonObject]:
    """Add a very long text: in an own chunk before the last, or as the completion's content."""
    text = "x" * int(request.number_arg("size") * 1024 * 1024)
    if not request.stream:
        for part, _ in _iterate_parts(documents):
            part["text" if "text" in part else "content"] = text
        return documents
    long = copy.deepcopy(next(document for document in documents if document["choices"]))
    choice = long["choices"][0]
    choice.update({"text": text} if "text" in choice else {"delta": {"content": text}})
    return [*documents[:-1], long, documents[-1]]
