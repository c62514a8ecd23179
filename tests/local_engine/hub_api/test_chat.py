"""Chat in hub form: valid chunks, the meaning of each parameter, tool calls, reasoning and errors."""

from __future__ import annotations

import json
from pathlib import Path as FilePath

import pytest
from service_rig import CPU, HI, Services, export_family, function_tool, script, send_chat, stream_chat

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path
from dragoman.local_engine.engine import Engine
from dragoman.local_engine.model_folder.files import FolderError
from dragoman.local_engine.service import EngineService, collect_reply

FAMILIES = ["hermes", "qwen_thinking", "llama3", "mistral", "mistral_args", "pythonic"]
UNITS = {
    "type": "object",
    "properties": {"unit": {"enum": ["C", "F"]}, "on": {"type": "boolean"}},
    "required": ["unit"],
}
TOOLS = [function_tool("weather", UNITS), function_tool("clock")]


async def test_a_stream_starts_with_the_role_and_ends_with_usage(services: Services) -> None:
    found = await stream_chat(
        services("hermes"), max_tokens=8, seed=3, n=2, stream=True, stream_options={"include_usage": True}
    )
    assert [chunk["choices"][0]["delta"] for chunk in found[:2]] == [{"role": "assistant", "content": ""}] * 2
    ends = [chunk["choices"][0] for chunk in found if chunk["choices"] and chunk["choices"][0]["finish_reason"]]
    assert sorted((end["index"], end["finish_reason"]) for end in ends) == [(0, "length"), (1, "length")]
    assert found[-1]["usage"]["completion_tokens"] == 16 and not found[-1]["choices"]
    assert len({(chunk["id"], chunk["model"], chunk["created"]) for chunk in found}) == 1
    assert not any("usage" in chunk for chunk in await stream_chat(services("hermes"), max_tokens=2, stream=True))


async def test_a_repeated_prompt_is_reused(services: Services) -> None:
    messages = [{"role": "user", "content": "the same long prefix, word for word"}]
    first = await send_chat(services("hermes"), messages=messages, max_tokens=2)
    again = await send_chat(services("hermes"), messages=messages, max_tokens=2)
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > first["usage"]["prompt_tokens"] // 2


async def test_a_seed_gives_the_same_text_and_choices_differ(services: Services) -> None:
    request: JsonObject = {"seed": 7, "n": 2, "max_tokens": 12, "min_p": 0.01, "top_k": 50, "top_p": 0.9}
    one, two = [await send_chat(services("hermes"), **request) for _ in range(2)]
    texts = [choice["message"]["content"] for choice in one["choices"]]
    assert texts == [choice["message"]["content"] for choice in two["choices"]] and texts[0] != texts[1]


async def test_each_token_has_its_log_probabilities(services: Services) -> None:
    found = await send_chat(services("hermes"), logprobs=True, top_logprobs=3, max_tokens=10, temperature=0)
    logprobs = found["choices"][0]["logprobs"]["content"]
    assert len(logprobs) == 10
    assert all(one["top_logprobs"][0]["logprob"] == one["logprob"] <= 0 for one in logprobs)
    assert all(len(one["top_logprobs"]) == 3 for one in logprobs)
    assert (
        b"".join(bytes(one["bytes"]) for one in logprobs).decode(errors="replace")
        == found["choices"][0]["message"]["content"]
    )


async def test_logit_bias_and_stop_sequences(services: Services) -> None:
    request: JsonObject = {"logit_bias": {"65": 100}, "max_tokens": 6, "temperature": 0}
    assert (await send_chat(services("hermes"), **request))["choices"][0]["message"]["content"] == "AAAAAA"
    found = await send_chat(services("hermes"), **request, stop=["AAA"])
    assert (found["choices"][0]["message"]["content"], found["choices"][0]["finish_reason"]) == ("", "stop")
    found = await send_chat(services("hermes"), **request, stop="AAA", include_stop_str_in_output=True)
    assert found["choices"][0]["message"]["content"] == "AAA"
    found = await send_chat(
        services("hermes"), logit_bias={"65": 2}, frequency_penalty=2, max_tokens=6, stop_token_ids=[65]
    )
    assert found["usage"]["completion_tokens"] <= 6


CALL = '<tool_call>\n{"name": "weather", "arguments": {"unit": "C"}}\n</tool_call>'


async def test_tool_calls_are_streamed_with_unique_ids(services: Services) -> None:
    service = script(services("hermes"), f"Let me see.\n{CALL}\n{CALL}", CALL)
    found = collect_reply(await stream_chat(service, tools=TOOLS, n=2))
    one, two = [choice["message"] for choice in found["choices"]]
    assert one["content"] == "Let me see." and two["content"] is None
    calls = [*one["tool_calls"], *two["tool_calls"]]
    assert len({call["id"] for call in calls}) == 3
    assert all(json.loads(call["function"]["arguments"]) == {"unit": "C"} for call in calls)
    assert [choice["finish_reason"] for choice in found["choices"]] == ["tool_calls", "tool_calls"]
    assert found["usage"]["prompt_tokens_details"]["cached_tokens"] == 2
    deltas = [c["choices"][0]["delta"] for c in await stream_chat(service, tools=TOOLS, n=2) if c["choices"]]
    assert sum("tool_calls" in delta for delta in deltas) > 6, "arguments are streamed"


async def test_without_tools_a_tool_call_is_content(services: Services) -> None:
    for request in ({}, {"tools": TOOLS, "tool_choice": "none"}):
        found = await send_chat(script(services("hermes"), CALL), **request)
        assert found["choices"][0]["message"]["content"] == CALL


