from __future__ import annotations

import copy
import json

import pytest

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.faults import Fault
from dragoman.adapters.translate.requests import to_chat_request, to_responses_request
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue

WEATHER = {"type": "function", "name": "get_weather", "description": "d", "parameters": {"type": "object"}}
CALL = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": '{"city": "Oslo"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
ASK = {"role": "user", "content": "hello"}


def context(request: JsonObject, **policy: JsonValue) -> Context:
    return Context("actual", Call("POST", "/", request), Receipt(), Target("m", policy=Policy(**policy)), request)


def to_chat(ctx_policy: JsonObject | None = None, **request: JsonValue) -> tuple[JsonObject, Context]:
    full = {"model": "m", **request}
    before, ctx = copy.deepcopy(full), context(full, **(ctx_policy or {}))
    made = to_chat_request(full, ctx)
    assert full == before, "the client's request was altered"
    assert [v.message for v in load_validator("hub/chat.request").violations(made)] == []
    return made, ctx


def to_responses(**request: JsonValue) -> tuple[JsonObject, Context]:
    full = {"model": "m", "messages": [ASK], **request}
    before, ctx = copy.deepcopy(full), context(full)
    made = to_responses_request(full, ctx)
    assert full == before, "the client's request was altered"
    assert [v.message for v in load_validator("hub/responses.request").violations(made)] == []
    return made, ctx


def refused(path: str, **request: JsonValue) -> Fault:
    full = {"model": "m", "input": "x", **request}
    ctx = context(full)
    with pytest.raises(Fault) as caught:
        to_chat_request(full, ctx)
    assert caught.value.locate(ctx.receipt).param == path
    return caught.value


def test_a_text_input_is_one_user_message() -> None:
    made, ctx = to_chat(input="hello", instructions="be brief")
    assert made["messages"] == [{"role": "system", "content": "be brief"}, ASK]
    assert ctx.receipt.unmap(("messages", 0, "content")) == ("instructions",)
    assert ctx.receipt.unmap(("messages", 1, "content")) == ("input",)


def test_a_turn_of_several_items_is_one_message() -> None:
    reasoning = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
        "encrypted_content": "sealed",
    }
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]}
    second = {**CALL, "call_id": "c2"}
    made, ctx = to_chat(input=[ASK, reasoning, said, CALL, second, {**OUTPUT, "call_id": "c2"}, OUTPUT])
    user, turn, first, other = made["messages"]
    assert user == ASK
    assert turn["reasoning_content"] == "long"
    assert turn["reasoning_signature"] == "sealed"
    assert turn["content"] == "Let me look."
    assert [call["id"] for call in turn["tool_calls"]] == ["c1", "c2"]
    assert [first["tool_call_id"], other["tool_call_id"]] == ["c1", "c2"], "results follow the order of the calls"
    assert ctx.receipt.unmap(("messages", 2, "content"))[:2] == ("input", 6)


def test_messages_of_one_turn_do_not_run_into_one_another() -> None:
    made, _ = to_chat(input=[ASK, {"role": "assistant", "content": "One."}, {"role": "assistant", "content": "Two."}])
    assert made["messages"][1:] == [{"role": "assistant", "content": "One.\n\nTwo."}]


def test_what_was_said_after_a_call_precedes_its_result() -> None:
    """Some providers write text after a call: behind the result, the model would have to continue it."""
    said = {"role": "assistant", "content": "I ask."}
    made, ctx = to_chat(input=[ASK, CALL, said, {**CALL, "call_id": "c2"}, {**OUTPUT, "call_id": "c2"}, OUTPUT])
    assert [message["role"] for message in made["messages"]] == ["user", "assistant", "tool", "tool"]
    assert made["messages"][1]["content"] == "I ask."
    assert [call["id"] for call in made["messages"][1]["tool_calls"]] == ["c1", "c2"]
    assert [message["tool_call_id"] for message in made["messages"][2:]] == ["c1", "c2"]
    assert [change.before for change in ctx.receipt.changes if change.weight == "loss"] == [("input", 2)]
    assert ctx.receipt.unmap(("messages", 1, "content")) == ("input", 2, "content")


