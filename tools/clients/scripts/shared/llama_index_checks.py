"""What LLMs and embedders of LlamaIndex do alike."""

from checks import *
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel


class City(BaseModel):
    """A city."""

    name: str


def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


tool = FunctionTool.from_defaults(get_weather)


def check_chat(llm, breakdown=(BREAKDOWN,)):
    """`breakdown` is what the user sees of an error in a stream."""

    @check("stream")
    def _():
        equal("".join(chunk.delta or "" for chunk in llm.stream_chat([ChatMessage("Hello")])), SENTENCE)

    @check("errors")
    def _():
        raises_text(lambda: llm.complete(FAILING), FAILURE)

    @check("errors in streams")
    def _():
        raises_text(lambda: list(llm.stream_chat([ChatMessage(BROKEN)])), *breakdown)


def ask_with_tools(llm):
    first = llm.chat_with_tools([tool], TOOLS)
    (call,) = llm.get_tool_calls_from_response(first)
    result = ChatMessage(RESULT, role="tool", additional_kwargs={"tool_call_id": call.tool_id})
    second = llm.chat_with_tools([tool], chat_history=[ChatMessage(TOOLS), first.message, result])
    contains(second.message.content, RESULT)


def check_structured_output(llm, prompt="Name a city."):
    @check("structured output")
    def _():
        assert llm.as_structured_llm(City).complete(prompt).raw.name


def check_embeddings(embedder):
    @check("embeddings")
    def _():
        equal(len(embedder.get_text_embedding_batch(["a", "b"])), 2)
