from checks import *
from langchain_azure_ai.chat_models import AzureAIOpenAIApiChatModel
from langchain_azure_ai.chat_models.inference import AzureAIChatCompletionsModel
from langchain_azure_ai.embeddings.inference import AzureAIEmbeddingsModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel

llm = AzureAIChatCompletionsModel(endpoint=BASE_URL, credential=API_KEY, model=MODEL)
newer = AzureAIOpenAIApiChatModel(endpoint=f"{ORIGIN}/openai/v1", credential=API_KEY, model=MODEL)


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
    contains(bound.invoke([HumanMessage(TOOLS), first, get_weather.invoke(call)]).text, RESULT)


@check("chat")
def _():
    equal(llm.invoke("Hello").content, SENTENCE)


@check("stream")
def _():
    equal("".join(chunk.content for chunk in llm.stream("Hello")), SENTENCE)


@check("usage in streams")
def _():
    chunks = llm.stream("Hello", model_extras={"stream_options": {"include_usage": True}})
    assert [chunk for chunk in chunks if chunk.usage_metadata]


@check("tools")
def _():
    ask_with_tools(llm)


@check("structured output")
def _():
    for method in ("json_schema", "function_calling"):
        assert llm.with_structured_output(City, method=method).invoke("Name a city.").name


@check("errors")
def _():
    raises_text(lambda: llm.invoke(FAILING), "The moon is full")


@check("errors in streams")
def _():
    raises_text(lambda: list(llm.stream(BROKEN)))  # the SDK has no place for a message in a stream


@check("embeddings")
def _():
    embedder = AzureAIEmbeddingsModel(endpoint=BASE_URL, credential=API_KEY, model=MODEL)
    equal(len(embedder.embed_documents(["a", "b"])), 2)


@check("responses")
def _():
    equal(newer.invoke("Hello").text, SENTENCE)


@check("responses with tools")
def _():
    ask_with_tools(newer)