def test_two_turns_stay_two_messages() -> None:
    said = {"role": "assistant", "content": "one"}
    made, _ = to_chat(input=[ASK, CALL, OUTPUT, said, ASK, {"role": "assistant", "content": "two"}])
    assert [message["role"] for message in made["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]


def test_objects_become_json_text() -> None:
    made, _ = to_chat(input=[{**CALL, "arguments": {"city": "Oslo"}}, {**OUTPUT, "output": {"sky": "blue"}}])
    turn, result = made["messages"]
    assert turn["content"] is None
    assert turn["tool_calls"][0]["function"]["arguments"] == '{"city":"Oslo"}'
    assert result["content"] == '{"sky":"blue"}'


def test_an_orphan_output_is_refused_with_its_path() -> None:
    refused("input[1].call_id", input=[ASK, OUTPUT])


def test_unknown_items_and_references_are_refused_with_their_path() -> None:
    fault = refused("input[1].type", input=[ASK, {"type": "compaction", "id": "cmp_1", "encrypted_content": "E"}])
    assert "chat has no place for compaction items" in str(fault)
    refused("input[1].type", input=[ASK, {"type": "surprise"}])
    refused("input[0]", input=[{"type": "item_reference", "id": "x"}])


def test_images_and_files_find_their_place() -> None:
    image = {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"}
    file = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}
    made, _ = to_chat(input=[{"role": "user", "content": [{"type": "input_text", "text": "see"}, image, file]}])
    assert made["messages"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}},
    ]


