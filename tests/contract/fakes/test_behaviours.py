"""Each behaviour runs in each dialect that has it, streamed and not, and does what its line says."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from typing import Any

import aiohttp
import pytest

from dragoman.adapters.sse import Stray
from dragoman.contract.fakes import BEHAVIOURS, FakeProvider, listing
from dragoman.contract.fakes.answers import SENTENCE
from dragoman.contract.fakes.forms import CREATED
from tests.dialects import DIALECTS

SILENT = ("hang", "hang-after-headers", "stall")
BROKEN = ("cut", "cut-fin", "cut-before", "cut-body", "garbage", "huge-header", "two-lengths")
TOOL = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Books a room.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "nights": {"type": "integer", "minimum": 2}},
            "required": ["city", "nights"],
        },
    },
}
BOOKED = {"city": "東京", "nights": 2}
SHORT = {
    "huge-body": "huge-body(size=1)",
    "gzip-bomb": "gzip-bomb(size=2)",
    "huge-event": "huge-event(size=1)",
    "slow": "slow(delay=0.001)",
}


def _owners() -> list[tuple[str, str]]:
    return [(name, dialect) for name, found in BEHAVIOURS.items() for dialect in found.only or DIALECTS]


@pytest.mark.parametrize(("name", "dialect"), _owners())
async def test_each_behaviour_runs_in_each_dialect_that_has_it(name: str, dialect: str, send: Any) -> None:
    async with FakeProvider(dialect, behaviour=SHORT.get(name, name)) as fake:
        for stream in (False, True):
            heard = await send(fake, stream=stream, wait=0.05 if name in SILENT else 5)
            assert (heard.error is not None) == (name in SILENT + BROKEN), heard
            if name.startswith("status-"):
                assert heard.status == int(name.removeprefix("status-"))
        assert len(fake.requests) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_behaviours_of_another_dialect_are_refused(dialect: str, send: Any) -> None:
    async with FakeProvider(dialect) as fake:
        for name, found in BEHAVIOURS.items():
            if found.only and dialect not in found.only:
                heard = await send(fake, f"fake:{name}")
                assert heard.status == 400 and f"belongs to {', '.join(found.only)}" in heard.raw.decode()


def test_listing_has_a_line_for_each() -> None:
    lines = listing().splitlines()
    assert [line.split("(")[0].split()[0] for line in lines] == list(BEHAVIOURS)
    assert any("slow(delay=0.05, words=0)" in line for line in lines)


async def _both(send: Any, behaviour: str, dialect: str = "openai", **options: Any) -> tuple[Any, Any]:
    """The same behaviour as one JSON body and as a stream."""
    async with FakeProvider(dialect, behaviour=behaviour) as fake:
        return await send(fake, stream=False, **options), await send(fake, stream=True, **options)


def _joined(deltas: list[Any]) -> dict[int, str]:
    calls = [call for delta in deltas for call in delta.get("tool_calls", [])]
    return {
        index: "".join(call["function"].get("arguments", "") for call in calls if call["index"] == index)
        for index in sorted({call["index"] for call in calls})
    }


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_tools_are_called_with_arguments_that_fit(dialect: str, send: Any) -> None:
    whole, stream = await _both(send, "tools", dialect, tools=[TOOL])
    choice = whole.body["choices"][0]
    [call] = choice["message"]["tool_calls"]
    assert (choice["finish_reason"], call["function"]["name"]) == ("tool_calls", "book")
    assert json.loads(call["function"]["arguments"]) == json.loads(_joined(stream.deltas)[0]) == BOOKED
    assert stream.finishes == ["tool_calls"] and stream.text == ""


async def test_tool_choice_names_the_tool(send: Any) -> None:
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object", "properties": {}}}}
    chosen = {"type": "function", "function": {"name": "other"}}
    whole, _ = await _both(send, "tools", tools=[TOOL, other], tool_choice=chosen)
    assert whole.body["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "other", "arguments": "{}"}


async def test_a_message_may_say_which_call_and_with_what(send: Any) -> None:
    message = {"role": "user", "content": 'fake:tools(name=look, arguments={"at": "it", "long": true}) please'}
    whole, stream = await _both(send, "text", messages=[message], tools=[TOOL])
    [call] = whole.body["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "look"
    assert call["function"]["arguments"] == _joined(stream.deltas)[0] == '{"at": "it", "long": true}'
    talk = [message, {"role": "assistant", "tool_calls": [call]}]
    whole, _ = await _both(send, "text", messages=[*talk, {"role": "tool", "tool_call_id": call["id"], "content": "x"}])
    assert whole.body["choices"][0]["message"]["content"] == "The tools said: x"


async def test_no_tools_means_get_weather(send: Any) -> None:
    whole, _ = await _both(send, "tools")
    assert whole.body["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_after_the_results_comes_text(dialect: str, send: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    talk = [
        {"role": "user", "content": "fake:tools"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "booked"},
    ]
    whole, stream = await _both(send, "text", dialect, messages=talk, tools=[TOOL])
    assert whole.body["choices"][0]["message"]["content"] == stream.text == "The tools said: booked"


async def test_parallel_calls_come_in_turns(send: Any) -> None:
    whole, stream = await _both(send, "parallel-tools", tools=[TOOL])
    assert len({call["id"] for call in whole.body["choices"][0]["message"]["tool_calls"]}) == 2
    indexes = [call["index"] for delta in stream.deltas for call in delta.get("tool_calls", [])]
    assert indexes[:6] == [0, 1, 0, 1, 0, 1]
    assert [json.loads(text) for text in _joined(stream.deltas).values()] == [BOOKED, BOOKED]


@pytest.mark.parametrize(
    ("name", "finish"),
    [("length", "length"), ("content-filter", "content_filter"), ("unknown-finish", "tired"), ("empty-finish", "")],
)
async def test_finish_reasons(name: str, finish: str, send: Any) -> None:
    whole, stream = await _both(send, name)
    assert [whole.body["choices"][0]["finish_reason"]] == stream.finishes == [finish]
    assert (stream.text == SENTENCE) == (name != "length") and stream.text


async def test_refusals_are_a_field_in_openai_and_text_elsewhere(send: Any) -> None:
    whole, stream = await _both(send, "refusal")
    message = whole.body["choices"][0]["message"]
    assert message["content"] is None and message["refusal"].startswith("I can’t")
    assert "".join(delta.get("refusal") or "" for delta in stream.deltas) == message["refusal"]
    whole, stream = await _both(send, "refusal", "mindie")
    assert whole.body["choices"][0]["message"]["content"] == stream.text == message["refusal"]


async def test_json_fits_the_response_format(send: Any) -> None:
    described = {"name": "room", "schema": TOOL["function"]["parameters"]}
    wanted = {"response_format": {"type": "json_schema", "json_schema": described}}
    whole, stream = await _both(send, "json", **wanted)
    assert json.loads(whole.body["choices"][0]["message"]["content"]) == json.loads(stream.text) == BOOKED
    whole, _ = await _both(send, "json", response_format={"type": "json_object"})
    assert json.loads(whole.body["choices"][0]["message"]["content"]) == {"answer": SENTENCE}


async def test_text_can_be_told_what_to_say(send: Any) -> None:
    _, stream = await _both(send, "text(words=40)")
    assert len(stream.text.split()) == 40 and len(stream.chunks) == 42
    whole, _ = await _both(send, "text(say=a, b = c,words=3)")
    assert whole.body["choices"][0]["message"]["content"] == "a, b ="


async def test_slow_and_slow_first(send: Any) -> None:
    for behaviour, least in {"slow(delay=0.01)": 0.15, "slow-first(delay=0.1)": 0.1}.items():
        async with FakeProvider("openai", behaviour=behaviour) as fake:
            begun = time.monotonic()
            heard = await send(fake, stream=True)
            assert heard.text == SENTENCE and time.monotonic() - begun >= least


@pytest.mark.parametrize(
    ("name", "begun", "error"),
    [
        ("hang", False, TimeoutError),
        ("hang-after-headers", True, TimeoutError),
        ("stall", True, TimeoutError),
        ("cut", True, aiohttp.ClientError),
        ("cut-fin", True, aiohttp.ClientPayloadError),
        ("cut-before", False, aiohttp.ServerDisconnectedError),
        ("cut-body", True, aiohttp.ClientPayloadError),
        ("garbage", False, aiohttp.ClientError),
    ],
)
async def test_replies_that_break(name: str, begun: bool, error: type[Exception], send: Any) -> None:
    async with FakeProvider("openai", behaviour=name) as fake:
        heard = await send(fake, stream=True, wait=0.1)
        assert isinstance(heard.error, error) and (heard.status == 200) == begun
        assert heard.done == 0 and bool(heard.raw) == (begun and name != "hang-after-headers")
        assert SENTENCE.startswith(heard.text) and heard.text != SENTENCE
        fake.behaviour = "text"
        assert (await send(fake, stream=True)).text == SENTENCE


async def test_streams_that_end_early_but_in_order(send: Any) -> None:
    whole, stream = await _both(send, "cut-clean")
    assert stream.error is None and stream.finishes == [] and stream.done == 0 and stream.text
    assert whole.body["choices"][0]["finish_reason"] is None
    _, stream = await _both(send, "no-done")
    assert stream.finishes == ["stop"] and stream.done == 0


async def test_broken_and_bare_lines(send: Any) -> None:
    whole, stream = await _both(send, "malformed-event")
    broken = [item for item in stream.items if b"broken" in getattr(item, "data", b"")]
    assert len(broken) == 1 and stream.raw.endswith(b"data: [DONE]\n\n")
    for text in (broken[0].data, whole.raw):
        with pytest.raises(ValueError):
            json.loads(text)
    _, stream = await _both(send, "bare-text(reason=client timeout)", "mindie")
    assert stream.items[-1] == Stray(b"Engine callback timeout: client timeout") and stream.finishes == []
    _, stream = await _both(send, "bare-json")
    strays = [json.loads(item.text) for item in stream.items[:-1]]
    assert strays[-1]["choices"][0]["finish_reason"] == "stop" and stream.items[-1] == Stray(b"[DONE]")


@pytest.mark.parametrize(
    ("dialect", "keys"),
    [
        ("openai", {"error"}),
        ("databricks", {"error_code", "message"}),
        ("azure", {"error"}),
        ("mindie", {"error", "error_type"}),
    ],
)
async def test_errors_inside_a_stream(dialect: str, keys: set[str], send: Any) -> None:
    whole, stream = await _both(send, "error-event(status=503)", dialect)
    assert set(stream.chunks[-1]) == keys == set(whole.body) and len(stream.chunks) > 3 and stream.done == 0
    assert whole.status == 200
    whole, stream = await _both(send, "first-error", dialect)
    assert [set(event) for event in stream.events] == [keys] and set(whole.body) == keys


@pytest.mark.parametrize("name", ["split-utf8", "crlf", "cr", "bom", "comments", "multiline-data", "two-done", "gzip"])
async def test_framings_that_change_nothing_in_the_text(name: str, send: Any) -> None:
    whole, stream = await _both(send, name)
    assert stream.text == SENTENCE and stream.finishes == ["stop"] and stream.done == (2 if name == "two-done" else 1)
    assert json.loads(whole.raw.decode("utf-8-sig"))["choices"][0]["message"]["content"] == SENTENCE


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("crlf", b"}\r\n\r\ndata: "),
        ("cr", b"}\r\rdata: "),
        ("bom", b"\xef\xbb\xbfdata: "),
        ("comments", b": keep-alive\n\ndata: "),
        ("multiline-data", b'\ndata:  "choices": ['),
    ],
)
async def test_framings_are_on_the_wire(name: str, sign: bytes, send: Any) -> None:
    _, stream = await _both(send, name)
    assert sign in stream.raw and (name != "cr" or b"\n" not in stream.raw)


async def test_bytewise_means_one_byte_in_each_http_chunk(session: aiohttp.ClientSession) -> None:
    async with FakeProvider("openai", behaviour="split-utf8") as fake:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
        async with session.post(f"{fake.base_url}/chat/completions", json=body) as response:
            sizes = [len(data) async for data, _ in response.content.iter_chunks()]
    assert set(sizes) == {1}


async def test_events_after_the_end(send: Any) -> None:
    _, stream = await _both(send, "after-done")
    assert stream.events.index("[DONE]") < len(stream.events) - 3


async def test_sizes(send: Any) -> None:
    whole, stream = await _both(send, "huge-event(size=1)")
    assert len(whole.raw) > 2**20 and max(len(line) for line in stream.raw.split(b"\n")) > 2**20
    whole, stream = await _both(send, "huge-body(size=3)")
    assert len(whole.body["padding"]) == 3 * 2**20 and len(stream.raw) > 3 * 2**20 and stream.finishes == ["stop"]


async def test_gzip_bomb_is_small_on_the_wire() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    plain = aiohttp.ClientSession(auto_decompress=False)
    async with plain, FakeProvider("openai", behaviour="gzip-bomb(size=8)") as fake:
        response = await plain.post(f"{fake.base_url}/chat/completions", json=body)
        packed = await response.read()
    assert response.headers["Content-Encoding"] == "gzip" and len(packed) < 2**16
    assert len(gzip.decompress(packed)) > 8 * 2**20


async def test_quirks_of_every_delta(send: Any) -> None:
    _, stream = await _both(send, "role-every-delta")
    assert all(delta["role"] == "assistant" for delta in stream.deltas)
    whole, stream = await _both(send, "empty-tool-calls")
    assert whole.body["choices"][0]["message"]["tool_calls"] == []
    assert all(delta["tool_calls"] == [] for delta in stream.deltas)
    whole, stream = await _both(send, "list-content")
    assert whole.body["choices"][0]["message"]["content"] == [{"type": "text", "text": SENTENCE}]
    assert "".join(delta["content"][0]["text"] for delta in stream.deltas if "content" in delta) == SENTENCE


async def test_quirks_of_tool_calls(send: Any) -> None:
    async def calls(name: str) -> list[Any]:
        _, stream = await _both(send, name, tools=[TOOL])
        return [call for delta in stream.deltas for call in delta.get("tool_calls", [])]

    assert not any("index" in call for call in await calls("no-index"))
    assert {call["index"] for call in await calls("index-from-one")} == {1, 3}
    assert {(call["id"] != "", call["function"]["name"]) for call in await calls("repeated-ids")} == {(True, "book")}
    assert (await calls("placeholder-arguments"))[0]["function"]["arguments"] == "{}"
    assert [call["function"]["arguments"] for call in await calls("arguments-object")] == [BOOKED]
    whole, stream = await _both(send, "arguments-object", tools=[TOOL])
    assert whole.body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == BOOKED
    whole, stream = await _both(send, "finish-stop-with-tools", tools=[TOOL])
    assert whole.body["choices"][0]["finish_reason"] == "stop" and stream.finishes == ["stop"]
    assert whole.body["choices"][0]["message"]["tool_calls"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_empty_choices(dialect: str, send: Any) -> None:
    whole, stream = await _both(send, "empty-choices", dialect)
    first, judged = stream.chunks[0], stream.chunks[-2]
    assert (first["choices"], first["id"], first["created"]) == ([], "", 0)
    assert "delta" not in judged["choices"][0] and judged["choices"][0]["content_filter_results"]
    assert whole.body["prompt_filter_results"] and stream.finishes


async def test_quirks_of_the_envelope(send: Any) -> None:
    whole, stream = await _both(send, "usage-every-chunk")
    assert whole.body["usage"]["completion_tokens"] is None
    assert [chunk["usage"]["total_tokens"] is None for chunk in stream.chunks[-2:]] == [True, False]
    _, stream = await _both(send, "usage-in-last", stream_options={"include_usage": True})
    assert stream.chunks[-1]["choices"][0]["finish_reason"] == "stop" and stream.chunks[-1]["usage"]
    assert not any("usage" in chunk for chunk in stream.chunks[:-1])
    _, stream = await _both(send, "created-varies")
    assert [chunk["created"] for chunk in stream.chunks] == [CREATED + number for number in range(len(stream.chunks))]
    for name, key, value in [
        ("created-float", "created", 1750000000.5),
        ("wrong-object", "object", "list"),
        ("missing-id", "id", None),
        ("no-choices", "choices", []),
    ]:
        whole, stream = await _both(send, name)
        assert {json.dumps(document.get(key)) for document in [whole.body, *stream.chunks]} == {json.dumps(value)}


async def test_databricks_plural(send: Any) -> None:
    whole, stream = await _both(send, "plural-object", "databricks")
    assert whole.body["object"] == "chat.completions" and stream.chunks[-1]["object"] == "chat.completion.chunk"
    for choice in (whole.body["choices"][0], stream.chunks[-1]["choices"][0]):
        assert json.loads(choice["extra_fields"]) == {"safetyRating": "NEGLIGIBLE"}


async def test_mindie_endings(send: Any) -> None:
    for name, finish, text in [
        ("eos_token", "eos_token", SENTENCE),
        ("stop_sequence", "stop_sequence", ""),
        ("stop_sequence-partial", "stop_sequence", SENTENCE),
        ("invalid-flag", "invalid flag", SENTENCE),
    ]:
        whole, stream = await _both(send, name, "mindie")
        assert [whole.body["choices"][0]["finish_reason"]] == stream.finishes == [finish]
        assert whole.body["choices"][0]["message"]["content"] == stream.text == text
        assert ("err_msg" in whole.body, "err_msg" in stream.chunks[-1]) == (name == "stop_sequence",) * 2


async def test_the_other_kind_of_body(send: Any) -> None:
    _, stream = await _both(send, "json-for-stream")
    assert stream.body["object"] == "chat.completion" and stream.headers["Content-Type"] == "application/json"
    whole, _ = await _both(send, "stream-for-json")
    assert whole.text == SENTENCE and whole.headers["Content-Type"] == "text/event-stream"


async def test_bodies_that_are_no_reply(send: Any) -> None:
    html, _ = await _both(send, "html")
    assert html.status == 200 and html.raw.startswith(b"<!doctype html>") and "html" in html.headers["Content-Type"]
    text, _ = await _both(send, "not-json")
    assert (text.raw, text.headers["Content-Type"]) == (b"ok", "application/json")
    empty, _ = await _both(send, "empty")
    assert (empty.status, empty.raw) == (200, b"")


async def test_redirects_lead_to_a_canary(session: aiohttp.ClientSession, send: Any) -> None:
    async with FakeProvider("openai") as canary, FakeProvider("openai", behaviour="redirect") as fake:
        heard = await send(fake)
        assert (heard.status, heard.headers["Location"]) == (307, f"{fake.origin}/_fake/canary")
        async with session.post(heard.headers["Location"], data=b"leaked") as response:
            assert response.status == 404 and fake.requests[-1].raw == b"leaked"
        fake.behaviour = f"redirect(to={canary.origin}/trap)"
        assert (await send(fake)).headers["Location"] == f"{canary.origin}/trap"


async def test_heads_that_break_rules(session: aiohttp.ClientSession, send: Any) -> None:
    for name in ("huge-header", "two-lengths"):
        whole, _ = await _both(send, name)
        assert isinstance(whole.error, aiohttp.ClientError) and whole.raw == b""
    whole, _ = await _both(send, "folded-header")
    assert whole.body == {"choices": []} and whole.headers["x-fake"] == "a b"


async def test_extra_bytes_lie_in_wait_for_the_next_request() -> None:
    async with FakeProvider("openai", behaviour="extra-bytes") as fake:
        reader, writer = await asyncio.open_connection(fake.host, fake.port)
        body = b'{"model":"m","messages":[{"role":"user","content":"Hello"}]}'
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: fake\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        assert (await reader.readuntil(b"smuggled")).count(b"HTTP/1.1 200 OK") == 2
        assert not reader.at_eof()
        writer.close()
        await fake.until(lambda: fake.disconnects == 1)


async def test_rate_limits_say_when_to_come_back(send: Any) -> None:
    date = "Wed, 21 Oct 2026 07:28:00 GMT"
    for behaviour, wanted in {"rate-limit": "2", f"rate-limit(retry_after={date})": date}.items():
        whole, _ = await _both(send, behaviour)
        assert (whole.status, whole.headers["Retry-After"]) == (429, wanted)
        assert whole.body["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize(
    ("dialect", "status", "word"),
    [
        ("openai", 404, "model_not_found"),
        ("databricks", 404, "RESOURCE_DOES_NOT_EXIST"),
        ("azure", 404, "Not Found"),
        ("mindie", 422, "Input Validation Error"),
    ],
)
async def test_unknown_models(dialect: str, status: int, word: str, send: Any) -> None:
    whole, _ = await _both(send, "model-not-found", dialect)
    assert whole.status == status and word in whole.raw.decode()


@pytest.mark.parametrize(
    ("name", "status", "find"),
    [
        ("azure-422-a", 422, lambda body: body["detail"] == {"loc": ["body", "user"], "value": "fake"}),
        ("azure-422-b", 422, lambda body: body["detail"]["input"] == "fake" and "error" not in body),
        ("azure-422-c", 422, lambda body: body["detail"][0]["loc"] == ["body", "user"]),
        ("azure-422-d", 422, lambda body: body["detail"][0]["type"] == "extra_forbidden"),
        ("azure-422-e", 422, lambda body: body["detail"].startswith("Extra parameters ['user']")),
        ("azure-422-f", 422, lambda body: json.loads(body["error"]["message"])["detail"][0]["input"] == "fake"),
        ("azure-400-extra", 400, lambda body: "not allowed" in body["detail"]),
        ("azure-400-header", 400, lambda body: "EXTRA_PARAMETERS option ignore" in body["detail"]),
        ("azure-400-numeric", 400, lambda body: body["code"] == 400),
        ("azure-content-filter", 400, lambda body: body["code"] == "content_filter"),
        ("azure-content-filter-nested", 400, lambda body: body["error"]["param"] == "prompt"),
        ("azure-generic", 500, lambda body: body["error"]["innererror"]["code"] == "ModelTimeout"),
        ("databricks-external", 400, lambda body: body["external_model_message"]["error_code"] == "BAD_REQUEST"),
        ("databricks-unknown-field", 400, lambda body: 'unknown field "user"' in body["message"]),
        ("mindie-422", 422, lambda body: body["error"].startswith("Parameter top_p")),
        ("mindie-422-type", 422, lambda body: body["type"] == "Input Validation Error"),
        ("mindie-424", 424, lambda body: body["error_type"] == "Generation Error"),
        ("mindie-413", 413, lambda body: list(body) == ["message"]),
        ("openai-error", 400, lambda body: list(body["error"]) == ["message", "type", "param", "code"]),
        ("openai-string-error", 400, lambda body: body["error"] == "user is wrong"),
    ],
)
async def test_native_error_forms(name: str, status: int, find: Any, send: Any) -> None:
    whole, stream = await _both(send, name, name.split("-")[0])
    assert whole.status == stream.status == status and whole.raw == stream.raw
    assert find(whole.body), whole.body


@pytest.mark.parametrize(
    ("name", "status", "raw", "kind"),
    [
        ("databricks-text", 500, b"INTERNAL_ERROR: the fake endpoint failed", "text/plain"),
        ("databricks-html", 502, b"<pre>upstream connect error</pre>", "text/html"),
        ("databricks-empty", 503, b"", ""),
        ("mindie-500-text", 500, b"Server internal error", "application/json"),
        ("mindie-404-empty", 404, b"", ""),
    ],
)
async def test_native_errors_that_are_no_json(name: str, status: int, raw: bytes, kind: str, send: Any) -> None:
    whole, _ = await _both(send, name, name.split("-")[0])
    assert whole.status == status and (raw in whole.raw if raw else whole.raw == b"")
    assert whole.headers.get("Content-Type", "").startswith(kind)


async def test_the_blamed_parameter_can_be_chosen(send: Any) -> None:
    whole, _ = await _both(send, "azure-422-d(param=logprobs)", "azure")
    assert whole.body["detail"][0]["loc"] == ["body", "logprobs"]
