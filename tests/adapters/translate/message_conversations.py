"""Generated requests of Messages and of chat, in which each text is unique, and what is compared about them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Change, Receipt
from dragoman.adapters.paths import Path
from dragoman.contract.json_types import JsonObject, JsonValue

CLAUDE = "claude-3-5-sonnet"
MARKED = {"cache_control": st.just({"type": "ephemeral"})}
NAMED = {"title": st.just("?")}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
CITATION = {"type": "char_location", "cited_text": "?", "document_index": 0, "start_char_index": 0, "end_char_index": 1}

PDF = {"media_type": "application/pdf", "data": "?"}
PLAIN = {"media_type": "text/plain", "data": "?"}
FOUND = {"type": "web_search_result", "url": "?"}
FORM = {"type": "json_schema", "schema": SCHEMA}
CHAT_FORM = {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
Drawn: TypeAlias = st.SearchStrategy[JsonObject]


def _block(
    kind: str, more: JsonObject | None = None, **keys: st.SearchStrategy[JsonValue]
) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({"type": st.just(kind), **keys}, optional=more or {})


def _source(kind: str, **keys: JsonValue) -> Drawn:
    return st.just({"type": kind, **keys})


TEXT = _block("text", MARKED, text=st.just("?"))
IMAGE = _block(
    "image",
    MARKED,
    source=_source("base64", media_type="image/png", data="?") | _source("url", url="?"),
)
DOCUMENT = _block(
    "document",
    MARKED,
    title=st.just("?"),
    source=_source("base64", **PDF) | _source("file", file_id="?"),
)
THOUGHT = _block("thinking", thinking=st.just("?"), signature=st.just("?"))
SEALED = _block("redacted_thinking", data=st.just("?"))
SAID = TEXT | IMAGE | DOCUMENT
HARD = st.one_of(
    _block("image", source=_source("file", file_id="?")),
    _block(
        "document",
        NAMED | {"context": st.just("?")} | MARKED,
        source=_source("text", **PLAIN),
    ),
    _block("document", NAMED, source=_source("content", content=[{"type": "text", "text": "?"}])),
    _block(
        "document",
        citations=st.just({"enabled": True}),
        source=_source("base64", **PDF),
    ),
    _block("search_result", MARKED, title=st.just("?"), source=st.just("?"), content=st.lists(TEXT, max_size=2)),
    _block("text", text=st.just("?"), citations=st.just([CITATION])),
    _block("text", {"vendor": st.just("?")}, text=st.just("?")),
)
HARD_ANSWERS = st.one_of(
    _block("text", text=st.just("?"), citations=st.just([CITATION])),
    _block("server_tool_use", id=st.just("s"), name=st.just("web_search"), input=st.just({"query": "?"})),
    _block("web_search_tool_result", tool_use_id=st.just("s"), content=st.just([FOUND])),
    _block("compaction", content=st.just("?")),
    THOUGHT,
    TEXT,
)
CHOICE = st.sampled_from(["auto", "any"]).map(lambda kind: {"type": kind}) | st.just({"type": "tool", "name": "f"})
TOOL = st.fixed_dictionaries(
    {"name": st.sampled_from(["f", "g", "h"]), "input_schema": st.just(SCHEMA)},
    optional={"description": st.just("?"), "strict": st.just(True), **MARKED},
)
HARD_TOOL = st.one_of(
    st.just({"type": "web_search_20260318", "name": "web_search", "allowed_domains": ["?"]}),
    st.just({"name": "e", "input_schema": SCHEMA, "input_examples": [{"a": "?"}], "defer_loading": True}),
)
FIELDS = {
    "temperature": st.sampled_from([0, 0.5]),
    "top_p": st.just(0.5),
    "top_k": st.just(4),
    "stop_sequences": st.just(["?"]),
    "metadata": st.just({"user_id": "?"}),
    "service_tier": st.sampled_from(["auto", "standard_only"]),
    "stream": st.just(True),
    "thinking": st.just({"type": "enabled", "budget_tokens": 2048}),
    "output_config": st.fixed_dictionaries(
        {},
        optional={
            "effort": st.sampled_from(["low", "max"]),
            "format": st.just(FORM),
        },
    ),
}
HARD_FIELDS = {
    "container": st.just("?"),
    "mcp_servers": st.just([{"type": "url", "url": "?", "name": "?"}]),
    "inference_geo": st.just("?"),
    "context_management": st.just({"edits": [{"type": "clear_tool_uses_20250919", "keep": "?"}]}),
    "speed": st.just("fast"),
    "vendor": st.just("?"),
}


@st.composite
def message_requests(draw: st.DrawFn, *, hard: bool = False) -> JsonObject:
    """A Messages request; unless it is `hard`, chat has a place for all of it."""
    said, answers = (SAID | HARD, [THOUGHT, HARD_ANSWERS, TEXT]) if hard else (SAID, [THOUGHT | SEALED, TEXT])
    turns: list[JsonObject] = [{"role": "user", "content": draw(st.just("?") | st.lists(said, min_size=1, max_size=3))}]
    numbers = count(1)
    for _ in range(draw(st.integers(0, 3))):
        blocks = [one for kind in answers for one in draw(st.lists(kind, max_size=2))]
        has_said = any(one["type"] == "text" for one in blocks)
        calls = [f"toolu_{next(numbers)}" for _ in range(draw(st.integers(0 if has_said else 1, 2)))]
        blocks += [{"type": "tool_use", "id": one, "name": "f", "input": {"a": "?"}} for one in calls]
        turns.append({"role": "assistant", "content": blocks})
        shown = st.just("?") | st.lists(said if hard else TEXT, min_size=1, max_size=2)
        results = [{"type": "tool_result", "tool_use_id": one, "content": draw(shown)} for one in calls]
        if hard and results and draw(st.booleans()):
            results[0]["is_error"] = True
        turns.append({"role": "user", "content": [*results, *draw(st.lists(said, min_size=not results, max_size=2))]})
        if hard and draw(st.booleans()):
            turns.append({"role": "system", "content": "?"})
    request: JsonObject = {"model": "m", "max_tokens": 100, "messages": turns}
    prompt = {"system": st.just("?") | st.lists(TEXT, min_size=1, max_size=2)}
    request |= draw(st.fixed_dictionaries({}, optional=FIELDS | prompt))
    if hard:
        request |= draw(st.fixed_dictionaries({}, optional=HARD_FIELDS))
    tools = draw(st.lists(TOOL, min_size=1, max_size=3, unique_by=lambda tool: str(tool["name"])))
    if draw(st.booleans()):
        request["tools"] = tools + (draw(st.lists(HARD_TOOL, max_size=1)) if hard else [])
        if tools[0]["name"] == "f" and draw(st.booleans()):
            parallel = draw(st.sampled_from([{}, {"disable_parallel_tool_use": True}]))
            request["tool_choice"] = draw(CHOICE) | parallel
    return mark(request)


CHAT_PART = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": st.just("?")}, optional=MARKED),
    st.just({"type": "image_url", "image_url": {"url": "?"}}),
    st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}),
    st.just({"type": "file", "file": {"file_data": "data:application/pdf;base64,?", "filename": "?"}}),
    st.just({"type": "file", "file": {"file_id": "?"}}),
)
CHAT_FIELDS = {
    "temperature": st.sampled_from([0, 0.5]),
    "top_p": st.just(0.5),
    "stop": st.just(["?"]),
    "user": st.just("?"),
    "stream": st.just(True),
    "reasoning_effort": st.sampled_from(["low", "max"]),
    "response_format": st.just(
        {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
    ),
    "parallel_tool_calls": st.just(False),
}
HARD_CHAT_FIELDS = {
    "seed": st.just(7),
    "logit_bias": st.just({"1": 2}),
    "metadata": st.just({"k": "?"}),
    "safety_identifier": st.just("?"),
    "service_tier": st.sampled_from(["auto", "default", "flex"]),
    "prompt_cache_key": st.just("?"),
    "vendor": st.just("?"),
}


@st.composite
def chat_requests(draw: st.DrawFn, *, hard: bool = False) -> JsonObject:
    """A chat request; unless it is `hard`, Messages has a place for all of it."""
    messages: list[JsonObject] = [{"role": "system", "content": "?"}] if draw(st.booleans()) else []
    numbers = count(1)
    for _ in range(draw(st.integers(0, 3)) + 1):
        parts = st.lists(CHAT_PART, min_size=1, max_size=3)
        messages.append({"role": "user", "content": draw(st.just("?") | parts)})
        if hard and draw(st.booleans()):
            messages.append({"role": draw(st.sampled_from(["developer", "user"])), "content": "?", "name": "?"})
        calls = [f"call_{next(numbers)}" for _ in range(draw(st.integers(0, 2)))]
        answer: JsonObject = {"role": "assistant", "content": "?" if not calls or draw(st.booleans()) else None}
        if draw(st.booleans()):
            answer |= {"reasoning_content": "?", "reasoning_signature": "?"}
        if hard:
            answer |= draw(st.fixed_dictionaries({}, optional={"refusal": st.just("?"), "name": st.just("?")}))
        if calls:
            function = {"name": "f", "arguments": '{"a":"?"}'}
            answer["tool_calls"] = [{"id": one, "type": "function", "function": function} for one in calls]
        messages.append(answer)
        messages += [{"role": "tool", "tool_call_id": one, "content": "?"} for one in calls]
    messages.append({"role": "user", "content": "?"})
    request: JsonObject = {"model": "m", "max_completion_tokens": 100, "messages": messages}
    request |= draw(st.fixed_dictionaries({}, optional=CHAT_FIELDS | (HARD_CHAT_FIELDS if hard else {})))
    function = {"name": "f", "description": "?", "parameters": SCHEMA}
    if draw(st.booleans()):
        request["tools"] = [{"type": "function", "function": function}]
        choice = ["auto", "none", "required", {"type": "function", "function": {"name": "f"}}]
        request |= draw(st.fixed_dictionaries({}, optional={"tool_choice": st.sampled_from(choice)}))
    else:
        request.pop("parallel_tool_calls", None)
    return mark(request)


def mark(request: JsonObject) -> JsonObject:
    """The request, in which each text `?` is unique; what it is in says what it looks like."""
    numbers = count(100)

    def walk(value: JsonValue, key: str) -> JsonValue:
        if isinstance(value, dict):
            return {name: walk(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [walk(one, key) for one in value]
        if not isinstance(value, str) or "?" not in value:
            return value
        token = f"tok{next(numbers)}"
        return f"https://example.org/{token}" if value == "?" and key == "url" else value.replace("?", token)

    made = walk(request, "")
    assert isinstance(made, dict)
    return made


def list_tokens(value: JsonValue, path: Path = ()) -> Iterator[tuple[str, Path]]:
    """The unique texts in a request, with their paths."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from list_tokens(one, (*path, key))
    elif isinstance(value, str):
        place = value.find("tok")
        while place >= 0:
            yield value[place : place + 6], path
            place = value.find("tok", place + 6)


