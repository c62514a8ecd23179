"""Tokens from a token endpoint on loopback that is slow, fails, lets tokens expire and changes its keys, in front of a
provider that takes no token but the right ones."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from dragoman.adapters.faults import Fault
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Provider
from dragoman.proxy.upstreams import oauth
from dragoman.proxy.upstreams.credentials import NO_OBSERVER
from dragoman.proxy.upstreams.oauth import NoToken, Token, TokenEndpoint, TokenSource
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

SECRET = "canary-client-secret"
REPLY = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
}


class House:
    """A token endpoint and a provider. Tokens are `canary-1`, `canary-2`, ...; `valid` are those the provider takes."""

    def __init__(self) -> None:
        self.life: Any = 3600
        self.delay = 0.0
        self.answer: Callable[[], web.Response] | None = None
        self.asked: list[dict[str, str]] = []
        self.heads: list[Any] = []
        self.valid: set[str] = set()
        self.shown: list[str] = []
        self.gate: asyncio.Event | None = None
        self.port = 0

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        return await (self._token(request) if request.path.startswith("/token") else self._chat(request))

    async def _token(self, request: web.BaseRequest) -> web.StreamResponse:
        form = await request.post()
        self.asked.append({name: str(value) for name, value in form.items()})
        self.heads.append(request.headers)
        await asyncio.sleep(self.delay)
        if self.answer is not None:
            return self.answer()
        token = f"canary-{len(self.asked)}"
        self.valid.add(token)
        return web.json_response({"token_type": "Bearer", "expires_in": self.life, "access_token": token})

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        shown = request.headers.get("Authorization", "")
        self.shown.append(shown)
        body = await request.json()
        if shown.removeprefix("Bearer ") not in self.valid:
            return web.json_response({"error": f"bad token {shown}"}, status=401)
        if not body.get("stream"):
            return web.json_response(REPLY)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        choice: JsonObject = {"index": 0, "delta": {"content": "x"}, "finish_reason": None}
        await response.write(b"data: " + json.dumps({"id": "x", "choices": [choice]}).encode() + b"\n\n")
        if self.gate is not None:
            await self.gate.wait()
        choice["finish_reason"] = "stop"
        await response.write(
            b"data: " + json.dumps({"id": "x", "choices": [choice]}).encode() + b"\n\ndata: [DONE]\n\n"
        )
        return response

    def fail(self, status: int = 503, body: JsonValue = None) -> None:
        self.answer = lambda: web.json_response(body or {"error": "temporarily_unavailable"}, status=status)

    def provider(self, **more: JsonValue) -> JsonObject:
        origin = f"http://127.0.0.1:{self.port}"
        said = {"token_url": f"{origin}/token", "client_id": "me", "client_secret": SECRET, "scope": "all-apis", **more}
        return {"base_url": f"{origin}/v1", "oauth": said}


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    server = web.Server(made.serve, access_log=None)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    made.port = listener.sockets[0].getsockname()[1]
    yield made
    listener.close()
    await server.shutdown(0.01)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refreshes follow one another without a pause."""
    monkeypatch.setattr(oauth.TokenSource.__init__, "__defaults__", (NO_OBSERVER, (0.001, 0.001)))


