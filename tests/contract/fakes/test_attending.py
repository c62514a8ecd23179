"""What a fake does unless it is told otherwise: what a model would do with such a request."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.fakes.answers import SENTENCE, THOUGHTS
from tests.dialects import DIALECTS


def tool(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return {"type": "function", "function": {"name": name, "description": "A tool.", "parameters": parameters}}


TOOLS = [tool("look_up"), tool("book")]
CALLED = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {
    "name": "book", "arguments": "{}"}}]}  # fmt: skip
TOLD = {"role": "tool", "tool_call_id": "c1", "content": "done"}


async def heard(send: Any, dialect: str, says: str = "Hello", behaviour: str = "as-asked", **body: Any) -> Any:
    async with FakeProvider(dialect, behaviour=behaviour) as fake:
        reply = await send(fake, says, stream=False, **body)
        assert reply.status == 200, reply.raw
        return reply.body["choices"][0]


def called(choice: Any) -> list[str]:
    return [call["function"]["name"] for call in choice["message"].get("tool_calls") or ()]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_tool_is_called_where_it_must_be_or_is_named(dialect: str, send: Any) -> None:
    forced = {"type": "function", "function": {"name": "book"}}
    assert called(await heard(send, dialect, tools=TOOLS, tool_choice="required")) == ["look_up"]
    assert called(await heard(send, dialect, tools=TOOLS, tool_choice=forced)) == ["book"]
    assert called(await heard(send, dialect, "Please book a room", tools=TOOLS)) == ["book"]
    assert called(await heard(send, dialect, "First look_up, then book.", tools=TOOLS)) == ["look_up", "book"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_tool_is_called_otherwise(dialect: str, send: Any) -> None:
    for says, choice in (("Hello", "auto"), ("booking is over", "auto"), ("book it", "none")):
        found = await heard(send, dialect, says, tools=TOOLS, tool_choice=choice)
        assert (called(found), found["message"]["content"]) == ([], SENTENCE)
    spoken = [{"role": "user", "content": "book it"}, CALLED, TOLD]
    assert (await heard(send, dialect, messages=spoken, tools=TOOLS))["message"]["content"] == "The tools said: done"


async def test_a_format_is_kept(send: Any) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 5}}, "required": ["age"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    assert json.loads((await heard(send, "openai", response_format=form))["message"]["content"]) == {"age": 5}
    assert json.loads((await heard(send, "azure", response_format={"type": "json_object"}))["message"]["content"])


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
async def test_reasoning_has_a_switch(dialect: str, switch: dict[str, Any], reasons: bool, send: Any) -> None:
    message = (await heard(send, dialect, **switch))["message"]
    assert (THOUGHTS in json.dumps(message, ensure_ascii=False)) == reasons


async def test_a_script_calls_what_it_wants_with_what_it_wants(send: Any) -> None:
    spoken = [{"role": "user", "content": "x"}, CALLED, TOLD]
    scripted = 'call(name=book, arguments={"city": "Ulm, Bonn"})'
    choice = await heard(send, "openai", behaviour=scripted, messages=spoken, tools=TOOLS)
    [call] = choice["message"]["tool_calls"]
    assert call["function"] == {"name": "book", "arguments": '{"city": "Ulm, Bonn"}'}
    choice = await heard(send, "openai", behaviour="call", messages=spoken, tools=TOOLS)
    assert called(choice) == ["look_up"]
    assert called(await heard(send, "openai", behaviour="call(name=leave)", tools=TOOLS)) == ["leave"]
