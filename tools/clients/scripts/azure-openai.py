from checks import *

# recipe
from openai import AzureOpenAI

client = AzureOpenAI(azure_endpoint=ORIGIN, api_key=API_KEY, api_version="2024-10-21")
# end of recipe


@check("chat")
def _():
    # recipe
    reply = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello"}])
    print(reply.choices[0].message.content)
    # end of recipe
    equal(reply.choices[0].message.content, SENTENCE)


@check("stream")
def _():
    chunks = client.chat.completions.create(model=MODEL, messages=user("Hello"), stream=True)
    equal("".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices), SENTENCE)


@check("usage in streams")
def _():
    more = {"stream": True, "stream_options": {"include_usage": True}}
    chunks = client.chat.completions.create(model=MODEL, messages=user("Hello"), **more)
    assert [chunk for chunk in chunks if chunk.usage]


@check("tools")
def _():
    messages = user(TOOLS)
    reply = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER_TOOL])
    (call,) = reply.choices[0].message.tool_calls
    messages += [reply.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
    again = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER_TOOL])
    contains(again.choices[0].message.content, RESULT)


@check("structured output")
def _():
    schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": WEATHER_SCHEMA}}
    reply = client.chat.completions.create(model=MODEL, messages=user("Name a city."), response_format=schema)
    contains(reply.choices[0].message.content, "city")


@check("errors")
def _():
    raises_text(lambda: client.chat.completions.create(model=MODEL, messages=user(FAILING)), "The moon is full")


@check("errors in streams")
def _():
    raises_text(
        lambda: list(client.chat.completions.create(model=MODEL, messages=user(BROKEN), stream=True)),
        "failed on purpose",
    )


@check("embeddings")
def _():
    equal(len(client.embeddings.create(model=MODEL, input=["a", "b"]).data), 2)


@check("responses")
def _():
    newer = AzureOpenAI(azure_endpoint=ORIGIN, api_key=API_KEY, api_version="2025-04-01-preview")
    equal(newer.responses.create(model=MODEL, input="Hello").output_text, SENTENCE)
