"""What dragoman sends to a client, it accepts in the client's next request, and sends it on to every provider."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.adapters.faults import Fault
from dragoman.contract.json_types import JsonObject, JsonValue

from .conversations import Answer, Party, continue_conversation, get_turns, list_answers, list_parties, write_request
from .exchanges import encode_chunks, make_reply

CLIENTS, PROVIDERS = list_parties("served"), list_parties("called")
HEADERS: tuple[dict[str, str], ...] = ({}, {"extra-parameters": "drop"}, {"extra-parameters": "pass-through"})
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


def outline(value: JsonValue) -> JsonValue:
    """What a value looks like: its keys and types, and the texts that say what it is."""
    if isinstance(value, dict):
        return tuple(sorted((key, one if key in ("type", "role") else outline(one)) for key, one in value.items()))
    return tuple(map(outline, value)) if isinstance(value, list) else type(value).__name__ + str(not value)


def needs_text(provider: Party, turns: list[JsonObject], fault: Fault) -> bool:
    """Whether the fault is right: the documented MindIE has no calls and requires a text in each message, so one that
    only calls tools is refused by name, and another target is asked."""
    calls = [turn for turn in turns if turn.get("tool_calls") or str(turn.get("type")).endswith("_call")]
    packed = "function_call" in json.dumps(turns)  # in a block of a message
    is_refused = fault.kind == "unsupported_parameter" and fault.path[:1] in (("messages",), ("input",))
    return provider[:2] == ("mindie", "documented") and is_refused and (bool(calls) or packed)


def list_sayings(turns: list[JsonObject]) -> Iterator[str]:
    """The texts of the turns, and the names and arguments of their calls."""
    for turn in turns:
        parts = (turn.get("type") != "reasoning" and turn.get("content")) or []
        parts = parts if isinstance(parts, list) else [{"text": parts}]
        yield from (part["text"] for part in parts if part.get("text"))
        yield from (call["function"][key] for call in turn.get("tool_calls") or () for key in ("name", "arguments"))
        yield from (turn[key] for key in ("name", "arguments") if turn.get(key))


def find_refusals(client: Party, turns: list[JsonObject], headers: dict[str, str]) -> Iterator[str]:
    """What keeps a conversation with these turns from going on, for each provider."""
    body = continue_conversation(client, turns)
    for provider in PROVIDERS:
        try:
            sent = write_request(client, body, provider, headers).calls[0].call.body
        except Fault as fault:
            if not needs_text(provider, turns, fault):
                yield f"{provider}: {fault}"
            continue
        text = json.dumps(sent, ensure_ascii=False)
        yield from (
            f"{provider}: {one!r} is lost"
            for one in list_sayings(turns)
            if json.dumps(one, ensure_ascii=False)[1:-1] not in text
        )


@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_a_conversation_goes_on_with_every_answer(client: Party) -> None:
    failures, shapes = [], set()
    for answer in list_answers():
        turns = get_turns(client, answer)
        shape = repr(outline(turns))
        if turns is None or shape in shapes:
            continue
        shapes.add(shape)
        for sent in (turns, [{key: one for key, one in turn.items() if one is not None} for turn in turns]):
            failures += [(answer.name, one) for one in find_refusals(client, sent, {})]
    assert len(shapes) >= 5
    assert failures == []


@pytest.mark.parametrize("client", [client for client in CLIENTS if client.dialect == "azure"], ids=str)
@pytest.mark.parametrize("headers", HEADERS, ids=str)
def test_what_the_client_wants_done_with_extra_parameters_does_not_concern_answers(
    client: Party, headers: dict[str, str]
) -> None:
    turn = {"role": "assistant", "content": "a", "vendor": 1, "tool_calls": [{**CALL, "vendor": {"a": []}}]}
    assert list(find_refusals(client, [turn], headers)) == []


# Keys that nobody knows

VALUES = (
    st.none() | st.booleans() | st.integers(0, 9) | st.text("ab", max_size=2) | st.lists(st.integers(0, 9), max_size=2)
)
KEYS = st.dictionaries(
    st.sampled_from(["vendor", "parsed", "matched_stop", "token_ids", "audio_url", "x-y"]),
    VALUES | st.dictionaries(st.sampled_from(["a", "b"]), VALUES, max_size=2),
    max_size=3,
)

ODD = st.dictionaries(
    st.sampled_from(["name", "tool_call_id", "audio", "annotations", "reasoning_signature"]),
    st.booleans() | st.integers(0, 9) | st.lists(st.text("ab", max_size=2), max_size=2),
    max_size=2,
)
"""Keys that requests know, with values that they cannot have there."""


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """A chat answer whose message, call and function have keys of the provider's own."""
    provider = draw(st.sampled_from([party for party in PROVIDERS if party.protocol == "chat"]))
    message: JsonObject = {
        **draw(KEYS),
        **draw(ODD),
        "role": "assistant",
        "content": draw(st.sampled_from(["yes", "", None])),
    }
    if draw(st.booleans()):
        message["refusal"] = ""
    if draw(st.booleans()):
        message["tool_calls"] = [{**draw(KEYS), **CALL, "function": {**draw(KEYS), **CALL["function"]}}]
    finish = "tool_calls" if "tool_calls" in message else "stop"
    if draw(st.booleans()):
        return Answer("streamed", provider, encode_chunks(message, finish=finish))
    return Answer("whole", provider, make_reply(message, finish))


def test_a_conversation_goes_on_with_keys_that_nobody_knows() -> None:
    @settings(suppress_health_check=list(HealthCheck))
    @given(answers(), st.sampled_from(CLIENTS), st.sampled_from(HEADERS))
    def law(answer: Answer, client: Party, headers: dict[str, str]) -> None:
        turns = get_turns(client, answer)
        if turns is not None:
            assert list(find_refusals(client, turns, headers)) == []

    law()
