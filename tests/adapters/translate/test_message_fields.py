"""Every field of a Messages request is translated to chat and to Responses, or named in the receipt, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.edits import replace
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path, lookup
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.schemas import Schema, load

from .message_conversations import make_context

SCHEMA = load("hub/messages.request")
IMAGE = {"type": "base64", "media_type": "image/png", "data": "x"}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "x"}
PLAIN = {"type": "text", "media_type": "text/plain", "data": "x"}
CALL = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "x"}
TEXT = {"type": "text", "text": "x"}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
FORM = {"type": "json_schema", "schema": {"type": "object"}}
USER: Path = ("messages", 0, "content", 0)
ANSWER: Path = ("messages", 1, "content", 0)
SYSTEM: Path = ("messages", 3, "content", 0)
CITED = {"type": "char_location", "cited_text": "x", "document_index": 0, "start_char_index": 0, "end_char_index": 1}

PLACES: dict[str, list[tuple[Path, JsonObject]]] = {
    "": [((), {})],
    "message": [
        (("messages", 0), {"role": "user", "content": "x"}),
        (("messages", 3), {"role": "system", "content": "x"}),
    ],
    "block": [],
    "text": [(USER, TEXT), (ANSWER, TEXT), (("system", 0), TEXT), (("messages", 2, "content", 0, "content", 0), TEXT)],
    "image": [(USER, {"type": "image", "source": IMAGE})],
    "document": [(USER, {"type": "document", "source": PDF}), (USER, {"type": "document", "source": PLAIN})],
    "source": [],
    "base64_source": [((*USER, "source"), IMAGE)],
    "url_source": [((*USER, "source"), {"type": "url", "url": "https://example.org"})],
    "text_source": [((*USER, "source"), PLAIN)],
    "content_source": [((*USER, "source"), {"type": "content", "content": "x"})],
    "file_block": [
        ((*USER, "source"), {"type": "file", "file_id": "x"}),
        (USER, {"type": "container_upload", "file_id": "x"}),
    ],
    "citations": [((*USER, "citations"), {})],
    "citation": [((*ANSWER, "citations"), CITED)],
    "compaction": [(ANSWER, {"type": "compaction", "content": "x"})],
    "fallback": [(ANSWER, {"type": "fallback", "from": {}, "to": {}})],
    "tool_change": [(SYSTEM, {"type": "tool_addition", "tool": {}})],
    "tool_listing": [(ANSWER, {"type": "mcp_tool_listing", "mcp_server_name": "x", "tools": []})],
    "search_result": [(USER, {"type": "search_result", "content": [TEXT], "source": "x", "title": "x"})],
    "thinking": [(ANSWER, {"type": "thinking", "thinking": "x", "signature": "x"})],
    "redacted_thinking": [(ANSWER, {"type": "redacted_thinking", "data": "x"})],
    "tool_use": [(ANSWER, CALL), (ANSWER, {**CALL, "type": "server_tool_use"})],
    "tool_result": [(("messages", 2, "content", 0), RESULT)],
    "server_result": [(ANSWER, SEARCHED)],
    "tool": [(("tools", 0), TOOL), (("tools", 1), {"type": "web_search_20260318", "name": "web_search"})],
    "custom_tool": [(("tools", 0), TOOL)],
    "tool_choice": [(("tool_choice",), {"type": "tool", "name": "f"})],
    "thinking_config": [(("thinking",), {"type": "enabled", "budget_tokens": 2048})],
    "output_config": [(("output_config",), {})],
    "output_format": [(("output_config", "format"), FORM), (("output_format",), FORM)],
    "cache_control": [((*USER, "cache_control"), {"type": "ephemeral"}), (("cache_control",), {"type": "ephemeral"})],
}
"""Definition of the schema -> where its objects are in a request, with an example."""

SAMPLES: dict[str, JsonValue] = {
    "source": {**IMAGE, "data": "other"},
    "citations": {"enabled": True},
    "cache_control": {"type": "ephemeral", "ttl": "1h"},
    "output_config": {"effort": "max"},
    "output_format": {**FORM, "schema": {"type": "object", "title": "other"}},
    "thinking_config": {"type": "enabled", "budget_tokens": 9999},
    "tool_choice": {"type": "any"},
    "tool": {"name": "other", "input_schema": {"type": "object"}},
    "message": {"role": "user", "content": "other"},
    "block": {"type": "text", "text": "other"},
    "citation": {**CITED, "cited_text": "other"},
}
"""Definition -> another value."""

REQUIRED = ("type", "role", "model", "messages")
"""Fields that every object of their kind has, with values that say what it is."""


def make_request() -> JsonObject:
    return {
        "model": "m",
        "max_tokens": 100,
        "system": [TEXT],
        "tools": [TOOL],
        "messages": [
            {"role": "user", "content": [TEXT]},
            {"role": "assistant", "content": [TEXT, CALL]},
            {"role": "user", "content": [{**RESULT, "content": [TEXT]}]},
            {"role": "system", "content": [TEXT]},
        ],
    }


def make_value(rule: Schema) -> JsonValue:
    if "$ref" in rule:
        return SAMPLES[str(rule["$ref"]).rpartition("/")[2]]
    if "enum" in rule:
        return [one for one in rule["enum"] if one not in (None, *rule.get("x-neutral", ()))][-1]
    kinds: Any = rule.get("type", "string")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "array":
        return [make_value(rule.get("items", {}))]
    values: dict[str, JsonValue] = {"string": "other", "integer": 7, "number": 0.25, "boolean": True}
    return values.get(kind, {"k": "other"})


def list_fields() -> Iterator[tuple[str, Path, JsonObject, str, JsonValue]]:
    for name, places in PLACES.items():
        rules = (SCHEMA["$defs"][name] if name else SCHEMA)["properties"]
        for (path, example), (field, rule) in ((place, one) for place in places for one in rules.items()):
            if field not in REQUIRED:
                yield name, path, example, field, make_value(rule)


def place(path: Path, example: JsonObject) -> JsonObject:
    """A request with the example at this path."""
    request = make_request()
    if not path:
        return request
    if path[-1] == "source":
        kind = "document" if example["type"] in ("text", "content") else "image"
        request["messages"][0]["content"] = [{"type": kind, "source": example}]
    elif path == (*ANSWER, "citations"):
        request["messages"][1]["content"][0] = {**TEXT, "citations": [example]}
    elif path[-1] == "citations":
        request["messages"][0]["content"] = [{"type": "document", "source": PDF, "citations": example}]
    elif path[0] == "output_config" and len(path) > 1:
        request["output_config"] = {"format": example}
    elif len(path) > 1 and isinstance(path[-1], int) and path[-1] == len(lookup(request, path[:-1])):
        lookup(request, path[:-1]).append(example)
    else:
        replace(request, path, example)
    return request


def test_every_definition_of_the_schema_is_in_the_table() -> None:
    assert PLACES.keys() - {""} == SCHEMA["$defs"].keys()


@pytest.mark.parametrize("called", [bridge.called for bridge in BRIDGES["messages"]])
@pytest.mark.parametrize("model", ["claude-3-5-sonnet", "other"])
def test_every_field_is_translated_or_named_or_refused(called: str, model: str) -> None:
    silent = []
    for name, path, example, field, value in list_fields():
        where = (*path, field)
        plain = place(path, example)
        changed = place(path, {**example, field: value})
        if not path:
            plain.pop(field, None)
            changed[field] = value
        try:
            before, after = translate(plain, called, model), translate(changed, called, model)
        except Fault:
            continue
        named = {change.before for change in after.receipt.changes} - {("messages",), ("tools",), ("system",)}
        is_named = any(where[: len(one)] == one[: len(where)] for one in named if one)
        if before.request == after.request and not is_named:
            silent.append((name, where))
    assert silent == []


def translate(request: JsonObject, called: str, model: str) -> Context:
    bridge = next(one for one in BRIDGES["messages"] if one.called == called)
    return bridge.request(make_context(request, model))


def test_by_default_what_matters_is_refused_at_the_clients_path() -> None:
    refused = set()
    for name, path, example, field, value in list_fields():
        request = place(path, {**example, field: value}) if path else {**make_request(), field: value}
        ctx = Context("actual", Call("POST", "/", request), Receipt(), Target("m"), request)
        try:
            BRIDGES["messages"][0].request(ctx)
        except Fault as fault:
            refused.add((name, fault.locate(ctx.receipt, request).param))
    top = {param for name, param in refused if not name}
    assert top == {
        "mcp_servers",
        "container",
        "compaction",
        "thread",
        "inference_geo",
        "billing_policy",
        "fallback_credit_token",
    }
    assert ("file_block", "messages[0].content[0].type") in refused
