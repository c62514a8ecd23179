from checks import *
from databricks_langchain import ChatDatabricks, DatabricksEmbeddings
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel

llm = ChatDatabricks(model=MODEL, max_retries=0)
responses = ChatDatabricks(model=MODEL, use_responses_api=True, max_retries=0)


class City(BaseModel):
    """A city."""

    name: str


@tool
def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


def ask_with_tools(llm):
    bound = llm.bind_tools([get_weather])
    first = bound.invoke([HumanMessage(TOOLS)])
    (call,) = first.tool_calls
    equal((call["name"], call["args"]), ("get_weather", {"city": "Rome"}))
    contains(bound.invoke([HumanMessage(TOOLS), first, get_weather.invoke(call)]).text, RESULT)


@check("chat")
def _():
    equal(llm.invoke("Hello").content, SENTENCE)


@check("stream")
def _():
    equal("".join(chunk.content for chunk in llm.stream("Hello")), SENTENCE)


@check("usage in streams")
def _():
    assert [chunk for chunk in llm.stream("Hello", stream_usage=True) if chunk.usage_metadata]


@check("tools")
def _():
    ask_with_tools(llm)


@check("structured output")
def _():
    for method in ("function_calling", "json_schema", "json_mode"):
        found = llm.with_structured_output(City, method=method, include_raw=True).invoke("Name a city in JSON.")
        assert found["parsed"] or method == "json_mode", f"{method}: {found['parsing_error']}"


@check("errors")
def _():
    raises_text(lambda: llm.invoke(FAILING), "The moon is full")


@check("errors in streams")
def _():
    raises_text(lambda: list(llm.stream(BROKEN)), "failed on purpose")


@check("embeddings")
def _():
    equal(len(DatabricksEmbeddings(endpoint=MODEL).embed_documents(["a", "b"])), 2)


@check("responses")
def _():
    equal(responses.invoke("Hello").text, SENTENCE)


@check("streamed responses")
def _():
    equal("".join(chunk.text for chunk in responses.stream("Hello")), SENTENCE)


@check("responses with tools")
def _():
    ask_with_tools(responses)
