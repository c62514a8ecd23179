from checks import *
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from pydantic import BaseModel

# recipe
from llama_index.llms.openai_like import OpenAILike

llm = OpenAILike(api_base=BASE_URL, api_key=API_KEY, model=MODEL, is_chat_model=True, is_function_calling_model=True)
# end of recipe


class City(BaseModel):
    """A city."""

    name: str


def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


tool = FunctionTool.from_defaults(get_weather)


@check("chat")
def _():
    # recipe
    print(llm.complete("Hello"))
    # end of recipe
    equal(llm.chat([ChatMessage("Hello")]).message.content, SENTENCE)


@check("stream")
def _():
    equal("".join(chunk.delta or "" for chunk in llm.stream_chat([ChatMessage("Hello")])), SENTENCE)


@check("tools")
def _():
    contains(llm.predict_and_call([tool], TOOLS), RESULT)
    first = llm.chat_with_tools([tool], TOOLS)
    (call,) = llm.get_tool_calls_from_response(first)
    result = ChatMessage(RESULT, role="tool", additional_kwargs={"tool_call_id": call.tool_id})
    second = llm.chat_with_tools([tool], chat_history=[ChatMessage(TOOLS), first.message, result])
    contains(second.message.content, RESULT)


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
    embedder = OpenAILikeEmbedding(api_base=BASE_URL, api_key=API_KEY, model_name=MODEL)
    equal(len(embedder.get_text_embedding_batch(["a", "b"])), 2)
