from checks import *
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import OpenAIEmbeddings
from pydantic import BaseModel

# recipe
from langchain_openai import ChatOpenAI

llm = ChatOpenAI(base_url=BASE_URL, api_key=API_KEY, model=MODEL)
# end of recipe
responses = ChatOpenAI(base_url=BASE_URL, api_key=API_KEY, model=MODEL, use_responses_api=True, max_retries=0)


class City(BaseModel):
    """A city."""

    name: str


@tool
def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


def ask_with_tools(llm, streamed=False):
    bound = llm.bind_tools([get_weather])
    messages = [HumanMessage(TOOLS)]
    if streamed:
        first = None
        for chunk in bound.stream(messages):
            first = chunk if first is None else first + chunk
    else:
        first = bound.invoke(messages)
    (call,) = first.tool_calls
    equal((call["name"], call["args"]), ("get_weather", {"city": "Rome"}))
    contains(bound.invoke([*messages, first, get_weather.invoke(call)]).text, RESULT)


@check("chat")
def _():
    # recipe
    print(llm.invoke("Hello").content)
    # end of recipe
    equal(llm.invoke("Hello").content, SENTENCE)


@check("stream")
def _():
    equal("".join(chunk.content for chunk in llm.stream("Hello")), SENTENCE)


@check("usage in streams")
def _():
    usage = ChatOpenAI(base_url=BASE_URL, api_key=API_KEY, model=MODEL, stream_usage=True)
    assert [chunk for chunk in usage.stream("Hello") if chunk.usage_metadata]


@check("tools")
def _():
    ask_with_tools(llm)


@check("streamed tools")
def _():
    ask_with_tools(llm, streamed=True)


@check("structured output")
def _():
    for method in ("json_schema", "function_calling"):
        assert llm.with_structured_output(City, method=method).invoke("Name a city.").name


@check("errors")
def _():
    raises_text(lambda: llm.invoke(FAILING), "The moon is full")


@check("errors in streams")
def _():
    raises_text(lambda: list(llm.stream(BROKEN)), "failed on purpose")


@check("embeddings")
def _():
    embedder = OpenAIEmbeddings(base_url=BASE_URL, api_key=API_KEY, model=MODEL)
    equal(len(embedder.embed_documents(["a", "b"])), 2)


@check("responses")
def _():
    equal(responses.invoke("Hello").text, SENTENCE)


@check("streamed responses")
def _():
    equal("".join(chunk.text for chunk in responses.stream("Hello")), SENTENCE)


@check("responses with tools")
def _():
    ask_with_tools(responses)
    ask_with_tools(responses, streamed=True)
