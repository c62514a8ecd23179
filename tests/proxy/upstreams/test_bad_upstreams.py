"""What a client sees of an upstream that misbehaves: always one status and one code, never the upstream's bytes."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.pipeline import reply_reader
from dragoman.contract.json_types import JsonValue
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

SHORT = {"connect": 0.5, "first_token": 0.3, "inter_token": 0.3, "total": 0.6}
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CUT = gzip.compress(b"{}" * 50)[:-9]
PAGE = b"<html>secret page</html>"


def _http(body: bytes, *headers: str, status: str = "200 OK", media_type: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {media_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


# Before anything was sent to the client, a stream and a whole reply fail alike.
EARLY: dict[str, tuple[list[JsonValue], int, str | None]] = {
    "never replies": (["hang"], 504, "upstream_timeout"),
    "hangs up unanswered": ([], 502, "upstream_disconnected"),
    "resets": (["reset"], 502, "upstream_disconnected"),
    "speaks garbage": ([b"\x00\x01garbage\r\n\r\n", "hang"], 502, "upstream_protocol_error"),
    "speaks HTTP/0.9": ([b"hello there\n"], 502, "upstream_protocol_error"),
    "cuts a body of known length": ([HEAD + b'Content-Length: 100\r\n\r\n{"choices"'], 502, "upstream_truncated"),
    "cuts a chunked body": ([HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"], 502, "upstream_truncated"),
    "sends a bad chunk": ([HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n"], 502, None),
    "ends early without a length": ([HEAD + b'\r\n{"choices"'], 502, "upstream_truncated"),
    "stalls in its body": ([HEAD + b"Content-Length: 9\r\n\r\n{", "hang"], 504, "upstream_timeout"),
    "sends JSON that is none": ([_http(b"{]")], 502, "upstream_invalid_json"),
    "sends a JSON array": ([_http(b"[]")], 502, "upstream_invalid_json"),
    "sends a page": ([_http(PAGE, media_type="text/html")], 502, "upstream_invalid_json"),
    "sends an error page": ([_http(b"x", status="502 Bad Gateway", media_type="text/html")], 502, None),
    "tells of an error in a 200": ([_http(b'{"error": {"message": "no"}}')], 502, "in_band"),
    "redirects": ([_http(b"", "Location: http://127.0.0.1:1/", status="307 T")], 502, "upstream_redirect"),
    "has a vast header": (
        [b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20000 + b"\r\n\r\n", "hang"],
        502,
        "upstream_protocol_error",
    ),
    "has many headers": ([b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 500 + b"\r\n"], 502, "upstream_protocol_error"),
    "has two lengths": ([HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"], 502, "upstream_protocol_error"),
    "folds a header": ([b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nX-Y\r\n\r\n"], 502, "upstream_protocol_error"),
    "is rate limited": ([_http(b"{}", "Retry-After: 2", status="429 X")], 429, None),
    "refuses our key": ([_http(b"{}", status="401 X")], 502, None),
    "refuses the request": ([_http(b"{}", status="422 X")], 422, None),
    "uses brotli": ([_http(b"xx", "Content-Encoding: br")], 502, "upstream_invalid_encoding"),
    "sends corrupt gzip": ([_http(b"xx", "Content-Encoding: gzip")], 502, "upstream_invalid_encoding"),
    "cuts gzip short": (
        [_http(gzip.compress(b"{}" * 50)[:-9], "Content-Encoding: gzip")],
        502,
        "upstream_invalid_encoding",
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", EARLY)
async def test_early_failures(proxy: StartProxy, upstream: StartUpstream, case: str, stream: bool) -> None:
    script, status, code = EARLY[case]
    up = await upstream(*script)
    p = await proxy(up, timeouts=SHORT)
    answer = await p.ask(stream=stream)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/json")
    assert code is None or answer.error["code"] == code
    assert b"secret page" not in answer.text
    assert b"127.0.0.1" not in answer.text
    (line,) = await p.exchanges()
    assert (line["status"], line["outcome"]) == (status, "fault")


async def test_a_rate_limit_keeps_its_retry_after(proxy: StartProxy, upstream: StartUpstream) -> None:
    up = await upstream(*EARLY["is rate limited"][0])
    assert (await (await proxy(up)).ask()).headers["retry-after"] == "2"


async def test_nothing_listens(proxy: StartProxy, upstream: StartUpstream) -> None:
    p = await proxy({"base_url": "http://127.0.0.1:1/v1"})
    for stream in (False, True):
        answer = await p.ask(stream=stream)
        assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
    assert [line["attempts"] for line in await p.exchanges(2)] == [2, 2]


async def test_an_unknown_host(proxy: StartProxy) -> None:
    answer = await (await proxy({"base_url": "http://nowhere.invalid/v1"})).ask()
    assert answer.error["message"] == "p0: cannot resolve nowhere.invalid (DNS)"
    assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")


async def test_a_redirect_is_not_followed(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    canary = await upstream(wire.ok)
    for status in ("301 M", "307 T", "308 P"):
        up = await upstream(wire.http(b"", f"Location: http://127.0.0.1:{canary.port}/v1", status=status))
        assert (await (await proxy(up)).ask()).error["code"] == "upstream_redirect"
    assert canary.connections == 0


async def test_a_stream_that_nobody_asked_for(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    """It becomes one reply, without waiting for the end of the connection."""
    answer = await (await proxy(await upstream(wire.stream, "hang"))).ask()
    assert (answer.status, answer.json["object"]) == (200, "chat.completion")


async def test_compressed_replies_are_understood(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    plain = json.dumps(wire.reply).encode()
    raw = zlib.compressobj(wbits=-15)
    forms = {
        "gzip": gzip.compress(plain),
        "deflate": zlib.compress(plain),
        "Deflate": raw.compress(plain) + raw.flush(),
        "identity": plain,
    }
    for coding, body in forms.items():
        up = await upstream(wire.http(body, f"Content-Encoding: {coding}"))
        assert (await (await proxy(up)).ask()).json == wire.reply, coding
    events = gzip.compress(wire.token("hello", "stop") + b"data: [DONE]\n\n")
    up = await upstream(wire.http(events, "Content-Encoding: gzip", media_type="text/event-stream"))
    assert (await (await proxy(up)).ask(stream=True)).events[-1] == "[DONE]"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("form", ["gzip bomb", "unbounded", "announced"])
async def test_replies_without_bounds(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch, form: str, stream: bool
) -> None:
    monkeypatch.setattr(reply_reader, "REPLY_LIMIT", 100_000)
    vast = b" " * 1_000_000
    script = {
        "gzip bomb": [wire.http(gzip.compress(vast), "Content-Encoding: gzip")],
        "unbounded": [HEAD + b"\r\n", vast],
        "announced": [HEAD + b"Content-Length: 1000000\r\n\r\n", "hang"],
    }[form]
    answer = await (await proxy(await upstream(*script))).ask(stream=stream)
    assert (answer.status, answer.error["code"]) == (502, "upstream_response_too_large")


async def test_an_event_without_bounds(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    endless = b"data: " + b"x" * (5 * 1024 * 1024)
    answer = await (await proxy(await upstream(*wire.chunked(endless)))).ask(stream=True)
    assert (answer.status, answer.error["code"]) == (502, "upstream_response_too_large")
    late = await upstream(*wire.chunked(wire.token("a"), endless))
    answer = await (await proxy(late)).ask(stream=True)
    assert (answer.status, answer.events[-1]["error"]["code"]) == (200, "upstream_response_too_large")


async def test_bytes_after_the_body_spoil_the_connection_only(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    smuggled = wire.http(b'{"choices": "smuggled"}')
    up = await upstream(wire.ok + smuggled, "keep")
    p = await proxy(up)
    for _ in range(2):
        assert (await p.ask()).json == wire.reply
    assert up.connections == 2


FIRST = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": null}]}\n\n'

# Once the client has got something, a failure is an event.
LATE: dict[str, tuple[list[bytes], list[JsonValue], str]] = {
    "breaks off a chunked stream": ([FIRST], [], "upstream_truncated"),
    "resets": ([FIRST], [0.05, "reset"], "upstream_truncated"),
    "stalls": ([FIRST], ["hang"], "upstream_idle_timeout"),
    "breaks off in an event": ([FIRST, b'data: {"choi'], [], "upstream_truncated"),
    "resets in an event": ([FIRST, b'data: {"choi'], [0.05, "reset"], "upstream_truncated"),
    "stalls in an event": ([FIRST, b'data: {"choi'], ["hang"], "upstream_idle_timeout"),
    "breaks off in a field's name": ([FIRST, b"dat"], [], "upstream_truncated"),
    "ends cleanly in an event": ([FIRST, b'data: {"choi', b""], [], "upstream_truncated"),
    "ends cleanly in a bare object": ([FIRST, b'{"choi', b""], [], "upstream_truncated"),
    "ends cleanly with a text": ([FIRST, b"the engine broke", b""], [], "upstream_invalid_event"),
    "breaks off behind a text": ([FIRST, b"the engine broke"], [], "upstream_invalid_event"),
    "ends cleanly without a finish": ([FIRST, b""], [], "upstream_truncated"),
    "says [DONE] without a finish": ([FIRST, b"data: [DONE]\n\n"], [], "upstream_truncated"),
    "sends an event that is no JSON": ([FIRST, b"data: {]\n\n"], [], "upstream_invalid_event"),
    "tells of an error": ([FIRST, b'data: {"error": "x"}\n\n'], [], "in_band"),
    "writes a bare line": ([FIRST, b"Engine timeout\n"], [], "upstream_invalid_event"),
}


@pytest.mark.parametrize("case", LATE)
async def test_late_failures_of_a_stream(proxy: StartProxy, upstream: StartUpstream, wire: Wire, case: str) -> None:
    parts, rest, code = LATE[case]
    clean = parts[-1] == b""
    up = await upstream(*wire.chunked(*filter(None, parts), end=clean), *rest)
    p = await proxy(up, timeouts=SHORT)
    answer = await p.ask(stream=True)
    assert answer.status == 200
    assert [event.get("choices") is not None for event in answer.events] == [True, False]
    assert answer.events[-1]["error"]["code"] == code
    (line,) = await p.exchanges()
    assert (line["status"], line["outcome"], line["fault"]) == (200, "fault", code)


@pytest.mark.parametrize("first", [b'data: {"error": "x"}\n\n', b"data: {]\n\n", b"data: [DONE]\n\n", b""])
async def test_a_failure_in_the_first_event_keeps_its_status(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, first: bytes
) -> None:
    up = await upstream(*wire.chunked(*filter(None, [b": hello\n\n", first])))
    answer = await (await proxy(up)).ask(stream=True)
    assert answer.status == (429 if b"error" in first else 502)
    assert answer.headers["Content-Type"] == "application/json"


async def test_a_dialect_whose_clients_ignore_error_events_gets_a_broken_connection(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, aborting_dialects: dict[str, Dialect]
) -> None:
    up = await upstream(*wire.chunked(FIRST), "hang")
    p = await proxy(up, timeouts=SHORT, speak=aborting_dialects)
    assert (await p.ask(stream=True)).broken


def test_the_limit_is_what_it_says() -> None:
    assert reply_reader.REPLY_LIMIT == 64 * 1024 * 1024
    assert reply_reader.SSE == "text/event-stream"


async def test_a_defect_in_a_stream_is_no_clean_end(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    head, first, second, end = wire.chunked(wire.token("a"), b'data: {"defect": true}\n\n')
    p = await proxy(await upstream(head, first, 0.05, second, end))
    answer = await p.ask(stream=True)
    assert answer.events[-1]["error"]["code"] == "upstream_invalid_response"
    assert b"canary" not in answer.text
    assert [line["event"] for line in p.lines] == ["defect", "exchange"]
