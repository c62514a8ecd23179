"""What holds for every chat request that is told as a Responses request, and told back."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Change, Receipt
from dragoman.adapters.paths import lookup
from dragoman.adapters.translate.requests import to_chat_request, to_responses_request
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject

TEXT = st.text(min_size=1, max_size=5)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
STRANGE = {"vendor": st.just(1), "cache_control": st.just({"type": "ephemeral"})}
FUNCTION = st.fixed_dictionaries(
    {"name": st.sampled_from(["f", "g", "h"])},
    optional={"description": TEXT, "parameters": st.just(SCHEMA), "strict": st.booleans(), **STRANGE},
)
TOOL = st.fixed_dictionaries({"type": st.just("function"), "function": FUNCTION}, optional=STRANGE)
FORM = st.one_of(
    st.sampled_from([{"type": "text"}, {"type": "json_object"}]),
    st.just({"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}),
)
CHOICE = st.sampled_from(["auto", "none", "required", {"type": "function", "function": {"name": "f"}}])
TEXT_PART = st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}, optional=STRANGE)
REFUSAL_PART = st.fixed_dictionaries({"type": st.just("refusal"), "refusal": TEXT}, optional={"vendor": st.just(1)})
PARTS = st.lists(
    st.one_of(
        TEXT_PART,
        st.sampled_from(["auto", "low"]).map(
            lambda detail: {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": detail}}
        ),
        st.just({"type": "file", "file": {"file_data": "data:a/b;base64,aGk=", "filename": "a"}}),
        st.just({"type": "file", "file": {"file_id": "f", "vendor": 1}, "vendor": 1}),
    ),
    min_size=1,
    max_size=3,
)
UNKNOWN_THERE = {"seed": 7, "n": 2, "logit_bias": {"1": 2}, "stop": ["x"]}
FIELDS = {
    "temperature": st.sampled_from([0, 0.5]),
    "top_p": st.just(0.5),
    "presence_penalty": st.just(1),
    "metadata": st.just({"k": "v"}),
    "user": TEXT,
    "parallel_tool_calls": st.booleans(),
    "max_completion_tokens": st.integers(16, 99),
    "max_tokens": st.integers(16, 99),
    "reasoning_effort": st.sampled_from(["low", "high"]),
    "verbosity": st.sampled_from(["low", "high"]),
    "response_format": FORM,
    "top_logprobs": st.integers(0, 3),
    "stream": st.booleans(),
    **{name: st.just(value) for name, value in UNKNOWN_THERE.items()},
}


BESIDE = st.fixed_dictionaries({}, optional={"vendor": st.just(1), "name": TEXT})
KINDS = ["user", "parts", "system", "assistant", "calls", "old"]
NO_PLACE = {"vendor", "cache_control", "audio", "name"}  # in messages, parts and tools


@st.composite
def conversations(draw: st.DrawFn) -> list[JsonObject]:
    messages, calls = [], 0
    if draw(st.booleans()):
        content = draw(TEXT | st.lists(TEXT_PART, min_size=1, max_size=2))
        messages.append({"role": draw(st.sampled_from(["system", "developer"])), "content": content, **draw(BESIDE)})
    messages.append({"role": "user", "content": draw(TEXT), **draw(BESIDE)})
    for kind in draw(st.lists(st.sampled_from(KINDS), max_size=5)):
        if kind in ("user", "system"):
            messages.append({"role": kind, "content": draw(TEXT), **draw(BESIDE)})
        elif kind == "parts":
            messages.append({"role": "user", "content": draw(PARTS)})
        elif messages[-1]["role"] == "assistant":
            continue  # two in a row are one turn: its items become one message
        elif kind == "assistant":
            optional = {"reasoning_content": TEXT, "refusal": TEXT, "reasoning_signature": TEXT}
            parts = st.lists(TEXT_PART | REFUSAL_PART, min_size=1, max_size=3)
            said = st.fixed_dictionaries({"content": TEXT | parts}, optional=optional | {"audio": st.just({"id": "a"})})
            messages.append({"role": "assistant", **draw(said), **draw(BESIDE)})
        elif kind == "old":
            called = {"name": "f", "arguments": draw(TEXT)}
            messages.append({"role": "assistant", "content": draw(st.none() | TEXT), "function_call": called})
            messages.append({"role": "function", "name": "f", "content": draw(TEXT), **draw(BESIDE)})
        else:
            ids = [f"c{calls + k}" for k in range(draw(st.integers(1, 3)))]
            calls += len(ids)
            made = [{"id": one, "type": "function", "function": {"name": "f", "arguments": draw(TEXT)}} for one in ids]
            messages.append({"role": "assistant", "content": draw(st.none() | TEXT), "tool_calls": made})
            messages += [{"role": "tool", "tool_call_id": one, "content": draw(TEXT)} for one in ids]
    return messages


@st.composite
def requests(draw: st.DrawFn) -> JsonObject:
    request = {"model": "m", "messages": draw(conversations())}
    request |= draw(st.fixed_dictionaries({}, optional=FIELDS))
    if tools := draw(st.lists(TOOL, max_size=3, unique_by=lambda tool: tool["function"]["name"])):
        request |= {"tools": tools} | draw(st.fixed_dictionaries({}, optional={"tool_choice": CHOICE}))
    if "top_logprobs" in request:
        request["logprobs"] = True
    return request


def context(request: JsonObject) -> Context:
    target, numbers = Target("up", policy=Policy(unsupported="drop")), count(1)
    new_id = lambda prefix: f"{prefix}_{next(numbers)}"  # noqa: E731
    return Context("actual", Call("POST", "/", request), Receipt(), target, request, lambda: 1.7e9, new_id)


def plain(request: JsonObject) -> JsonObject:
    """Without what says the same in other words: the forms that the receipt need not tell as losses."""
    made = copy.deepcopy(request)
    if "max_tokens" in made:
        made["max_completion_tokens"] = made.get("max_completion_tokens", made["max_tokens"])
        del made["max_tokens"]
    made["messages"] = [*with_ids(made["messages"])]
    for message in made["messages"]:
        content = message.get("content")
        if isinstance(content, list) and all(part["type"] in ("text", "refusal") for part in content):
            message["content"] = "".join(part.get("text", "") for part in content) or None
            refusal = "".join(part.get("refusal", "") for part in content) + (message.get("refusal") or "")
            message |= {"refusal": refusal} if refusal else {}
    first = made["messages"][0]
    first["role"] = "system" if first["role"] == "developer" else first["role"]
    for tool in made.get("tools", ()):
        if not tool["function"].get("strict"):
            tool["function"].pop("strict", None)
    if not made.get("tools"):
        made.pop("parallel_tool_calls", None)
    made.pop("stream_options", None)
    return made


def with_ids(messages: list[JsonObject]) -> Iterator[JsonObject]:
    """Calls and results of the old form in today's."""
    number = 0
    for message in messages:
        if "function_call" in message:
            number += 1
            call = {"id": f"call_{number}", "type": "function", "function": message.pop("function_call")}
            yield {**message, "tool_calls": [call]}
        elif message["role"] == "function":
            yield {"role": "tool", "tool_call_id": f"call_{number}", "content": message["content"]}
        else:
            yield message


def without(request: JsonObject, losses: list[Change]) -> JsonObject:
    made = json.loads(json.dumps(request))  # parts that are one object become several
    for change in losses:
        *holder, key = change.before
        del lookup(made, tuple(holder))[key]
    return dict(made)


def test_there_and_back_a_request_is_the_same_but_for_what_the_receipt_tells() -> None:
    @given(requests())
    def law(request: JsonObject) -> None:
        before = copy.deepcopy(request)
        there = context(request)
        told = to_responses_request(request, there)
        assert [one.message for one in load_validator("hub/responses.request").violations(told)] == []
        back = context(told)
        again = to_chat_request(told, back)
        assert [one.message for one in load_validator("hub/chat.request").violations(again)] == []
        assert request == before, "the client's request was altered"
        assert back.receipt.losses == [], "what Responses could say, chat can say again"
        for change in there.receipt.losses:
            *inside, key = change.before
            assert key in (NO_PLACE if inside else UNKNOWN_THERE.keys() | {"max_tokens"})
        assert plain(again) == plain(without(request, there.receipt.losses))

    law()
