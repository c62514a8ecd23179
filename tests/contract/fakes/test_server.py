"""The server of a fake: recorded requests, the selection of a behaviour, keys, and disconnects."""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
import pytest
import trustme

from dragoman.contract.fakes import FakeProvider, InvalidBehaviourError
from dragoman.contract.json_types import JsonObject
from tests.dialects import DIALECTS

from .client import ChatClient


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_fake_records_requests(dialect: str, client: ChatClient) -> None:
    async with FakeProvider(dialect) as fake:
        await client.send(fake, "first", headers={"X-Trace": "t1"})
        await client.send(fake, "second")
        first, second = fake.requests
        assert (first.number, second.number, first.method) == (1, 2, "POST")
        assert first.headers["x-trace"] == "t1"
        assert first.body["messages"][0]["content"] == "first" and b'"second"' in second.raw
        assert fake.base_url.startswith("http://127.0.0.1:") and fake.base_url.endswith("/v1") == (dialect == "openai")


async def test_fake_keeps_the_latest_requests(client: ChatClient) -> None:
    async with FakeProvider("openai", most_requests=2) as fake:
        for text in ("first", "second", "third"):
            await client.send(fake, text)
        assert [received.number for received in fake.requests] == [2, 3]


async def test_fake_records_path_query_and_body(session: aiohttp.ClientSession) -> None:
    async with FakeProvider("azure") as fake:
        async with session.post(f"{fake.base_url}/nowhere?a=1", data=b"\xff") as response:
            assert response.status == 404
        received = fake.requests[0]
        assert (received.path, received.query, received.body, received.raw) == ("/nowhere", {"a": "1"}, None, b"\xff")


async def test_script_precedes_directive_model_and_default(client: ChatClient) -> None:
    async with FakeProvider("openai", behaviour="length") as fake:
        assert (await client.send(fake)).body["choices"][0]["finish_reason"] == "length"
        assert (await client.send(fake, model="fake-content_filter")).body["choices"][0][
            "finish_reason"
        ] == "content_filter"
        reply = await client.send(fake, "please fake:status-503(message=down) now", model="fake-content-filter")
        assert (reply.status, reply.body["error"]["message"]) == (503, "down")
        fake.script("status-500", "text")
        assert (await client.send(fake, "fake:length")).status == 500
        assert (await client.send(fake, "fake:length")).body["choices"][0]["finish_reason"] == "stop"
        fake.behaviour = "unknown-finish"
        assert (await client.send(fake)).body["choices"][0]["finish_reason"] == "tired"


async def test_directive_is_read_from_the_last_user_message(client: ChatClient) -> None:
    talk = [
        {"role": "user", "content": "fake:status-500"},
        {"role": "assistant", "content": "fake:status-501"},
        {"role": "user", "content": [{"type": "text", "text": "fake:length"}]},
    ]
    async with FakeProvider("openai") as fake:
        assert (await client.send(fake, messages=talk)).body["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("directive", "message"),
    [
        ("fake:lenght", "length"),
        ("fake:mindie-422", "belongs to mindie"),
        ("fake:slow(delay=soon)", "delay must be a number"),
        ("fake:slow(speed=1)", "no argument 'speed'; it takes: delay, words"),
        ("fake:slow(1)", "name=value"),
    ],
)
async def test_invalid_directive_gets_a_message(directive: str, message: str, client: ChatClient) -> None:
    async with FakeProvider("openai") as fake:
        reply = await client.send(fake, directive)
        assert reply.status == 400 and message in reply.body["error"]["message"]


async def test_invalid_name_raises_an_error() -> None:
    with pytest.raises(InvalidBehaviourError, match="no behaviour 'txet'"):
        FakeProvider("openai", behaviour="txet")
    with pytest.raises(ValueError, match="no fake for klingon/actual"):
        FakeProvider("klingon")
    fake = FakeProvider("openai")
    with pytest.raises(InvalidBehaviourError, match="belongs to azure"):
        fake.script("text", "azure-generic")
    assert (await _first_behaviour(fake)) == "as-asked"


async def _first_behaviour(fake: FakeProvider) -> str:
    async with fake, aiohttp.ClientSession() as session, session.get(f"{fake.origin}/_fake/state") as response:
        return str((await response.json())["behaviour"])


