from checks import *

# recipe
from databricks.sdk import WorkspaceClient
from databricks_openai import DatabricksOpenAI

client = DatabricksOpenAI(workspace_client=WorkspaceClient(host=ORIGIN, token=API_KEY))
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
    equal(client.responses.create(model=MODEL, input="Hello").output_text, SENTENCE)


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
