"""Requests that are wrong, from the clients of every dialect: each gets the exact status and its own dialect's error,
quickly, and no provider hears of it. Rows 16 to 22 stand at the end of the file, all others are in tables.

What is no HTTP at all belongs to no address, so it is answered in OpenAI's form: tests/proxy/test_server.py.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

SERVED = (
    ("openai", "actual"),
    ("databricks", "actual"),
    ("azure", "actual"),
    ("mindie", "documented"),
    ("databricks", "documented"),
    ("azure", "documented"),
    ("mindie", "actual"),
)
DIALECTS = ("openai", "databricks", "azure", "mindie")
KEY = "sk-canary-mine"
QUICK = 0.1  # seconds
HELLO = {"role": "user", "content": "hello"}
JSON = "application/json"


class Case(NamedTuple):
    """A request, the kind of fault that it is, and words of the answer. `row` is its number in the catalogue."""

    row: int
    kind: str
    body: bytes
    words: tuple[str, ...] = ()
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody alters it
    path: str = ""


def text(**more: Any) -> bytes:
    """A request with these parts; what is None is left out."""
    body = {"model": "openai", "messages": [HELLO], **more}
    return json.dumps({key: value for key, value in body.items() if value is not None}).encode()


def with_raw(name: str, raw: bytes) -> bytes:
    """A request with a part that no JSON library would write."""
    return text(**{name: "RAW"}).replace(b'"RAW"', raw)


def syntax() -> Iterator[Case]:
    yield Case(1, "syntax", b"", ("body is empty",))
    yield Case(2, "syntax", b'{"a":', ("line 1", "column 6", "byte 5"))
    for body, name in ((b"[]", "array"), (b'"x"', "string"), (b"null", "null")):
        yield Case(3, "invalid_request", body, ("expected object", name))
    for word in ("NaN", "Infinity", "-Infinity"):
        yield Case(4, "syntax", with_raw("temperature", word.encode()), ("column",))
    yield Case(5, "syntax", b'{"model": "x", ' + text()[1:], ("model", "more than once"))
    yield Case(6, "syntax", b"[" * 100_000, ("128",))
    yield Case(6, "syntax", with_raw("metadata", b'{"a":' * 200 + b"1" + b"}" * 200), ("128",))
    yield Case(7, "syntax", with_raw("seed", b"9" * 5000), ("seed", "range"))
    yield Case(7, "syntax", with_raw("temperature", b"1e999"), ("temperature", "range"))
    yield Case(8, "syntax", text(messages=[{"role": "user", "content": "\ud800"}]), ("surrogate",))
    yield Case(9, "syntax", text().replace(b"hello", b"hel\xfflo"), ("0xff", "byte"))
    yield Case(10, "syntax", text().decode().encode("utf-16"), ("UTF-16",))


def transport() -> Iterator[Case]:
    for charset in ("bogus-8", "latin-1"):
        headers = {"Content-Type": f"{JSON}; charset={charset}"}
        yield Case(11, "unsupported_media_type", text(), ("utf-8",), headers)
    yield Case(12, "unsupported_media_type", text(), (JSON,), {"Content-Type": "text/plain"})
    yield Case(13, "too_large", b" " * 100_001, ("100001", "100000"))
    zipped = {"Content-Encoding": "gzip"}
    yield Case(14, "too_large", gzip.compress(b" " * 5_000_000), ("100000",), zipped)
    yield Case(15, "invalid_request", b"x" * 50, ("gzip",), zipped)
    yield Case(15, "invalid_request", gzip.compress(text())[:-5], ("gzip",), zipped)
    yield Case(15, "invalid_request", text(), ("gzip", "deflate"), {"Content-Encoding": "br"})


def models(dialect: str) -> Iterator[Case]:
    yield Case(23, "invalid_request", text(model=None), ("model",))
    yield Case(23, "invalid_request", text(model=123), ("model",))
    yield Case(23, "invalid_request", text(model=""), ("model",))
    for name in ("opena", "../../admin", "x" * 300, "a\x00b"):
        yield Case(24, "model_not_found", text(model=name), ("model",))
    if dialect == "databricks":
        for name in ("opena", "..%2F..%2Fadmin", "%2e%2e", "x" * 300, "a%00b", "a%2Fb"):
            path = f"/serving-endpoints/{name}/invocations"
            yield Case(24, "model_not_found", text(model=None), ("does not exist",), path=path)


def messages() -> Iterator[Case]:
    nothing_said: tuple[Any, ...] = (None, [], {})
    for value in nothing_said:
        yield Case(25, "invalid_request", text(messages=value), ("messages",))
    nothing, wizard = {"role": "user", "content": None}, {"role": "wizard", "content": "x"}
    yield Case(25, "invalid_request", text(messages=[nothing]), ("messages[0].content",))
    yield Case(25, "invalid_request", text(messages=[HELLO, wizard]), ("messages[1].role", "user", "wizard"))


def numbers(dialect: str, profile: str) -> Iterator[Case]:
    beyond = "unsupported_parameter" if dialect == "azure" else "invalid_request"  # its API has no upper bound
    yield Case(26, "invalid_request", text(temperature="hot"), ("temperature", "number"))
    yield Case(26, beyond, text(temperature=3.1), ("temperature", "at most 2"))
    yield Case(26, "invalid_request", text(temperature=-1), ("temperature",))
    other = {"azure": "extra_parameter", "mindie": "unsupported_parameter"}  # n is not in their reference
    unknown = dialect == "azure" or (dialect, profile) == ("mindie", "documented")
    yield Case(26, other[dialect] if unknown else "invalid_request", text(n=10**9), ("n",))
    for value in (-1, 1.5, True):
        yield Case(26, "invalid_request", text(max_tokens=value), ("max_tokens",))
    yield Case(26, beyond, text(max_tokens=0), ("max_tokens",))


STEERING = ("api_base", "base_url", "api_key", "custom_host", "extra_headers", "extra_body", "proxies", "model_list")


def unknown(dialect: str) -> Iterator[Case]:
    yield Case(27, "extra_parameter", text(foo=1), ("foo",), {"extra-parameters": "error"})
    yield Case(27, "invalid_request", text(foo=1), ("perhaps", "pass-through"), {"extra-parameters": "perhaps"})
    if dialect == "azure":
        yield Case(27, "extra_parameter", text(foo=1, n=2), ("foo", "'n'", "pass-through"))
    if dialect in ("azure", "databricks"):
        yield Case(27, "extra_parameter", text(messages=[{**HELLO, "foo": 1}]), ("messages[0].foo",))
    for name in (*STEERING, "user_config", "fallbacks", "chat_template"):
        yield Case(29, "extra_parameter", text(**{name: "http://127.0.0.1:9"}), (name,))


def tool(parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "description": "", "parameters": parameters}}


def tools() -> Iterator[Case]:
    place = "tools[0].function.parameters"
    for where in ("http://127.0.0.1:9/x", "file:///etc/passwd", "ftp://127.0.0.1/x", "other.json#/a"):
        yield Case(28, "invalid_request", text(tools=[tool({"$ref": where})]), (place,))
    evil = {"properties": {"a": {"pattern": "(a+)+$" * 1000}}}
    yield Case(28, "invalid_request", text(tools=[tool(evil)]), (place,))
    deep = b'{"properties":{"a":' * 500 + b"{}" + b"}}" * 500
    yield Case(28, "syntax", text(tools=[tool("RAW")]).replace(b'"RAW"', deep), ("128",))
    other = {"type": "function", "function": {"name": "g"}}
    yield Case(30, "invalid_request", text(tools=[tool({"type": "object"})], tool_choice=other), ("tool_choice", "g"))


def across(dialect: str, profile: str) -> Iterator[Case]:
    """Without the catalogue's `previous_response_id`, which is no parameter of chat."""
    dangling = {"role": "tool", "tool_call_id": "x", "content": "r"}
    yield Case(30, "invalid_request", text(messages=[HELLO, dangling]), ("messages[1].tool_call_id",))
    if dialect == "openai":  # the others do not have it
        yield Case(30, "invalid_request", text(stream_options={"include_usage": True}), ("stream_options",))
    if dialect in ("openai", "databricks") or (dialect, profile) == ("mindie", "actual"):
        yield Case(30, "invalid_request", text(logprobs=False, top_logprobs=2), ("top_logprobs",))


