import asyncio
from checks import *
from openai import AsyncOpenAI
from pydantic import BaseModel
from semantic_kernel import Kernel
from semantic_kernel.agents import OpenAIResponsesAgent
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
    OpenAITextEmbedding,
)
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import kernel_function


class City(BaseModel):
    name: str


class Weather:
    @kernel_function(name="get_weather", description="Weather of a city")
    def get_weather(self, city: str) -> str:
        return RESULT


def connect():
    return AsyncOpenAI(base_url=BASE_URL, api_key=API_KEY, max_retries=0)


def prepare(text):
    kernel = Kernel()
    kernel.add_plugin(Weather(), "weather")
    service = OpenAIChatCompletion(ai_model_id=MODEL, async_client=connect())
    return service, ChatHistory(messages=[{"role": "user", "content": text}]), kernel


async def ask(text, **settings):
    service, history, kernel = prepare(text)
    options = OpenAIChatPromptExecutionSettings(**settings)
    return str(await service.get_chat_message_content(history, options, kernel=kernel))


async def stream(text):
    service, history, kernel = prepare(text)
    chunks = service.get_streaming_chat_message_content(history, OpenAIChatPromptExecutionSettings(), kernel=kernel)
    return [chunk async for chunk in chunks]


CALLING = TOOLS.replace("get_weather", "weather-get_weather")


@check("chat")
async def _():
    equal(await ask("Hello"), SENTENCE)


@check("stream")
async def _():
    equal("".join(str(chunk) for chunk in await stream("Hello")), SENTENCE)


@check("usage in streams")
async def _():
    usages = [chunk.metadata.get("usage") for chunk in await stream("Hello")]
    assert [usage for usage in usages if usage and usage.completion_tokens]


@check("tools")
async def _():
    contains(await ask(CALLING, function_choice_behavior=FunctionChoiceBehavior.Auto()), RESULT)


@check("structured output")
async def _():
    assert City.model_validate_json(await ask("Name a city.", response_format=City)).name


@check("errors")
def _():
    raises_text(lambda: asyncio.run(ask(FAILING)), FAILURE)


@check("errors in streams")
def _():
    raises_text(lambda: asyncio.run(stream(BROKEN)), BREAKDOWN)


@check("embeddings")
async def _():
    equal(len(await OpenAITextEmbedding(ai_model_id=MODEL, async_client=connect()).generate_embeddings(["a", "b"])), 2)


@check("responses with tools")
async def _():
    agent = OpenAIResponsesAgent(ai_model_id=MODEL, client=connect(), plugins=[Weather()])
    calling = TOOLS.replace("get_weather", "Weather-get_weather")
    contains((await agent.get_response(messages=calling)).message.content, RESULT)
