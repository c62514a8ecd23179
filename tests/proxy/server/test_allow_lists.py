"""What passes the proxy is listed, in both directions: headers, and the addresses that it serves."""

from __future__ import annotations

import json

import pytest

from dragoman.adapters.registry import dialects
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

SENT = {
    "Authorization": "Bearer marker",
    "api-key": "marker",
    "x-api-key": "marker",
    "Cookie": "a=marker",
    "Proxy-Authorization": "Basic marker",
    "Proxy-Connection": "marker",
    "Keep-Alive": "timeout=9, marker",
    "TE": "trailers, marker",
    "Trailer": "X-Marker",
    "Upgrade": "marker",
    "Forwarded": "for=marker",
    "X-Forwarded-For": "marker",
    "X-Forwarded-Host": "marker",
    "X-Real-IP": "marker",
    "Via": "1.1 marker",
    "X-HTTP-Method-Override": "marker",
    "X-Original-URL": "/marker",
    "Origin": "http://localhost",
    "Referer": "http://marker",
    "Accept-Encoding": "marker",
    "OpenAI-Organization": "marker",
    "x-litellm-api-key": "marker",
    "x-portkey-custom-host": "marker",
}
ALLOWED = {"host", "content-type", "accept-encoding", "user-agent", "accept", "x-request-id", "content-length"}


@pytest.mark.parametrize("stream", [False, True])
async def test_only_listed_headers_reach_a_provider(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, stream: bool
) -> None:
    up = await upstream(wire.stream if stream else wire.ok)
    p = await proxy(up, speak=dialects)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream}).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "localhost", **SENT}.items())
    head = f"POST /v1/chat/completions?api_key=marker HTTP/1.1\r\n{lines}Content-Type: application/json\r\n"
    answer = await p.raw(f"{head}Connection: close, X-Marker\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    assert answer.startswith(b"HTTP/1.1 200 ")
    (request,) = up.requests
    assert b"marker" not in request.lower()
    start, *fields = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    assert start == "POST /v1/chat/completions HTTP/1.1"
    assert {field.partition(":")[0].lower() for field in fields} <= ALLOWED


async def test_only_listed_headers_reach_a_client(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    given = ("Set-Cookie: a=marker", "X-Marker: 1", "Access-Control-Allow-Origin: marker", "Location: /marker")
    up = await upstream(wire.http(json.dumps(wire.reply).encode(), *given, "Via: marker", "WWW-Authenticate: marker"))
    answer = await (await proxy(up, speak=dialects)).ask()
    assert answer.status == 200
    assert "marker" not in str(answer.headers).lower()


ADMIN = ("/admin", "/config", "/metrics", "/debug", "/debug/pprof", "/reload", "/key/generate", "/model/new", "/mcp")
ADMIN += ("/prompts/test", "/api/create", "/api/pull", "/v1/files", "/v1/batches", "/docs", "/.env")


@pytest.mark.parametrize("path", ADMIN)
async def test_no_address_manages_the_proxy(proxy: StartProxy, path: str) -> None:
    p = await proxy(speak=dialects)
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        async with p.session.request(method, p.running.url + path, json={}) as response:
            assert response.status == 404, (method, path)


INJECTIONS = ("' OR 1=1--", '" OR ""="', "%", "*", "_" * 12, "a\tb", "\\", "../a", "a-client-key-1x")


@pytest.mark.parametrize("given", INJECTIONS)
async def test_a_key_is_compared_and_never_interpreted(proxy: StartProxy, upstream: StartUpstream, given: str) -> None:
    up = await upstream("hang")
    p = await proxy(up, speak=dialects, keys=[{"name": "a", "key": "a-client-key-1"}])
    for path, method in (("/v1/chat/completions", "POST"), ("/v1/responses/resp_1", "GET"), ("/v1/models", "GET")):
        for name, value in (("Authorization", f"Bearer {given}"), ("api-key", given)):
            async with p.session.request(method, p.running.url + path, json={}, headers={name: value}) as response:
                assert response.status == 401
    assert up.connections == 0
