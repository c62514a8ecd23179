"""What tells the profiles of a dialect apart."""

from __future__ import annotations

import pytest

from dragoman.contract.json_types import JsonValue
from dragoman.schemas import Schema, find_base, inherit_rows, lineage, load, profiles

from .conftest import Compile

AZURE = {
    "model", "messages", "frequency_penalty", "max_tokens", "presence_penalty", "response_format", "seed", "stop",
    "stream", "temperature", "tool_choice", "tools", "top_p",
}  # fmt: skip
MINDIE = {
    "model", "messages", "max_tokens", "presence_penalty", "frequency_penalty", "seed", "temperature", "top_p", "stream"
}  # fmt: skip
DATABRICKS = {
    "model", "messages", "max_tokens", "stream", "temperature", "top_p", "top_k", "stop", "n", "tool_choice", "tools",
    "response_format", "logprobs", "top_logprobs", "reasoning_effort",
}  # fmt: skip


@pytest.mark.parametrize(("dialect", "fields"), [("azure", AZURE), ("mindie", MINDIE), ("databricks", DATABRICKS)])
def test_documented_requests_have_the_documents_fields_only(dialect: str, fields: set[str]) -> None:
    assert load(f"{dialect}/chat.request")["properties"].keys() == fields


@pytest.mark.parametrize(
    ("dialect", "profile", "added"),
    [
        ("azure", "actual", {"modalities", "user_security_context"}),
        ("databricks", "actual", {"thinking", "client_request_id", "usage_context", "extra_params"}),
        (
            "mindie",
            "actual",
            {"tools", "tool_choice", "stop", "top_k", "n", "logprobs", "response_format", "chat_template_kwargs"},
        ),
        ("mindie", "native", {"tools", "tool_choice", "stop", "top_k", "n", "logprobs", "chat_template_kwargs"}),
    ],
)
def test_other_profiles_add_fields(dialect: str, profile: str, added: set[str]) -> None:
    documented = load(f"{dialect}/chat.request")["properties"].keys()
    wider = load(f"{dialect}/chat.request", profile)["properties"].keys()
    assert not added & documented and added <= wider and documented <= wider


def test_only_the_vllm_flavor_of_mindie_has_response_formats() -> None:
    assert "response_format" not in load("mindie/chat.request", "native")["properties"]


def test_stream_is_on_by_default_in_the_databricks_document_only() -> None:
    assert load("databricks/chat.request")["properties"]["stream"]["default"] is True
    assert load("databricks/chat.request", "actual")["properties"]["stream"]["default"] is False


def test_the_character_bound_of_mindie_is_documented_only() -> None:
    assert load("mindie/chat.request")["properties"]["messages"]["x-max-characters"] == 524288
    for profile in ("actual", "native"):
        assert "x-max-characters" not in load("mindie/chat.request", profile)["properties"]["messages"]


def chat(**other: JsonValue) -> Schema:
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return {**reply, **other}


def choice(message: Schema, **other: JsonValue) -> Schema:
    base = {"index": 0, "message": {"role": "assistant", "content": "hi"} | message, "finish_reason": "stop"}
    return chat(choices=[{**base, **other}])


REASONING = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t", "signature": "s"}]},
    {"type": "text", "text": "x"},
]
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
REPLIES: list[tuple[str, Schema, str]] = [
    ("databricks", chat(object="chat.completions"), "documented actual"),
    ("databricks", chat(), "actual"),
    ("databricks", choice({"content": REASONING}), "actual"),
    ("databricks", choice({"content": [{"type": "text"}]}), ""),
    ("databricks", choice({}, extra_fields={"safetyRating": []}), "actual"),
    ("azure", chat(), "documented actual"),
    ("azure", choice({}, finish_reason="eos"), "actual"),
    ("azure", choice({"content": None, "tool_calls": [CALL]}, finish_reason="tool_calls"), "documented actual"),
    ("azure", {"choices": []}, "actual"),
    ("mindie", choice({}, finish_reason="eos_token"), "documented actual native"),
    ("mindie", choice({}, finish_reason="invalid flag"), "documented actual native"),
    ("mindie", choice({}, finish_reason="stop"), "actual native"),
    ("mindie", choice({}, finish_reason="nonsense"), ""),
    ("mindie", choice({"content": "", "tool_calls": []}, finish_reason="tool_calls"), "actual native"),
    ("mindie", choice({}, finish_reason="stop_sequence", err_msg="cancelled"), "documented actual native"),
    ("mindie", choice({}, finish_reason="eos_token", index=1), "actual native"),
    ("openai", choice({"refusal": None}, logprobs=None), "documented actual"),
    ("openai", chat(), "actual"),
    ("openai", choice({"content": REASONING}), "actual"),
]


