"""Values of the wrong kind where dragoman reads them itself: headers, queries, addresses, ids. Whatever a client sends,
the answer is not an error of the proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest

from dragoman.adapters.registry import dialects
from dragoman.contract.json_types import JsonValue
from tests.e2e.house import BuildHouse, House

HEADERS = (
    "extra-parameters",
    "x-request-id",
    "azureml-model-deployment",
    "Authorization",
    "api-key",
    "traceparent",
    "Accept",
    "Content-Encoding",
    "Content-Type",
    "Cookie",
    "Expect",
    "Origin",
    "Sec-Fetch-Site",
    "Host",
    "User-Agent",
)
BYTES = (b"\xff", "café".encode(), b"\xed\xa0\x80", b"pass-through\xff", b"application/json; charset=\xff")
QUERIES = ("%", "%zz", "%ff", "a=%ff&a=b", "api-version=%ff", "limit=%ff", f"limit={'9' * 30}", "limit=%D9%A3", "%00=1")
QUERIES += ("after=%00", "include=%ff", "include[]=%ff", "model=%ff", "order=%ff", "stream=%ff", "&&==")
ODD: tuple[JsonValue, ...] = (True, 0, -1, 1.5, 10**40, "", "x" * 5000, "resp_1\n", "\x00", [], ["a"], {}, {"a": 1})
FIELDS = ("previous_response_id", "conversation", "model", "user", "store", "background", "include", "n", "id")
ITEMS = (("item_reference", "id"), ("function_call", "call_id"), ("function_call_output", "call_id"))
ITEMS += (("reasoning", "id"), ("message", "id"))

CHAT: dict[str, JsonValue] = {"model": "openai", "messages": [{"role": "user", "content": "hi"}], "stream": False}
RESPONSES: dict[str, JsonValue] = {"model": "openai", "input": "hi", "stream": False}
POSTS = [path for one in dialects.values() for protocol in one.served for path in one.served_paths(protocol)]
GETS = [path for one in dialects.values() for listed in one.information.values() for path in listed.paths]
GETS += ["/v1/responses/resp_1", "/v1/responses/resp_1/input_items", "/live", "/nowhere"]


def body_for(path: str, **more: JsonValue) -> bytes:
    return json.dumps({**(RESPONSES if "responses" in path or "embeddings" in path else CHAT), **more}).encode()


def write(method: str, path: str, body: bytes = b"", **headers: bytes) -> bytes:
    given = {"Host": b"localhost", "Content-Type": b"application/json", **headers}
    lines = b"".join(b"%s: %s\r\n" % (name.encode(), value) for name, value in given.items())
    target = path.replace("{name}", "openai")
    return f"{method} {target} HTTP/1.1\r\n".encode() + lines + b"Content-Length: %d\r\n\r\n" % len(body) + body


def odd_headers() -> Iterator[bytes]:
    for path in POSTS:
        for name in HEADERS:
            for value in BYTES:
                yield write("POST", path, body_for(path), **{name: value})


def odd_addresses() -> Iterator[bytes]:
    for query in QUERIES:
        yield from (write("POST", f"{path}?{query}", body_for(path)) for path in POSTS)
        yield from (write("GET", f"{path}?{query}") for path in GETS)
    for name in ("%ff", "%ed%a0%80", "%00", "%", "%zz", "%2e%2e", "%0d%0a", "%252f", quote("é" * 500)):
        for path in (*POSTS, *GETS):
            if "{name}" in path:
                yield write("GET", path.replace("{name}", name))
                yield write("POST", path.replace("{name}", name), body_for(path))
        yield from (write(method, f"/v1/responses/{name}") for method in ("GET", "DELETE"))


def odd_values() -> Iterator[bytes]:
    for path in POSTS:
        for value in ODD:
            yield from (write("POST", path, body_for(path, **{field: value})) for field in FIELDS)
            if "responses" in path:
                for kind, key in ITEMS:
                    yield write("POST", path, body_for(path, input=[{"type": kind, key: value}]))


PROFILES = {"openai": "actual", "databricks": "documented", "azure": "documented", "mindie": "native"}


async def check_requests(house: House, requests: Iterator[bytes]) -> None:
    """Send the requests, over as many connections as the server closes, and read every answer."""
    writer = None
    for request in requests:
        if writer is None:
            reader, writer = await asyncio.open_connection("127.0.0.1", house.proxy.port)
        writer.write(request)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        assert head.split(b" ", 2)[1][:1] != b"5", (request, head)
        fields = head.lower()
        await reader.readexactly(int(fields.partition(b"content-length:")[2].split(b"\r\n")[0]))
        if b"connection: close" in fields:
            writer.close()
            writer = None
    if writer is not None:
        writer.close()
    assert b'"defect"' not in house.log.getvalue()


@pytest.mark.parametrize("requests", [odd_headers, odd_addresses, odd_values], ids=["headers", "addresses", "values"])
@pytest.mark.parametrize(
    ("store", "profiles"),
    [
        pytest.param("memory", {}, id="memory-usual profiles"),
        pytest.param("none", PROFILES, id="none-other profiles", marks=pytest.mark.heavy),
    ],
)
async def test_no_value_is_an_error_of_the_proxy(
    build: BuildHouse, requests: Callable[[], Iterator[bytes]], profiles: dict[str, str], store: str
) -> None:
    server, protocols = {"profiles": profiles}, ["chat", "responses", "completions", "embeddings"]
    await check_requests(await build(store={"kind": store}, protocols=protocols, server=server), requests())
