"""The tokens of streams: asked for by dragoman, kept from clients that did not ask, and not asked for where that is
refused."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject
from tests.proxy.running_proxy import Answer, Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Upstream, Wire, chunked, http

ASKED = {"include_usage": True}
COUNTS = {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}
REFUSAL = http(b'{"error": {"message": "Unrecognized argument: stream_options"}}', status="400 Bad Request")
ECHO = http(b'{"detail": "temperature is wrong", "input": {"stream_options": {}}}', status="400 Bad Request")


def event(**fields: object) -> bytes:
    return b"data: " + json.dumps({"id": "x", "object": "chat.completion.chunk", **fields}).encode() + b"\n\n"


def piece(text: str, finish: str | None = None, **fields: object) -> bytes:
    return event(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish}], **fields)


PLAIN = b"".join(chunked(piece("he"), piece("llo"), piece("", "stop"), b"data: [DONE]\n\n"))
COUNTED = b"".join(
    chunked(
        *(piece(text, usage=None) for text in ("he", "ll", "o")),
        piece("", "stop", usage=None),
        event(choices=[], usage=COUNTS, created=7, service_tier="default", system_fingerprint="fp"),
        b"data: [DONE]\n\n",
    )
)


class Refusing:
    """A script for each request: a refusal as long as usage is asked for."""

    def __init__(self, upstream: Upstream, refusal: bytes = REFUSAL) -> None:
        self._upstream, self._refusal = upstream, refusal

    def __iter__(self) -> Iterator[Step]:
        asked = "stream_options" in self._upstream.bodies[-1]
        yield from (self._refusal if asked else PLAIN, "keep")


async def start(proxy: StartProxy, up: Upstream, **config: JsonObject) -> Proxy:
    return await proxy(up, speak=dialects, **config)


def read_text(answer: Answer) -> str:
    *events, done = answer.events
    assert done == "[DONE]"
    return "".join(choice["delta"].get("content") or "" for one in events for choice in one["choices"])


async def test_tokens_are_known_of_streams_whose_client_did_not_ask(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream(COUNTED)
    p = await start(proxy, up)
    answer = await p.ask(stream=True)
    assert read_text(answer) == "hello"
    assert b"usage" not in answer.text
    assert up.bodies[0]["stream_options"] == ASKED
    (line,) = await p.exchanges()
    assert (line["tokens_in"], line["tokens_out"], line["attempts"]) == (11, 2, 1)
    assert not [change for change in line.get("changes", ()) if change["weight"] == "loss"]
    assert not {"usage", "service_tier"} & {change.get("before") for change in line.get("changes", ())}
    assert "x-dragoman-changes" not in answer.headers


async def test_a_client_that_asks_gets_them(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream(COUNTED)
    answer = await (await start(proxy, up)).ask(stream=True, stream_options=ASKED)
    assert answer.events[-2]["usage"] == COUNTS
    assert up.bodies[0]["stream_options"] == ASKED


@pytest.mark.parametrize("asked", [{}, {"stream_options": ASKED}])
async def test_tokens_of_a_stream_that_a_stop_string_ended_are_estimated(
    proxy: StartProxy, upstream: StartUpstream, asked: JsonObject
) -> None:
    """Whether the client asked for them or not: budgets count them."""
    up = await upstream(b"".join(chunked(piece("he"), piece("llo"), end=False)), "keep")
    targets = [{"provider": "p0", "model": "up", "lacks": ["stop"]}]
    p = await start(proxy, up, models={"m": {"targets": targets}})
    assert read_text(await p.ask(stream=True, stop=["lo"], **asked)) == "hel"
    (line,) = await p.exchanges()
    assert (line["outcome"], line["tokens_in"] > 0, line["tokens_out"] > 0) == ("ok", True, True)


async def test_other_options_of_the_client_are_kept(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream(COUNTED)
    await (await start(proxy, up)).ask(stream=True, stream_options={"include_obfuscation": False})
    assert up.bodies[0]["stream_options"] == {"include_obfuscation": False, **ASKED}


@pytest.mark.parametrize("policy", [{"stream_usage": "leave"}, {"replies": "off"}, {"replies": "report"}])
async def test_policies_under_which_nothing_is_asked_for(
    proxy: StartProxy, upstream: StartUpstream, policy: JsonObject
) -> None:
    up = await upstream(PLAIN)
    answer = await (await start(proxy, up, policy=policy)).ask(stream=True)
    assert read_text(answer) == "hello"
    assert "stream_options" not in up.bodies[0]


async def test_a_target_that_lacks_the_option_is_not_asked(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream(PLAIN)
    targets = [{"provider": "p0", "model": "up", "lacks": ["stream_options"]}]
    await (await start(proxy, up, models={"m": {"targets": targets}})).ask(stream=True)
    assert "stream_options" not in up.bodies[0]


def azure(up: Upstream, **settings: JsonObject | str) -> dict[str, JsonObject]:
    return {"p0": {"dialect": "azure", "base_url": f"http://127.0.0.1:{up.port}/models", **settings}}


async def test_azure_is_asked_by_an_extra_parameter(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream(COUNTED)
    p = await start(proxy, up, providers=azure(up))
    assert read_text(answer := await p.ask(stream=True)) == "hello"
    assert b"usage" not in answer.text and "x-dragoman-changes" not in answer.headers
    assert up.bodies[0]["stream_options"] == ASKED
    assert b"extra-parameters: pass-through" in up.requests[0].lower()
    (line,) = await p.exchanges()
    assert (line["tokens_in"], line["tokens_out"]) == (11, 2)


async def test_a_model_of_azure_that_refuses_extra_parameters_is_asked_once(
    proxy: StartProxy, upstream: StartUpstream
) -> None:
    up = await upstream()
    up.script = Refusing(up)
    p = await start(proxy, up, providers=azure(up))
    for _ in range(2):
        assert read_text(await p.ask(stream=True)) == "hello"
    assert ["stream_options" in body for body in up.bodies] == [True, False, False]
    assert [b"extra-parameters" in request.lower() for request in up.requests] == [True, False, False]


@pytest.mark.parametrize(
    "settings", [{"policy": {"extra_parameters": "drop"}}, {"profile": "documented"}], ids=("policy", "profile")
)
async def test_azure_is_not_asked_where_extra_parameters_do_not_pass(
    proxy: StartProxy, upstream: StartUpstream, settings: JsonObject
) -> None:
    up = await upstream(PLAIN)
    assert isinstance(settings, dict)
    await (await start(proxy, up, providers=azure(up, **settings))).ask(stream=True)
    assert "stream_options" not in up.bodies[0]


async def test_whole_answers_need_no_question(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok)
    await (await start(proxy, up)).ask()
    assert "stream_options" not in up.bodies[0]


async def test_who_refuses_is_asked_once(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream()
    up.script = Refusing(up)
    p = await start(proxy, up)
    for _ in range(2):
        answer = await p.ask(stream=True)
        assert (answer.status, read_text(answer)) == (200, "hello")
        assert "x-dragoman-changes" not in answer.headers
    assert ["stream_options" in body for body in up.bodies] == [True, False, False]
    assert [line["outcome"] for line in await p.exchanges(2)] == ["ok", "ok"]


async def test_an_error_that_only_quotes_the_option_is_reported_and_nothing_is_remembered(
    proxy: StartProxy, upstream: StartUpstream
) -> None:
    up = await upstream()
    up.script = [ECHO, "keep"]
    p = await start(proxy, up)
    for _ in range(2):
        answer = await p.ask(stream=True)
        assert (answer.status, "temperature is wrong" in answer.error["message"]) == (400, True)
    assert ["stream_options" in body for body in up.bodies] == [True, False, True, False]


async def test_a_client_that_asks_is_told_of_the_refusal(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream()
    up.script = Refusing(up)
    answer = await (await start(proxy, up)).ask(stream=True, stream_options=ASKED)
    assert (answer.status, len(up.requests)) == (400, 1)
    assert "stream_options" in answer.error["message"]


async def test_a_refusal_is_no_reason_for_failing_of_several_calls(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream()
    up.script = Refusing(up)
    targets = [{"provider": "p0", "model": "up", "lacks": ["n"]}]
    p = await start(proxy, up, models={"m": {"targets": targets}})
    answer = await p.ask(stream=True, n=2)
    assert answer.status == 200, answer.text
    assert read_text(answer) in ("hellohello", "hehellollo")
    (line,) = await p.exchanges()
    assert line["outcome"] == "ok"


async def test_tokens_of_several_calls_are_added(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream(COUNTED)
    targets = [{"provider": "p0", "model": "up", "lacks": ["n"]}]
    p = await start(proxy, up, models={"m": {"targets": targets}})
    assert (await p.ask(stream=True, n=2)).status == 200
    (line,) = await p.exchanges()
    assert (line["tokens_in"], line["tokens_out"]) == (22, 4)


async def test_what_a_bridge_asks_for_is_left_out_too(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream()
    up.script = Refusing(up)
    p = await start(proxy, up)
    url, body = f"{p.running.url}/v1/responses", {"model": "m", "input": "hi", "stream": True, "store": False}
    for _ in range(2):
        async with p.session.post(url, json=body) as answer:
            assert answer.status == 200
            assert "response.completed" in await answer.text()
    assert ["stream_options" in sent for sent in up.bodies] == [True, False, False]


def encode_events(*events: JsonObject) -> bytes:
    return b"".join(chunked(*(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)))


MESSAGE: JsonObject = {"id": "x", "type": "message", "role": "assistant", "model": "up", "content": []}
MESSAGES = encode_events(
    {"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 9, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)
RESPONSES = encode_events(
    {"type": "response.created", "response": {"id": "r", "object": "response", "status": "in_progress", "output": []}},
    {
        "type": "response.completed",
        "response": {
            "id": "r",
            "object": "response",
            "status": "completed",
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]},
            ],
            "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11},
        },
    },
)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize(
    ("protocol", "dialect", "stream"),
    [("messages", "anthropic", MESSAGES), ("responses", "openai", RESPONSES)],
    ids=("messages", "responses"),
)
async def test_tokens_of_streams_in_another_protocol_are_known(
    proxy: StartProxy, upstream: StartUpstream, protocol: str, dialect: str, stream: bytes, calls: int
) -> None:
    up = await upstream(stream)
    providers = {"p0": {"dialect": dialect, "base_url": f"http://127.0.0.1:{up.port}", "protocols": [protocol]}}
    p = await start(proxy, up, providers=providers)
    assert read_text(answer := await p.ask(stream=True, n=calls)) == "hello" * calls
    assert b"usage" not in answer.text
    (line,) = await p.exchanges()
    assert (line["tokens_in"], line["tokens_out"]) == (9 * calls, 2 * calls)