def make_context(request: JsonObject, model: str = CLAUDE) -> Context:
    """The context of a call under the lenient policy."""
    target, numbers = Target(model, policy=Policy(unsupported="drop")), count(1)
    new_id = lambda prefix: f"{prefix}_{next(numbers)}"  # noqa: E731
    return Context("actual", Call("POST", "/", request), Receipt(), target, request, lambda: 1.7e9, new_id)


def without(request: JsonObject, losses: list[Change]) -> JsonObject:
    """The request without what was lost."""
    gone = {change.before for change in losses}

    def walk(value: JsonValue, path: Path) -> JsonValue:
        if isinstance(value, dict):
            return {key: walk(one, (*path, key)) for key, one in value.items() if (*path, key) not in gone}
        if isinstance(value, list):
            return [walk(one, (*path, i)) for i, one in enumerate(value) if (*path, i) not in gone]
        return value

    made = walk(json.loads(json.dumps(request)), ())
    assert isinstance(made, dict)
    return made


def to_plain_messages(request: JsonObject) -> JsonObject:
    """A Messages request in one of the forms that say the same: contents are lists, and roles alternate."""
    made = copy.deepcopy(request)
    turns: list[JsonObject] = []
    for turn in made["messages"]:
        content = _to_list(turn["content"])
        for block in content:
            if block["type"] == "tool_result":
                block["content"] = _join_texts(_to_list(block["content"]))
        if turns and turns[-1]["role"] == turn["role"]:
            turns[-1]["content"] += content
        else:
            turns.append({"role": turn["role"], "content": content})
    made["messages"] = [{**turn, "content": _join_texts(turn["content"])} for turn in turns]
    if "system" in made:
        made["system"] = _join_texts(_to_list(made["system"]))
    if made.get("tool_choice") == {"type": "auto"}:
        del made["tool_choice"]
    for key in ("output_config", "metadata"):
        if made.get(key) == {}:
            del made[key]
    return made


def _to_list(content: JsonValue) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _join_texts(blocks: list[JsonObject]) -> list[JsonObject]:
    """The blocks; a text may be cut into blocks anywhere."""
    joined: list[JsonObject] = []
    for block in blocks:
        if joined and block.keys() == joined[-1].keys() == {"type", "text"}:
            joined[-1] = {"type": "text", "text": joined[-1]["text"] + block["text"]}
        else:
            joined.append(block)
    return joined
