"""Requests of Messages toward chat, and of chat toward Messages."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.translate.message_requests import messages_to_chat_request, to_messages_request
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

ASK = {"role": "user", "content": "hi"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"city": "Oslo"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}
TOOL = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
DEEP = '{"a":' * 200 + "1" + "}" * 200
FUNCTION = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
MARK = {"cache_control": {"type": "ephemeral"}}
STRICT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def context(request: JsonObject, policy: Policy = Policy(), **target: Any) -> Context:  # noqa: B008 - it is frozen
    return Context(
        "actual", Call("POST", "/", request), Receipt(), Target(**{"model": "m", "policy": policy, **target}), request
    )


def to_chat(
    turns: list[JsonObject] | None = None, target: JsonObject | None = None, **keys: JsonValue
) -> tuple[JsonObject, Context]:
    full: JsonObject = {"model": "m", "max_tokens": 9, "messages": turns or [ASK], **keys}
    before, ctx = copy.deepcopy(full), context(full, **(target or {}))
    made = messages_to_chat_request(full, ctx)
    assert full == before, "the client's request was altered"
    assert [one.message for one in load_validator("hub/chat.request").violations(made)] == []
    return made, ctx


def to_messages(
    messages: list[JsonObject] | None = None, target: JsonObject | None = None, **keys: JsonValue
) -> tuple[JsonObject, Context]:
    full: JsonObject = {"model": "m", "messages": messages or [ASK], **keys}
    before, ctx = copy.deepcopy(full), context(full, **(target or {}))
    made = to_messages_request(full, ctx)
    assert full == before, "the client's request was altered"
    assert [one.message for one in load_validator("hub/messages.request").violations(made)] == []
    return made, ctx


def losses(ctx: Context) -> list[str]:
    return [str(change.public().get("before")) for change in ctx.receipt.losses]


def answer(*ids: str) -> JsonObject:
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str, content: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_calls_of_several_turns_with_one_id_get_their_own() -> None:
    """Some servers count the calls of each answer from 0, and Anthropic refuses an id that comes twice:
    anomalyco/opencode#1279."""
    turns = [answer("c", "c_2"), result("c_2", "2"), result("c", "1"), ASK, answer("c"), result("c", "3"), answer("c")]
    made, ctx = to_messages([ASK, *turns, result("c", "4")])
    blocks = [block for turn in made["messages"] if isinstance(turn["content"], list) for block in turn["content"]]
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert ids == ["c", "c_2", "c_3", "c_4"]
    results = {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}
    assert results == {"c": "1", "c_2": "2", "c_3": "3", "c_4": "4"}
    assert not ctx.receipt.losses


@pytest.mark.parametrize("schema", [{}, {"properties": {"a": {"type": "string"}}}, {"anyOf": [{}], "type": "object"}])
def test_the_schema_of_a_tool_is_that_of_an_object(schema: JsonObject) -> None:
    """OpenAI's clients may leave its type out, which Messages requires."""
    made, ctx = to_messages(tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}])
    assert made["tools"] == [{"name": "f", "input_schema": {**schema, "type": "object"}}]
    assert [one.reason for one in ctx.receipt.losses] == []


def test_a_turn_with_results_is_several_messages_and_paths_lead_back() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    failed = {**RESULT, "content": [{"type": "text", "text": "see"}, image], "is_error": True}
    turns = [
        ASK,
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [failed, {"type": "text", "text": "so?"}]},
    ]
    made, ctx = to_chat(turns)
    assert [one["role"] for one in made["messages"]] == ["user", "assistant", "tool", "user", "user"]
    assert made["messages"][2] == {"role": "tool", "tool_call_id": "toolu_1", "content": "see"}
    assert made["messages"][3]["content"][0]["image_url"]["url"] == "data:image/png;base64,aGk="
    assert made["messages"][4]["content"] == "so?"
    assert losses(ctx) == ["messages[2].content[0].is_error"]
    url = ("messages", 3, "content", 0, "image_url", "url")
    assert ctx.receipt.unmap(url) == ("messages", 2, "content", 0, "content", 1, "source", "data")
    assert ctx.receipt.unmap(("messages", 4, "content")) == ("messages", 2, "content", 1)