async def test_legacy_functions_get_a_function_call(services: Services) -> None:
    functions = [one["function"] | {"parameters": UNITS} for one in TOOLS]
    found = await send_chat(script(services("hermes"), CALL), functions=functions)
    assert found["choices"][0]["finish_reason"] == "function_call"
    assert found["choices"][0]["message"]["function_call"] == {"name": "weather", "arguments": '{"unit": "C"}'}


async def test_reasoning_is_separated_and_counted(services: Services) -> None:
    service = script(services("qwen_thinking"), f"<think>\nhm, hm\n</think>\n\nYes. {CALL}")
    message = (found := await send_chat(service, tools=TOOLS))["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("hm, hm", "Yes.")
    assert message["tool_calls"][0]["function"]["name"] == "weather"
    assert 4 <= found["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 9
    service = script(services("qwen_thinking"), "so be it</think>done")
    message = (await send_chat(service, chat_template_kwargs={"always": True}))["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("so be it", "done")


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_required_tool_is_called(services: Services, family: str) -> None:
    named: JsonObject = {"type": "function", "function": {"name": "weather"}}
    allowed: JsonObject = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": [function_tool("weather")]},
    }
    switched = {"reasoning_effort": "none"} if family == "qwen_thinking" else {}
    for choice in (named, allowed, "required"):
        more: JsonObject = {
            "tool_choice": choice,
            "parallel_tool_calls": choice != named,
            "max_tokens": 2000,
            **switched,
        }
        found = await send_chat(services(family), tools=TOOLS, seed=5, **more)
        (made,) = found["choices"]
        assert made["finish_reason"] == "tool_calls" and not made["message"]["content"]
        for call in made["message"]["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            assert call["function"]["name"] == "weather" or (choice == "required" and arguments == {})
            assert choice == "required" or arguments["unit"] in ("C", "F")
            assert len(call["id"]) == 9 if family.startswith("mistral") else call["id"].startswith("call_")


def schema_format(schema: JsonObject, strict: bool) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": strict, "schema": schema}}


def tool_of(parameters: JsonObject) -> JsonObject:
    return {"type": "function", "function": {"name": "f", "parameters": parameters}}


INVALID: list[tuple[JsonObject, Path]] = [
    ({"temperature": 3}, ("temperature",)),
    ({"n": 200}, ("n",)),
    ({"n": 100}, ("n",)),
    ({"logit_bias": {"99999": 1}}, ("logit_bias",)),
    ({"logit_bias": {"word": 1}}, ("logit_bias", "word")),
    ({"logit_bias": {"5": 101}}, ("logit_bias", "5")),
    ({"modalities": ["audio"]}, ("modalities",)),
    ({"use_beam_search": True}, ("use_beam_search",)),
    ({"best_of": 3}, ("best_of",)),
    ({"unheard_of": 1}, ("unheard_of",)),
    ({"messages": [{"role": "user", "content": "x" * 5000}]}, ("messages",)),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
        ("messages", 0, "content", 0, "type"),
    ),
    ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, ("tools", 0, "type")),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}}, ("tool_choice",)),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "thing"}}}},
        ("response_format", "json_schema", "schema"),
    ),
    (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "x", "strict": True, "schema": {"type": "array", "uniqueItems": True}},
            }
        },
        ("response_format", "json_schema", "schema"),
    ),
    *(
        ({"response_format": schema_format(schema, strict)}, ("response_format", "json_schema", "schema"))
        for strict in (False, True)
        for schema in (
            {"$ref": "#"},
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
            {"allOf": [{"$ref": "#"}]},
            {"$ref": "#/$defs/missing"},
            {"type": "string", "pattern": "("},
        )
    ),
    *(
        ({"tools": [tool_of({"type": "object", "properties": {"a": schema}})]}, ("tools",))
        for schema in ({"$ref": "#/properties/a"}, {"type": "thing"})
    ),
    *(({"chat_template_kwargs": {name: 1}}, ("chat_template_kwargs", name)) for name in ("self", "messages")),
]


@pytest.mark.parametrize(("request_", "path"), INVALID, ids=lambda value: str(value)[:40])
async def test_an_invalid_request_is_rejected_with_its_path(
    services: Services, request_: JsonObject, path: Path
) -> None:
    with pytest.raises(Fault) as raised:
        await send_chat(services("hermes"), **request_)
    assert raised.value.path == path and raised.value.owner == "client"


async def test_closing_the_stream_frees_the_engine(services: Services) -> None:
    service = services("hermes")
    stream = service.chat({"model": "m", "messages": HI, "ignore_eos": True})
    await anext(stream)
    await stream.aclose()
    assert (await send_chat(service, max_tokens=1))["usage"]["completion_tokens"] == 1
    assert service._engine is not None and service._engine.statistics()["running"] == 0


async def test_a_folder_without_a_chat_template_supports_completions_only(services: Services) -> None:
    plain = services("plain")
    assert plain.operations == ("completions",) and plain.name == "plain"
    with pytest.raises(Fault, match="it has no chat template"):
        await send_chat(plain)
    with pytest.raises(Fault, match="embeddings need an encoder"):
        await plain.embeddings({"model": "m", "input": "x"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tools": "x"}, "it must be one of"),
        ({"reasoning": 3}, "reasoning must be true"),
        ({"template": "no.jinja"}, "not a file"),
    ],
)
async def test_an_invalid_setting_of_dragoman_json_is_rejected(
    tmp_path: FilePath, settings: JsonObject, message: str
) -> None:
    folder = export_family(tmp_path, "hermes")
    (folder / "dragoman.json").write_text(json.dumps(settings))
    engine = Engine.load(folder, CPU)
    with pytest.raises(FolderError, match=message):
        EngineService(engine)
    engine.close()