@pytest.mark.parametrize(("dialect", "reply", "wanted"), REPLIES)
def test_a_reply_is_valid_in_these_profiles(dialect: str, reply: Schema, wanted: str, compiled: Compile) -> None:
    name = f"{dialect}/chat.reply"
    taken = [p for p in ("documented", "actual", "native") if compiled(name, p).is_valid(reply) and _has(dialect, p)]
    assert taken == wanted.split()


def _has(dialect: str, profile: str) -> bool:
    return profile != "native" or dialect == "mindie"


def event(**other: JsonValue) -> Schema:
    base = {"index": 0, "delta": {"role": "assistant", "content": "hi"}, "finish_reason": None}
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{**base, **other}]}
    return chunk


NO_CHOICES = {**event(), "choices": []}
FILTERED = {
    "id": "",
    "object": "",
    "created": 0,
    "model": "",
    "choices": [{"index": 0, "finish_reason": None, "content_filter_results": {}}],
}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
EVENTS: list[tuple[str, Schema, str]] = [
    ("databricks", event(), "documented actual"),
    ("databricks", event(delta={"content": REASONING}), "actual"),
    ("azure", event(), "documented actual"),
    ("azure", FILTERED, "actual"),
    ("azure", {**FILTERED, "choices": [], "prompt_filter_results": []}, "actual"),
    ("mindie", event(), "documented actual native"),
    ("mindie", event(delta={}, finish_reason="length"), "documented actual native"),
    ("mindie", event(delta={}, finish_reason="stop"), "actual native"),
    ("mindie", {**event(), "usage": {**USAGE, "batch_size": [1]}}, "documented actual native"),
    ("openai", event(), "documented actual"),
    ("openai", {**NO_CHOICES, "usage": USAGE}, "documented actual"),
    ("openai", {**event(), "object": None}, "actual"),
]


@pytest.mark.parametrize(("dialect", "chunk", "wanted"), EVENTS)
def test_an_event_is_valid_in_these_profiles(dialect: str, chunk: Schema, wanted: str, compiled: Compile) -> None:
    name = f"{dialect}/chat.event"
    taken = [p for p in ("documented", "actual", "native") if compiled(name, p).is_valid(chunk) and _has(dialect, p)]
    assert taken == wanted.split()