async def test_fake_is_controlled_over_http(session: aiohttp.ClientSession, client: ChatClient) -> None:
    async with FakeProvider("mindie") as fake:
        await client.send(fake, "one")
        async with session.get(f"{fake.origin}/_fake/requests") as response:
            requests = await response.json()
        assert [(one["number"], one["path"], one["body"]["model"]) for one in requests] == [
            (1, "/v1/chat/completions", "llama")
        ]
        async with session.delete(f"{fake.origin}/_fake/requests") as response:
            assert response.status == 204 and fake.requests == []
        async with session.put(f"{fake.origin}/_fake/script", json=["status-503", "length"]) as response:
            assert response.status == 204
        assert [(await client.send(fake)).status for _ in range(2)] == [503, 200]
        for wrong in ({"json": ["nothing"]}, {"data": b"{"}, {"json": 7}):
            async with session.put(f"{fake.origin}/_fake/script", **wrong) as response:
                assert response.status == 400 and "error" in await response.json()
        async with session.get(f"{fake.origin}/_fake/nothing") as response:
            assert response.status == 404


@pytest.mark.parametrize("behaviour", ["slow(delay=0.01,words=1000)", "stall", "hang"])
async def test_fake_notices_that_a_client_left(behaviour: str) -> None:
    async with FakeProvider("openai", behaviour=behaviour) as fake:
        url, body = f"{fake.base_url}/chat/completions", {"model": "m", "messages": [_USER_MESSAGE], "stream": True}
        async with aiohttp.ClientSession() as session:
            reading = asyncio.ensure_future(_read_all(session, url, body))
            await fake.until(lambda: fake.open_streams == 1)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        await fake.until(lambda: fake.disconnects == 1)
        assert (fake.open_streams, fake.connections) == (0, 1)


_USER_MESSAGE = {"role": "user", "content": "Hello"}


async def _read_all(session: aiohttp.ClientSession, url: str, body: JsonObject) -> bytes:
    async with session.post(url, json=body) as response:
        return await response.read()


async def test_stop_ends_hanging_replies_and_counts_no_disconnect(client: ChatClient) -> None:
    async with FakeProvider("openai", behaviour="hang") as fake:
        sending = asyncio.ensure_future(client.send(fake))
        await fake.until(lambda: len(fake.requests) == 1)
    assert isinstance((await sending).error, aiohttp.ClientError)
    assert fake.disconnects == 0


async def test_stopped_fake_restarts_on_the_same_port(client: ChatClient) -> None:
    fake = FakeProvider("openai")
    for _ in range(2):
        async with fake:
            assert (await client.send(fake)).status == 200
        assert isinstance((await client.send(fake)).error, aiohttp.ClientError)
    assert len(fake.requests) == 2


async def test_fake_counts_connections(client: ChatClient) -> None:
    async with FakeProvider("openai") as fake:
        for _ in range(3):
            await client.send(fake)
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
async def test_wrong_key_gets_the_dialects_401(
    dialect: str, header: dict[str, str], error: tuple[str | int, ...], client: ChatClient
) -> None:
    async with FakeProvider(dialect, api_key="k") as fake:
        assert (await client.send(fake, headers=header)).status == 200
        for wrong in ({}, {name: value + "x" for name, value in header.items()}):
            reply = await client.send(fake, headers=wrong)
            found = reply.body
            for step in error[:-1]:
                found = found[step]
            assert (reply.status, found) == (401, error[-1])


async def test_azure_checks_both_keys_and_mindie_none(client: ChatClient) -> None:
    async with FakeProvider("azure", api_key="k") as fake:
        assert (await client.send(fake, headers={"api-key": "k", "Authorization": "Bearer k"})).status == 200
        assert (await client.send(fake, headers={"api-key": "k", "Authorization": "Bearer x"})).status == 401
    async with FakeProvider("mindie", api_key="k") as fake:
        assert (await client.send(fake)).status == 200


async def test_fake_serves_tls() -> None:
    authority = trustme.CA()
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(served)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with FakeProvider("mindie", tls=served) as fake, aiohttp.ClientSession() as session:
        assert fake.base_url.startswith("https://")
        async with session.get(f"{fake.base_url}/v1/models", ssl=trusting) as response:
            assert (await response.json())["data"][0]["owned_by"] == "MindIE Server"