def test_turns_of_the_assistant_that_follow_one_another_are_one_message() -> None:
    turns = [ASK, {"role": "assistant", "content": "Let me look."}, {"role": "assistant", "content": [CALL]}]
    made, _ = to_chat([*turns, {"role": "user", "content": [RESULT]}])
    assert [one["role"] for one in made["messages"]] == ["user", "assistant", "tool"]
    assert made["messages"][1]["content"] == "Let me look."
    assert made["messages"][1]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"city":"Oslo"}'}


def test_what_is_said_before_a_result_comes_after_it_which_is_a_loss() -> None:
    said = {"type": "text", "text": "so?"}
    made, ctx = to_chat([ASK, {"role": "assistant", "content": [CALL]}, {"role": "user", "content": [said, RESULT]}])
    assert [one["role"] for one in made["messages"]] == ["user", "assistant", "tool", "user"]
    assert losses(ctx) == ["messages[2]"]


def test_thinking_keeps_its_blocks_and_signatures() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "text", "text": "ok"},
    ]
    made, ctx = to_chat([ASK, {"role": "assistant", "content": blocks}, ASK])
    details = made["messages"][1]["reasoning_details"]
    assert [(one.get("signature"), one.get("data")) for one in details] == [("sig", None), (None, "sealed")]
    assert ctx.receipt.unmap(("messages", 1, "reasoning_details", 1)) == ("messages", 1, "content", 1)
    assert to_messages(made["messages"], max_tokens=9)[0]["messages"][1]["content"] == blocks


def test_a_turn_that_was_cut_while_the_model_thought_has_a_content_in_chat() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    made, ctx = to_chat([ASK, {"role": "assistant", "content": [thought]}, ASK])
    assert made["messages"][1] == {
        "role": "assistant",
        "content": "",
        "reasoning_content": "hm",
        "reasoning_signature": "sig",
    }
    assert losses(ctx) == []


def test_thinking_without_a_signature_is_ordinary_reasoning() -> None:
    turn = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ok"}]}
    made, _ = to_chat([ASK, turn, ASK])
    assert made["messages"][1] == {"role": "assistant", "content": "ok", "reasoning_content": "hm"}


def test_a_prefilled_answer_is_a_loss_in_both_directions() -> None:
    last = {"role": "assistant", "content": "The answer is"}
    assert losses(to_chat([ASK, last])[1]) == ["messages[1]"]
    assert losses(to_messages([ASK, last])[1]) == ["messages[1]"]


def test_marks_of_caching_go_to_models_that_are_known_to_read_them() -> None:
    system = [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **MARK}]
    made, ctx = to_chat(system=system, tools=[{**TOOL, **MARK}], target={"model": "anthropic/claude-opus-4-6"})
    assert (made["messages"][0]["content"], made["tools"]) == (system, [{**FUNCTION, **MARK}])
    assert losses(ctx) == []
    made, ctx = to_chat(system=system, tools=[{**TOOL, **MARK}])
    assert made["messages"][0]["content"][1] == {"type": "text", "text": "b"}
    assert losses(ctx) == ["system[1].cache_control", "tools[0].cache_control"]


@pytest.mark.parametrize(
    ("choice", "made"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "f"}, {"tool_choice": {"type": "function", "function": {"name": "f"}}}),
        ({"type": "any", "disable_parallel_tool_use": True}, {"tool_choice": "required", "parallel_tool_calls": False}),
    ],
)
def test_a_choice_among_tools_and_back(choice: JsonObject, made: JsonObject) -> None:
    chat, ctx = to_chat(tools=[TOOL], tool_choice=choice)
    assert {key: chat[key] for key in ("tool_choice", "parallel_tool_calls") if key in chat} == made
    assert losses(ctx) == []
    back, ctx = to_messages(tools=[FUNCTION], **made)
    assert (back["tool_choice"], back["tools"], losses(ctx)) == (choice, [TOOL], [])


