from checks import *
from smolagents import OpenAIModel, ToolCallingAgent, tool

model = OpenAIModel(model_id=MODEL, api_base=BASE_URL, api_key=API_KEY)


@tool
def get_weather(city: str) -> str:
    """Weather of a city.

    Args:
        city: The city.
    """
    return RESULT


@check("chat")
def _():
    equal(model.generate([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]).content, SENTENCE)


def stream():
    return list(model.generate_stream([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]))


@check("stream")
def _():
    equal("".join(delta.content or "" for delta in stream()), SENTENCE)


@check("usage in streams")
def _():
    assert sum(delta.token_usage.output_tokens for delta in stream() if delta.token_usage)


@check("tools")
def _():
    agent = ToolCallingAgent(tools=[get_weather], model=model, verbosity_level=0)
    task = 'fake:call(name=final_answer, arguments={"answer": "done"})'
    equal(agent.run(task), "done")


@check("structured output")
def _():
    schema = {"type": "json_schema", "json_schema": {"name": "city", "schema": WEATHER_SCHEMA}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "Name a city."}]}]
    contains(model.generate(messages, response_format=schema).content, "city")


@check("errors")
def _():
    messages = [{"role": "user", "content": [{"type": "text", "text": FAILING}]}]
    raises_text(lambda: model.generate(messages), FAILURE)


@check("errors in streams")
def _():
    raises_text(
        lambda: list(model.generate_stream([{"role": "user", "content": [{"type": "text", "text": BROKEN}]}])),
        BREAKDOWN,
    )
