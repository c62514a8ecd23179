"""What chat models and embedders of LangChain do alike."""

from checks import *
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel


class City(BaseModel):
    """A city."""

    name: str


@tool
def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


def check_chat(llm, breakdown=(BREAKDOWN,)):
    """`breakdown` is what the user sees of an error in a stream."""

    @check("stream")
    def _():
        equal("".join(chunk.content for chunk in llm.stream("Hello")), SENTENCE)

    @check("tools")
    def _():
        ask_with_tools(llm)

    @check("streamed tools")
    def _():
        ask_with_tools(llm, streamed=True)

    @check("errors")
    def _():
        raises_text(lambda: llm.invoke(FAILING), FAILURE)

    @check("errors in streams")
    def _():
        raises_text(lambda: list(llm.stream(BROKEN)), *breakdown)


def ask_with_tools(llm, streamed=False):
    bound = llm.bind_tools([get_weather])
    messages = [HumanMessage(TOOLS)]
    if streamed:
        first, *rest = bound.stream(messages)
        for chunk in rest:
            first += chunk
    else:
        first = bound.invoke(messages)
    (call,) = first.tool_calls
    equal((call["name"], call["args"]), ("get_weather", {"city": "Rome"}))
    contains(bound.invoke([*messages, first, get_weather.invoke(call)]).text, RESULT)


def check_structured_output(llm, *methods):
    @check("structured output")
    def _():
        for method in methods:
            assert llm.with_structured_output(City, method=method).invoke("Name a city.").name, method


def check_embeddings(embedder):
    @check("embeddings")
    def _():
        equal(len(embedder.embed_documents(["a", "b"])), 2)


def check_responses(llm):
    @check("responses")
    def _():
        equal(llm.invoke("Hello").text, SENTENCE)

    @check("streamed responses")
    def _():
        equal("".join(chunk.text for chunk in llm.stream("Hello")), SENTENCE)

    @check("responses with tools")
    def _():
        ask_with_tools(llm)
        ask_with_tools(llm, streamed=True)