def cases(dialect: str, profile: str) -> Iterator[Case]:
    yield from (*syntax(), *transport(), *models(dialect), *messages(), *numbers(dialect, profile))
    yield from (*unknown(dialect), *tools(), *across(dialect, profile))


@pytest.fixture
async def make(build: Any, client_of: Any) -> Any:
    """A client of a house that takes small bodies, soon loses patience, and wants a key."""

    async def client(dialect: str, profile: str | None = None) -> Any:
        server = {
            "body_limit": 100_000,
            "body_timeout": 0.2,
            "profiles": {dialect: profile} if profile else {},
        }
        return client_of(await build(keys=[{"name": "me", "key": KEY}], server=server), dialect, KEY)

    return client


async def check_unharmed(client: Any) -> None:
    """No provider was asked, no secret was told, and the next request works."""
    house = client.house
    for fake in house.fakes.values():
        assert (fake.requests, fake.connections) == ([], 0)
    assert (await client.ask("mindie")).status == 200
    house.fakes["mindie"].requests.clear()
    house.fakes["mindie"].connections = 0
    for secret in (b"sk-canary", b"sk-upstream", b"Traceback"):
        assert secret not in house.log.getvalue()


async def timed(client: Any, case: Case) -> tuple[Any, float]:
    start = time.perf_counter()
    answer = await client.send(case.body, case.path, case.headers)
    return answer, time.perf_counter() - start


