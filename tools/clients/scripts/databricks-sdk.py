from checks import *
from databricks.sdk import WorkspaceClient
from databricks.sdk.service.serving import ChatMessage, ChatMessageRole

workspace = WorkspaceClient(host=ORIGIN, token=API_KEY)


def query(text, **more):
    return workspace.serving_endpoints.query(MODEL, messages=[ChatMessage(text, ChatMessageRole.USER)], **more)


@check("chat")
def _():
    equal(query("Hello").choices[0].message.content, SENTENCE)


@check("stream")
def _():
    client = workspace.serving_endpoints.get_open_ai_client()
    chunks = client.chat.completions.create(model=MODEL, messages=user("Hello"), stream=True)
    equal("".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices), SENTENCE)


@check("tools")
def _():
    client = workspace.serving_endpoints.get_open_ai_client()
    messages = user(TOOLS)
    reply = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER_TOOL])
    (call,) = reply.choices[0].message.tool_calls
    messages += [reply.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
    again = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER_TOOL])
    contains(again.choices[0].message.content, RESULT)


@check("structured output")
def _():
    client = workspace.serving_endpoints.get_open_ai_client()
    schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": WEATHER_SCHEMA}}
    reply = client.chat.completions.create(model=MODEL, messages=user("Name a city."), response_format=schema)
    contains(reply.choices[0].message.content, "city")


@check("errors")
def _():
    raises_text(lambda: query(FAILING), "The moon is full")


@check("embeddings")
def _():
    equal(len(workspace.serving_endpoints.query(MODEL, input=["a", "b"]).data), 2)
