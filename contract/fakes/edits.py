"""Mischief with a reply's JSON: each edit takes the documents (chunks, or the one completion) and gives others."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeAlias

from .answers import Ask, Json

__all__ = [
    "Edit",
    "arguments_object",
    "created_varies",
    "each",
    "empty_choices",
    "every",
    "finish_beside",
    "first_half",
    "huge",
    "id_varies",
    "index_from_one",
    "index_zero",
    "list_content",
    "no_choices",
    "no_index",
    "partial_usage",
    "placeholder_arguments",
    "plural",
    "repeated_ids",
    "unfinished",
    "usage_apart",
    "usage_in_last",
    "without",
]

Edit: TypeAlias = Callable[[list[Json], Ask], list[Json]]
Part: TypeAlias = Callable[[Json, Json], Any]


def every(**values: Any) -> Edit:
    """Set these at the top of each document."""

    def edit(documents: list[Json], _ask: Ask) -> list[Json]:
        return [{**document, **values} for document in documents]

    return edit


def without(*keys: str) -> Edit:
    """Leave these out at the top of each document."""

    def edit(documents: list[Json], _ask: Ask) -> list[Json]:
        return [{key: value for key, value in document.items() if key not in keys} for document in documents]

    return edit


def each(change: Part) -> Edit:
    """Alter each delta or message, in completions each choice; `change` gets it and its choice."""

    def edit(documents: list[Json], _ask: Ask) -> list[Json]:
        for part, choice in _parts(documents):
            change(part, choice)
        return documents

    return edit


def _parts(documents: list[Json]) -> Iterator[tuple[Json, Json]]:
    for document in documents:
        for choice in document["choices"]:
            yield choice.get("delta", choice.get("message", choice)), choice


def list_content(part: Json, _choice: Json) -> None:
    if isinstance(part.get("content"), str):
        part["content"] = [{"type": "text", "text": part["content"]}]


def unfinished(documents: list[Json], ask: Ask) -> list[Json]:
    """No finish reason on any choice, nor anything after the last text."""
    for _, choice in _parts(documents):
        choice["finish_reason"] = None
    return documents[: len(documents) // 2] if ask.stream else documents


def first_half(documents: list[Json], ask: Ask) -> list[Json]:
    """Only what comes before the ending; a whole response that is still in progress."""
    if ask.stream:
        return documents[: len(documents) // 2]
    return [{**document, "status": "in_progress", "completed_at": None} for document in documents]


def no_index(documents: list[Json], ask: Ask) -> list[Json]:
    for call in _call_deltas(documents, ask):
        del call["index"]
    return documents


def index_from_one(documents: list[Json], ask: Ask) -> list[Json]:
    for call in _call_deltas(documents, ask):
        call["index"] = 2 * call["index"] + 1
    return documents


def repeated_ids(documents: list[Json], ask: Ask) -> list[Json]:
    heads: dict[int, Json] = {}
    for call in _call_deltas(documents, ask):
        head = heads.setdefault(call["index"], call)
        call.update(id=head["id"], type=head["type"])
        call["function"]["name"] = head["function"]["name"]
    return documents


def index_zero(documents: list[Json], ask: Ask) -> list[Json]:
    """Only the ids tell the calls apart."""
    for call in _call_deltas(repeated_ids(documents, ask), ask):
        call["index"] = 0
    return documents


def placeholder_arguments(documents: list[Json], ask: Ask) -> list[Json]:
    for call in _call_deltas(documents, ask):
        if "id" in call:
            call["function"]["arguments"] = "{}"
    return documents


def arguments_object(documents: list[Json], ask: Ask) -> list[Json]:
    """Arguments as an object, in one piece; a stream's later pieces become empty deltas."""
    whole = _joined_arguments(documents)
    for part, _ in _parts(documents):
        for position, call in enumerate(part.get("tool_calls", [])):
            call["function"]["arguments"] = whole[call.get("index", position)]
        if ask.stream and not any("id" in call for call in part.get("tool_calls", [])):
            part.pop("tool_calls", None)
    return documents


def _joined_arguments(documents: list[Json]) -> dict[int, Any]:
    texts: dict[int, str] = {}
    for part, choice in _parts(documents):
        if choice["index"] == 0:
            for position, call in enumerate(part.get("tool_calls", [])):
                index = call.get("index", position)
                texts[index] = texts.get(index, "") + call["function"]["arguments"]
    return {index: json.loads(text) for index, text in texts.items()}


def _call_deltas(documents: list[Json], ask: Ask) -> Iterator[Json]:
    for part, _ in _parts(documents):
        yield from part.get("tool_calls", []) if ask.stream else []


