"""The HTTP API, asked by a client of Toxiproxy, and by the requests that its README describes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import toxiproxy
from aiohttp import ClientSession
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from dragoman.contract.chaos import ChaosProxies
from dragoman.contract.chaos.api import ChaosApi
from dragoman.contract.json_types import JsonValue

from .conftest import Peer


@pytest.fixture
async def api() -> AsyncIterator[ChaosApi]:
    async with ChaosApi(ChaosProxies(), port=0) as one:
        yield one


@pytest.fixture
async def session(api: ChaosApi) -> AsyncIterator[ClientSession]:
    async with ClientSession(api.origin) as one:
        yield one


async def read(listen: str) -> bytes:
    host, _, port = listen.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(b"x")
        return await reader.read()
    finally:
        writer.close()


def use_foreign_client(port: int, upstream: str) -> list[str]:
    """What toxiproxy-python does, in a thread: every call of its classes."""
    server = toxiproxy.Toxiproxy()
    server.update_api_consumer("127.0.0.1", port)
    assert server.running()
    assert b"version" in server.version()
    proxy = server.create(upstream=upstream, name="one")
    assert (proxy.name, proxy.upstream, proxy.enabled) == ("one", upstream, True)
    assert not proxy.listen.endswith(":0")
    with pytest.raises(ProxyExists):
        server.create(upstream=upstream, name="one")
    with pytest.raises(ProxyExists):
        APIConsumer.post("/proxies", json={"name": "one", "upstream": upstream})
    proxy.add_toxic(type="latency", attributes={"latency": 5, "jitter": 1})
    proxy.add_toxic(name="cut", type="limit_data", stream="upstream", toxicity=0.5, attributes={"bytes": 9})
    with pytest.raises(InvalidToxic):
        proxy.add_toxic(type="nothing")
    toxics = proxy.toxics()
    assert set(toxics) == {"latency_downstream", "cut"}
    cut = proxy.get_toxic("cut")
    assert (cut.type, cut.stream, cut.toxicity, cut.attributes) == ("limit_data", "upstream", 0.5, {"bytes": 9})
    assert proxy.destroy_toxic("cut")
    with pytest.raises(NotFound):
        proxy.destroy_toxic("cut")
    with proxy.down():
        assert server.get_proxy("one").enabled is False
    assert server.get_proxy("one").enabled is True
    assert server.reset()
    assert proxy.toxics() == {}
    populated = server.populate([{"name": "two", "upstream": upstream, "listen": "127.0.0.1:0"}])
    assert [each.name for each in populated] == ["two"]
    assert proxy.destroy()
    names = list(server.proxies())
    server.destroy_all()
    assert server.proxies() == {}
    return names


async def test_a_client_of_toxiproxy_works(api: ChaosApi, peer: Peer) -> None:
    assert await asyncio.to_thread(use_foreign_client, api.port, f"127.0.0.1:{peer.port}") == ["two"]


async def ask(session: ClientSession, method: str, path: str, body: JsonValue = None) -> tuple[int, JsonValue]:
    async with session.request(method, path, json=body) as reply:
        return reply.status, await reply.json() if reply.status != 204 else None


async def test_requests_of_the_documentation(session: ClientSession, peer: Peer) -> None:
    peer.answer = b"answer"
    upstream = f"127.0.0.1:{peer.port}"
    status, proxy = await ask(session, "POST", "/proxies", {"name": "p", "upstream": upstream})
    listen = proxy["listen"]
    shown = {"name": "p", "listen": listen, "upstream": upstream, "enabled": True, "toxics": []}
    assert (status, proxy) == (201, shown)
    assert await ask(session, "GET", "/proxies") == (200, {"p": shown})
    assert await read(listen) == b"answer"
    toxic = {"type": "limit_data", "attributes": {"bytes": 3}}
    shown_toxic = {**toxic, "name": "limit_data_downstream", "stream": "downstream", "toxicity": 1.0}
    assert await ask(session, "POST", "/proxies/p/toxics", toxic) == (200, shown_toxic)
    assert await ask(session, "GET", "/proxies/p") == (200, {**shown, "toxics": [shown_toxic]})
    assert await ask(session, "GET", "/proxies/p/toxics") == (200, [shown_toxic])
    assert await ask(session, "GET", "/proxies/p/toxics/limit_data_downstream") == (200, shown_toxic)
    assert await read(listen) == b"ans"
    changed = {**shown_toxic, "attributes": {"bytes": 1}}
    for method in ("POST", "PATCH"):
        path = "/proxies/p/toxics/limit_data_downstream"
        assert await ask(session, method, path, {"attributes": {"bytes": 1}}) == (200, changed)
    assert await read(listen) == b"a"
    assert await ask(session, "DELETE", "/proxies/p/toxics/limit_data_downstream") == (204, None)
    assert await read(listen) == b"answer"
    assert await ask(session, "POST", "/proxies/p", {"enabled": False}) == (200, {**shown, "enabled": False})
    with pytest.raises(ConnectionRefusedError):
        await read(listen)
    assert await ask(session, "PATCH", "/proxies/p", {"enabled": True}) == (200, shown)
    assert await read(listen) == b"answer"
    assert await ask(session, "POST", "/proxies/p", {"upstream": "127.0.0.1:1"}) == (
        200,
        {**shown, "upstream": "127.0.0.1:1"},
    )
    assert await read(listen) == b""
    assert (await ask(session, "POST", "/reset"))[0] == 204
    assert (await ask(session, "DELETE", "/proxies/p"))[0] == 204
    assert await ask(session, "GET", "/proxies/p") == (404, {"error": "proxy not found", "status": 404})


async def test_populate_creates_replaces_and_keeps(session: ClientSession, peer: Peer) -> None:
    upstream = f"127.0.0.1:{peer.port}"
    status, answer = await ask(session, "POST", "/populate", [{"name": "a", "upstream": upstream}])
    (first,) = answer["proxies"]
    assert (status, first["name"], first["enabled"]) == (201, "a", True)
    await ask(session, "POST", "/proxies/a/toxics", {"type": "latency"})
    again = [{"name": "a", "upstream": upstream, "listen": first["listen"]}, {"name": "b", "upstream": upstream}]
    _, answer = await ask(session, "POST", "/populate", again)
    assert [len(proxy["toxics"]) for proxy in answer["proxies"]] == [1, 0]
    again[0]["upstream"] = "127.0.0.1:1"
    _, answer = await ask(session, "POST", "/populate", again[:1])
    assert [len(proxy["toxics"]) for proxy in answer["proxies"]] == [0]


WRONG = [
    ("POST", "/proxies", {"upstream": "127.0.0.1:1"}, 400, "missing required field: name"),
    ("POST", "/proxies", {"name": "x"}, 400, "missing required field: upstream"),
    ("POST", "/proxies", [], 400, "bad request body: expected an object"),
    ("POST", "/proxies", {"name": "x", "upstream": "nowhere"}, 400, "an address is written host:port, not 'nowhere'"),
    ("POST", "/proxies", {"name": "x", "upstream": "a:1", "listen": "a:99999"}, 400, "not 'a:99999'"),
    ("POST", "/proxies", {"name": "x", "upstream": "a:1", "enabled": 1}, 400, "enabled is true or false"),
    ("POST", "/proxies", {"name": 1, "upstream": "a:1"}, 400, "are strings"),
    ("POST", "/proxies", {"name": "p", "upstream": "a:1"}, 409, "proxy already exists"),
    ("POST", "/proxies/p", {"listen": 1}, 400, "listen and upstream are strings"),
    ("POST", "/proxies/p", [], 400, "expected an object"),
    ("POST", "/populate", {}, 400, "expected an array of proxies"),
    ("POST", "/populate", [{"name": "a", "upstream": "a:1"}] * 2, 400, "two proxies have the same name"),
    ("GET", "/proxies/q", None, 404, "proxy not found"),
    ("DELETE", "/proxies/q", None, 404, "proxy not found"),
    ("GET", "/proxies/p/toxics/t", None, 404, "toxic not found"),
    ("POST", "/proxies/p/toxics/t", {}, 404, "toxic not found"),
    ("DELETE", "/proxies/p/toxics/t", None, 404, "toxic not found"),
    ("POST", "/proxies/p/toxics", {"type": "x"}, 400, "invalid toxic type 'x'"),
    ("POST", "/proxies/p/toxics", {"type": 1}, 400, "type must be a string"),
    ("POST", "/proxies/p/toxics", {"type": "latency", "stream": "x"}, 400, "stream was invalid"),
    ("POST", "/proxies/p/toxics", {"type": "latency", "toxicity": "x"}, 400, "toxicity must be a number"),
    ("POST", "/proxies/p/toxics", {"type": "latency", "attributes": []}, 400, "expected an object"),
    ("POST", "/proxies/p/toxics", {"type": "latency", "attributes": {"latency": True}}, 400, "whole number"),
    ("GET", "/nothing", None, 404, "GET /nothing: not found"),
    ("PUT", "/proxies", {}, 405, "method not allowed"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "words"), WRONG)
async def test_wrong_requests(
    session: ClientSession, method: str, path: str, body: JsonValue, status: int, words: str
) -> None:
    await ask(session, "POST", "/proxies", {"name": "p", "upstream": "127.0.0.1:1"})
    found, answer = await ask(session, method, path, body)
    assert (found, answer["status"]) == (status, status)
    assert words in answer["error"]


async def test_what_is_no_json(session: ClientSession) -> None:
    async with session.post("/proxies", data=b"{") as reply:
        assert (reply.status, await reply.json()) == (400, {"error": "bad request body: not JSON", "status": 400})


async def test_pages_of_browsers_are_refused(session: ClientSession) -> None:
    async with session.post("/reset", headers={"User-Agent": "Mozilla/5.0 (X11; Linux x86_64)"}) as reply:
        assert reply.status == 403


async def test_a_taken_port_is_told(session: ClientSession, peer: Peer) -> None:
    body = {"name": "x", "upstream": "127.0.0.1:1", "listen": f"127.0.0.1:{peer.port}"}
    status, answer = await ask(session, "POST", "/proxies", body)
    assert status == 500
    assert "in use" in answer["error"]
    with suppress(KeyError):
        raise AssertionError((await ask(session, "GET", "/proxies"))[1]["x"])