async def settle(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - it may be about anything
            await asyncio.sleep(0.005)


# Through the proxy


async def test_one_token_serves_many(proxy: StartProxy, house: House) -> None:
    house.delay = 0.05
    p = await proxy(house.provider())
    answers = await asyncio.gather(*(p.ask() for _ in range(20)))
    assert {answer.status for answer in answers} == {200}
    assert (await p.ask()).status == 200
    assert set(house.shown) == {"Bearer canary-1"}
    form = {"grant_type": "client_credentials", "client_id": "me", "client_secret": SECRET, "scope": "all-apis"}
    assert house.asked == [form]
    assert "Authorization" not in house.heads[0]


async def test_id_and_secret_in_a_header(proxy: StartProxy, house: House) -> None:
    p = await proxy(house.provider(auth_style="basic", client_id="a:b", client_secret="c/d+e", audience="you"))
    assert (await p.ask()).status == 200
    assert house.asked == [{"grant_type": "client_credentials", "scope": "all-apis", "audience": "you"}]
    assert base64.b64decode(house.heads[0]["Authorization"].removeprefix("Basic ")) == b"a%3Ab:c%2Fd%2Be"


async def test_a_secret_in_a_file_is_read_for_every_token(proxy: StartProxy, house: House, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("first\n")
    p = await proxy(house.provider(client_secret=None, client_secret_file=str(file)))
    assert (await p.ask()).status == 200
    file.write_text("second")
    house.valid.clear()
    assert (await p.ask()).status == 200
    assert [form["client_secret"] for form in house.asked] == ["first", "second"]


async def test_a_secret_whose_file_is_gone(proxy: StartProxy, house: House, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("first")
    p = await proxy(house.provider(client_secret=None, client_secret_file=str(file)))
    file.unlink()
    answer = await p.ask()
    assert answer.status == 503
    assert "the client's secret cannot be read from its file" in answer.error["message"]
    assert str(file) not in answer.text.decode()
    assert any(line.get("detail") == "No such file or directory" for line in p.lines)


async def test_no_client_waits_for_a_slow_endpoint_while_a_token_is_valid(proxy: StartProxy, house: House) -> None:
    house.life = 3
    p = await proxy(house.provider())
    assert (await p.ask()).status == 200
    await asyncio.sleep(2.1)  # ageing now
    house.delay = 30
    async with asyncio.timeout(0.7):
        answers = await asyncio.gather(*(p.ask() for _ in range(5)))
    assert {answer.status for answer in answers} == {200}
    assert set(house.shown) == {"Bearer canary-1"}
    await settle(lambda: len(house.asked) == 2)


async def test_no_client_fails_for_a_failing_endpoint_while_a_token_is_valid(
    proxy: StartProxy, house: House, quick: None
) -> None:
    house.life = 3
    p = await proxy(house.provider())
    assert (await p.ask()).status == 200
    await asyncio.sleep(2.1)
    house.fail()
    for _ in range(5):
        assert (await p.ask()).status == 200
        await asyncio.sleep(0.01)
    assert len(house.asked) > 1
    house.answer = None
    await p.ask()
    async with asyncio.timeout(10):
        while house.shown[-1] == "Bearer canary-1":
            assert (await p.ask()).status == 200
    assert any(line["event"] == "no_token" and line["reason"] for line in p.lines)


async def test_a_token_that_expires_in_the_middle_of_a_stream(proxy: StartProxy, house: House) -> None:
    house.life = 1
    house.gate = asyncio.Event()
    p = await proxy(house.provider())
    running = asyncio.ensure_future(p.ask(stream=True))
    await settle(lambda: bool(house.shown))
    await asyncio.sleep(1.1)
    house.valid.clear()
    assert (await p.ask()).status == 200
    house.gate.set()
    assert (await running).events[-1] == "[DONE]"
    assert house.shown == ["Bearer canary-1", "Bearer canary-2"]


@pytest.mark.parametrize("stream", [False, True])
async def test_changed_keys_make_a_young_token_void(proxy: StartProxy, house: House, stream: bool) -> None:
    p = await proxy(house.provider())
    assert (await p.ask()).status == 200
    house.valid.clear()
    answers = await asyncio.gather(*(p.ask(stream=stream) for _ in range(10)))
    assert {answer.status for answer in answers} == {200}
    assert len(house.asked) == 2
    assert house.shown.count("Bearer canary-2") == 10
    assert [line["attempts"] for line in await p.exchanges(11)] == [1] * 11


async def test_a_provider_that_likes_no_token_does_not_cost_one_each_time(proxy: StartProxy, house: House) -> None:
    p = await proxy(house.provider())
    for _ in range(5):
        house.valid.clear()
        house.answer = lambda: web.json_response({"access_token": f"other-{len(house.asked)}", "expires_in": 60})
        answer = await p.ask()
        assert (answer.status, answer.error["type"]) == (502, "upstream_auth_failed")
    assert len(house.asked) == 2
    assert len(house.shown) == 6


async def test_a_refused_token_that_cannot_be_renewed(proxy: StartProxy, house: House) -> None:
    """The provider's own word counts, and the token stays in hand."""
    p = await proxy(house.provider())
    assert (await p.ask()).status == 200
    house.fail()
    known, house.valid = house.valid, set()
    assert (await p.ask()).status == 502
    house.valid = known
    assert (await p.ask()).status == 200
    assert len(house.asked) == 2


FAILURES: dict[str, tuple[Callable[[], web.Response], int, str]] = {
    "unavailable": (lambda: web.json_response({}, status=503), 503, "answered 503"),
    "busy": (lambda: web.json_response({"error": SECRET}, status=429), 503, "answered 429"),
    "wrong secret": (
        lambda: web.json_response(
            {"error": "invalid_client", "error_description": f"AADSTS7000215: {SECRET}"}, status=401
        ),
        502,
        "answered 401 (invalid_client)",
    ),
    "elsewhere": (lambda: web.Response(status=302, headers={"Location": "/token2"}), 502, "redirects"),
    "not JSON": (lambda: web.Response(text="<html>"), 503, "not a JSON object"),
    "no token": (lambda: web.json_response({"expires_in": 3600}), 503, "holds no access_token"),
    "a line break": (lambda: web.json_response({"access_token": "a\r\nb"}), 503, "holds no access_token"),
    "another type": (
        lambda: web.json_response({"access_token": "a", "token_type": "mac"}),
        502,
        "another type than Bearer",
    ),
    "expired": (lambda: web.json_response({"access_token": "a", "expires_in": "0"}), 503, "has expired"),
    "no time": (lambda: web.json_response({"access_token": "a", "expires_in": []}), 503, "has expired"),
    "endless": (lambda: web.Response(body=b" " * 300_000), 503, "larger than 256 KiB"),
}


@pytest.mark.parametrize("kind", FAILURES)
async def test_without_a_token(proxy: StartProxy, house: House, kind: str) -> None:
    house.answer, status, text = FAILURES[kind]
    p = await proxy(house.provider())
    answer = await p.ask()
    assert (answer.status, answer.error["code"]) == (status, "upstream_auth_unavailable")
    assert text in answer.error["message"]
    assert ("retry-after" in answer.headers) == (status == 503)
    assert house.shown == []
    assert b"canary" not in answer.text
    assert b"canary" not in p.log.getvalue()


async def test_failures_are_not_repeated_at_once_and_end(proxy: StartProxy, house: House) -> None:
    house.fail()
    p = await proxy(house.provider())
    for _ in range(3):
        assert (await p.ask()).status == 503
    assert len(house.asked) == 1
    house.answer = None
    await asyncio.sleep(0.55)
    assert (await p.ask()).status == 200


async def test_a_fallback_serves_where_there_is_no_token(
    proxy: StartProxy, house: House, upstream: StartUpstream, wire: Wire
) -> None:
    house.fail()
    other = await upstream(wire.ok, "keep")
    models = {
        "m": {"targets": [{"provider": "p0", "model": "up"}], "fallbacks": ["n"]},
        "n": {"targets": [{"provider": "p1", "model": "up"}]},
    }
    p = await proxy(house.provider(), other, models=models)
    assert (await p.ask()).status == 200


async def test_a_client_that_leaves_takes_no_refresh_with_it(proxy: StartProxy, house: House) -> None:
    house.delay = 0.3
    p = await proxy(house.provider())
    leaving = asyncio.ensure_future(p.ask())
    await settle(lambda: bool(house.asked))
    staying = asyncio.ensure_future(p.ask())
    await asyncio.sleep(0.05)
    leaving.cancel()
    assert (await staying).status == 200
    assert len(house.asked) == 1


async def test_the_time_of_an_exchange_bounds_the_wait_for_a_token(proxy: StartProxy, house: House) -> None:
    house.delay = 10
    limits = {"first_token": "200ms", "total": "300ms", "inter_token": "200ms", "connect": "100ms"}
    p = await proxy(house.provider(), timeouts={name: float(text[:-2]) / 1000 for name, text in limits.items()})
    answer = await p.ask()
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")


async def test_nothing_of_a_token_shows(proxy: StartProxy, house: House) -> None:
    """Not even what a provider tells of it."""
    p = await proxy(house.provider())
    assert (await p.ask()).status == 200
    house.valid.clear()
    house.fail(400, {"error": "invalid_client", "error_description": f"{SECRET} is wrong"})
    answer = await p.ask()
    assert answer.status == 502
    assert b"bad token" in answer.text
    assert b"canary" not in answer.text
    assert b"canary" not in p.log.getvalue()
    told = next(line for line in p.lines if line["event"] == "no_token")
    assert told["detail"] == "*** is wrong"
    assert told["token_valid_for"] > 3000


# The endpoint by itself


def endpoint(house: House, scheme: str = "http", **oauth: JsonValue) -> TokenEndpoint:
    provider = house.provider(**oauth)
    provider["oauth"]["token_url"] = f"{scheme}://127.0.0.1:{house.port}/token"
    made = Provider.from_values({"dialect": "openai", **provider, "base_url": f"{scheme}://127.0.0.1:{house.port}"})
    assert made.oauth is not None
    return TokenEndpoint(made, made.oauth)


@pytest.mark.parametrize(("told", "life"), [("3599", 3599), (3599.7, 3599), (None, 300), (10**30, 10**9)])
async def test_how_long_a_token_lives(house: House, told: str | float | None, life: float) -> None:
    house.life = told
    assert await endpoint(house)() == Token("canary-1", life)


async def test_nobody_there(house: House, unused_tcp_port_factory: Callable[[], int]) -> None:
    house.port = unused_tcp_port_factory()
    with pytest.raises(NoToken, match="cannot connect"):
        await endpoint(house)()


async def test_an_endpoint_that_never_answers(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "_TIMEOUT", 0.05)
    house.delay = 5
    with pytest.raises(NoToken, match="did not answer in time"):
        await endpoint(house)()


async def test_who_vouches_for_the_endpoint(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    house = House()
    server = web.Server(house.serve, access_log=None)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0, ssl=context)
    house.port = listener.sockets[0].getsockname()[1]
    with pytest.raises(NoToken, match="its TLS certificate is not valid"):
        await endpoint(house, "https")()
    assert (await endpoint(house, "https", ca=str(tmp_path / "ca.pem"))()).secret == "canary-1"
    near = {"dialect": "openai", **house.provider(), "base_url": f"https://127.0.0.1:{house.port}/v1"}
    near |= {"tls": {"ca": str(tmp_path / "ca.pem")}}
    near["oauth"]["token_url"] = f"https://127.0.0.1:{house.port}/token"
    provider = Provider.from_values(near)
    assert provider.oauth is not None
    assert (await TokenEndpoint(provider, provider.oauth)()).secret == "canary-2"
    listener.close()
    await server.shutdown(0.01)


# The source by itself


def source(fetch: Callable[[], Awaitable[Token]], **more: tuple[float, float]) -> TokenSource:
    return TokenSource("p", {"Authorization": "Bearer {}"}, fetch, **more)


async def test_pauses_between_failures_grow_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(oauth, "uniform", lambda low, high: high)
    monkeypatch.setattr(oauth, "monotonic", lambda: now)
    times = []

    async def fetch() -> Token:
        times.append(now)
        raise NoToken("down")

    tokens = source(fetch, pauses=(1.0, 5.0))
    for _ in range(20):
        if tokens.header_lines() is None:
            with pytest.raises(Fault):
                await tokens.fetch_header_lines()
        now += 1
    assert [later - earlier for earlier, later in pairwise(times)] == [1, 2, 4, 5, 5]


async def test_a_defect_in_a_refresh_is_not_swallowed() -> None:
    async def fetch() -> Token:
        raise RuntimeError("a defect")

    tokens = source(fetch)
    assert tokens.header_lines() is None
    with pytest.raises(RuntimeError, match="a defect"):
        await tokens.fetch_header_lines()


async def test_closing_ends_a_refresh() -> None:
    begun = asyncio.Event()

    async def fetch() -> Token:
        begun.set()
        await asyncio.sleep(60)
        raise AssertionError

    tokens = source(fetch)
    assert tokens.header_lines() is None
    waiting = asyncio.ensure_future(tokens.fetch_header_lines())
    await begun.wait()
    await tokens.close()
    with pytest.raises(Fault, match="no access token"):
        await waiting
