"""What the server answers to requests that are none, or that go nowhere."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import socket
import zlib
from collections.abc import Iterator
from uuid import UUID

import pytest

from dragoman.contract.json_types import JsonObject
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

START = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
GET = b"GET /live HTTP/1.1\r\nHost: localhost\r\n"
OLD = START.replace(b"1.1", b"1.0")
HOST = b"GET /live HTTP/1.1\r\nHost: "
CLOSE = b"\r\nConnection: close\r\n\r\n"
MARK = b"attackerbytes"

REJECTED: dict[str, tuple[bytes, int, str]] = {
    "length and chunks": (START + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "bad_http"),
    "two lengths": (START + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400, "bad_http"),
    "signed length": (START + b"Content-Length: +2\r\n\r\n{}", 400, "bad_http"),
    "a coding before chunks": (START + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, "bad_http"),
    "a coding that is none": (START + b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", 501, "bad_http"),
    "an empty coding": (START + b"Transfer-Encoding:\r\nContent-Length: 2\r\n\r\n{}", 400, "bad_http"),
    "chunks in HTTP/1.0": (OLD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "bad_http"),
    "bad chunk": (START + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n", 400, "bad_http"),
    "unknown coding": (START + b"Transfer-Encoding: attackerbytes\r\n\r\n", 400, "bad_http"),
    "NUL in a header": (GET + b"X: attackerbytes\x00\r\n\r\n", 400, "bad_http"),
    "bare LF": (b"GET /attackerbytes HTTP/1.1\nHost: a\n\n", 400, "bad_http"),
    "space before a colon": (b"GET /live HTTP/1.1\r\nHost : a\r\n\r\n", 400, "bad_http"),
    "unknown method": (b"ATTACKERBYTES / HTTP/1.1\r\nHost: a\r\n\r\n", 400, "bad_http"),
    "no host": (b"GET /live HTTP/1.1\r\n\r\n", 400, "bad_http"),
    "two hosts": (GET + b"Host: b\r\n\r\n", 400, "bad_http"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03attackerbytes", 400, "bad_http"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "bad_http"),
    "HTTP/2 in the form of HTTP/1": (START.replace(b"1.1", b"2.0") + b"Content-Length: 2\r\n\r\n{}", 505, "bad_http"),
    "HTTP/0.9": (START.replace(b"1.1", b"0.9") + b"Content-Length: 2\r\n\r\n{}", 505, "bad_http"),
    "a large head": (
        GET + b"".join(b"X-%d: %s\r\n" % (n, MARK * 500) for n in range(12)) + b"\r\n",
        431,
        "headers_too_large",
    ),
    "a large head that does not end": (
        GET + b"".join(b"X-%d: %s\r\n" % (n, MARK * 500) for n in range(12)),
        431,
        "headers_too_large",
    ),
    "many trailers": (
        START + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: attackerbytes\r\n" * 120 + b"\r\n",
        431,
        "headers_too_large",
    ),
    "a long trailer": (
        START + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + MARK * 700 + b"\r\n\r\n",
        431,
        "headers_too_large",
    ),
    "host is a path": (
        b"GET /live HTTP/1.1\r\nHost: a/../attackerbytes?x#\r\nConnection: close\r\n\r\n",
        400,
        "bad_http",
    ),
    "host is a user": (b"GET /live HTTP/1.1\r\nHost: attackerbytes@b\r\nConnection: close\r\n\r\n", 400, "bad_http"),
    "long header": (GET + b"X: " + MARK * 700 + b"\r\n\r\n", 431, "headers_too_large"),
    "long header name": (GET + MARK * 700 + b": x\r\n\r\n", 431, "headers_too_large"),
    "many headers": (
        GET + b"".join(b"X-%d: attackerbytes\r\n" % n for n in range(200)) + b"\r\n",
        431,
        "headers_too_large",
    ),
    "long address": (b"GET /" + MARK * 700 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414, "uri_too_long"),
    "unexpected": (
        START + b"Expect: attackerbytes\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
        417,
        "bad_http",
    ),
}


async def test_https_to_a_plain_listener_is_named_in_the_log(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    p = await proxy(await upstream(wire.ok))
    await p.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert [line["message"] for line in p.lines if "TLS" in line.get("message", "")] == [
        "this is TLS, and this address speaks plain HTTP: a client's base address must begin with http://"
    ]


@pytest.mark.parametrize("case", REJECTED)
async def test_what_is_no_http_gets_an_answer_in_json(proxy: StartProxy, case: str) -> None:
    data, status, code = REJECTED[case]
    p = await proxy()
    answer = await p.raw(data)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(body)["error"]["code"] == code
    lines = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
    assert lines[b"content-type"] == b"application/json"
    assert lines[b"connection"] == b"close"
    assert UUID(lines[b"x-request-id"].decode())
    assert MARK not in answer.lower()
    assert b"Python" not in answer
    assert (await p.session.get(f"{p.running.url}/live")).status == 200


async def test_a_header_that_came_twice(proxy: StartProxy) -> None:
    p = await proxy()
    twice = START + b"Content-Type: text/attackerbytes\r\nContent-Length: 0\r\n\r\n"
    answer = await p.raw(twice)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"occurs twice" in answer
    assert MARK not in answer


async def test_a_hundred_headers_are_enough(proxy: StartProxy) -> None:
    p = await proxy()
    for more, status in ((98, 200), (99, 431)):  # beside Host and Connection
        head = GET + b"".join(b"X-%d: x\r\n" % n for n in range(more)) + b"Connection: close\r\n\r\n"
        assert (await p.raw(head)).startswith(b"HTTP/1.1 %d " % status)


async def test_a_bad_chunk_after_the_head(proxy: StartProxy) -> None:
    p = await proxy()
    reader, writer = await asyncio.open_connection("127.0.0.1", p.port)
    writer.write(START + b"Transfer-Encoding: chunked\r\n\r\n")
    await asyncio.sleep(0.05)
    writer.write(b"ZZ\r\nattackerbytes")
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"bad_http"' in answer


BODY = json.dumps({"model": "m", "messages": []}).encode()

BODIES: dict[str, tuple[dict[str, str], bytes, int, str]] = {
    "empty": ({}, b"", 400, "empty_body"),
    "no JSON": ({}, b'{"a":', 400, "invalid_json"),
    "array": ({}, b"[]", 400, "invalid_type"),
    "deep": ({}, b"[" * 100_000, 400, "json_too_deep"),
    "utf-16": ({}, '{"a": 1}'.encode("utf-16"), 400, "invalid_utf8"),
    "text": ({"Content-Type": "text/plain"}, BODY, 415, "unsupported_media_type"),
    "form": ({"Content-Type": "multipart/form-data; boundary=x"}, BODY, 415, "unsupported_media_type"),
    "charset": ({"Content-Type": "application/json; charset=bogus-8"}, BODY, 415, "unsupported_charset"),
    "too large": ({}, b" " * 2000, 413, "request_too_large"),
    "unknown coding": ({"Content-Encoding": "br"}, BODY, 400, "invalid_content_encoding"),
    "corrupt gzip": ({"Content-Encoding": "gzip"}, b"x" * 50, 400, "invalid_content_encoding"),
    "cut gzip": ({"Content-Encoding": "gzip"}, gzip.compress(BODY)[:-5], 400, "invalid_content_encoding"),
    "more after gzip": ({"Content-Encoding": "gzip"}, gzip.compress(BODY) + b"x", 400, "invalid_content_encoding"),
    "gzip bomb": ({"Content-Encoding": "gzip"}, gzip.compress(b" " * 500_000), 413, "request_too_large"),
    "bad word": ({"extra-parameters": "perhaps"}, BODY, 400, "invalid_value"),
}


@pytest.mark.parametrize("case", BODIES)
async def test_bodies_that_are_refused(proxy: StartProxy, upstream: StartUpstream, wire: Wire, case: str) -> None:
    headers, body, status, code = BODIES[case]
    up = await upstream(wire.ok)
    p = await proxy(up, server={"body_limit": 1000 if case in ("too large", "gzip bomb") else 200_000})
    headers = {"Content-Type": "application/json", **headers}
    async with p.session.post(p.url, data=body, headers=headers) as response:
        answer = await response.json()
    assert (response.status, answer["error"]["code"]) == (status, code)
    assert UUID(response.headers["x-request-id"])
    assert up.connections == 0
    (line,) = await p.exchanges()
    assert (line["status"], line["fault"]) == (status, code)


async def test_a_chunked_body_over_the_limit(proxy: StartProxy) -> None:
    p = await proxy(server={"body_limit": 1000})
    data = START + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + b"400\r\n%s\r\n" % (b" " * 1024) * 3
    answer = await p.raw(data + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"limit of 1000 bytes" in answer


@pytest.mark.parametrize("coding", ["gzip", "deflate", "identity"])
async def test_bodies_that_are_understood(proxy: StartProxy, upstream: StartUpstream, wire: Wire, coding: str) -> None:
    up = await upstream(wire.ok)
    body = {"gzip": gzip.compress(BODY), "deflate": zlib.compress(BODY), "identity": BODY}[coding]
    p = await proxy(up)
    headers = {"Content-Type": 'application/json; charset="UTF-8"', "Content-Encoding": coding}
    assert (await p.session.post(p.url, data=body, headers=headers)).status == 200
    assert up.bodies[0]["messages"] == []


async def test_a_client_may_ask_before_it_sends_its_body(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    p = await proxy(await upstream(wire.ok))
    reader, writer = await asyncio.open_connection("127.0.0.1", p.port)
    writer.write(START + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY))
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(BODY)
    assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    writer.close()


ADDRESSES = [
    ("POST", "/v1/chat/completion", 404, "unknown_url", "/v1/chat/completions"),
    ("GET", "/nowhere/at/all", 404, "unknown_url", None),
    ("POST", "/v1/chat/../chat/completions", 404, "unknown_url", None),
    ("POST", "//v1/chat/completions", 404, "unknown_url", None),
    ("POST", "/v1/chat%2Fcompletions", 404, "unknown_url", None),
    ("GET", "/v1/chat/completions", 405, "method_not_allowed", "POST"),
    ("DELETE", "/openai/v1/chat/completions", 405, "method_not_allowed", "POST"),
    ("POST", "/live", 405, "method_not_allowed", "GET, HEAD"),
]


@pytest.mark.parametrize(("method", "path", "status", "code", "hint"), ADDRESSES)
async def test_addresses(proxy: StartProxy, method: str, path: str, status: int, code: str, hint: str | None) -> None:
    p = await proxy()
    request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    head, _, body = (await p.raw(request.encode())).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    error = json.loads(body)["error"]
    assert error["code"] == code
    assert hint is None or hint in error["message"]
    assert status != 405 or f"Allow: {hint}, OPTIONS".encode() in head


async def test_an_absolute_address_is_its_path(proxy: StartProxy) -> None:
    p = await proxy(keys=[{"name": "a", "key": "k"}])
    data = (
        b"POST http://evil/v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert (await p.raw(data)).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/openai/v1/chat/completions"])
async def test_every_address_of_a_dialect_serves(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, path: str
) -> None:
    p = await proxy(await upstream(wire.ok))
    response = await p.session.post(
        p.running.url + path + "?a=b", data=BODY, headers={"Content-Type": "application/json"}
    )
    assert response.status == 200


async def test_head_and_options(proxy: StartProxy) -> None:
    p = await proxy()
    async with p.session.head(f"{p.running.url}/live") as response:
        assert (response.status, await response.read()) == (200, b"")
    async with p.session.options(p.url) as response:
        assert (response.status, response.headers["Allow"]) == (204, "POST, OPTIONS")
    async with p.session.head(p.url) as response:
        assert (response.status, await response.read()) == (405, b"")


async def test_health(proxy: StartProxy) -> None:
    p = await proxy()
    for path in ("/live", "/ready"):
        async with p.session.get(p.running.url + path) as response:
            assert (response.status, await response.json()) == (200, {"status": "ok"})


# Clients that are slow, or leave


@pytest.mark.parametrize("head", [b"GET /li", GET])
async def test_a_head_that_never_ends(proxy: StartProxy, head: bytes) -> None:
    p = await proxy(server={"header_timeout": 0.2})
    answer = await p.raw(head)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"Connection: close" in answer
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_timeout"
    assert (await p.session.get(f"{p.running.url}/live")).status == 200


async def test_a_part_of_a_second_head_in_the_same_packet(proxy: StartProxy) -> None:
    p = await proxy(server={"header_timeout": 3600})
    for part in (b"GET /li", GET):
        reader, writer = await asyncio.open_connection("127.0.0.1", p.port)
        writer.write(GET + b"\r\n" + part)
        first = await reader.readuntil(b"}")
        (connection,) = p.running._server._list()
        connection._next_keepalive_close_time = 0.0  # the time is over
        connection._process_keepalive()
        second = await reader.read()
        writer.close()
        assert (first[9:12], second[9:12]) == (b"200", b"408")


async def test_a_large_head_behind_a_request_that_runs(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    done = asyncio.Event()
    up = await upstream(done, wire.ok)
    p = await proxy(up)
    reader, writer = await asyncio.open_connection("127.0.0.1", p.port)
    writer.write(START + b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY))
    await up.asked.wait()
    writer.write(GET)
    for n in range(12):
        writer.write(b"X-%d: %s\r\n" % (n, MARK * 500))
        await asyncio.sleep(0.01)
    done.set()
    answers = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    assert [answer[:3] for answer in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"431"]


async def test_a_head_that_drips(proxy: StartProxy) -> None:
    p = await proxy(server={"header_timeout": 0.3})
    reader, writer = await asyncio.open_connection("127.0.0.1", p.port)
    for part in (b"GET", b" /li", b"ve HTTP/1.1\r\n", b"Host: a"):
        writer.write(part)
        await asyncio.sleep(0.05)
    assert (await asyncio.wait_for(reader.read(), 2)).startswith(b"HTTP/1.1 408 ")
    writer.close()


@pytest.mark.parametrize("sent", [b"", b"\r\n", GET + b"\r\n", GET + b"\r\n\r\n"])
async def test_a_connection_that_is_idle_is_closed_without_a_word(proxy: StartProxy, sent: bytes) -> None:
    """What it would be told, its client could take for the answer to the next request."""
    p = await proxy(server={"header_timeout": 0.2})
    assert b" 408 " not in await p.raw(sent)


async def test_a_body_that_never_ends(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up, server={"body_timeout": 0.2})
    answer = await p.raw(START + b"Content-Length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"Connection: close" in answer
    assert up.connections == 0


async def test_a_body_of_chunk_extensions_ends_early(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    """The parser takes extensions without end, and none of their bytes counts as a part of the body."""
    up = await upstream(wire.ok)
    p = await proxy(up)
    reader, writer = await asyncio.open_connection("127.0.0.1", p.port)
    writer.write(START + b"Transfer-Encoding: chunked\r\n\r\n1;a=")
    sent, answer = 0, asyncio.create_task(reader.readuntil(b"\r\n\r\n"))
    while not answer.done() and sent < 4 * 1024 * 1024:
        writer.write(b"x" * 16_384)
        sent += 16_384
        await asyncio.sleep(0)
    assert (await answer).startswith(b"HTTP/1.1 400 ")
    writer.close()
    assert up.connections == 0


async def test_a_body_in_chunks_of_one_byte_is_read(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up)
    body = BODY.replace(b"[]", b'[{"role":"user","content":"%s"}]' % (b"x" * 150_000))
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    answer = await p.raw(START + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_leaves_in_its_body(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up)
    assert await p.raw(START + b"Content-Length: 100\r\n\r\n{", eof=True) == b""
    (line,) = await p.exchanges()
    assert line["outcome"] == "client_left"
    assert up.connections == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_before_the_first_byte(
    proxy: StartProxy, upstream: StartUpstream, stream: bool
) -> None:
    up = await upstream("hang")
    p = await proxy(up)
    task = asyncio.create_task(p.ask(stream=stream))
    await up.asked.wait()
    task.cancel()
    await asyncio.wait_for(up.closed.wait(), 1)
    (line,) = await p.exchanges()
    assert (line["outcome"], line["target"]) == ("client_left", "p0/up")
    assert not p.running._gateway.running


async def test_a_client_that_leaves_in_the_stream(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(*wire.chunked(wire.token("a"), end=False), "hang")
    p = await proxy(up)
    response = await p.session.post(p.url, json={"model": "m", "messages": [], "stream": True})
    assert await response.content.readany()
    response.close()
    await asyncio.wait_for(up.closed.wait(), 1)
    (line,) = await p.exchanges()
    assert (line["outcome"], line["events"]) == ("client_left", 1)


async def _ask_and_never_read(p: Proxy, body: JsonObject) -> JsonObject:
    """The exchange's line in the log."""
    data = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", p.port)) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(START + b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        (line,) = await p.exchanges()
    return line  # type: ignore[no-any-return]


