from checks import *

# recipe
import litellm

# end of recipe
provider = {"model": f"openai/{MODEL}", "api_base": BASE_URL, "api_key": API_KEY}


def ask(text, **more):
    return litellm.completion(messages=user(text), num_retries=0, **provider, **more)


@check("chat")
def _():
    # recipe
    reply = litellm.completion(
        model="openai/" + MODEL, api_base=BASE_URL, api_key=API_KEY, messages=[{"role": "user", "content": "Hello"}]
    )
    print(reply.choices[0].message.content)
    # end of recipe
    equal(reply.choices[0].message.content, SENTENCE)


@check("stream")
def _():
    equal("".join(chunk.choices[0].delta.content or "" for chunk in ask("Hello", stream=True)), SENTENCE)


@check("usage in streams")
def _():
    chunks = list(ask("Hello", stream=True, stream_options={"include_usage": True}))
    assert [chunk for chunk in chunks if getattr(chunk, "usage", None)]


def ask_twice(dialect):
    messages = user(TOOLS)
    own = {**provider, **dialect}
    first = litellm.completion(messages=messages, tools=[WEATHER_TOOL], **own).choices[0].message
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "name": "get_weather", "content": RESULT}
    messages += [first, result]
    contains(litellm.completion(messages=messages, tools=[WEATHER_TOOL], **own).choices[0].message.content, RESULT)


@check("tools")
def _():
    ask_twice({})
    ask_twice({"model": f"azure_ai/{MODEL}", "api_base": ORIGIN, "api_version": "2024-05-01-preview"})
    ask_twice({"model": f"databricks/{MODEL}", "api_base": f"{ORIGIN}/serving-endpoints"})


@check("structured output")
def _():
    schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": WEATHER_SCHEMA}}
    contains(ask("Name a city.", response_format=schema).choices[0].message.content, "city")


@check("errors")
def _():
    raises_text(lambda: ask(FAILING), FAILURE)


@check("errors in streams")
def _():
    raises_text(lambda: list(ask(BROKEN, stream=True)), BREAKDOWN)


@check("embeddings")
def _():
    equal(len(litellm.embedding(input=["a", "b"], **provider).data), 2)


@check("responses")
def _():
    response = litellm.responses(input="Hello", **provider)
    contains(response.output[0].content[0].text, SENTENCE)