def test_what_a_tool_shows_comes_behind_its_result() -> None:
    image = {"type": "input_image", "image_url": "https://example.org/a.png"}
    second = {**CALL, "call_id": "c2"}
    outputs = [
        {**OUTPUT, "output": [image]},
        {**OUTPUT, "call_id": "c2", "output": [{"type": "input_text", "text": "t"}]},
    ]
    made, ctx = to_chat(input=[ASK, CALL, second, *outputs])
    assert [message["role"] for message in made["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    assert made["messages"][2]["content"] == "The result is shown in the next message."
    assert made["messages"][3]["content"] == "t"
    assert [part["type"] for part in made["messages"][4]["content"]] == ["image_url"]
    assert (ctx.receipt.losses, ctx.receipt.unmap(("messages", 4))) == ([], ("input", 3))


def test_parameters_find_their_place() -> None:
    schema = {"type": "object", "properties": {}}
    made, ctx = to_chat(
        input="x",
        max_output_tokens=50,
        reasoning={"effort": "low", "summary": "auto"},
        text={"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}, "verbosity": "low"},
        tools=[WEATHER],
        tool_choice={"type": "function", "name": "get_weather"},
        include=["message.output_text.logprobs", "reasoning.encrypted_content"],
        top_logprobs=3,
        stream=True,
        store=False,
        background=False,
        truncation="disabled",
    )
    assert made["max_completion_tokens"] == 50
    assert made["reasoning_effort"] == "low"
    assert made["verbosity"] == "low"
    described = {"name": "n", "schema": schema, "strict": True}
    assert made["response_format"] == {"type": "json_schema", "json_schema": described}
    function = {key: WEATHER[key] for key in ("name", "description", "parameters")}
    assert made["tools"] == [{"type": "function", "function": function}]
    assert made["tool_choice"] == {"type": "function", "function": {"name": "get_weather"}}
    assert (made["logprobs"], made["top_logprobs"]) == (True, 3)
    assert made["stream_options"] == {"include_usage": True}
    assert ctx.receipt.unmap(("max_completion_tokens",)) == ("max_output_tokens",)
    assert ctx.receipt.unmap(("response_format", "json_schema", "schema")) == ("text", "format", "schema")


def test_parameters_that_providers_of_chat_add_go_through() -> None:
    made, ctx = to_chat(input="x", top_k=5, min_p=0.1, repetition_penalty=1.1)
    assert (made["top_k"], made["min_p"], made["repetition_penalty"]) == (5, 0.1, 1.1)
    assert ctx.receipt.losses == []


def test_namespaces_are_flattened() -> None:
    space = {"type": "namespace", "name": "mcp", "description": "", "tools": [WEATHER]}
    made, _ = to_chat(input=[ASK, {**CALL, "namespace": "mcp"}], tools=[space])
    assert [tool["function"]["name"] for tool in made["tools"]] == ["mcp__get_weather"]
    assert made["messages"][1]["tool_calls"][0]["function"]["name"] == "mcp__get_weather"


PATCH: JsonObject = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edits files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "***"'},
}


def test_a_tool_with_free_text_is_a_function_with_one_text() -> None:
    past = [
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": '*** "x"\n'},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done."},
    ]
    made, ctx = to_chat(input=[ASK, *past], tools=[PATCH], tool_choice={"type": "custom", "name": "apply_patch"})
    [tool] = made["tools"]
    assert tool["function"]["parameters"]["properties"] == {"input": {"type": "string"}}
    assert tool["function"]["description"] == 'Edits files.\n\n`input` follows this lark grammar:\nstart: "***"'
    assert made["tool_choice"] == {"type": "function", "function": {"name": "apply_patch"}}
    [call] = made["messages"][1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"input": '*** "x"\n'}
    assert made["messages"][2] == {"role": "tool", "tool_call_id": "c1", "content": "Done."}
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["tools[0]"], "the grammar is not enforced"
    _, ctx = to_chat(input="x", tools=[{"type": "custom", "name": "note"}])
    assert ctx.receipt.losses == []


def test_of_allowed_tools_no_other_is_offered() -> None:
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}]}
    made, ctx = to_chat(input="x", tools=[WEATHER, {**WEATHER, "name": "b"}], tool_choice=allowed)
    assert [tool["function"]["name"] for tool in made["tools"]] == ["b"]
    assert (made["tool_choice"], ctx.receipt.losses) == ("required", [])
    assert ctx.receipt.unmap(("tools", 0)) == ("tools", 1)
    refused("tool_choice", tools=[WEATHER], tool_choice=allowed)


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    made, ctx = to_chat(input=[ASK, thought, ASK, thought, CALL, OUTPUT, thought])
    assert [message["role"] for message in made["messages"]] == ["user", "user", "assistant", "tool"]
    assert made["messages"][2]["reasoning_content"] == "hm"
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["input[1]", "input[6]"]
    assert ctx.receipt.unmap(("messages", 2, "reasoning_content"))[0] == "input"


def test_what_the_provider_offered_before_is_left_out() -> None:
    found = {"type": "tool_search_output", "id": "t", "call_id": None, "tools": []}
    listed = {"type": "mcp_list_tools", "id": "m", "server_label": "s", "tools": []}
    made, ctx = to_chat(input=[ASK, listed, {**found, "execution": "server"}])
    assert made["messages"] == [ASK]
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["input[1]", "input[2]"]
    refused("input[1].type", input=[ASK, {**found, "execution": "client"}])


def test_tools_that_the_input_adds_are_tools() -> None:
    space = {"type": "namespace", "name": "functions", "tools": [PATCH, WEATHER, {"type": "web_search"}]}
    added = {"type": "additional_tools", "role": "developer", "tools": [space]}
    made, ctx = to_chat(input=[added, ASK], tools=[WEATHER])
    names = ["get_weather", "functions__apply_patch", "functions__get_weather"]
    assert [tool["function"]["name"] for tool in made["tools"]] == names
    assert made["messages"] == [ASK]
    assert ctx.receipt.unmap(("tools", 1))[:2] == ("input", 0)
    losses = [change.public()["before"] for change in ctx.receipt.losses]
    assert losses == ["input[0].tools[0].tools[0]", "input[0].tools[0].tools[2]"]


