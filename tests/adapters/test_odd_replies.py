"""Replies and streams with one place altered, of every provider and for every client: what comes of them is an answer
or a Fault, and a stream ends once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Reply, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.chat.restream import restream
from dragoman.adapters.completions.restream import restream_text
from dragoman.adapters.dialect_check import SIDES
from dragoman.adapters.faults import Fault
from dragoman.adapters.messages.restream import restream_message
from dragoman.adapters.paths import Path
from dragoman.adapters.responses.restream import restream_response
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output
from dragoman.adapters.translate.bridge import BRIDGES
from dragoman.adapters.translate.bridge_interface import Bridge
from dragoman.contract.json_types import JsonObject, JsonValue

ODD: list[JsonValue] = [None, [], {}, "x", "", 1e30, -1, 0, True, 1.5, 2**63, [1], ["x"], {"a": 1}, [None], [[]], [{}]]
ODD += ["stop", "length", "ab", [{"type": "text"}], [{"type": "reasoning", "summary": 3}], [{"type": []}]]
ROUNDS = 120  # of each case

REQUESTS: dict[str, JsonObject] = {
    "chat": {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}},
    "responses": {"model": "m", "input": "x", "stream": True},
    "completions": {"model": "m", "prompt": "x", "stream": True},
    "embeddings": {"model": "m", "input": ["x"]},
    "messages": {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], "stream": True},
    "count_tokens": {"model": "m", "messages": [{"role": "user", "content": "x"}]},
}
USAGE = {
    "prompt_tokens": 1,
    "completion_tokens": 2,
    "total_tokens": 3,
    "prompt_tokens_details": {"cached_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
LOGPROBS = {"content": [{"token": "hi", "logprob": -1.0, "bytes": None, "top_logprobs": []}]}
CITATION = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}
CHAT = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE}
MESSAGE = {"role": "assistant", "content": [{"type": "text", "text": "hi"}], "annotations": [CITATION]}
MESSAGE |= {"reasoning_content": "t", "tool_calls": [CALL]}
TEXT = {"index": 0, "text": "a", "logprobs": None, "finish_reason": "stop"}
PAGE = {"type": "page_location", "cited_text": "c", "document_index": 0, "document_title": "d"}
PAGE |= {"start_page_number": 1, "end_page_number": 2}
WHOLE: dict[str, JsonObject] = {
    "chat": {**CHAT, "choices": [{"index": 0, "message": MESSAGE, "logprobs": LOGPROBS, "finish_reason": "stop"}]},
    "completions": {**CHAT, "object": "text_completion", "choices": [TEXT]},
    "embeddings": {
        "object": "list",
        "model": "m",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.1]}],
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    },
    "messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "t", "signature": "EqQB"},
            {"type": "redacted_thinking", "data": "EqQC"},
            {"type": "text", "text": "hi", "citations": [PAGE]},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "cache_read_input_tokens": 1, "output_tokens": 2},
    },
    "count_tokens": {"input_tokens": 3},
}
RESTREAM = {
    "chat": restream,
    "completions": restream_text,
    "messages": lambda reply, with_usage: restream_message(reply),
}


def context(protocol: str, mode: str = "repair") -> Context:
    request = REQUESTS[protocol]
    target = Target("m", policy=Policy(replies=mode))  # type: ignore[arg-type]
    return Context("actual", Call("POST", "/x", request), Receipt(), target, request, clock=lambda: 1.0)


def whole(protocol: str) -> JsonObject:
    if protocol == "responses":
        hub = dialects["openai"].called["chat"].read_reply(Reply(200, deepcopy(WHOLE["chat"])), context("chat"))
        return BRIDGES["responses"][0].reply(hub, REQUESTS["responses"], context("responses"))
    return deepcopy(WHOLE[protocol])


def events(protocol: str) -> list[JsonObject]:
    """A stream that says the same."""
    if protocol == "responses":
        return restream_response(whole(protocol))
    called = next(one.called[protocol] for one in dialects.values() if protocol in one.called)
    reply = called.read_reply(Reply(200, whole(protocol)), context(protocol))
    return RESTREAM[protocol](reply, True)


def places(value: JsonValue, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from places(child, (*path, key))


def alter(value: JsonValue, random: Random) -> None:
    *above, last = random.choice(list(places(value)))
    for key in above:
        value = value[key]
    if random.random() < 0.2:
        del value[last]
    else:
        value[last] = deepcopy(random.choice(ODD))


def clients(protocol: str) -> list[str]:
    return [protocol, *(name for name, bridges in BRIDGES.items() if protocol in [one.called for one in bridges])]


def find_bridge(client: str, protocol: str) -> Bridge:
    return next(bridge for bridge in BRIDGES[client] if bridge.called == protocol)


@pytest.mark.parametrize(
    ("dialect", "protocol"), [(name, protocol) for name in dialects for protocol in dialects[name].called]
)
def test_a_whole_reply(dialect: str, protocol: str) -> None:
    random, sound = Random(f"{dialect} {protocol}"), whole(protocol)
    for _ in range(ROUNDS):
        body = deepcopy(sound)
        alter(body, random)
        shown = json.dumps(body)
        client, ctx = random.choice(clients(protocol)), context(protocol, random.choice(["repair", "strict"]))
        ctx = ctx._replace(needs_first_choice=client != protocol and find_bridge(client, protocol).needs_first_choice)
        try:
            hub = dialects[dialect].called[protocol].read_reply(Reply(200, body, raw=shown.encode()), ctx)
            if client != protocol:
                hub = find_bridge(client, protocol).reply(hub, REQUESTS[client], ctx._replace(request=REQUESTS[client]))
        except Fault:
            continue
        except Exception as error:
            raise AssertionError(shown) from error
        for served in [one.served[client] for one in dialects.values() if client in one.served]:
            orjson.dumps(served.write_reply(deepcopy(hub), context(client)).body)


@pytest.mark.parametrize(
    ("dialect", "protocol"),
    [(name, protocol) for name in dialects for protocol in dialects[name].called if "event" in SIDES[protocol]],
)
def test_a_stream(dialect: str, protocol: str) -> None:
    random, sound = Random(f"{dialect} {protocol}"), events(protocol)
    for _ in range(ROUNDS):
        some = deepcopy(sound)
        alter(random.choice(some), random)
        shown = b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in some) + b"data: [DONE]\n\n"
        client, ctx = random.choice(clients(protocol)), context(protocol, random.choice(["repair", "strict"]))
        ctx = ctx._replace(needs_first_choice=client != protocol and find_bridge(client, protocol).needs_first_choice)
        try:
            outputs = read(dialect, protocol, shown, ctx)
            if client != protocol:
                translator = find_bridge(client, protocol).stream(
                    REQUESTS[client], ctx._replace(request=REQUESTS[client])
                )
                outputs = [made for output in outputs for made in translator.feed(output)]
            for served in [one.served[client] for one in dialects.values() if client in one.served]:
                writer = served.write_stream(context(client))
                for output in outputs:
                    writer.write(output)
        except Exception as error:
            raise AssertionError(shown) from error
        assert [isinstance(output, Chunk | DeltaRun) for output in outputs].index(False) == len(outputs) - 1


def read(dialect: str, protocol: str, data: bytes, ctx: Context) -> list[Output]:
    reader = dialects[dialect].called[protocol].read_stream(ctx)
    outputs = [*reader.receive(data), *reader.close()]
    assert isinstance(outputs[-1], End | Fault)
    return outputs
