"""The Messages of the fakes, as Anthropic's own client reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anthropic
import pytest
from anthropic.types import ToolParam

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.fakes.answers import REFUSAL, SENTENCE, THOUGHTS
from dragoman.contract.fakes.messages import convert_message_to_chat

TOOL: ToolParam = {
    "name": "get_weather",
    "description": "Weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
OLD = {"anthropic-version": "2023-06-01"}


@pytest.fixture
async def fake() -> AsyncIterator[FakeProvider]:
    async with FakeProvider("anthropic", api_key="sk-fake") as fake:
        yield fake


@pytest.fixture
async def client(fake: FakeProvider) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=fake.base_url, api_key="sk-fake", max_retries=0) as client:
        yield client


async def ask(client: anthropic.AsyncAnthropic, text: str = "hello", **fields: Any) -> anthropic.types.Message:
    message: anthropic.types.Message = await client.messages.create(
        model="m", max_tokens=64, messages=[{"role": "user", "content": text}], **fields
    )
    return message


async def read_stream(client: anthropic.AsyncAnthropic, text: str) -> anthropic.types.Message:
    message: anthropic.types.MessageParam = {"role": "user", "content": text}
    async with client.messages.stream(model="m", max_tokens=64, messages=[message], tools=[TOOL]) as stream:
        return await stream.get_final_message()


@pytest.mark.parametrize(
    ("behaviour", "blocks", "stop_reason"),
    [
        ("text", ["text"], "end_turn"),
        ("tools", ["tool_use"], "tool_use"),
        ("parallel-tools", ["tool_use", "tool_use"], "tool_use"),
        ("reasoning", ["thinking", "text"], "end_turn"),
        ("redacted-thinking", ["thinking", "redacted_thinking", "text"], "end_turn"),
        ("citations", ["text", "text"], "end_turn"),
        ("server-tool", ["server_tool_use", "web_search_tool_result", "text"], "end_turn"),
        ("refusal", ["text"], "refusal"),
        ("content-filter", ["text"], "refusal"),
        ("length", ["text"], "max_tokens"),
        ("pause-turn", ["text"], "pause_turn"),
        ("context-full", ["text"], "model_context_window_exceeded"),
        ("pings", ["text"], "end_turn"),
        ("two-done", ["text"], "end_turn"),
        ("unknown-event", ["text"], "end_turn"),
    ],
)
async def test_stream_adds_up_to_the_message(
    behaviour: str, blocks: list[str], stop_reason: str, client: anthropic.AsyncAnthropic
) -> None:
    whole, final = await ask(client, f"fake:{behaviour}", tools=[TOOL]), await read_stream(client, f"fake:{behaviour}")
    for message in (whole, final):
        assert ([block.type for block in message.content], message.stop_reason) == (blocks, stop_reason)
    assert whole.usage == final.usage
    contents = [[block.to_dict() for block in message.content] for message in (whole, final)]
    for content in contents:
        for block in content:
            block.pop("id", None)
    assert contents[0] == contents[1]


async def test_fake_answers_as_the_request_asks(client: anthropic.AsyncAnthropic) -> None:
    named = await ask(client, tools=[TOOL], tool_choice={"type": "tool", "name": "get_weather"})
    assert [block.to_dict()["input"] for block in named.content] == [{"city": "東京"}]
    free = await ask(client, "get_weather, please", tools=[TOOL], tool_choice={"type": "none"})
    assert [block.type for block in free.content] == ["text"]
    thought = await ask(client, thinking={"type": "adaptive"})
    assert thought.content[0].to_dict()["thinking"] == THOUGHTS
    stopped = await ask(client, stop_sequences=["both"])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "both")
    assert stopped.content[0].to_dict()["text"] == SENTENCE.partition("both")[0]
    refused = await ask(client, "fake:refusal")
    assert refused.content[0].to_dict()["text"] == REFUSAL


async def test_fake_reads_results_of_tools(client: anthropic.AsyncAnthropic) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}}
    results = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "sunny"}]}]
    talk: list[Any] = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": results},
    ]
    message = await client.messages.create(model="m", max_tokens=64, messages=talk, tools=[TOOL])
    assert message.content[0].to_dict()["text"] == "The tools said: sunny"


def test_results_become_messages_before_the_text() -> None:
    blocks = [
        {"type": "text", "text": "Well?"},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"},
        {"type": "tool_result", "tool_use_id": "toolu_2"},
    ]
    chat = convert_message_to_chat({"system": "Be brief.", "messages": [{"role": "user", "content": blocks}]})
    assert [(message["role"], message["content"]) for message in chat["messages"]] == [
        ("system", "Be brief."),
        ("tool", "sunny"),
        ("tool", ""),
        ("user", "Well?"),
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"extra_body": {"temperature": 1}}, "temperature: Extra inputs are not permitted"),
        ({"extra_body": {"x_unknown": 1}}, "x_unknown: Extra inputs are not permitted"),
        ({"extra_headers": {"anthropic-version": "2020-01-01"}}, "anthropic-version:"),
        ({"extra_body": {"max_tokens": "many"}}, "max_tokens: "),
        ({"extra_body": {"messages": [{"content": "a"}]}}, "messages.0.role: Field required"),
    ],
)
async def test_fake_refuses_as_the_service_does(
    fields: dict[str, Any], message: str, client: anthropic.AsyncAnthropic
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        await ask(client, **fields)
    assert (caught.value.type, caught.value.request_id) == ("invalid_request_error", "req_fake")
    assert str(caught.value.api_message).startswith(message)


async def test_old_version_takes_sampling_parameters(client: anthropic.AsyncAnthropic) -> None:
    message = await ask(client, extra_body={"temperature": 1, "top_k": 5}, extra_headers=OLD)
    assert message.content[0].type == "text"


async def test_a_version_is_required(fake: FakeProvider, client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="anthropic-version: header is required"):
        await ask(client, extra_headers={"anthropic-version": anthropic.omit})


async def test_errors_have_the_types_of_the_service(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.OverloadedError) as overloaded:
        await ask(client, "fake:status-529")
    assert overloaded.value.type == "overloaded_error"
    with pytest.raises(anthropic.NotFoundError):
        await ask(client, "fake:model-not-found")
    with pytest.raises(anthropic.APIStatusError) as failed:
        await read_stream(client, "fake:error-event(status=529)")
    assert (failed.value.type, failed.value.status_code) == ("overloaded_error", 200)
    with pytest.raises(anthropic.AuthenticationError):
        await ask(client.copy(api_key="wrong"))


async def test_tokens_are_counted_and_models_are_listed(client: anthropic.AsyncAnthropic) -> None:
    counted = await client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "one two three"}])
    assert counted.input_tokens == 4
    assert [model.id async for model in client.models.list()] == ["fake-model"]


async def test_key_may_be_in_either_header(fake: FakeProvider, session: aiohttp.ClientSession) -> None:
    for headers in ({"x-api-key": "sk-fake"}, {"Authorization": "Bearer sk-fake"}):
        async with session.get(f"{fake.base_url}/v1/models", headers={**OLD, **headers}) as response:
            assert response.status == 200
