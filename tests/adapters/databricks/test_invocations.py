"""Which protocol a body asks for at /serving-endpoints/NAME/invocations."""

from __future__ import annotations

import pytest

from dragoman.adapters.call import Call
from dragoman.adapters.databricks.invocations import choose_protocol, parse_endpoint_name
from dragoman.contract.json_types import JsonObject
from tests.tables import for_each

TASKS = {"vectors": "embeddings", "agent": "responses"}
BODIES: list[tuple[JsonObject, str]] = [
    ({"messages": []}, "chat"),
    ({}, "chat"),
    ({"messages": [], "input": "x"}, "chat"),
    ({"prompt": "x"}, "completions"),
    ({"input": "x"}, "embeddings"),
    ({"input": ["x", "y"], "model": "m", "instruction": "find", "user": "u"}, "embeddings"),
    ({"input": ["x"], "encoding_format": "base64", "dimensions": 3}, "embeddings"),
    ({"input": [1, 2]}, "embeddings"),
    ({"input": None}, "embeddings"),
    ({"input": [{"role": "user", "content": "x"}]}, "responses"),
    ({"input": "x", "instructions": "i"}, "responses"),
    ({"input": "x", "tools": None}, "responses"),
    ({"input": "x", "stream": True}, "responses"),
    ({"input": "x", "previous_response_id": "r"}, "responses"),
    ({"input": "x", "prompt": {"id": "p"}}, "responses"),
    ({"input": "x", "store": True}, "responses"),
]


@pytest.mark.parametrize(("body", "protocol"), BODIES)
def test_the_body_tells(body: JsonObject, protocol: str) -> None:
    for path in ("/serving-endpoints/gpt/invocations", "/serving-endpoints/chat/completions"):
        assert choose_protocol(Call("POST", path, body), TASKS.get) == protocol


@for_each("name", TASKS)
@for_each(("body", "protocol"), BODIES)
def test_a_task_settles_what_input_is(name: str, body: JsonObject, protocol: str) -> None:
    by_task = protocol in ("embeddings", "responses")
    call = Call("POST", f"/serving-endpoints/{name}/invocations", body)
    assert choose_protocol(call, TASKS.get) == (TASKS[name] if by_task else protocol)


def test_the_endpoint_is_a_name_in_the_address() -> None:
    assert parse_endpoint_name("/serving-endpoints/a%2Fb/invocations") == "a/b"
    assert parse_endpoint_name("/serving-endpoints/responses") is None
