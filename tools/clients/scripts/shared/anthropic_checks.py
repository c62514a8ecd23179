"""What Anthropic's SDK does: messages, streams, tools, structured output and errors."""

from anthropic import beta_tool
from checks import *
from pydantic import BaseModel

TOOL = {"name": WEATHER["name"], "description": WEATHER["description"], "input_schema": WEATHER_SCHEMA}
LIMIT = 1024

__all__ = ["LIMIT", "check_errors", "check_messages", "check_tools"]


class City(BaseModel):
    name: str
    inhabitants: int


@beta_tool
def get_weather(city: str) -> str:
    """Weather of a city"""
    return RESULT


def stream(client, text, **more):
    """Read a whole stream. Returns the final message."""
    with client.messages.stream(model=MODEL, max_tokens=LIMIT, messages=user(text), **more) as events:
        return events.get_final_message()


def read_text(message):
    return "".join(block.text for block in message.content if block.type == "text")


def check_messages(client):
    @check("stream")
    def _():
        message = stream(client, "Hello")
        equal((read_text(message), message.stop_reason), (SENTENCE, "end_turn"))

    @check("usage in streams")
    def _():
        usage = stream(client, "Hello").usage
        assert usage.input_tokens and usage.output_tokens

    @check("turn after reasoning")
    def _():
        asked = user("Hello fake:reasoning")
        first = client.messages.create(model=MODEL, max_tokens=LIMIT, messages=asked)
        equal([block.type for block in first.content], ["thinking", "text"])
        talk = [*asked, {"role": "assistant", "content": first.content}, *user("Hello")]
        equal(read_text(client.messages.create(model=MODEL, max_tokens=LIMIT, messages=talk)), SENTENCE)

    @check("structured output")
    def _():
        reply = client.messages.parse(model=MODEL, max_tokens=LIMIT, messages=user("Name a city."), output_format=City)
        assert reply.parsed_output.name

    @check("token count")
    def _():
        assert client.messages.count_tokens(model=MODEL, messages=user("Hello")).input_tokens

    @check("models")
    def _():
        contains([model.id for model in client.models.list()], MODEL)


def check_tools(client):
    @check("tools")
    def _():
        messages = user(TOOLS)
        reply = client.messages.create(model=MODEL, max_tokens=LIMIT, messages=messages, tools=[TOOL])
        result = {"type": "tool_result", "tool_use_id": find_call(reply).id, "content": RESULT}
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": [result]}]
        again = client.messages.create(model=MODEL, max_tokens=LIMIT, messages=messages, tools=[TOOL])
        contains(read_text(again), RESULT)

    @check("streamed tools")
    def _():
        find_call(stream(client, TOOLS, tools=[TOOL]))

    @check("agent")
    def _():
        for streamed in (False, True):
            runner = client.beta.messages.tool_runner(
                model=MODEL, max_tokens=LIMIT, messages=user(TOOLS), tools=[get_weather], stream=streamed
            )
            contains(read_text(runner.until_done()), RESULT)


def find_call(message):
    (call,) = [block for block in message.content if block.type == "tool_use"]
    equal((call.name, call.input, message.stop_reason), ("get_weather", {"city": "Rome"}, "tool_use"))
    return call


def check_errors(client):
    @check("errors")
    def _():
        for text, kind, type_ in (
            (FAILING, "BadRequestError", "invalid_request_error"),
            ("Hello fake:status-429", "RateLimitError", "rate_limit_error"),
            ("Hello fake:status-500", "InternalServerError", "api_error"),
        ):
            error = catch(lambda text=text: client.messages.create(model=MODEL, max_tokens=LIMIT, messages=user(text)))
            equal((type(error).__name__, error.type), (kind, type_))
            assert error.request_id, error
            stays = kind == "BadRequestError" or error.response.headers.get("x-should-retry") == "false"
            equal(count_retries(error), "0" if stays else "1")
        raises_text(lambda: client.messages.create(model=MODEL, max_tokens=LIMIT, messages=user(FAILING)), FAILURE)

    @check("errors in streams")
    def _():
        raises_text(lambda: stream(client, BROKEN), BREAKDOWN)


def count_retries(error):
    """How many times the client has repeated the request that failed."""
    return error.response.request.headers["x-stainless-retry-count"]


def catch(call):
    try:
        found = call()
    except Exception as error:
        return error
    raise AssertionError(f"no exception but {found!r}")