def empty_choices(documents: list[Json], ask: Ask) -> list[Json]:
    """A chunk of nothing but filter results first, and one whose choice has no delta before the last."""
    results = {"hate": {"filtered": False, "severity": "safe"}}
    prompt = [{"prompt_index": 0, "content_filter_results": results}]
    if not ask.stream:
        return [{**document, "prompt_filter_results": prompt} for document in documents]
    nobody = {"id": "", "object": "", "created": 0, "model": ""}
    offsets = {"check_offset": 0, "start_offset": 0, "end_offset": 44}
    judged = {"index": 0, "finish_reason": None, "content_filter_results": results, "content_filter_offsets": offsets}
    first = {**nobody, "choices": [], "prompt_filter_results": prompt}
    head = [] if not documents[0]["choices"] else [first]
    return [*head, *documents[:-1], {**nobody, "choices": [judged]}, documents[-1]]


def no_choices(documents: list[Json], _ask: Ask) -> list[Json]:
    return [{**document, "choices": []} for document in documents]


def partial_usage(documents: list[Json], ask: Ask) -> list[Json]:
    """A usage with nulls on each chunk, and a whole one on the last; nulls only in a completion."""
    for number, document in enumerate(documents, 1):
        written = number if ask.stream and number == len(documents) else None
        total = None if written is None else number + 9
        document["usage"] = {"prompt_tokens": 9, "completion_tokens": written, "total_tokens": total}
    return documents


def usage_in_last(documents: list[Json], ask: Ask) -> list[Json]:
    """The usage with the finish reason, asked for or not, and in no chunk of its own."""
    if not ask.stream:
        return documents
    kept = [document for document in documents if document["choices"] or "usage" not in document]
    for document in kept:
        document.pop("usage", None)
    kept[-1]["usage"] = {"prompt_tokens": 9, "completion_tokens": len(kept), "total_tokens": len(kept) + 9}
    return kept


def usage_apart(documents: list[Json], ask: Ask) -> list[Json]:
    """Numbers that no count of the text gives; in a stream where it is asked for, in a chunk whose choice is empty."""
    usage = {"prompt_tokens": 1065, "completion_tokens": 2251, "total_tokens": 3316}
    if not ask.stream:
        return [{**document, "usage": usage} for document in documents]
    told = ask.include_usage or "usage" in documents[-1]
    kept = [_without_usage(document) for document in documents if document["choices"]]
    empty: Json = {"text": ""} if "text" in kept[-1]["choices"][0] else {"delta": {}}
    bearer = {**kept[-1], "choices": [{"index": 0, **empty, "finish_reason": None}], "usage": usage}
    return [*kept, bearer] if told else kept


def _without_usage(document: Json) -> Json:
    return {key: value for key, value in document.items() if key != "usage"}


def finish_beside(documents: list[Json], ask: Ask) -> list[Json]:
    """A stream's finish reason in the chunk of the last text or arguments, and in none of its own."""
    kept: list[Json] = []
    latest: dict[int, Json] = {}
    for document in documents:
        ended = [choice for choice in document["choices"] if ask.stream and choice["finish_reason"] is not None]
        endings = [choice for choice in ended if choice["index"] in latest]
        for choice in endings:
            latest[choice["index"]]["finish_reason"] = choice["finish_reason"]
        latest.update((choice["index"], choice) for choice in document["choices"])
        if not endings:
            kept.append(document)
        elif "usage" in document:
            kept[-1]["usage"] = document["usage"]
    return kept


def created_varies(documents: list[Json], _ask: Ask) -> list[Json]:
    for document, offset in zip(documents, count(), strict=False):
        document["created"] += offset
    return documents


def id_varies(documents: list[Json], _ask: Ask) -> list[Json]:
    for number, document in enumerate(documents):
        document["id"] += f"-{number}"
    return documents


def plural(documents: list[Json], ask: Ask) -> list[Json]:
    """`chat.completions`, and `extra_fields` as a string, on each completed choice."""
    for document in documents:
        document["object"] = document["object"] if ask.stream else "chat.completions"
    for _, choice in _parts(documents):
        if choice["finish_reason"] is not None:
            choice["extra_fields"] = '{"safetyRating":"NEGLIGIBLE"}'
    return documents


def huge(documents: list[Json], ask: Ask) -> list[Json]:
    """One very long text: in a chunk of its own before the last, or as the completion's content."""
    text = "x" * int(ask.figure("size") * 1024 * 1024)
    if not ask.stream:
        for part, _ in _parts(documents):
            part["text" if "text" in part else "content"] = text
        return documents
    long = copy.deepcopy(next(document for document in documents if document["choices"]))
    choice = long["choices"][0]
    choice.update({"text": text} if "text" in choice else {"delta": {"content": text}})
    return [*documents[:-1], long, documents[-1]]
