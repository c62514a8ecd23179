"""What a dialect's client says reaches a provider of the same dialect as it was, but for what the receipt names; and so
does what that provider answers."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import FindDifferences
from tests.dialects import DIALECTS

Served = tuple[str, str]


DOCUMENTED_MINDIE = ("mindie", "documented")
DOCUMENTED_DATABRICKS = ("databricks", "documented")
PLAIN = (DOCUMENTED_MINDIE, DOCUMENTED_DATABRICKS)  # content is always a string

TEXTS = ["hello", "é ü 漢字 👋🏽", 'quote " and \\']
PARTS = [{"type": "text", "text": text} for text in TEXTS]
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
CLOSE_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "high"}}
OLDER = [  # as Azure's reference writes them
    {"type": "text", "content": "hello"},
    {"type": "image_url", "content": "https://example.com/a.png", "detail": "low"},
    {"type": "image", "content": "/9j/4AAQ", "detail": None},
]


def reasoning(**signature: str) -> JsonObject:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": "why", **signature}]}


# Requests: messages


def spoken(served: Served) -> list[JsonValue]:
    """What the system and tools may say."""
    return TEXTS if served in PLAIN else [*TEXTS, PARTS[:1], PARTS]


def asked(served: Served) -> list[JsonValue]:
    """What a user may say."""
    if served in PLAIN:
        return TEXTS
    older = [OLDER, [PARTS[0], OLDER[2], IMAGE], OLDER[1:]] if served[0] == "azure" else []
    return [*spoken(served), [PARTS[0], IMAGE], [CLOSE_IMAGE, PARTS[1], IMAGE], *older]


def answered(served: Served) -> list[JsonValue]:
    """What the assistant may have said."""
    blocks = [[reasoning(), PARTS[0]], [reasoning(signature="s"), *PARTS]] if served == ("databricks", "actual") else []
    return [*spoken(served), *blocks]


def call(number: int) -> JsonObject:
    function = {"name": ("f", "g")[number % 2], "arguments": '{"x": 1}'}
    return {"id": f"call_{number}", "type": "function", "function": function}


BESIDE_CONTENT: dict[str, list[JsonObject]] = {
    "openai": [
        {"refusal": None, "annotations": []},
        {"refusal": "no", "name": "n"},
        {"reasoning_content": "why", "reasoning_signature": "s"},
    ],
    "databricks": [],
    "azure": [],
    "mindie": [{"reasoning_content": "why"}, {"reasoning_content": None, "name": "n"}],
}


def tool_turns(served: Served) -> Iterator[list[JsonObject]]:
    """An assistant's calls, with something beside them or not, and their results in any order."""
    beside: list[JsonObject] = [{}, {"content": None}]
    if served != DOCUMENTED_DATABRICKS:
        beside += [{"content": one} for one in answered(served)]
    for more, count in product(beside, (1, 2, 3)):
        for order in permutations(range(count)):
            said = {"role": "assistant", "tool_calls": [call(i) for i in range(count)], **more}
            told = spoken(served)
            yield [said, *({"role": "tool", "tool_call_id": f"call_{i}", "content": told[i]} for i in order)]


def turns(served: Served) -> Iterator[list[JsonObject]]:
    dialect, _ = served
    for content in asked(served):
        yield [{"role": "user", "content": content}]
        if dialect == "openai" or served == ("databricks", "actual"):
            yield [{"role": "user", "content": content, "name": "n"}]
    extras = [] if served == DOCUMENTED_MINDIE else BESIDE_CONTENT[dialect]
    for content, more in product(answered(served), [{}, *extras]):
        yield [{"role": "assistant", "content": content, **more}]
    if served != DOCUMENTED_MINDIE:
        yield from tool_turns(served)
    if dialect != "databricks":
        yield from ([one] for one in instructions(served))


def instructions(served: Served) -> list[JsonObject]:
    roles = ["system", "developer"] if served[0] == "openai" else ["system"]
    return [{"role": role, "content": content} for role, content in product(roles, spoken(served))]


def conversations(served: Served) -> st.SearchStrategy[list[JsonObject]]:
    head = st.sampled_from([[], *([one] for one in instructions(served))])
    body = st.lists(st.sampled_from(list(turns(served))), min_size=1, max_size=4)
    return st.tuples(head, body).map(lambda parts: [*parts[0], *(one for turn in parts[1] for one in turn)])