def test_one_call_at_a_time_needs_a_choice_in_messages() -> None:
    made, ctx = to_messages(tools=[FUNCTION], parallel_tool_calls=False)
    assert made["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert ctx.receipt.unmap(("tool_choice", "disable_parallel_tool_use")) == ("parallel_tool_calls",)


def test_only_the_allowed_tools_are_offered() -> None:
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]}
    other = {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}
    made, _ = to_messages(tools=[FUNCTION, other], tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
    assert ([one["name"] for one in made["tools"]], made["tool_choice"]) == (["g"], {"type": "any"})


def test_tools_that_the_provider_runs_follow_the_rule_for_hosted_tools() -> None:
    search = {"type": "web_search_20260318", "name": "web_search"}
    made, ctx = to_chat(tools=[search, TOOL])
    assert (made["tools"], losses(ctx)) == ([FUNCTION], ["tools[0]"])
    assert ctx.receipt.unmap(("tools", 0, "function", "parameters")) == ("tools", 1, "input_schema")
    with pytest.raises(Fault, match="does not have the tool web_search_20260318, and no other tool remains"):
        to_chat(tools=[search])
    assert "tools" not in to_chat(tools=[search], target={"policy": Policy(unsupported="drop")})[0]


def test_a_schema_is_strict_in_chat_only_if_chat_can_follow_it() -> None:
    strict = to_chat(output_config={"format": {"type": "json_schema", "schema": STRICT}})[0]["response_format"]
    assert strict == {"type": "json_schema", "json_schema": {"name": "answer", "schema": STRICT, "strict": True}}
    made, ctx = to_chat(output_format={"type": "json_schema", "schema": {"type": "object"}})
    assert made["response_format"]["json_schema"] == {"name": "answer", "schema": {"type": "object"}}
    assert losses(ctx) == ["output_format.schema"]
    assert ctx.receipt.unmap(("response_format", "json_schema", "schema", "type")) == (
        "output_format",
        "schema",
        "type",
    )


def test_a_format_and_an_effort_share_an_object_in_messages() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": STRICT, "strict": True}}
    made, ctx = to_messages(reasoning_effort="high", response_format=form)
    assert made["output_config"] == {"effort": "high", "format": {"type": "json_schema", "schema": STRICT}}
    assert ctx.receipt.unmap(("output_config", "effort")) == ("reasoning_effort",)
    assert ctx.receipt.unmap(("output_config", "format", "schema")) == ("response_format", "json_schema", "schema")


def test_json_without_a_schema_is_left_to_emulation() -> None:
    with pytest.raises(Fault) as caught:
        to_messages(response_format={"type": "json_object"})
    assert caught.value.path == ("response_format",)


@pytest.mark.parametrize(("budget", "effort"), [(1024, "low"), (4096, "medium"), (32_000, "high")])
def test_a_budget_is_a_level_of_effort_for_models_that_know_no_budgets(budget: int, effort: str) -> None:
    thinking = {"type": "enabled", "budget_tokens": budget}
    made, ctx = to_chat(thinking=thinking)
    assert (made["reasoning_effort"], losses(ctx)) == (effort, ["thinking"])
    made, ctx = to_chat(thinking=thinking, target={"model": "claude-opus-4-1"})
    assert (made["thinking"], losses(ctx)) == (thinking, [])


def test_adaptive_thinking_says_how_and_not_how_much() -> None:
    made, ctx = to_chat(thinking={"type": "adaptive"}, output_config={"effort": "max"})
    assert (made["reasoning_effort"], "thinking" in made, losses(ctx)) == ("max", False, [])


@pytest.mark.parametrize(("effort", "lost"), [("low", []), ("minimal", ["reasoning_effort"])])
def test_the_least_effort_of_messages_is_low(effort: str, lost: list[str]) -> None:
    made, ctx = to_messages(reasoning_effort=effort)
    assert (made["output_config"], losses(ctx)) == ({"effort": "low"}, lost)


@pytest.mark.parametrize(
    ("model", "made"),
    [
        ("claude-opus-4-7", {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}),
        ("claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 16_384}}),
        ("unknown", {"output_config": {"effort": "high"}}),
    ],
)
def test_an_effort_is_what_the_model_is_documented_to_take(model: str, made: JsonObject) -> None:
    found, ctx = to_messages(reasoning_effort="high", target={"model": model})
    assert {key: found[key] for key in ("output_config", "thinking") if key in found} == made
    assert losses(ctx) == []


def test_a_budget_is_less_than_the_limit_on_tokens() -> None:
    target = {"model": "claude-sonnet-4-5"}
    assert to_messages(reasoning_effort="high", max_tokens=2000, target=target)[0]["thinking"]["budget_tokens"] == 1999
    made, ctx = to_messages(reasoning_effort="high", max_tokens=1024, target=target)
    assert ("thinking" in made, losses(ctx)) == (False, ["reasoning_effort"])


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-6"])
@pytest.mark.parametrize("obstacle", [{"temperature": 0.5}, {"tool_choice": "required", "tools": [FUNCTION]}])
def test_no_thinking_is_asked_for_beside_what_excludes_it(model: str, obstacle: JsonObject) -> None:
    made, ctx = to_messages(reasoning_effort="high", target={"model": model}, **obstacle)
    assert ("thinking" in made, losses(ctx)) == (False, ["reasoning_effort"])


def test_no_effort_switches_thinking_off() -> None:
    assert to_messages(reasoning_effort="none")[0]["thinking"] == {"type": "disabled"}


def test_names_of_users_that_chat_does_not_take_are_dropped() -> None:
    assert to_chat(metadata={"user_id": "u" * 64})[0]["user"] == "u" * 64
    made, ctx = to_chat(metadata={"user_id": "u" * 65})
    assert ("user" in made, losses(ctx)) == (False, ["metadata.user_id"])


def test_a_user_and_metadata_of_chat_do_not_mix() -> None:
    made, ctx = to_messages(user="u", safety_identifier="s", metadata={"k": "v"})
    assert made["metadata"] == {"user_id": "s"}
    assert losses(ctx) == ["metadata", "user"]


@pytest.mark.parametrize(("tier", "name"), [("auto", "auto"), ("standard_only", "default")])
def test_service_tiers_have_other_names(tier: str, name: str) -> None:
    assert to_chat(service_tier=tier)[0]["service_tier"] == name
    assert to_messages(service_tier=name)[0]["service_tier"] == tier


def test_a_stream_of_chat_is_asked_for_its_usage() -> None:
    assert to_chat(stream=True)[0]["stream_options"] == {"include_usage": True}
    assert "stream_options" not in to_messages(stream=True, stream_options={"include_usage": True})[0]


def test_instructions_at_the_head_are_the_system_prompt() -> None:
    head = [
        {"role": "system", "content": "a"},
        {"role": "developer", "content": [{"type": "text", "text": "b", **MARK}]},
    ]
    made, ctx = to_messages([*head, ASK])
    assert made["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **MARK}]
    assert made["messages"] == [ASK]
    assert ctx.receipt.unmap(("system", 1)) == ("messages", 1, "content", 0)
    assert to_messages([head[0], ASK])[0]["system"] == "a"


def test_later_instructions_stay_only_where_the_version_of_the_api_has_them() -> None:
    messages = [ASK, {"role": "assistant", "content": "yes"}, {"role": "system", "content": "be brief"}, ASK]
    made, ctx = to_messages(messages)
    assert (made["system"], [one["role"] for one in made["messages"]]) == ("be brief", ["user", "assistant", "user"])
    assert ctx.receipt.unmap(("system",)) == ("messages", 2)
    made, _ = to_messages(messages, target={"api_version": "2026-10-21"})
    assert [one["role"] for one in made["messages"]] == ["user", "assistant", "system", "user"]


def test_instructions_alone_are_what_the_user_says() -> None:
    made, ctx = to_messages([{"role": "system", "content": "a"}, {"role": "system", "content": "b"}])
    assert (made["system"], made["messages"], losses(ctx)) == ("a", [{"role": "user", "content": "b"}], ["messages[1]"])


def test_results_come_first_in_the_turn_after_the_calls_and_roles_alternate() -> None:
    calls = [{"id": f"c{k}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for k in range(2)]
    results = [{"role": "tool", "tool_call_id": f"c{k}", "content": f"r{k}"} for k in range(2)]
    made, ctx = to_messages(
        [ASK, {"role": "assistant", "content": None, "tool_calls": calls}, *reversed(results), ASK, ASK]
    )
    assert [one["role"] for one in made["messages"]] == ["user", "assistant", "user"]
    blocks = made["messages"][2]["content"]
    assert [one.get("tool_use_id") for one in blocks] == ["c0", "c1", None, None]
    assert ctx.receipt.unmap(("messages", 2, "content", 0, "content")) == ("messages", 3, "content")
    assert ctx.receipt.unmap(("messages", 2, "content", 3, "text")) == ("messages", 5, "content")


def test_ids_of_calls_have_only_characters_that_the_api_takes() -> None:
    call = {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "functions.f:0", "content": "r"}
    made, ctx = to_messages([ASK, {"role": "assistant", "content": None, "tool_calls": [call]}, result])
    [used], [answered] = made["messages"][1]["content"], made["messages"][2]["content"]
    assert used["id"] == answered["tool_use_id"]
    assert used["id"].startswith("functions_f_0_")
    assert losses(ctx) == []


@pytest.mark.parametrize(
    ("arguments", "given", "lost"),
    [
        ("", {}, False),
        ('{"a": 1}', {"a": 1}, False),
        ('{"a": 1234567890123456789}', {"a": 1234567890123456789}, False),
        ('{"a": 123456789012345678901}', {"a": 1.2345678901234568e20}, True),
        ("{broken", {"arguments": "{broken"}, True),
        (DEEP, {"arguments": DEEP}, True),
    ],
)
def test_arguments_that_a_model_wrote_never_end_a_conversation(arguments: str, given: JsonObject, lost: bool) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    result = {"role": "tool", "tool_call_id": "c", "content": "r"}
    made, ctx = to_messages([ASK, {"role": "assistant", "content": None, "tool_calls": [call]}, result])
    assert made["messages"][1]["content"][0]["input"] == given
    assert losses(ctx) == (["messages[1].tool_calls[0].function.arguments"] if lost else [])


def test_files_and_images_of_chat() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,aGk=", "filename": "a.txt"}},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "file", "file": {"file_data": "aGk=", "file_id": "file_1"}},
    ]
    made, ctx = to_messages([{"role": "user", "content": parts}])
    assert [(one["type"], one["source"]["type"], one.get("title")) for one in made["messages"][0]["content"]] == [
        ("image", "base64", None),
        ("image", "url", None),
        ("document", "base64", "a.pdf"),
        ("document", "text", "a.txt"),
        ("document", "file", None),
        ("document", "base64", None),
    ]
    assert losses(ctx) == ["messages[0].content[1].image_url.detail", "messages[0].content[5].file.file_id"]
    reasons = [(one.before[3], one.reason) for one in ctx.receipt.changes if len(one.before) > 3]
    assert [k for k, reason in reasons if "holds its data" in reason] == [0, 2, 3]
    assert [k for k, reason in reasons if "sent as a PDF" in reason] == [5]
    assert ctx.receipt.unmap(("messages", 0, "content", 0, "source", "media_type"))[:5] == (
        "messages", 0, "content", 0, "image_url",
    )  # fmt: skip


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "file", "file": {"file_data": "data:application/zip;base64,aGk="}},
        {"type": "file", "file": {"file_data": "data:text/plain;base64,%"}},
    ],
)
def test_parts_without_a_block_are_refused_at_their_place(part: JsonObject) -> None:
    with pytest.raises(Fault) as caught:
        to_messages([{"role": "user", "content": [{"type": "text", "text": "x"}, part]}])
    assert (caught.value.kind, caught.value.path) == ("unsupported_parameter", ("messages", 0, "content", 1))


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"type": "container_upload", "file_id": "x"}, "messages[0].content[0].type"),
        ({"type": "document", "source": {"type": "url", "url": "https://x"}}, "messages[0].content[0]"),
        ({"type": "image", "source": {"type": "clipboard"}}, "messages[0].content[0].type"),
    ],
)
def test_blocks_without_a_part_are_refused_at_their_place(block: JsonObject, path: str) -> None:
    request: JsonObject = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [block]}]}
    ctx = context(request)
    with pytest.raises(Fault) as caught:
        messages_to_chat_request(request, ctx)
    assert caught.value.locate(ctx.receipt, request).param == path


