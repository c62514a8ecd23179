"""A schema that accepts plain messages at once accepts the same requests as before."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.plain_messages import put_plain_first
from dragoman.schemas import Schema, load, names

ROLES = ("system", "developer", "user", "assistant", "tool", "function", "critic", "", None, 1)
CONTENTS = st.one_of(
    st.text(), st.none(), st.just([]), st.just([{"type": "text", "text": "a"}]), st.just([{"type": "input_text"}])
)
MESSAGES = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "role": st.sampled_from(ROLES),
            "content": CONTENTS,
            "name": st.text(),
            "type": st.just("message"),
            "tool_calls": st.just([]),
            "tool_call_id": st.just("call_1"),
            "x": st.none(),
        },
    ),
    st.fixed_dictionaries({"role": st.sampled_from(ROLES), "content": st.text()}),
    st.text(),
    st.none(),
)


def list_requests() -> list[tuple[str, str]]:
    """The schemas of requests with messages, and the key that has them."""
    found = [(name, key) for name in sorted(names()) if name.endswith(".request") for key in ("messages", "input")]
    return [(name, key) for name, key in found if isinstance(load(name)["properties"].get(key), dict)]


def compile_schema(schema: Schema) -> Any:
    return jsonschema_rs.Draft202012Validator(schema).is_valid


@pytest.mark.parametrize(("name", "key"), list_requests())
@given(messages=st.lists(MESSAGES, max_size=4))
def test_the_same_messages_are_accepted(name: str, key: str, messages: list[Any]) -> None:
    schema = load(name)
    part = {"$defs": schema.get("$defs", {}), "properties": {key: schema["properties"][key]}}
    body = {key: messages}
    assert compile_schema(put_plain_first(part))(body) == compile_schema(part)(body)


@pytest.mark.parametrize(("name", "key"), list_requests())
def test_no_rule_limits_the_length_of_a_text(name: str, key: str) -> None:
    """A rule that did would not be seen by the texts that are tried."""
    schema = load(name)
    part = {"$defs": schema.get("$defs", {}), "properties": {key: schema["properties"][key]}}
    body = {key: [{"role": "user", "content": "x" * 11_000_000}]}
    assert compile_schema(put_plain_first(part))(body) == compile_schema(part)(body)


@pytest.mark.parametrize(("name", "key"), [("openai/chat.request", "messages"), ("openai/responses.request", "input")])
def test_a_plain_message_needs_no_other_rule(name: str, key: str) -> None:
    schema = load(name)
    part = {"$defs": schema["$defs"], "properties": {key: schema["properties"][key]}}
    made = put_plain_first(part)["properties"][key]["items"]
    plain = compile_schema(made["anyOf"][0])
    assert [plain({"role": role, "content": "a"}) for role in ("user", "assistant", "tool")] == [True, True, False]
    assert not plain({"role": "user", "content": "a", "name": "b"})


def test_a_rule_about_texts_leaves_the_role_out() -> None:
    rule = {"properties": {"content": {"minLength": 1}}}
    assert put_plain_first({"properties": {"messages": {"items": rule}}})["properties"]["messages"]["items"] == rule


def test_a_schema_without_messages_stays_the_same() -> None:
    schema = load("hub/chat.reply")
    assert put_plain_first(schema) is schema
