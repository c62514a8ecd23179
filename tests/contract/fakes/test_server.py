"""The server: what it records, how a behaviour is chosen, what it refuses, and that it notices clients leaving."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
import pytest
import trustme

from dragoman.contract.fakes import FakeProvider, Misuse
from tests.dialects import DIALECTS


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_records_what_it_receives(dialect: str, send: Any) -> None:
    async with FakeProvider(dialect) as fake:
        await send(fake, "first", headers={"X-Trace": "t1"})
        await send(fake, "second")
        first, second = fake.requests
        assert (first.number, second.number, first.method) == (1, 2, "POST")
        assert first.headers["x-trace"] == "t1"
        assert first.body["messages"][0]["content"] == "first" and b'"second"' in second.raw
        assert fake.base_url.startswith("http://127.0.0.1:") and fake.base_url.endswith("/v1") == (dialect == "openai")


async def test_records_paths_queries_and_bodies_that_are_no_json(session: aiohttp.ClientSession) -> None:
    async with FakeProvider("azure") as fake:
        async with session.post(f"{fake.base_url}/nowhere?a=1", data=b"\xff") as response:
            assert response.status == 404
        received = fake.requests[0]
        assert (received.path, received.query, received.body, received.raw) == ("/nowhere", {"a": "1"}, None, b"\xff")


async def test_behaviour_order_script_directive_model_default(send: Any) -> None:
    async with FakeProvider("openai", behaviour="length") as fake:
        assert (await send(fake)).body["choices"][0]["finish_reason"] == "length"
        assert (await send(fake, model="fake-content_filter")).body["choices"][0]["finish_reason"] == "content_filter"
        heard = await send(fake, "please fake:status-503(message=down) now", model="fake-content-filter")
        assert (heard.status, heard.body["error"]["message"]) == (503, "down")
        fake.script("status-500", "text")
        assert (await send(fake, "fake:length")).status == 500
        assert (await send(fake, "fake:length")).body["choices"][0]["finish_reason"] == "stop"
        fake.behaviour = "unknown-finish"
        assert (await send(fake)).body["choices"][0]["finish_reason"] == "tired"


async def test_directive_is_the_last_user_messages_own(send: Any) -> None:
    talk = [
        {"role": "user", "content": "fake:status-500"},
        {"role": "assistant", "content": "fake:status-501"},
        {"role": "user", "content": [{"type": "text", "text": "fake:length"}]},
    ]
    async with FakeProvider("openai") as fake:
        assert (await send(fake, messages=talk)).body["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("fake:lenght", "length"),
        ("fake:mindie-422", "belongs to mindie"),
        ("fake:slow(delay=soon)", "delay must be a number"),
        ("fake:slow(speed=1)", "no argument 'speed'; it takes: delay, words"),
        ("fake:slow(1)", "name=value"),
    ],
)
async def test_wrong_directives_are_told_clearly(wanted: str, told: str, send: Any) -> None:
    async with FakeProvider("openai") as fake:
        heard = await send(fake, wanted)
        assert heard.status == 400 and told in heard.body["error"]["message"]


async def test_wrong_names_in_code_are_told_at_once() -> None:
    with pytest.raises(Misuse, match="no behaviour 'txet'"):
        FakeProvider("openai", behaviour="txet")
    with pytest.raises(ValueError, match="no fake for anthropic/actual"):
        FakeProvider("anthropic")
    fake = FakeProvider("openai")
    with pytest.raises(Misuse, match="belongs to azure"):
        fake.script("text", "azure-generic")
    assert (await _first_behaviour(fake)) == "as-asked"


async def _first_behaviour(fake: FakeProvider) -> str:
    async with fake, aiohttp.ClientSession() as session, session.get(f"{fake.origin}/_fake/state") as response:
        return str((await response.json())["behaviour"])


async def test_controls_over_http(session: aiohttp.ClientSession, send: Any) -> None:
    async with FakeProvider("mindie") as fake:
        await send(fake, "one")
        async with session.get(f"{fake.origin}/_fake/requests") as response:
            told = await response.json()
        assert [(one["number"], one["path"], one["body"]["model"]) for one in told] == [
            (1, "/v1/chat/completions", "llama")
        ]
        async with session.delete(f"{fake.origin}/_fake/requests") as response:
            assert response.status == 204 and fake.requests == []
        async with session.put(f"{fake.origin}/_fake/script", json=["status-503", "length"]) as response:
            assert response.status == 204
        assert [(await send(fake)).status for _ in range(2)] == [503, 200]
        for wrong in ({"json": ["nothing"]}, {"data": b"{"}, {"json": 7}):
            async with session.put(f"{fake.origin}/_fake/script", **wrong) as response:
                assert response.status == 400 and "error" in await response.json()
        async with session.get(f"{fake.origin}/_fake/nothing") as response:
            assert response.status == 404


@pytest.mark.parametrize("behaviour", ["slow(delay=0.01,words=1000)", "stall", "hang"])
async def test_notices_that_a_client_left(behaviour: str) -> None:
    async with FakeProvider("openai", behaviour=behaviour) as fake:
        url, body = f"{fake.base_url}/chat/completions", {"model": "m", "messages": [_USER], "stream": True}
        async with aiohttp.ClientSession() as session:
            call = asyncio.ensure_future(_read_all(session, url, body))
            await fake.until(lambda: fake.open_streams == 1)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        await fake.until(lambda: fake.disconnects == 1, within=1)
        assert (fake.open_streams, fake.connections) == (0, 1)


_USER = {"role": "user", "content": "Hello"}


async def _read_all(session: aiohttp.ClientSession, url: str, body: Any) -> bytes:
    async with session.post(url, json=body) as response:
        return await response.read()


async def test_stopping_is_no_disconnect_and_ends_what_hangs(send: Any) -> None:
    async with FakeProvider("openai", behaviour="hang") as fake:
        call = asyncio.ensure_future(send(fake))
        await fake.until(lambda: len(fake.requests) == 1)
    assert isinstance((await call).error, aiohttp.ClientError)
    assert fake.disconnects == 0


async def test_a_stopped_fake_comes_back_at_the_same_address(send: Any) -> None:
    fake = FakeProvider("openai")
    for _ in range(2):
        async with fake:
            assert (await send(fake)).status == 200
        assert isinstance((await send(fake)).error, aiohttp.ClientError)
    assert len(fake.requests) == 2


async def test_connections_are_counted(send: Any) -> None:
    async with FakeProvider("openai") as fake:
        for _ in range(3):
            await send(fake)
        assert (fake.connections, fake.disconnects, fake.open_streams) == (1, 0, 0)


@pytest.mark.parametrize(
    ("dialect", "header", "error"),
    [
        ("openai", {"Authorization": "Bearer k"}, ("error", "code", "invalid_api_key")),
        ("databricks", {"Authorization": "Bearer k"}, ("error_code", "UNAUTHENTICATED")),
        ("azure", {"api-key": "k"}, ("status", 401)),
        ("azure", {"Authorization": "Bearer k"}, ("error", "Unauthorized")),
    ],
)
async def test_keys(dialect: str, header: dict[str, str], error: tuple[Any, ...], send: Any) -> None:
    async with FakeProvider(dialect, api_key="k") as fake:
        assert (await send(fake, headers=header)).status == 200
        for wrong in ({}, {name: value + "x" for name, value in header.items()}):
            heard = await send(fake, headers=wrong)
            found = heard.body
            for step in error[:-1]:
                found = found[step]
            assert (heard.status, found) == (401, error[-1])


async def test_two_azure_keys_must_agree_and_mindie_has_none(send: Any) -> None:
    async with FakeProvider("azure", api_key="k") as fake:
        assert (await send(fake, headers={"api-key": "k", "Authorization": "Bearer k"})).status == 200
        assert (await send(fake, headers={"api-key": "k", "Authorization": "Bearer x"})).status == 401
    async with FakeProvider("mindie", api_key="k") as fake:
        assert (await send(fake)).status == 200


async def test_tls() -> None:
    authority = trustme.CA()
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(served)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with FakeProvider("mindie", tls=served) as fake, aiohttp.ClientSession() as session:
        assert fake.base_url.startswith("https://")
        async with session.get(f"{fake.base_url}/v1/models", ssl=trusting) as response:
            assert (await response.json())["data"][0]["owned_by"] == "MindIE Server"
