"""Requests that pages in browsers can cause, at every address of every dialect, and the answers of CORS."""

from __future__ import annotations

import json

import pytest

from dragoman.adapters.registry import dialects
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

KEYS = [{"name": "a", "key": "a-client-key"}]
POSTS = [path for one in dialects.values() for protocol in one.served for path in one.served_paths(protocol)]
LISTS = [path for one in dialects.values() for listed in one.information.values() for path in listed.paths]
STORED = ["/v1/responses/resp_1", "/v1/responses/resp_1/input_items", "/serving-endpoints/responses/resp_1"]
ADDRESSES = [("POST", path.replace("{name}", "m")) for path in POSTS]
ADDRESSES += [("GET", path.replace("{name}", "m")) for path in [*LISTS, *STORED, "/live", "/ready", "/nowhere"]]

PAGE = "https://page.example"
FOREIGN: dict[str, dict[str, str]] = {
    "a name that leads here": {"Host": "evil.example:8080"},
    "a name like a loopback name": {"Host": "localhost.evil.example"},
    "an origin": {"Origin": PAGE},
    "an opaque origin": {"Origin": "null"},
    "another port": {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
    "an image": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    "an image of the same site": {"Sec-Fetch-Site": "same-site"},
}
OWN: dict[str, dict[str, str]] = {
    "no page": {"Host": "localhost"},
    "another loopback name": {"Host": "llm.localhost:8080"},
    "a full name": {"Host": "LOCALHOST."},
    "an address": {"Host": "192.168.0.7:8080"},
    "an address of version 6": {"Host": "[::1]:8080"},
    "an allowed name": {"Host": "llm.example:80"},
    "a typed address": {"Host": "localhost", "Sec-Fetch-Site": "none"},
    "its own page": {"Host": "localhost:8080", "Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"},
    "an allowed page": {"Host": "localhost", "Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"},
}
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


async def _send(p: Proxy, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, bytes]:
    """The status, and the whole response."""
    headers = {"Host": "localhost", **headers, "Connection": "close", "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    answer = await p.raw(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
    return int(answer.split(b" ", 2)[1]), answer


@pytest.mark.parametrize("case", FOREIGN)
async def test_without_keys_other_sites_reach_no_address(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, case: str
) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up, speak=dialects, server={"allowed_hosts": ["llm.example"]})
    for method, path in ADDRESSES:
        headers = {"Content-Type": "application/json", **FOREIGN[case]}
        status, answer = await _send(p, method, path, headers, CHAT)
        assert status == 403, (path, answer)
        assert b"server.allowed_" in answer
        assert b"access-control" not in answer.lower()
    assert up.connections == 0


@pytest.mark.parametrize("case", OWN)
async def test_without_keys_everyone_else_is_served(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, case: str
) -> None:
    server = {"allowed_hosts": ["LLM.example"], "allowed_origins": ["https://app.example"]}
    p = await proxy(await upstream(wire.ok), speak=dialects, server=server)
    headers = {"Content-Type": "application/json", **OWN[case]}
    assert (await _send(p, "POST", "/v1/chat/completions", headers, CHAT))[0] == 200
    for path in ("/v1/models", "/live", "/ready", "/mindie/v1/models", "/.well-known/databricks-config"):
        assert (await _send(p, "GET", path, OWN[case]))[0] == 200


@pytest.mark.parametrize(
    ("authority", "expected"),
    [("evil.example", 403), ("evil.example:80", 403), ("localhost:8080", 200), ("llm.example", 200), ("", 400)],
)
async def test_without_keys_the_host_of_an_absolute_address_is_the_one_that_counts(
    proxy: StartProxy, authority: str, expected: int
) -> None:
    p = await proxy(server={"allowed_hosts": ["llm.example"]})
    status, answer = await _send(p, "GET", f"http://{authority}/live", {"Host": "localhost"})
    assert status == expected, answer
    assert (await _send(p, "GET", "http://localhost/live", {"Host": "evil.example"}))[0] == 200


@pytest.mark.parametrize("given", [None, "", ";charset=utf-8", "text/plain", "application/x-www-form-urlencoded"])
async def test_without_keys_a_body_says_that_it_is_json(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, given: str | None
) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up, speak=dialects)
    headers = {} if given is None else {"Content-Type": given}
    for method, path in ADDRESSES:
        if method == "POST":
            status, answer = await _send(p, method, path, headers, CHAT)
            assert status == 415, (path, answer)
            assert b"-H 'Content-Type: application/json'" in answer
    assert up.connections == 0