ERRORS: list[tuple[str, Schema, str]] = [
    (
        "openai",
        {"error": {"message": "m", "type": "invalid_request_error", "param": None, "code": None}},
        "documented actual",
    ),
    ("openai", {"error": {"message": "m"}}, "actual"),
    ("openai", {"error": "m"}, "actual"),
    ("databricks", {"error_code": "INVALID_PARAMETER_VALUE", "message": "m"}, "documented actual"),
    ("databricks", {"error_code": "BAD_REQUEST", "message": "m", "error": "m"}, "actual"),
    ("databricks", {"error_code": "BAD_REQUEST", "message": "m", "detail": "m"}, "actual"),
    ("databricks", {"error": "m", "external_model_message": {"error_code": "X", "message": "m"}}, "actual"),
    ("azure", {"error": "Unauthorized", "message": "m", "status": 401}, "documented actual"),
    ("azure", {"error": "e", "message": "m", "status": 422}, "actual"),
    (
        "azure",
        {"error": "e", "message": "m", "status": 422, "code": "c", "detail": {"loc": ["body", "n"], "value": "2"}},
        "documented actual",
    ),
    (
        "azure",
        {"error": "e", "message": "m", "status": 400, "code": "content_filter", "param": "messages"},
        "documented actual",
    ),
    ("azure", {"error": "e", "message": "m", "status": 400}, "actual"),
    (
        "azure",
        {
            "status": 422,
            "code": "parameter_not_supported",
            "detail": {"loc": ["body", "response_format"], "input": "json_object"},
            "message": "m",
        },
        "actual",
    ),
    (
        "azure",
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 0], "msg": "m", "input": "x"}]},
        "actual",
    ),
    ("azure", {"detail": "Extra parameters"}, "actual"),
    ("azure", {"error": {"code": "c", "message": "m"}}, "actual"),
    ("mindie", {"error": "m", "error_type": "Input Validation Error"}, "documented actual native"),
    ("mindie", {"error": "m", "error_type": "Input Validation Error", "status": 422}, "actual native"),
    ("mindie", {"error": "m", "error_type": "Oops"}, "actual native"),
    ("mindie", {"message": "Request body too large."}, "actual native"),
]


@pytest.mark.parametrize(("dialect", "body", "wanted"), ERRORS)
def test_an_error_is_valid_in_these_profiles(dialect: str, body: Schema, wanted: str, compiled: Compile) -> None:
    name = f"{dialect}/chat.error"
    taken = [p for p in ("documented", "actual", "native") if compiled(name, p).is_valid(body) and _has(dialect, p)]
    assert taken == wanted.split()


def test_a_profile_may_be_based_on_another() -> None:
    for side in ("reply", "event", "error"):
        assert load(f"mindie/chat.{side}", "native") == load(f"mindie/chat.{side}", "actual")
        assert profiles(f"mindie/chat.{side}") == ("documented", "actual", "native")
    actual, native = (_without_sources(load("mindie/chat.request", profile)) for profile in ("actual", "native"))
    for name in ("response_format", "json_schema", "single_types"):
        assert name not in native["$defs"]
        del actual["$defs"][name]
    assert "response_format" not in native["properties"]
    del actual["properties"]["response_format"]
    assert native["properties"]["top_k"] == {"type": ["integer", "null"], "minimum": 0, "maximum": 2147483647}
    assert actual["properties"].pop("top_k") != native["properties"].pop("top_k")
    assert native == actual


def test_a_table_by_profile_is_completed() -> None:
    assert lineage("mindie", "native") == ("native", "actual", "documented")
    assert lineage("databricks", "actual") == ("actual", "documented")
    assert inherit_rows("mindie", {"documented": 1, "actual": 2}) == {"documented": 1, "actual": 2, "native": 2}
    assert inherit_rows("mindie", {"documented": 1}) == {"documented": 1, "native": 1}
    assert inherit_rows("mindie", {"documented": 1, "native": 3}) == {"documented": 1, "native": 3}
    assert inherit_rows("azure", {"documented": 1, "actual": 2}) == {"documented": 1, "actual": 2}


def _without_sources(rule: JsonValue) -> JsonValue:
    if isinstance(rule, dict):
        return {key: _without_sources(value) for key, value in rule.items() if key != "x-source"}
    return [_without_sources(one) for one in rule] if isinstance(rule, list) else rule


def test_a_patch_of_another_schema_is_one_in_every_profile() -> None:
    for profile in ("documented", "actual"):
        patched, base = load("azure/messages.request", profile), load("anthropic/messages.request", profile)
        assert patched["title"] == "Azure messages request"
        assert {key: value for key, value in patched.items() if key[0] != "$" and key != "title"} == {
            key: value for key, value in base.items() if key[0] != "$" and key != "title"
        }
        assert patched["$defs"] == base["$defs"]
    assert load("azure/messages.request", "actual") != load("azure/messages.request")
    assert find_base("azure/messages.request") == ("anthropic/messages.request", [])
    base = find_base("anthropic/count_tokens.request")
    assert base is not None and "max_tokens" in base[1]
    assert find_base("openai/chat.request") is None