def test_two_tools_with_one_name_in_chat_are_refused() -> None:
    space = {"type": "namespace", "name": "files", "tools": [WEATHER]}
    alike = {**WEATHER, "name": "files__get_weather"}
    refused("tools[1].name", input="x", tools=[space, alike])
    refused("tools[1].tools[0].name", input="x", tools=[alike, space])
    deeper = {"type": "namespace", "name": "files__get", "tools": [{**WEATHER, "name": "weather"}]}
    refused(
        "tools[1].tools[0].name", input="x", tools=[{**space, "tools": [{**WEATHER, "name": "get__weather"}]}, deeper]
    )


def test_hosted_tools_are_left_out_while_the_choice_is_free() -> None:
    search = {"type": "web_search"}
    made, ctx = to_chat(input="x", tools=[search, WEATHER])
    assert len(made["tools"]) == 1
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["tools[0]"]
    refused("tools[0]", tools=[search], tool_choice="auto")
    made, ctx = to_chat({"unsupported": "drop"}, input="x", tools=[search], tool_choice="auto")
    assert made.keys().isdisjoint({"tools", "tool_choice"})
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["tools[0]"]
    refused("tools[0]", tools=[search], tool_choice="required")
    refused("tool_choice", tools=[search, WEATHER], tool_choice={"type": "web_search"})


def test_what_only_a_keeper_of_conversations_could_serve_is_refused() -> None:
    refused("background", background=True)
    refused("conversation", conversation="c")
    refused("prompt", prompt={"id": "p"})


def test_extras_do_not_cross_a_translation() -> None:
    made, ctx = to_chat(input="x", made_up=1)
    assert "made_up" not in made
    assert [change.public()["before"] for change in ctx.receipt.losses] == ["made_up"]


def test_chat_to_responses() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    function = {"name": "f", "parameters": {"type": "object"}}
    made, _ = to_responses(
        messages=[
            {"role": "system", "content": "be brief"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                ],
            },
            {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
            {"role": "developer", "content": "now in French"},
        ],
        max_tokens=20,
        reasoning_effort="low",
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        tools=[{"type": "function", "function": function}],
        tool_choice={"type": "function", "function": {"name": "f"}},
        logprobs=True,
        stream=True,
        stream_options={"include_usage": True},
    )
    assert made["instructions"] == "be brief"
    assert made["input"] == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        {"type": "message", "role": "developer", "content": "now in French"},
    ]
    assert made["max_output_tokens"] == 20
    assert made["reasoning"] == {"effort": "low"}
    assert made["text"] == {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}
    assert made["tools"] == [{"type": "function", **function, "strict": False}]
    assert made["tool_choice"] == {"type": "function", "name": "f"}
    assert made["include"] == ["message.output_text.logprobs"]
    assert made["top_logprobs"] == 0


def test_chat_is_kept_by_nobody_unless_it_asks_for_it() -> None:
    for store, expected in ((None, False), (False, False), (True, True)):
        made, _ = to_responses(messages=[ASK], store=store)
        assert made["store"] is expected
    made, _ = to_responses(messages=[ASK])
    assert made["store"] is False


@pytest.mark.parametrize("field", [{"n": 2}, {"stop": "END"}, {"seed": 1}, {"logit_bias": {"1": 2}}])
def test_what_responses_has_no_place_for_is_refused_by_default(field: JsonObject) -> None:
    request = {"model": "m", "messages": [ASK], **field}
    with pytest.raises(Fault) as caught:
        to_responses_request(request, context(request))
    assert caught.value.param == next(iter(field))
    ctx = context(request, unsupported="drop")
    made = to_responses_request(request, ctx)
    assert made.keys().isdisjoint(field)
    assert [change.public()["before"] for change in ctx.receipt.losses] == list(field)


