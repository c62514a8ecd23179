"""What OpenAI's SDK does, and what the SDKs that extend it do alike: chat, embeddings and Responses of a client."""

import json

from checks import *
from pydantic import BaseModel


class City(BaseModel):
    name: str
    inhabitants: int


def check_chat(client):
    check_streams(client)
    check_tools(client)
    check_structured_output(client)

    @check("errors")
    def _():
        raises_text(lambda: client.chat.completions.create(model=MODEL, messages=user(FAILING)), FAILURE)

    @check("errors in streams")
    def _():
        raises_text(lambda: stream(client, BROKEN), BREAKDOWN)


def check_streams(client):
    @check("stream")
    def _():
        chunks = stream(client, "Hello")
        equal("".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices), SENTENCE)

    @check("usage in streams")
    def _():
        assert [chunk for chunk in stream(client, "Hello", stream_options={"include_usage": True}) if chunk.usage]


def stream(client, text, **more):
    return list(client.chat.completions.create(model=MODEL, messages=user(text), stream=True, **more))


def check_tools(client):
    @check("tools")
    def _():
        messages = user(TOOLS)
        reply = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER_TOOL])
        call = get_call(reply.choices[0].message)
        messages += [reply.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
        again = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER_TOOL])
        contains(again.choices[0].message.content, RESULT)

    @check("streamed tools")
    def _():
        with client.chat.completions.stream(model=MODEL, messages=user(TOOLS), tools=[WEATHER_TOOL]) as events:
            get_call(events.get_final_completion().choices[0].message)


def get_call(message):
    (call,) = message.tool_calls
    equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Rome"}))
    return call


def check_structured_output(client):
    @check("structured output")
    def _():
        reply = client.chat.completions.parse(model=MODEL, messages=user("Name a city."), response_format=City)
        assert reply.choices[0].message.parsed.name


def check_embeddings(client):
    @check("embeddings")
    def _():
        equal(len(client.embeddings.create(model=MODEL, input=["a", "b"]).data), 2)


def check_responses(client):
    @check("responses")
    def _():
        response = client.responses.create(model=MODEL, input="Hello", instructions="Be brief.")
        equal(response.output_text, SENTENCE)
        contains(client.responses.parse(model=MODEL, input="Name a city.", text_format=City).output_parsed, "name")

    @check("streamed responses")
    def _():
        with client.responses.stream(model=MODEL, input="Hello") as events:
            equal(events.get_final_response().output_text, SENTENCE)

    @check("responses with tools")
    def _():
        tool = {"type": "function", "strict": False, **WEATHER}
        first = client.responses.create(model=MODEL, input=TOOLS, tools=[tool])
        (call,) = [item for item in first.output if item.type == "function_call"]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
        second = client.responses.create(model=MODEL, input=[*user(TOOLS), *first.output, result], tools=[tool])
        contains(second.output_text, RESULT)