# Requests: parameters

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
FULL = {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
BARE = {"name": "g"}
TOOLS = [[{"type": "function", "function": one} for one in some] for some in ([FULL], [BARE], [FULL, BARE])]
WITHOUT_STRICT = [[{"type": "function", "function": {k: FULL[k] for k in ("name", "parameters")}}], TOOLS[1]]
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
FORMATS: list[JsonValue] = [{"type": "text"}, {"type": "json_object"}, FORMAT]
STOPS: list[JsonValue] = [None, "END", ["END"], ["a", "b", "c", "d"]]
MADE_UP: list[JsonValue] = [1, {"deep": [1, None]}]
BOOLEANS: list[JsonValue] = [None, True, False]
PENALTIES: list[JsonValue] = [None, 0, -2, 1.5, 2]
LIMITS: list[JsonValue] = [None, 1, 4096]

# field: values
FIELDS: dict[Served, dict[str, list[JsonValue]]] = {
    ("openai", "documented"): {
        "temperature": [None, 0, 0.5, 2],
        "top_p": [None, 0, 1],
        "n": [None, 1, 128],
        "stop": STOPS,
        "max_tokens": LIMITS,
        "max_completion_tokens": LIMITS,
        "presence_penalty": PENALTIES,
        "frequency_penalty": PENALTIES,
        "logit_bias": [None, {}, {"50256": -100}],
        "seed": [None, -(2**63), 2**63 - 1],
        "user": [None, "u"],
        "metadata": [None, {"k": "v"}],
        "store": BOOLEANS,
        "stream": BOOLEANS,
        "reasoning_effort": [None, "none", "low", "xhigh", "max"],
        "parallel_tool_calls": BOOLEANS,
        "verbosity": [None, "low"],
        "service_tier": [None, "auto", "flex"],
        "tools": [None, [], *TOOLS],
        "response_format": FORMATS,
        "top_k": [None, -1, 5],
        "made_up": MADE_UP,
    },
    DOCUMENTED_DATABRICKS: {
        "model": [None, "other"],
        "temperature": [None, 0, 0.5, 2],
        "top_p": [None, 0.01, 1],
        "top_k": [None, 1, 50],
        "n": [None, 1, 5],
        "max_tokens": LIMITS,
        "stream": BOOLEANS,
        "stop": [*STOPS, []],
        "tools": [None, [], *TOOLS],
        "response_format": FORMATS,
        "logprobs": BOOLEANS,
        "reasoning_effort": [None, "low", "high"],
    },
    ("azure", "documented"): {
        "model": [None, "m"],
        "temperature": [None, 0, 3.5],
        "top_p": [None, 0, 1],
        "max_tokens": [None, 0, 1],
        "presence_penalty": PENALTIES,
        "frequency_penalty": PENALTIES,
        "seed": [None, -5, 2**63 - 1],
        "stream": BOOLEANS,
        "stop": [*STOPS, []],
        "tools": [None, [], *WITHOUT_STRICT],
        "response_format": FORMATS[:2],
        "made_up": MADE_UP,
    },
    DOCUMENTED_MINDIE: {
        "temperature": [None, 0.001, 2],
        "top_p": [None, 0.01, 1],
        "max_tokens": LIMITS,
        "presence_penalty": PENALTIES,
        "frequency_penalty": PENALTIES,
        "seed": [None, 1, 2**64 - 1],
        "stream": BOOLEANS,
        "made_up": MADE_UP,
    },
}
FIELDS["openai", "actual"] = FIELDS["openai", "documented"]
FIELDS["databricks", "actual"] = {
    **FIELDS[DOCUMENTED_DATABRICKS],
    "thinking": [None, {"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}],
    "client_request_id": [None, "c"],
    "usage_context": [None, {"k": "v"}],
    "extra_params": [None, {"k": "v"}],
}
FIELDS["azure", "actual"] = {**FIELDS["azure", "documented"], "response_format": FORMATS, "modalities": [["text"]]}
FIELDS["azure", "actual"]["user_security_context"] = [None, {"k": "v"}]
FIELDS["mindie", "native"] = {
    **FIELDS[DOCUMENTED_MINDIE],
    "temperature": [None, 0, 2],
    "seed": [None, 0, 2**63 - 1],
    "repetition_penalty": [None, 0.5, 1, 2],
    "stop": [*STOPS, []],
    "stop_token_ids": [None, [], [1, -1]],
    "ignore_eos": BOOLEANS,
    "skip_special_tokens": BOOLEANS,
    "tools": [None, [], *TOOLS],
    "chat_template_kwargs": [{}, {"enable_thinking": False}, {"thinking_budget": 5}],
}
FIELDS["mindie", "actual"] = {**FIELDS["mindie", "native"], "top_k": [None, -1, 1], "response_format": FORMATS}


def requests(served: Served) -> st.SearchStrategy[JsonObject]:
    model = {"model": "m"} if served[0] in ("openai", "mindie") else {}
    fields = [(name, value) for name, values in FIELDS[served].items() for value in values]
    some = st.lists(st.sampled_from(fields), max_size=10).map(dict)
    return st.tuples(conversations(served), some).map(lambda parts: {**model, "messages": parts[0], **parts[1]})


# Replies

CALLS = [call(0), call(1)]
COUNTS = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
DETAILED = {
    **COUNTS,
    "completion_tokens_details": {"reasoning_tokens": 2},
    "prompt_tokens_details": {"cached_tokens": 1},
}
LOGPROBS = {"content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}], "refusal": None}

# What a dialect's replies may have beside role and content: in the message, in the choice, in the reply, as usage.
MESSAGES: dict[str, list[JsonObject]] = {
    "openai": [{"refusal": "no"}, {"refusal": None, "annotations": []}, {"refusal": None, "reasoning_content": "why"}],
    "databricks": [{}],
    "azure": [{}, {"reasoning_content": "why"}],
    "mindie": [{}, {"reasoning_content": "why"}],
}
CHOICES: dict[str, list[JsonObject]] = {
    "openai": [{"logprobs": None}, {"logprobs": LOGPROBS}],
    "databricks": [{}, {"logprobs": LOGPROBS}, {"extra_fields": "{}"}],
    "azure": [{}, {"logprobs": None}, {"content_filter_results": {"hate": {"filtered": False}}}],
    "mindie": [{}, {"logprobs": None}, {"logprobs": LOGPROBS}],
}
ENVELOPES: dict[str, list[JsonObject]] = {
    "openai": [{"service_tier": "default", "system_fingerprint": "fp"}],
    "databricks": [],
    "azure": [{"system_fingerprint": "fp"}],
    "mindie": [{"prefill_time": 3, "decode_time_arr": [1, 2]}],
}
USAGES: dict[str, list[JsonObject]] = {
    "openai": [COUNTS, DETAILED],
    "databricks": [COUNTS, {**COUNTS, "reasoning_tokens": 2}],
    "azure": [COUNTS, DETAILED],
    "mindie": [COUNTS, DETAILED],
}
FINISHES: dict[Served, list[str]] = {
    ("openai", "documented"): ["stop", "length", "content_filter"],
    ("databricks", "documented"): ["stop", "length", "end_turn", "max_tokens", "tired"],
    ("azure", "documented"): ["stop", "length", "content_filter"],
    ("mindie", "documented"): ["eos_token", "length", "invalid flag"],
    ("mindie", "actual"): ["stop", "eos_token", "length", "invalid flag"],
}


def choices(served: Served) -> Iterator[JsonObject]:
    dialect, profile = served
    said = TEXTS if dialect == "mindie" or profile == "documented" else answered(served)
    beside: list[JsonObject] = MESSAGES[dialect] if served != DOCUMENTED_MINDIE else [{}]
    finishes = FINISHES.get(served) or FINISHES.get((dialect, "documented"), [])
    around: list[JsonObject] = CHOICES[dialect] if served != DOCUMENTED_MINDIE else [{}]
    for content, more, finish, other in product(said, beside, finishes, around):
        yield {"message": {"role": "assistant", "content": content, **more}, "finish_reason": finish, **other}
    if served != DOCUMENTED_MINDIE:
        for content, more, other in product([None, TEXTS[0]], beside, around):
            message = {"role": "assistant", "content": content, "tool_calls": CALLS, **more}
            yield {"message": message, "finish_reason": "tool_calls", **other}


def replies(served: Served) -> st.SearchStrategy[JsonObject]:
    dialect = served[0]
    name = "chat.completions" if served == DOCUMENTED_DATABRICKS else "chat.completion"
    head = {"id": "x", "object": name, "created": 1_750_000_000, "model": "m"}
    numbered = st.lists(st.sampled_from(list(choices(served))), min_size=1, max_size=1 if dialect == "mindie" else 3)
    envelopes = [{}, *(ENVELOPES[dialect] if served != DOCUMENTED_MINDIE else [])]
    parts = st.tuples(numbered, st.sampled_from(envelopes), st.sampled_from(USAGES[dialect]))
    return parts.map(
        lambda made: {
            **head,
            **made[1],
            "choices": [{"index": i, **one} for i, one in enumerate(made[0])],
            "usage": made[2],
        }
    )


# The laws


def profiled(
    dialect: str, make: Callable[[Served], st.SearchStrategy[JsonObject]]
) -> st.SearchStrategy[tuple[str, JsonObject]]:
    """Pairs of a profile of the dialect, and what `make` makes for it."""
    made = [st.tuples(st.just(profile), make((dialect, profile))) for profile in dialects[dialect].profiles]
    return st.one_of(made)


def hold(strategy: st.SearchStrategy[JsonValue], law: Callable[[tuple[str, JsonObject]], None]) -> None:
    given(strategy)(law)()


def call_of(dialect: str, body: JsonObject) -> Call:
    if dialect == "databricks":
        return Call("POST", "/serving-endpoints/m/invocations", body)
    if dialect == "azure":
        query = {"api-version": "2024-05-01-preview"}
        return Call("POST", "/chat/completions", body, query, {"extra-parameters": "pass-through"})
    return Call("POST", "/v1/chat/completions", body)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_requests(dialect: str, differences: FindDifferences) -> None:
    served, called = dialects[dialect].served["chat"], dialects[dialect].called["chat"]

    def law(made: tuple[str, JsonObject]) -> None:
        profile, body = made
        before = copy.deepcopy(body)
        ctx = Context(profile, call_of(dialect, body), Receipt())
        hub = served.read_request(ctx.call, ctx)
        target = Target("m", profile, kind="provisioned-throughput")
        onward = Context(profile, ctx.call, ctx.receipt.fork(), target, hub)
        written = called.write_request(hub, onward)
        assert body == before, "the client's request was altered"
        assert load_validator(f"{dialect}/chat.request", profile).accepts(written.body)
        assert differences(before, written.body, onward.receipt) == []

    hold(profiled(dialect, requests), law)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_replies(dialect: str, differences: FindDifferences) -> None:
    served, called = dialects[dialect].served["chat"], dialects[dialect].called["chat"]

    def law(made: tuple[str, JsonObject]) -> None:
        profile, body = made
        rules = load_validator(f"{dialect}/chat.reply", profile)
        assert rules.accepts(body), list(rules.violations(body))
        request = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        ctx = Context(profile, call_of(dialect, request), Receipt(), Target("m", profile), request)
        hub = called.read_reply(Reply(200, json.loads(json.dumps(body))), ctx)  # the reader may alter it
        assert load_validator("hub/chat.reply").accepts(hub)
        before = copy.deepcopy(hub)
        written = served.write_reply(hub, ctx)
        assert hub == before, "the hub reply was altered"
        assert (written.status, list(rules.violations(written.body))) == (200, [])
        for choice, original in zip(written.body["choices"], body["choices"], strict=True):
            native = choice.pop("native_finish_reason", None)
            assert native in (None, original["finish_reason"])
        assert differences(sayings(body), sayings(written.body), ctx.receipt) == []

    hold(profiled(dialect, replies), law)


def sayings(value: JsonValue) -> JsonValue:
    """A reply without what says as little as a missing key: nulls, empty texts, empty lists."""
    if isinstance(value, dict):
        return {key: sayings(one) for key, one in value.items() if one not in (None, "", [])}
    return [sayings(one) for one in value] if isinstance(value, list) else value
