"""Schemas in tools and formats that are out of bounds, from the clients of every dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import DIALECTS
from tests.e2e.client import MakeClient
from tests.e2e.house import House

from .conftest import (
    NO_JSON,
    SERVED,
    Case,
    MakeLimitedClient,
    check_body,
    check_cases,
    check_unharmed,
    text,
)


def tool(parameters: JsonValue) -> JsonObject:
    return {"type": "function", "function": {"name": "f", "description": "", "parameters": parameters}}


def nested(levels: int) -> JsonObject:
    """A schema of that many levels."""
    schema: JsonObject = {}
    for _ in range(levels - 1):
        schema = {"not": schema}
    return schema


def many(count: int) -> JsonObject:
    """A schema of that many values."""
    return {"enum": list(range(count - 2))}


BAD_SCHEMAS: tuple[tuple[JsonValue, tuple[str, ...]], ...] = (
    *(
        ({"items": {"$ref": where}}, ("#/items/$ref", "inside the schema"))
        for where in ("http://127.0.0.1:9/x", "file:///etc/passwd", "ftp://127.0.0.1/x", "other.json#/a")
    ),
    ({"properties": {"a/b": {"pattern": "(a+)+$" * 1000}}}, ("#/properties/a~1b/pattern", "1000")),
    (nested(33), ("32 levels",)),
    (many(5001), ("5000 values",)),
    ({"description": "x" * 65_536}, ("65554 bytes", "65536")),
)


def tools(dialect: str, profile: str) -> Iterator[Case]:
    place, code = "tools[0].function.parameters", "invalid_function_parameters"
    for schema, words in BAD_SCHEMAS:
        yield Case("invalid_request", code, place, text(tools=[tool(schema)]), (place, *words))
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        if (dialect, profile) != ("azure", "documented"):  # whose reference has no such format
            where = "response_format.json_schema.schema"
            body = text(response_format=form)
            yield Case("invalid_request", "invalid_json_schema", where, body, (where, *words))
    deep = b'{"properties":{"a":' * 500 + b"{}" + b"}}" * 500
    body = text(tools=[tool("RAW")]).replace(b'"RAW"', deep)
    yield Case("syntax", "json_too_deep", None, body, ("128",), own=NO_JSON)


@pytest.mark.parametrize(("dialect", "profile"), SERVED, ids=["/".join(served) for served in SERVED])
async def test_schemas_out_of_bounds(
    make: MakeLimitedClient, dialect: str, profile: str, subtests: pytest.Subtests
) -> None:
    await check_cases(await make(dialect, profile), tools(dialect, profile), subtests)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_schema_of_5_mb(house: House, client_of: MakeClient, dialect: str) -> None:
    client = client_of(house, dialect)
    body = text(tools=[tool({"description": "x" * 5_000_000})])
    case = Case("invalid_request", "invalid_function_parameters", "tools[0].function.parameters", body, ("65536",))
    answer = await client.send(case.body)
    check_body(client, case, client.check_error(answer, case.kind, *case.words), answer.headers)
    assert house.fakes["openai"].connections == 0


RESPONSES_SCHEMAS: dict[str, tuple[str, JsonValue]] = {
    "tools[0].parameters": ("invalid_function_parameters", lambda schema: {"tools": [flat_tool(schema)]}),
    "tools[0].tools[0].parameters": (
        "invalid_function_parameters",
        lambda schema: {
            "tools": [{"type": "namespace", "name": "n", "description": "d", "tools": [flat_tool(schema)]}]
        },
    ),
    "input[0].tools[0].parameters": (
        "invalid_function_parameters",
        lambda schema: {"input": [{"type": "additional_tools", "role": "developer", "tools": [flat_tool(schema)]}]},
    ),
    "text.format.schema": (
        "invalid_json_schema",
        lambda schema: {"text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}},
    ),
}


def flat_tool(schema: JsonValue) -> JsonObject:
    return {"type": "function", "name": "f", "parameters": schema, "strict": False}


@pytest.mark.parametrize("place", RESPONSES_SCHEMAS)
async def test_schemas_of_responses(make: MakeLimitedClient, place: str) -> None:
    client = await make("openai")
    code, holder = RESPONSES_SCHEMAS[place]
    for schema, words in BAD_SCHEMAS:
        body = json.dumps({"model": "openai", "input": "hello", **holder(schema)}).encode()
        answer = await client.send(body, "/v1/responses")
        client.check_error(answer, "invalid_request", place, *words)
        error = answer.json["error"]
        assert (error["param"], error["code"]) == (place, code)
        await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_schemas_just_within_the_bounds(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    for schema in (nested(32), many(5000), {"description": "x" * 65_518}):
        assert (await client.ask("openai", way=-1, tools=[tool(schema)])).status in (200, 422)
        assert client.house.fakes["openai"].requests.pop().body["tools"][0]["function"]["parameters"] == schema
