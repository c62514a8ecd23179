"""The reasoning of earlier turns, as each provider accepts it."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.common.seals import is_foreign_seal
from dragoman.adapters.model_facts import find_facts
from dragoman.adapters.translate.requests import to_chat_request, to_responses_request
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext

ASK = {"role": "user", "content": "go on"}
OF_CLAUDE = "ErUBCkYIARgCIkDXbWZk"
OF_OPENAI = "gAAAAABoEuYZ"
TEXT = {"reasoning_content": "so"}
SIGNED = {"reasoning_content": "so", "reasoning_signature": OF_CLAUDE}
DETAILS = [{"type": "reasoning.encrypted", "data": OF_CLAUDE, "index": 0}]
SIGNED_DETAILS = [{"type": "reasoning.text", "text": "so", "signature": OF_CLAUDE, "index": 0}]
KEYS = ("reasoning", "reasoning_content", "reasoning_signature", "reasoning_details")


def send(
    context: MakeContext, message: JsonObject, dialect: str = "openai", **target: JsonValue
) -> tuple[JsonObject, list[str]]:
    """The reasoning that the provider gets, and the paths that the receipt says were lost."""
    request = {"model": "m", "messages": [ASK, {"role": "assistant", "content": "x", **message}, ASK]}
    ctx = context(request=request, **target)
    sent = dialects[dialect].called["chat"].write_request(request, ctx).body["messages"]
    assert (sent[0], sent[2], sent[1]["content"]) == (ASK, ASK, "x")
    lost = [change.public()["before"] for change in ctx.receipt.losses]
    return {key: sent[1][key] for key in KEYS if key in sent[1]}, lost


@pytest.mark.parametrize(
    ("host", "model", "sent"),
    [
        ("api.cerebras.ai", "gpt-oss-120b", {"reasoning": "so"}),  # QwenLM/qwen-code#11045
        ("api.groq.com", "openai/gpt-oss-120b", {}),  # tashfeenahmed/freellmapi#1070
        ("api.groq.com", "moonshotai/kimi-k2-instruct", {}),  # vercel/ai#8057
        ("api.mistral.ai", "magistral-medium-2509", {}),  # charmbracelet/crush#1590
        ("api.deepseek.com", "deepseek-chat", TEXT),  # continuedev/continue#9606
        ("api.moonshot.cn", "kimi-k2.5", TEXT),  # bytedance/deer-flow#3043
        ("openrouter.ai", "anthropic/claude-sonnet-4.5", {"reasoning": "so"}),
        ("models.test", "DeepSeek-V3.2", TEXT),
        ("models.test", "unknown", {}),
        ("", "gpt-5", {}),
    ],
)
def test_each_provider_gets_reasoning_as_it_accepts_it(
    context: MakeContext, host: str, model: str, sent: JsonObject
) -> None:
    found, lost = send(context, TEXT, host=host, model=model)
    assert found == sent
    assert lost == ([] if sent else ["messages[1].reasoning_content"])


def test_a_text_that_was_sent_under_the_other_name_counts(context: MakeContext) -> None:
    assert send(context, {"reasoning": "so"}, host="api.deepseek.com") == (TEXT, [])
    assert send(context, {"reasoning": "so", **TEXT}, host="api.deepseek.com") == (TEXT, [])
    assert send(context, {"reasoning": "so", **TEXT}, host="api.cerebras.ai") == ({"reasoning": "so"}, [])
    assert send(context, {"reasoning": None, "reasoning_content": ""}, host="api.groq.com") == ({}, [])


@pytest.mark.parametrize(
    ("replay", "sent", "lost"),
    [
        ("keep", SIGNED, []),
        ("rename", {"reasoning": "so", "reasoning_details": SIGNED_DETAILS}, []),
        ("drop", {}, ["messages[1].reasoning_content", "messages[1].reasoning_signature"]),
    ],
)
def test_the_target_s_setting_decides_first(
    context: MakeContext, replay: str, sent: JsonObject, lost: list[str]
) -> None:
    for host in ("api.groq.com", "api.deepseek.com", ""):
        assert send(context, SIGNED, host=host, model="anthropic/claude", reasoning_replay=replay) == (sent, lost)


@pytest.mark.parametrize("dialect", ["azure", "mindie", "databricks"])
def test_every_dialect_can_be_told_to_drop_it(context: MakeContext, dialect: str) -> None:
    found, lost = send(context, SIGNED, dialect, reasoning_replay="drop")
    assert found == {}
    assert lost == ["messages[1].reasoning_content", "messages[1].reasoning_signature"]


def test_a_path_in_a_provider_s_error_is_the_client_s(context: MakeContext) -> None:
    request = {"model": "m", "messages": [ASK, {"role": "assistant", "content": "x", **TEXT}]}
    ctx = context(request=request, host="api.cerebras.ai")
    dialects["openai"].called["chat"].write_request(request, ctx)
    assert ctx.receipt.unmap(("messages", 1, "reasoning")) == ("messages", 1, "reasoning_content")


# Sealed reasoning


@pytest.mark.parametrize(
    ("model", "of_claude", "of_openai", "of_nobody_known"),
    [
        ("databricks-claude-sonnet-4-5", False, True, False),
        ("gpt-5.2", True, False, False),
        ("openai/o4-mini", True, False, False),
        ("gpt-oss-120b", True, True, True),
        ("deepseek-v3.2", True, True, True),
        ("my-deployment", False, False, False),
    ],
)
def test_a_seal_is_foreign_to_models_of_other_vendors(
    model: str, of_claude: bool, of_openai: bool, of_nobody_known: bool
) -> None:
    found = [is_foreign_seal(seal, find_facts(model).seals) for seal in (OF_CLAUDE, OF_OPENAI, "sig")]
    assert found == [of_claude, of_openai, of_nobody_known]


@pytest.mark.parametrize(
    ("message", "lost"),
    [
        (SIGNED, ["messages[1].reasoning_signature"]),
        ({**TEXT, "reasoning_details": DETAILS}, ["messages[1].reasoning_details"]),
    ],
)
def test_a_seal_never_goes_to_another_vendor_s_model(
    context: MakeContext, message: JsonObject, lost: list[str]
) -> None:
    assert send(context, message, host="api.deepseek.com", model="deepseek-chat") == (TEXT, lost)
    assert send(context, message, reasoning_replay="keep", model="gpt-5") == (TEXT, lost)
    _, dropped = send(context, message, "databricks", model="databricks-gpt-oss-120b")
    assert dropped[:1] == lost


def test_signed_reasoning_of_openai_never_goes_to_claude(context: MakeContext) -> None:
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": OF_OPENAI}
    items = [{"type": "message", **ASK}, reasoning, {"type": "message", "role": "assistant", "content": "x"}, ASK]
    ctx = context(model="databricks-claude-opus-4-1")
    hub = to_chat_request({"model": "m", "input": items}, ctx)
    sent = dialects["databricks"].called["chat"].write_request(hub, ctx._replace(request=hub)).body["messages"]
    assert sent[1] == {"role": "assistant", "content": "x"}
    assert len(ctx.receipt.losses) == 1
    claude = [items[0], {**reasoning, "encrypted_content": OF_CLAUDE}, *items[2:]]
    hub = to_chat_request({"model": "m", "input": claude}, ctx := context(model="databricks-claude-opus-4-1"))
    sent = dialects["databricks"].called["chat"].write_request(hub, ctx._replace(request=hub)).body["messages"]
    block = {"type": "reasoning", "summary": [{"type": "summary_encrypted_text", "data": OF_CLAUDE}]}
    assert sent[1]["content"] == [block, {"type": "text", "text": "x"}]


@pytest.mark.parametrize(
    ("target", "kept"),
    [({"model": "gpt-5"}, [1, 3]), ({"model": "prod"}, [1, 3]), ({"reasoning_replay": "drop"}, [3])],
)
def test_items_of_responses_are_left_out_whole(context: MakeContext, target: JsonObject, kept: list[int]) -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": []}
    items: list[JsonValue] = [
        {**reasoning, "encrypted_content": OF_CLAUDE},
        {**reasoning, "encrypted_content": OF_OPENAI},
        {**reasoning, "encrypted_content": OF_CLAUDE},
        {"role": "user", "content": "go on"},
    ]
    ctx = context(request={"model": "m", "input": items}, **target)
    sent = dialects["openai"].called["responses"].write_request(ctx.request, ctx).body["input"]
    assert sent == [items[i] for i in kept]
    assert [change.before for change in ctx.receipt.losses] == [("input", i) for i in range(4) if i not in kept]
    assert ctx.receipt.unmap(("input", len(kept) - 1)) == ("input", 3)


def test_signed_reasoning_of_claude_never_goes_to_openai_s_responses(context: MakeContext) -> None:
    ctx = context(model="gpt-5")
    messages = [ASK, {"role": "assistant", "content": "x", **SIGNED}, ASK]
    hub = to_responses_request({"model": "m", "messages": messages}, ctx)
    sent = dialects["openai"].called["responses"].write_request(hub, ctx._replace(request=hub)).body["input"]
    assert [item["type"] for item in sent] == ["message"] * 3
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["messages[1]"]


def test_what_is_known_of_an_address_counts_more_than_the_model(context: MakeContext) -> None:
    model = "deepseek-r1-distill-llama-70b"
    assert send(context, TEXT, host="api.groq.com", model=model)[0] == {}
    assert send(context, TEXT, host="models.test", model=model)[0] == TEXT
    assert find_facts("qwen3-32b").replay is None
