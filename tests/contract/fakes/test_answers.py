"""The default behaviour of a fake: it answers a request as a model would."""

from __future__ import annotations

import json

import pytest

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.fakes.answers import SENTENCE, THOUGHTS
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import called

from .client import ChatClient


def make_tool(name: str) -> JsonObject:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": parameters}}


TOOLS = [make_tool("look_up"), make_tool("book")]
CALL_MESSAGE = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {
    "name": "book", "arguments": "{}"}}]}  # fmt: skip
TOOL_RESULT = {"role": "tool", "tool_call_id": "c1", "content": "done"}


async def first_choice(
    client: ChatClient, dialect: str, text: str = "Hello", behaviour: str = "as-asked", **fields: JsonValue
) -> JsonObject:
    async with FakeProvider(dialect, behaviour=behaviour) as fake:
        reply = await client.send(fake, text, stream=False, **fields)
        assert reply.status == 200, reply.raw
        choice: JsonObject = reply.body["choices"][0]
        return choice


def called_tools(choice: JsonObject) -> list[str]:
    return [call["function"]["name"] for call in choice["message"].get("tool_calls") or ()]


@pytest.mark.parametrize("dialect", called("chat"))
async def test_fake_calls_a_tool_that_is_forced_or_named(dialect: str, client: ChatClient) -> None:
    forced = {"type": "function", "function": {"name": "book"}}
    assert called_tools(await first_choice(client, dialect, tools=TOOLS, tool_choice="required")) == ["look_up"]
    assert called_tools(await first_choice(client, dialect, tools=TOOLS, tool_choice=forced)) == ["book"]
    assert called_tools(await first_choice(client, dialect, "Please book a room", tools=TOOLS)) == ["book"]
    assert called_tools(await first_choice(client, dialect, "First look_up, then book.", tools=TOOLS)) == [
        "look_up",
        "book",
    ]


@pytest.mark.parametrize("dialect", called("chat"))
async def test_fake_calls_no_tool_without_a_reason(dialect: str, client: ChatClient) -> None:
    for text, choice in (("Hello", "auto"), ("booking is over", "auto"), ("book it", "none")):
        found = await first_choice(client, dialect, text, tools=TOOLS, tool_choice=choice)
        assert (called_tools(found), found["message"]["content"]) == ([], SENTENCE)
    conversation = [{"role": "user", "content": "book it"}, CALL_MESSAGE, TOOL_RESULT]
    assert (await first_choice(client, dialect, messages=conversation, tools=TOOLS))["message"][
        "content"
    ] == "The tools said: done"


async def test_fake_answers_in_the_requested_format(client: ChatClient) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 5}}, "required": ["age"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert json.loads((await first_choice(client, "openai", response_format=form))["message"]["content"]) == {"age": 5}
    assert json.loads(
        (await first_choice(client, "azure", response_format={"type": "json_object"}))["message"]["content"]
    )


@pytest.mark.parametrize(
    ("dialect", "switch", "reasons"),
    [
        ("openai", {"reasoning_effort": "low"}, True),
        ("openai", {"reasoning_effort": "none"}, False),
        ("openai", {}, False),
        ("databricks", {"reasoning_effort": "low"}, True),
        ("databricks", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, True),
        ("mindie", {"chat_template_kwargs": {"enable_thinking": True}}, True),
        ("mindie", {"chat_template_kwargs": {"enable_thinking": False}}, False),
    ],
)
async def test_fake_reasons_if_requested(dialect: str, switch: JsonObject, reasons: bool, client: ChatClient) -> None:
    message = (await first_choice(client, dialect, **switch))["message"]
    assert (THOUGHTS in json.dumps(message, ensure_ascii=False)) == reasons


async def test_call_behaviour_sets_the_tool_and_its_arguments(client: ChatClient) -> None:
    conversation = [{"role": "user", "content": "x"}, CALL_MESSAGE, TOOL_RESULT]
    scripted = 'call(name=book, arguments={"city": "Ulm, Bonn"})'
    choice = await first_choice(client, "openai", behaviour=scripted, messages=conversation, tools=TOOLS)
    [call] = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "book", "arguments": '{"city": "Ulm, Bonn"}'}
    choice = await first_choice(client, "openai", behaviour="call", messages=conversation, tools=TOOLS)
    assert called_tools(choice) == ["look_up"]
    assert called_tools(await first_choice(client, "openai", behaviour="call(name=leave)", tools=TOOLS)) == ["leave"]
