"""OpenAI's Agents SDK over every provider: tools, a handoff and a second turn, over Responses and over chat."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from agents import (
    Agent,
    AgentOutputSchema,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    TResponseInputItem,
    function_tool,
)
from agents.result import RunResultBase
from openai import AsyncOpenAI
from pydantic import BaseModel

from dragoman.contract.json_types import JsonObject
from tests.dialects import DIALECTS

from .house import House

MODELS: dict[str, Any] = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}
UNTRACED = RunConfig(tracing_disabled=True)
SCRIPT = (
    'call(name=look_up, arguments={"city": "Ulm"})',
    "call(name=transfer_to_clerk)",
    'call(name=book, arguments={"city": "Ulm", "nights": 3})',
    "as-asked",
)

pytestmark = [pytest.mark.parametrize("dialect", DIALECTS), pytest.mark.parametrize("protocol", MODELS)]


class Receipt(BaseModel):
    city: str
    nights: int


@pytest_asyncio.fixture
async def model(house: House, dialect: str, protocol: str) -> AsyncIterator[Model]:
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        yield MODELS[protocol](model=dialect, openai_client=client)


async def run(
    agent: Agent[None], said: str | list[TResponseInputItem], streamed: bool
) -> tuple[RunResultBase, list[str]]:
    """The result, and the types of the events that came on the way."""
    if not streamed:
        return await Runner.run(agent, said, run_config=UNTRACED), []
    result = Runner.run_streamed(agent, said, run_config=UNTRACED)
    return result, [event.type async for event in result.stream_events()]


def front_desk(model: Model, done: list[str]) -> Agent[None]:
    """An agent that looks things up and hands over to a clerk, who books; `done` is what their tools did."""

    @function_tool
    def look_up(city: str) -> str:
        """Looks up whether a city has rooms."""
        done.append(f"look_up {city}")
        return f"{city} has rooms"

    @function_tool
    def book(city: str, nights: int) -> JsonObject:
        """Books a room."""
        done.append(f"book {city} {nights}")
        return {"booked": city, "nights": nights}

    clerk = Agent(name="clerk", instructions="You book rooms.", model=model, tools=[book])
    return Agent(name="desk", instructions="You know the city.", model=model, tools=[look_up], handoffs=[clerk])


@pytest.mark.parametrize("streamed", [False, True])
async def test_tools_a_handoff_and_a_second_turn(house: House, model: Model, dialect: str, streamed: bool) -> None:
    done: list[str] = []
    fake = house.fakes[dialect]
    fake.script(*SCRIPT)
    result, events = await run(front_desk(model, done), "A room in Ulm, please.", streamed)
    assert done == ["look_up Ulm", "book Ulm 3"]
    assert result.last_agent.name == "clerk"
    assert result.final_output.startswith("The tools said:") and "'booked': 'Ulm'" in result.final_output
    assert len(fake.requests) == len(SCRIPT)
    assert {"raw_response_event", "run_item_stream_event", "agent_updated_stream_event"} <= {*events} or not streamed
    conversation = [*result.to_input_list(), {"role": "user", "content": "And breakfast?"}]
    again, _ = await run(result.last_agent, conversation, streamed)
    assert again.final_output and again.last_agent.name == "clerk"
    roles = [message["role"] for message in fake.requests[-1].body["messages"]]
    assert roles.count("tool") == 3 and roles[-1] == "user"


@pytest.mark.parametrize("streamed", [False, True])
async def test_calls_side_by_side(house: House, model: Model, dialect: str, streamed: bool) -> None:
    done: list[str] = []
    house.fakes[dialect].script("parallel-tools", "as-asked")
    agent = front_desk(model, done).handoffs[0].clone(handoffs=[])
    result, _ = await run(agent, "Two rooms, please.", streamed)
    assert done == ["book 東京 1"] * 2
    assert result.final_output.count("booked") == 2


async def test_a_final_output_of_a_type(model: Model) -> None:
    schema: Callable[..., Any] = AgentOutputSchema
    agent: Any = Agent(name="clerk", model=model, output_type=schema(Receipt, strict_json_schema=False))
    result, _ = await run(agent, "What did I book?", streamed=False)
    assert json.loads(result.final_output.model_dump_json()) == {"city": "東京", "nights": 1}
