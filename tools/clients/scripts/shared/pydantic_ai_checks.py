"""What models of Pydantic AI do alike."""

from checks import *
from pydantic import BaseModel
from pydantic_ai import Agent

__all__ = ["ask_with_tools", "check_model", "stream"]


class City(BaseModel):
    name: str


def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


async def stream(agent, text):
    async with agent.run_stream(text) as result:
        pieces = [piece async for piece in result.stream_text(delta=True)]
    return "".join(pieces), result.usage


def ask_with_tools(model):
    contains(Agent(model, tools=[get_weather]).run_sync(TOOLS).output, RESULT)


def check_model(model):
    @check("stream")
    async def _():
        equal((await stream(Agent(model), "Hello"))[0], SENTENCE)

    @check("usage in streams")
    async def _():
        usage = (await stream(Agent(model), "Hello"))[1]
        assert (usage() if callable(usage) else usage).output_tokens > 0

    @check("tools")
    def _():
        ask_with_tools(model)

    @check("streamed tools")
    async def _():
        contains((await stream(Agent(model, tools=[get_weather]), TOOLS))[0], RESULT)

    @check("structured output")
    def _():
        assert Agent(model, output_type=City).run_sync("Name a city.").output.name

    @check("errors")
    def _():
        raises_text(lambda: Agent(model).run_sync(FAILING), FAILURE)
