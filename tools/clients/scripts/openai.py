from checks import *

# recipe
from openai import OpenAI

# end of recipe
from pydantic import BaseModel


class City(BaseModel):
    name: str
    inhabitants: int


# recipe
client = OpenAI(base_url=BASE_URL, api_key=API_KEY)
# end of recipe


@check("chat")
def _():
    # recipe
    reply = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello"}])
    print(reply.choices[0].message.content)
    # end of recipe
    equal(reply.choices[0].message.content, SENTENCE)


def stream(**more):
    return list(client.chat.completions.create(model=MODEL, messages=user("Hello"), stream=True, **more))


@check("stream")
def _():
    equal("".join(chunk.choices[0].delta.content or "" for chunk in stream() if chunk.choices), SENTENCE)


@check("usage in streams")
def _():
    assert [chunk for chunk in stream(stream_options={"include_usage": True}) if chunk.usage]


@check("tools")
def _():
    messages = user(TOOLS)
    reply = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER_TOOL])
    (call,) = reply.choices[0].message.tool_calls
    equal((call.function.name, call.function.arguments), ("get_weather", '{"city": "Rome"}'))
    messages += [reply.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
    again = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER_TOOL])
    contains(again.choices[0].message.content, RESULT)


@check("streamed tools")
def _():
    with client.chat.completions.stream(model=MODEL, messages=user(TOOLS), tools=[WEATHER_TOOL]) as events:
        (call,) = events.get_final_completion().choices[0].message.tool_calls
    equal((call.function.name, call.function.arguments), ("get_weather", '{"city": "Rome"}'))


@check("structured output")
def _():
    reply = client.chat.completions.parse(model=MODEL, messages=user("Name a city."), response_format=City)
    assert reply.choices[0].message.parsed.name


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