@pytest.mark.parametrize(("dialect", "profile"), SERVED, ids=["/".join(served) for served in SERVED])
async def test_what_is_wrong_with_a_request(make: Any, dialect: str, profile: str, subtests: pytest.Subtests) -> None:
    client = await make(dialect, profile)
    for case in cases(dialect, profile):
        with subtests.test(row=case.row, body=case.body[:80]):
            answer, seconds = await timed(client, case)
            client.check_error(answer, case.kind, *case.words)
            if seconds > QUICK:  # the machine may have been busy
                seconds = (await timed(client, case))[1]
            assert seconds < QUICK
            for secret in (b"sk-canary", b"sk-upstream", b"Traceback"):
                assert secret not in answer.raw
            await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_10_a_byte_order_mark_is_accepted(make: Any, dialect: str) -> None:
    client = await make(dialect)
    assert (await client.send(b"\xef\xbb\xbf" + text())).status == 200


async def raw(client: Any, *parts: bytes) -> Any:
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


def head(client: Any, *lines: str, method: str = "POST", path: str = "", key: str = KEY) -> bytes:
    address = path or client.paths[-1]
    given = [f"{method} {address} HTTP/1.1", "Host: a", f"Authorization: Bearer {key}", *lines]
    return "\r\n".join(given).encode() + b"\r\n\r\n"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_16_a_body_in_broken_chunks(make: Any, dialect: str) -> None:
    client = await make(dialect)
    answer = await raw(client, head(client, "Transfer-Encoding: chunked"), b"ZZ\r\nattackerbytes")
    client.check_error(answer, "invalid_request", "HTTP/1.1")
    await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_rows_16_to_18_what_is_no_request_to_any_dialect(make: Any, dialect: str) -> None:
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
async def test_row_19_a_body_that_does_not_come(make: Any, dialect: str) -> None:
    client = await make(dialect)
    answer = await raw(client, head(client, "Content-Length: 100"), b"{")
    client.check_error(answer, "request_timeout")
    await check_unharmed(client)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_20_a_client_that_leaves_in_its_body(make: Any, dialect: str) -> None:
    client = await make(dialect)
    reader, writer = await asyncio.open_connection("127.0.0.1", client.house.proxy.port)
    writer.write(head(client, "Content-Length: 100") + b"{")
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 2) == b""
    writer.close()
    await check_unharmed(client)
    assert b'"outcome":"client_left"' in client.house.log.getvalue()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_21_who_has_no_key(make: Any, dialect: str) -> None:
    client = await make(dialect)
    for headers in (
        {"Authorization": ""},
        {"Authorization": "Bearer sk-canary-wrong"},
        {"Authorization": "Bearer ' OR 1=1--"},
        {"Authorization": f"Basic {KEY}"},
        {"api-key": "sk-canary-other"},
    ):
        answer = await client.send(text(), headers=headers)
        client.check_error(answer, "auth", "API key")
        assert b"canary" not in answer.raw
        await check_unharmed(client)
    for headers in ({"api-key": KEY, "Authorization": ""}, {"api-key": KEY}):
        assert (await client.send(text(), headers=headers)).status == 200


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_row_22_another_method(make: Any, dialect: str) -> None:
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
async def test_row_22_an_unknown_address(make: Any, dialect: str) -> None:
    client = await make(dialect)
    for path in WRONG_ADDRESSES[dialect]:
        answer = await client.send(text(), path)
        client.check_error(answer, "not_found", "nothing is served at this address")
    await check_unharmed(client)
