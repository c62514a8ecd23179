import asyncio
from checks import *
from pydantic import BaseModel

# recipe
from agents import Agent, OpenAIChatCompletionsModel, Runner
from openai import AsyncOpenAI

model = OpenAIChatCompletionsModel(model=MODEL, openai_client=AsyncOpenAI(base_url=BASE_URL, api_key=API_KEY))
# end of recipe
from agents import ModelSettings, OpenAIResponsesModel, function_tool


class City(BaseModel):
    name: str


@function_tool
def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


def new(kind=OpenAIChatCompletionsModel, **more):
    client = AsyncOpenAI(base_url=BASE_URL, api_key=API_KEY, max_retries=0)
    return Agent(name="helper", instructions="Help.", model=kind(model=MODEL, openai_client=client), **more)


async def ask(text, *words, **more):
    return (await Runner.run(new(*words, **more), text)).final_output


async def stream(text, *words, **more):
    result = Runner.run_streamed(new(*words, **more), text)
    events = [event async for event in result.stream_events() if event.type == "raw_response_event"]
    pieces = [event.data.delta for event in events if event.data.type == "response.output_text.delta"]
    return "".join(pieces), result.final_output, result.context_wrapper.usage


@check("chat")
async def _():
    # recipe
    result = await Runner.run(Agent(name="helper", model=model), "Hello")
    print(result.final_output)
    # end of recipe
    equal(result.final_output, SENTENCE)
    equal(await ask("Hello"), SENTENCE)


@check("stream")
async def _():
    equal((await stream("Hello"))[:2], (SENTENCE, SENTENCE))


@check("usage in streams")
async def _():
    settings = ModelSettings(include_usage=True)
    assert (await stream("Hello", model_settings=settings))[2].output_tokens


@check("tools")
async def _():
    contains(await ask(TOOLS, tools=[get_weather]), RESULT)


@check("streamed tools")
async def _():
    contains((await stream(TOOLS, tools=[get_weather]))[1], RESULT)


@check("structured output")
async def _():
    assert (await ask("Name a city.", output_type=City)).name


@check("errors")
def _():
    raises_text(lambda: asyncio.run(ask(FAILING)), FAILURE)


@check("errors in streams")
def _():
    raises_text(lambda: asyncio.run(stream(BROKEN)), BREAKDOWN)


@check("responses")
async def _():
    equal(await ask("Hello", OpenAIResponsesModel), SENTENCE)


@check("streamed responses")
async def _():
    equal((await stream("Hello", OpenAIResponsesModel))[:2], (SENTENCE, SENTENCE))


@check("responses with tools")
async def _():
    contains((await stream(TOOLS, OpenAIResponsesModel, tools=[get_weather]))[1], RESULT)
