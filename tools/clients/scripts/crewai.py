from checks import *
from crewai import LLM, Agent
from crewai.tools import tool
from pydantic import BaseModel

llm = LLM(model=MODEL, provider="openai", base_url=BASE_URL, api_key=API_KEY, max_retries=0)


class City(BaseModel):
    name: str


@tool("get_weather")
def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


def work(text, **more):
    agent = Agent(role="helper", goal="help", backstory="helps", llm=llm, max_iter=3, max_retry_limit=0, **more)
    return agent.kickoff(text)


@check("chat")
def _():
    equal(llm.call("Hello"), SENTENCE)


@check("stream")
def _():
    own = LLM(model=MODEL, provider="openai", base_url=BASE_URL, api_key=API_KEY, max_retries=0, stream=True)
    equal(own.call("Hello"), SENTENCE)


@check("tools")
def _():
    contains(work(TOOLS, tools=[get_weather]).raw, RESULT)


@check("structured output")
def _():
    own = LLM(model=MODEL, provider="openai", base_url=BASE_URL, api_key=API_KEY, response_format=City)
    contains(own.call("Name a city."), "name")


@check("errors")
def _():
    raises_text(lambda: llm.call(FAILING), FAILURE)
