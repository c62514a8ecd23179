from checks import *
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.azure_inference import AzureAIEmbeddingsModel
from llama_index.llms.azure_inference import AzureAICompletionsModel
from pydantic import BaseModel

llm = AzureAICompletionsModel(endpoint=BASE_URL, credential=API_KEY, model_name=MODEL)


class City(BaseModel):
    """A city."""

    name: str


def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


@check("chat")
def _():
    equal(llm.chat([ChatMessage("Hello")]).message.content, SENTENCE)


@check("stream")
def _():
    equal("".join(chunk.delta or "" for chunk in llm.stream_chat([ChatMessage("Hello")])), SENTENCE)


@check("tools")
def _():
    tool = FunctionTool.from_defaults(get_weather)
    first = llm.chat_with_tools([tool], TOOLS)
    (call,) = llm.get_tool_calls_from_response(first)
    result = ChatMessage(RESULT, role="tool", additional_kwargs={"tool_call_id": call.tool_id})
    second = llm.chat_with_tools([tool], chat_history=[ChatMessage(TOOLS), first.message, result])
    contains(second.message.content, RESULT)


@check("structured output")
def _():
    assert llm.as_structured_llm(City).complete('fake:text(say={"name": "Rome"})').raw.name


@check("errors")
def _():
    raises_text(lambda: llm.complete(FAILING), "The moon is full")


@check("errors in streams")
def _():
    raises_text(lambda: list(llm.stream_chat([ChatMessage(BROKEN)])))  # the SDK has no place for a message in a stream


@check("embeddings")
def _():
    embedder = AzureAIEmbeddingsModel(endpoint=BASE_URL, credential=API_KEY, model_name=MODEL)
    equal(len(embedder.get_text_embedding_batch(["a", "b"])), 2)
