"""Requests that are wrong before their body is read, from the clients of every dialect.

What is no HTTP at all belongs to no address, so it is answered in OpenAI's form: tests/proxy/server/test_gateway.py.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.dialects import DIALECTS
from tests.e2e.client import Answer, Client

from .conftest import KEY, MakeLimitedClient, check_unharmed, text


async def raw(client: Client, *parts: bytes) -> Answer:
    """The answer to these bytes, which go out one by one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.house.proxy.port)
    try:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0.02)
        start = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 2)
        first, *lines = start.decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await asyncio.wait_for(reader.readexactly(int(headers["content-length"])), 2)
    finally:
        writer.close()
    assert first.startswith("HTTP/1.1 ")
    assert headers["connection"] == "close"
    assert b"attackerbytes" not in start + body
    return client.answer(int(first.split()[1]), headers, body)


def head(client: Client, *lines: str, method: str = "POST", path: str = "", key: str = KEY) -> bytes:
    address = path or client.paths[-1]
    given = [f"{method} {address} HTTP/1.1", "Host: a", f"Authorization: Bearer {key}", *lines]
    return "\r\n".join(given).encode() + b"\r\n\r\n"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_body_in_broken_chunks(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    answer = await raw(client, head(client, "Transfer-Encoding: chunked"), b"ZZ\r\nattackerbytes")
    client.check_error(answer, "invalid_request", "HTTP/1.1")
    await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_is_no_request_to_any_dialect(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    rejected = {
        (400, "bad_http"): head(client, "Content-Length: 3", "Transfer-Encoding: chunked"),
        (431, "headers_too_large"): head(client, "X-Long: " + "attackerbytes" * 700),
        (414, "uri_too_long"): head(client, path=client.paths[-1] + "?" + "attackerbytes" * 700),
    }
    for (status, code), data in rejected.items():
        answer = await raw(client, data)
        assert (answer.status, answer.json["error"]["code"]) == (status, code)
        await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_body_that_does_not_come(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    answer = await raw(client, head(client, "Content-Length: 100"), b"{")
    client.check_error(answer, "request_timeout")
    await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_client_that_leaves_in_its_body(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    reader, writer = await asyncio.open_connection("127.0.0.1", client.house.proxy.port)
    writer.write(head(client, "Content-Length: 100") + b"{")
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 2) == b""
    writer.close()
    await check_unharmed(client)
    assert b'"outcome":"client_left"' in client.house.log.getvalue()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_who_has_no_key(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    for headers in (
        {"Authorization": ""},
        {"Authorization": "Bearer sk-canary-wrong"},
        {"Authorization": "Bearer ' OR 1=1--"},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": "", "api-key": "sk-canary-other"},
    ):
        answer = await client.send(text(), headers=headers)
        client.check_error(answer, "auth", "API key")
        assert b"canary" not in answer.raw
        await check_unharmed(client)
    for headers in ({"api-key": KEY, "Authorization": ""}, {"api-key": KEY}):
        assert (await client.send(text(), headers=headers)).status == 200


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_another_method(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    for method in ("GET", "PUT", "DELETE"):
        answer = await raw(client, head(client, "Connection: close", method=method))
        assert answer.headers["allow"] == "POST, OPTIONS"
        client.check_error(answer, "method_not_allowed", "POST")
    await check_unharmed(client)


WRONG_ADDRESSES = {
    "openai": ("/v1/chat/completion", "/openai/v1/nothing", "/nowhere"),
    "databricks": ("/serving-endpoints/chat/completion", "/databricks/serving-endpoints/x/nothing"),
    "azure": ("/azure/chat/completion?api-version=2024-05-01-preview",),
    "mindie": ("/mindie/v1/chat/completion",),
}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_unknown_address(make: MakeLimitedClient, dialect: str) -> None:
    client = await make(dialect)
    for path in WRONG_ADDRESSES[dialect]:
        answer = await client.send(text(), path)
        client.check_error(answer, "not_found", "nothing is served at this address")
    await check_unharmed(client)
