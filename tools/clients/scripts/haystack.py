from checks import *
from haystack.components.embedders import OpenAIDocumentEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, Document
from haystack.tools import Tool
from haystack.utils import Secret
from pydantic import BaseModel

own = {"api_key": Secret.from_token(API_KEY), "api_base_url": BASE_URL, "max_retries": 0}
llm = OpenAIChatGenerator(model=MODEL, **own)
weather = Tool("get_weather", "Weather of a city", WEATHER_SCHEMA, lambda city: RESULT)


class City(BaseModel):
    name: str


def ask(text, **more):
    return llm.run([ChatMessage.from_user(text)], **more)["replies"][0]


@check("chat")
def _():
    equal(ask("Hello").text, SENTENCE)


@check("stream")
def _():
    pieces = []
    reply = ask("Hello", streaming_callback=lambda chunk: pieces.append(chunk.content))
    equal(("".join(pieces), reply.text), (SENTENCE, SENTENCE))


@check("usage in streams")
def _():
    more = {"generation_kwargs": {"stream_options": {"include_usage": True}}}
    assert ask("Hello", streaming_callback=lambda chunk: None, **more).meta["usage"]


@check("tools")
def _():
    first = ask(TOOLS, tools=[weather])
    result = ChatMessage.from_tool(RESULT, first.tool_calls[0])
    contains(llm.run([ChatMessage.from_user(TOOLS), first, result], tools=[weather])["replies"][0].text, RESULT)


@check("streamed tools")
def _():
    first = ask(TOOLS, tools=[weather], streaming_callback=lambda chunk: None)
    equal(first.tool_calls[0].arguments, {"city": "Rome"})


@check("structured output")
def _():
    contains(ask("Name a city.", generation_kwargs={"response_format": City}).text, "name")


@check("errors")
def _():
    raises_text(lambda: ask(FAILING), FAILURE)


@check("errors in streams")
def _():
    raises_text(lambda: ask(BROKEN, streaming_callback=lambda chunk: None), BREAKDOWN)


@check("embeddings")
def _():
    embedder = OpenAIDocumentEmbedder(model=MODEL, progress_bar=False, raise_on_failure=True, **own)
    equal([len(one.embedding) > 0 for one in embedder.run([Document(content="a")])["documents"]], [True])


@check("responses")
def _():
    from haystack.components.generators.chat import OpenAIResponsesChatGenerator

    found = OpenAIResponsesChatGenerator(model=MODEL, **own).run([ChatMessage.from_user("Hello")])
    equal(found["replies"][0].text, SENTENCE)