@pytest.mark.parametrize("given", [None, ""])
async def test_with_keys_the_type_of_a_body_may_be_missing(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, given: str | None
) -> None:
    p = await proxy(await upstream(wire.ok), keys=KEYS)
    headers = {"api-key": "a-client-key"} if given is None else {"api-key": "a-client-key", "Content-Type": given}
    assert (await _send(p, "POST", "/v1/chat/completions", headers, CHAT))[0] == 200


@pytest.mark.parametrize("case", FOREIGN)
async def test_with_keys_the_key_decides(proxy: StartProxy, upstream: StartUpstream, wire: Wire, case: str) -> None:
    up = await upstream(wire.ok)
    p = await proxy(up, speak=dialects, keys=KEYS)
    for method, path in ADDRESSES:
        status, answer = await _send(p, method, path, {"Content-Type": "application/json", **FOREIGN[case]}, CHAT)
        assert status == 401 or method == "GET", (path, answer)
        assert b"access-control" not in answer.lower()
    assert up.connections == 0
    headers = {"api-key": "a-client-key", "Content-Type": "application/json", **FOREIGN[case]}
    status, answer = await _send(p, "POST", "/v1/chat/completions", headers, CHAT)
    assert status == 200
    assert b"access-control" not in answer.lower()


PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-stainless-lang,x-stainless-retry-count",
    "Access-Control-Request-Private-Network": "true",
}


@pytest.mark.parametrize("keys", [[], KEYS], ids=["no keys", "keys"])
async def test_cors_lets_allowed_pages_send_and_read(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, keys: list[dict[str, str]]
) -> None:
    up = await upstream(wire.stream)
    p = await proxy(up, server={"allowed_origins": [PAGE]}, keys=keys)
    async with p.session.options(p.url, headers={"Origin": PAGE, **PREFLIGHT}) as response:
        assert response.status == 204
        assert response.headers["Access-Control-Allow-Origin"] == PAGE
        assert response.headers["Access-Control-Allow-Headers"] == PREFLIGHT["Access-Control-Request-Headers"]
        assert "POST" in response.headers["Access-Control-Allow-Methods"]
        assert response.headers["Access-Control-Allow-Private-Network"] == "true"
        assert response.headers["Vary"] == "Origin"
    assert up.connections == 0
    given = {"Origin": PAGE, "Authorization": "Bearer a-client-key"}
    bad = {"messages": 1}
    for url, stream in ((p.url, True), (p.url, False), (f"{p.running.url}/v1/models", False), (p.url + "x", True)):
        method = "GET" if url.endswith("models") else "POST"
        async with p.session.request(method, url, json={"stream": stream, **bad}, headers=given) as response:
            assert response.headers["Access-Control-Allow-Origin"] == PAGE, url
            assert response.headers["Access-Control-Expose-Headers"] == "*"
    answer = await p.ask(stream=True, headers=given)
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, PAGE)
    assert answer.events[-1] == "[DONE]"


async def test_cors_answers_no_page_that_is_not_allowed(proxy: StartProxy) -> None:
    p = await proxy(server={"allowed_origins": [PAGE]}, keys=KEYS)
    for origin in ("https://page.example.evil", "http://page.example", "https://page.example:444", "null"):
        async with p.session.options(p.url, headers={"Origin": origin, **PREFLIGHT}) as response:
            found = {name.lower() for name in response.headers}
            assert not [name for name in found if name.startswith("access-control")], origin
            assert response.headers["Vary"] == "Origin"


async def test_all_origins_may_be_allowed_with_keys(proxy: StartProxy) -> None:
    p = await proxy(server={"allowed_origins": ["*"]}, keys=KEYS)
    async with p.session.options(p.url, headers={"Origin": "null", **PREFLIGHT}) as response:
        assert (response.status, response.headers["Access-Control-Allow-Origin"]) == (204, "*")


async def test_without_keys_all_origins_means_none(proxy: StartProxy) -> None:
    p = await proxy(server={"allowed_origins": ["*"]})
    async with p.session.options(p.url, headers={"Origin": PAGE, **PREFLIGHT}) as response:
        assert response.status == 403


async def test_a_preflight_request_cannot_write_headers(proxy: StartProxy) -> None:
    p = await proxy(server={"allowed_origins": [PAGE]})
    for names in ("x" * 200, "a b", "a,,b", 'a"', "a;b", ""):
        given = {"Origin": PAGE, **PREFLIGHT, "Access-Control-Request-Headers": names}
        async with p.session.options(p.url, headers=given) as response:
            assert response.status == 204
            assert "Access-Control-Allow-Headers" not in response.headers
