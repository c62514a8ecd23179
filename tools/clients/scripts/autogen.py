import asyncio
from checks import *
from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelInfo, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from pydantic import BaseModel

info = ModelInfo(vision=False, function_calling=True, json_output=True, structured_output=True, family="unknown")


class City(BaseModel):
    name: str


async def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


def connect():
    return OpenAIChatCompletionClient(model=MODEL, base_url=BASE_URL, api_key=API_KEY, model_info=info, max_retries=0)


async def stream(text, **more):
    return [item async for item in connect().create_stream([UserMessage(content=text, source="user")], **more)]


async def ask(text, **more):
    return await connect().create([UserMessage(content=text, source="user")], **more)


@check("chat")
async def _():
    equal((await ask("Hello")).content, SENTENCE)


@check("stream")
async def _():
    equal("".join(item for item in await stream("Hello") if isinstance(item, str)), SENTENCE)


@check("usage in streams")
async def _():
    more = {"extra_create_args": {"stream_options": {"include_usage": True}}}
    assert (await stream("Hello", **more))[-1].usage.completion_tokens


@check("tools")
async def _():
    agent = AssistantAgent("helper", model_client=connect(), tools=[get_weather], reflect_on_tool_use=True)
    contains((await agent.run(task=TOOLS)).messages[-1].content, RESULT)


@check("structured output")
async def _():
    assert City.model_validate_json((await ask("Name a city.", json_output=City)).content).name


@check("errors")
def _():
    raises_text(lambda: asyncio.run(ask(FAILING)), FAILURE)


@check("errors in streams")
def _():
    raises_text(lambda: asyncio.run(stream(BROKEN)), BREAKDOWN)