def test_a_limit_of_hosted_tools_only_advises() -> None:
    made, ctx = to_chat(input="x", max_tool_calls=3)
    assert "max_tool_calls" not in made
    assert "max_tool_calls" in str(ctx.receipt.header())


@pytest.mark.parametrize("body", [{"input": []}, {"input": ""}, {"input": [], "instructions": ""}])
def test_an_empty_input_is_refused_by_its_own_name(body: JsonObject) -> None:
    refused("input", **body)


@pytest.mark.parametrize("name", ["prompt", "conversation"])
def test_what_would_stand_for_the_input_is_named(name: str) -> None:
    refused(name, input=None, **{name: {"id": "x"}})


def lost(ctx: Context) -> list[str]:
    return [str(change.public()["before"]) for change in ctx.receipt.losses]


def test_what_an_assistant_said_in_chat_becomes_items_whole() -> None:
    refused = {"type": "refusal", "refusal": "I won't."}
    made, ctx = to_responses(messages=[ASK, {"role": "assistant", "content": [{"type": "text", "text": "a"}, refused]}])
    parts = [{"type": "output_text", "text": "a", "annotations": []}, refused]
    assert made["input"][1:] == [{"type": "message", "role": "assistant", "content": parts}]
    assert lost(ctx) == []


def test_a_call_in_the_old_form_and_its_result_share_an_id() -> None:
    called = {"role": "assistant", "content": "t", "function_call": {"name": "f", "arguments": "{}"}}
    made, ctx = to_responses(messages=[ASK, called, {"role": "function", "name": "f", "content": "r"}])
    _, said, call, result = made["input"]
    assert said["content"][0]["text"] == "t"
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "f", "{}")
    assert (result["type"], result["output"]) == ("function_call_output", "r")
    assert call["call_id"] == result["call_id"]
    assert lost(ctx) == []
    full = {"model": "m", "messages": [ASK, {"role": "function", "name": "f", "content": "r"}]}
    with pytest.raises(Fault) as caught:
        to_responses_request(full, context(full))
    assert caught.value.param == "messages[1].name"


def test_keys_that_have_no_place_in_responses_are_told() -> None:
    cache = {"cache_control": {"type": "ephemeral"}}
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "vendor": 1}}
    call = {"id": "c1", "type": "function", "index": 0, "function": {"name": "f", "arguments": "{}"}, **cache}
    _, ctx = to_responses(
        messages=[
            {"role": "system", "content": [{"type": "text", "text": "x", **cache}], "name": "n"},
            {"role": "user", "content": [{"type": "text", "text": "x", **cache}, image], "vendor": 1},
            {"role": "assistant", "content": "hi", "audio": {"id": "a"}, "annotations": [], "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x", **cache}]},
        ],
        tools=[{"type": "function", "function": {"name": "f", "vendor": 1}, **cache}],
        response_format={"type": "text", "vendor": 1},
    )
    assert sorted(lost(ctx)) == [
        "messages[0].content[0].cache_control",
        "messages[0].name",
        "messages[1].content[0].cache_control",
        "messages[1].content[1].image_url.vendor",
        "messages[1].vendor",
        "messages[2].audio",
        "messages[2].tool_calls[0].cache_control",
        "messages[3].content[0].cache_control",
        "response_format.vendor",
        "tools[0].cache_control",
        "tools[0].function.vendor",
    ]