def test_documents_of_text_and_search_results_are_text() -> None:
    blocks = [
        {
            "type": "document",
            "title": "T",
            "context": "C",
            "source": {"type": "text", "media_type": "text/plain", "data": "D"},
        },
        {"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "found"}]},
    ]
    made, ctx = to_chat([{"role": "user", "content": blocks}])
    assert [one["text"] for one in made["messages"][0]["content"]] == ["T\nC\n\n", "D", "t\ns\n\n", "found"]
    assert losses(ctx) == []


@pytest.mark.parametrize("content", [[], [{"type": "text", "text": ""}], ""])
def test_a_request_that_says_nothing_is_refused(content: JsonValue) -> None:
    for translate in (to_chat, to_messages):
        if translate is to_chat or content == "":
            with pytest.raises(Fault, match="messages say nothing"):
                translate([{"role": "user", "content": content}])


def test_parameters_without_a_place_follow_the_policy() -> None:
    with pytest.raises(Fault) as caught:
        to_messages(seed=7)
    assert caught.value.path == ("seed",)
    made, ctx = to_messages(seed=7, target={"policy": Policy(unsupported="drop")})
    assert ("seed" in made, losses(ctx)) == (False, ["seed"])
    assert losses(to_messages(presence_penalty=0, n=1, logprobs=False)[1]) == []
    assert to_messages(seed=7, target={"takes": frozenset({"seed"})})[0]["seed"] == 7
    assert losses(to_chat(context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]})[1]) == []


