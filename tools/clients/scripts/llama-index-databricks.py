from checks import *
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.databricks import DatabricksEmbedding
from llama_index.llms.databricks import Databricks
from pydantic import BaseModel

llm = Databricks(model=MODEL, api_key=API_KEY, api_base=f"{ORIGIN}/serving-endpoints", is_function_calling_model=True)


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
    contains(llm.predict_and_call([tool], TOOLS), RESULT)


@check("structured output")
def _():
    assert llm.as_structured_llm(City).complete("Name a city.").raw.name


@check("errors")
def _():
    raises_text(lambda: llm.complete(FAILING), "The moon is full")


@check("errors in streams")
def _():
    raises_text(lambda: list(llm.stream_chat([ChatMessage(BROKEN)])), "failed on purpose")


@check("embeddings")
def _():
    embedder = DatabricksEmbedding(model=MODEL, api_key=API_KEY, endpoint=f"{ORIGIN}/serving-endpoints")
    equal(len(embedder.get_text_embedding_batch(["a", "b"])), 2)
