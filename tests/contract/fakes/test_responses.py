"""The Responses of the fakes, as OpenAI's own client reads them."""

from __future__ import annotations

import openai
import pytest
from openai.types.responses import FunctionToolParam
from openai.types.responses.response_input_param import FunctionCallOutput

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.fakes.answers import SENTENCE
from dragoman.contract.fakes.responses import convert_to_chat

TOOL: FunctionToolParam = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}


async def test_client_reads_text_calls_and_reasoning() -> None:
    async with FakeProvider("openai") as fake, openai.AsyncOpenAI(base_url=fake.base_url, api_key="any") as client:
        whole = await client.responses.create(model="m", input="hello", instructions="Be brief.")
        assert (whole.output_text, whole.status, whole.instructions) == (SENTENCE, "completed", "Be brief.")
        called = await client.responses.create(model="m", input="hello", tools=[TOOL], tool_choice="required")
        assert [item.type for item in called.output] == ["function_call"]
        thought = await client.responses.create(model="m", input="hello", reasoning={"effort": "low"})
        assert [item.type for item in thought.output] == ["reasoning", "message"]
        cut = await client.responses.create(model="m", input="hello", max_output_tokens=16)
        assert cut.usage is not None and cut.usage.output_tokens <= 16


async def test_stream_adds_up_to_the_response() -> None:
    async with FakeProvider("openai") as fake, openai.AsyncOpenAI(base_url=fake.base_url, api_key="any") as client:
        async with client.responses.stream(model="m", input="fake:parallel-tools hello") as stream:
            types = [event.type async for event in stream]
            final = await stream.get_final_response()
        assert [item.type for item in final.output] == ["function_call", "function_call"]
        assert types[0] == "response.created"
        assert types[-1] == "response.completed"


async def test_the_last_user_message_names_a_behaviour_on_any_of_its_lines() -> None:
    async with FakeProvider("openai") as fake, openai.AsyncOpenAI(base_url=fake.base_url, api_key="any") as client:
        said = await client.responses.create(
            model="m", input=[{"role": "user", "content": "Say:\nfake:text(say=a\nb)"}]
        )
        assert said.output_text == "a\nb"


async def test_fake_refuses_to_continue_unknown_responses_and_calls() -> None:
    async with FakeProvider("openai") as fake, openai.AsyncOpenAI(base_url=fake.base_url, api_key="any") as client:
        with pytest.raises(openai.BadRequestError, match="not found") as caught:
            await client.responses.create(model="m", input="hello", previous_response_id="resp_1")
        assert caught.value.param == "previous_response_id"
        output: FunctionCallOutput = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
        with pytest.raises(openai.BadRequestError, match="No tool call found"):
            await client.responses.create(model="m", input=[output])


def test_request_is_converted_to_chat() -> None:
    chat = convert_to_chat(
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "sunny"},
            ],
            "tools": [TOOL],
            "tool_choice": {"type": "function", "name": "get_weather"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
            "max_output_tokens": 20,
        }
    )
    assert [message["role"] for message in chat["messages"]] == ["system", "user", "assistant", "tool"]
    assert chat["tools"][0]["function"]["name"] == "get_weather"
    assert chat["tool_choice"] == {"type": "function", "function": {"name": "get_weather"}}
    assert chat["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert chat["max_completion_tokens"] == 20