def test_thinking_blocks_that_clients_of_litellm_send_back_are_blocks() -> None:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "sig"}, {"type": "redacted_thinking", "data": "x"}]
    said = {"role": "assistant", "content": "ok", "reasoning_content": "hm", "thinking_blocks": blocks}
    made, ctx = to_messages([ASK, said, ASK])
    assert made["messages"][1]["content"] == [*blocks, {"type": "text", "text": "ok"}]
    assert losses(ctx) == []
    made, ctx = to_messages([ASK, {**said, "reasoning_signature": "sig"}, ASK])
    assert made["messages"][1]["content"] == [blocks[0], {"type": "text", "text": "ok"}]
    assert losses(ctx) == []


def test_a_refusal_of_an_earlier_answer_is_a_text() -> None:
    made, ctx = to_messages([ASK, {"role": "assistant", "content": None, "refusal": "no"}, ASK])
    assert made["messages"][1]["content"] == "no"
    assert ctx.receipt.unmap(("messages", 1, "content", 0)) == ("messages", 1, "refusal")


def test_calls_of_the_old_form_get_ids() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    made, ctx = to_messages([ASK, old, {"role": "function", "name": "f", "content": "r"}, ASK])
    [call], answer = made["messages"][1]["content"], made["messages"][2]["content"]
    assert call["id"] == answer[0]["tool_use_id"]
    assert losses(ctx) == []
    _, ctx = to_messages([ASK, old, {"role": "function", "name": "g", "content": "r"}, ASK])
    assert losses(ctx) == ["messages[2].name"]


def test_a_call_loses_its_position_in_a_stream() -> None:
    call = {"index": -3, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c", "content": "r"}
    _, ctx = to_messages([ASK, {"role": "assistant", "content": None, "tool_calls": [call]}, result])
    assert [change.weight for change in ctx.receipt.changes if change.before[-1:] == ("index",)] == ["form"]