def test_keys_that_have_no_place_in_chat_are_told() -> None:
    image = {"type": "input_image", "image_url": "https://example.org/a.png", "file_id": "f", "detail": "auto"}
    file = {"type": "input_file", "file_id": "f", "detail": "auto"}
    note = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    said = {"type": "output_text", "text": "t", "annotations": [note], "logprobs": []}
    space = {"type": "namespace", "name": "s", "description": "d", "tools": [{**WEATHER, "defer_loading": True}]}
    _, ctx = to_chat(
        input=[
            {"role": "user", "content": [{"type": "input_text", "text": "x", "vendor": 1}, image, file], "vendor": 1},
            {
                "type": "message",
                "id": "m",
                "status": "completed",
                "role": "assistant",
                "content": [said],
                "phase": "commentary",
            },
            {**CALL, "id": "fc", "status": "completed", "vendor": 1},
            {**OUTPUT, "id": "o", "status": "completed", "output": [{"type": "input_text", "text": "x", "vendor": 1}]},
        ],
        tools=[{**WEATHER, "strict": False, "vendor": 1}, {**PATCH, "vendor": 1}, space],
    )
    assert sorted(set(lost(ctx)) - {"tools[1]"}) == [
        "input[0].content[0].vendor",
        "input[0].content[1].file_id",
        "input[0].vendor",
        "input[1].content[0].annotations",
        "input[1].phase",
        "input[2].vendor",
        "input[3].output[0].vendor",
        "tools[0].vendor",
        "tools[1].vendor",
        "tools[2].description",
        "tools[2].tools[0].defer_loading",
    ]


def test_of_several_seals_none_is_put_to_a_text_that_it_does_not_belong_to() -> None:
    both = {"summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}]}
    first = {"type": "reasoning", **both, "encrypted_content": "E1"}
    second = {"type": "reasoning", "summary": [], "encrypted_content": "E2"}
    said = {"role": "assistant", "content": "a"}
    made, ctx = to_chat(input=[ASK, first, second, said])
    details = [
        {"type": "reasoning.text", "text": "t", "signature": "E1", "index": 0},
        {"type": "reasoning.encrypted", "data": "E2", "index": 1},
    ]
    thoughts = {"reasoning_content": "t", "reasoning_signature": "E1", "reasoning_details": details}
    assert made["messages"][1] == {**said, **thoughts}
    assert lost(ctx) == ["input[1].summary"]
    empty = {"type": "reasoning", "summary": []}
    made, ctx = to_chat(input=[ASK, empty, second, said])
    assert made["messages"][1] == {**said, "reasoning_details": [{**details[1], "index": 0}]}
    assert lost(ctx) == []


GRAMMAR = {"syntax": "lark", "definition": 'start: "a"'}


def test_a_custom_tool_of_chat_its_calls_and_its_results_become_items_of_their_own() -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    other = {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    made, ctx = to_responses(
        messages=[
            ASK,
            {"role": "assistant", "content": None, "tool_calls": [call, other]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
            {"role": "tool", "tool_call_id": "c2", "content": "done"},
        ],
        tools=[{"type": "custom", "custom": {"name": "patch", "format": {"type": "grammar", "grammar": GRAMMAR}}}],
        tool_choice={"type": "custom", "custom": {"name": "patch"}},
    )
    assert made["tools"] == [{"type": "custom", "name": "patch", "format": {"type": "grammar", **GRAMMAR}}]
    assert made["tool_choice"] == {"type": "custom", "name": "patch"}
    assert made["input"][1:] == [
        {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "*** Begin"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
        {"type": "function_call_output", "call_id": "c2", "output": "done"},
    ]
    grammar = ("tools", 0, "custom", "format", "grammar", "definition")
    assert ctx.receipt.unmap(("tools", 0, "format", "definition")) == grammar
    assert ctx.receipt.losses == []


@pytest.mark.parametrize("form", [{"type": "text"}, None])
def test_a_custom_tool_without_a_grammar(form: JsonObject | None) -> None:
    tool = {"name": "patch", "description": "d"} | ({"format": form} if form else {})
    made, _ = to_responses(tools=[{"type": "custom", "custom": tool}])
    assert made["tools"] == [{"type": "custom", **tool}]