async def test_a_client_that_does_not_read_stops_the_upstream(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    sent = 0

    def counted(parts: list[bytes]) -> Iterator[bytes]:
        nonlocal sent
        for part in parts:
            yield part
            sent += len(part)

    up = await upstream()
    up.script = counted(wire.chunked(*[wire.token("x" * 60_000)] * 1000))
    p = await proxy(up, server={"write_stall": 1.0})
    line = await _ask_and_never_read(p, {"model": "m", "messages": [], "stream": True})
    assert (line["outcome"], line["fault"]) == ("fault", "client_write_stall")
    assert sent < 30_000_000  # of 60 MB: what the kernel's buffers hold, and no more
    await asyncio.wait_for(up.closed.wait(), 1)


async def test_a_client_that_does_not_read_a_large_reply(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.http(json.dumps({**wire.reply, "x": "x" * 20_000_000}).encode()))
    p = await proxy(up, server={"write_stall": 0.3})
    line = await _ask_and_never_read(p, {"model": "m", "messages": []})
    assert (line["outcome"], line["fault"]) == ("fault", "client_write_stall")


async def test_a_large_request_and_a_large_reply(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    reply = {**wire.reply, "x": "x" * 3_000_000}
    up = await upstream(wire.http(json.dumps(reply).encode()))
    p = await proxy(up)
    body = json.dumps({"model": "up", "messages": [], "blob": "y" * 3_000_000}).encode()
    headers = {"Content-Type": "application/json"}
    async with p.session.post(p.url, data=io.BytesIO(body.replace(b'"up"', b'"m"')), headers=headers) as response:
        assert await response.json() == reply
    assert up.bodies[0] == json.loads(body)
