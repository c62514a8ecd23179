import json

from checks import *
from azure.ai.inference import EmbeddingsClient
from azure.ai.inference.models import (
    AssistantMessage,
    ChatCompletionsToolDefinition,
    FunctionDefinition,
    JsonSchemaFormat,
    ToolMessage,
    UserMessage,
)

# recipe
from azure.ai.inference import ChatCompletionsClient
from azure.core.credentials import AzureKeyCredential

client = ChatCompletionsClient(endpoint=BASE_URL, credential=AzureKeyCredential(API_KEY))
# end of recipe
weather = ChatCompletionsToolDefinition(function=FunctionDefinition(**WEATHER))


@check("chat")
def _():
    # recipe
    reply = client.complete(model=MODEL, messages=[{"role": "user", "content": "Hello"}])
    print(reply.choices[0].message.content)
    # end of recipe
    equal(reply.choices[0].message.content, SENTENCE)


@check("stream")
def _():
    chunks = client.complete(model=MODEL, messages=user("Hello"), stream=True)
    equal("".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices), SENTENCE)


@check("usage in streams")
def _():
    more = {"stream": True, "model_extras": {"stream_options": {"include_usage": True}}}
    assert [chunk for chunk in client.complete(model=MODEL, messages=user("Hello"), **more) if chunk.usage]


@check("tools")
def _():
    reply = client.complete(model=MODEL, messages=[UserMessage(TOOLS)], tools=[weather])
    (call,) = reply.choices[0].message.tool_calls
    equal((call.function.name, json.loads(call.function.arguments)), ("get_weather", {"city": "Rome"}))
    turn = [UserMessage(TOOLS), AssistantMessage(tool_calls=[call]), ToolMessage(RESULT, tool_call_id=call.id)]
    contains(client.complete(model=MODEL, messages=turn, tools=[weather]).choices[0].message.content, RESULT)


@check("streamed tools")
def _():
    chunks = client.complete(model=MODEL, messages=[UserMessage(TOOLS)], tools=[weather], stream=True)
    calls = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()]
    equal(json.loads("".join(call.function.arguments or "" for call in calls)), {"city": "Rome"})


@check("structured output")
def _():
    schema = JsonSchemaFormat(name="city", schema=WEATHER_SCHEMA)
    reply = client.complete(model=MODEL, messages=[UserMessage("Name a city.")], response_format=schema)
    contains(reply.choices[0].message.content, "city")


@check("errors")
def _():
    raises_text(lambda: client.complete(model=MODEL, messages=user(FAILING)), FAILURE)


@check("errors in streams")
def _():
    raises_text(
        lambda: list(client.complete(model=MODEL, messages=user(BROKEN), stream=True))
    )  # the SDK has no place for a message in a stream


@check("embeddings")
def _():
    embedder = EmbeddingsClient(endpoint=BASE_URL, credential=AzureKeyCredential(API_KEY))
    equal(len(embedder.embed(model=MODEL, input=["a", "b"]).data), 2)
