"""Embeddings over litellm, from a fake of Voyage's API."""

from __future__ import annotations

import base64
import json
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp
import pytest
from aiohttp import web

from dragoman.contract.json_types import JsonValue

from .conftest import Proxy, StartProxy


class StartVoyage(Protocol):
    """Starts a proxy whose model is one of Voyage; the arguments are settings of the provider."""

    async def __call__(self, base_url: str | None = None, **provider: JsonValue) -> Proxy: ...


@dataclass
class Voyage:
    """Answers with vectors, or with `failure`: a status, a body and headers."""

    failure: tuple[int, JsonValue, dict[str, str]] | None = None
    requests: list[JsonValue] = field(default_factory=list)
    url: str = ""

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        assert (request.path, request.headers["Authorization"][:7]) == ("/v1/embeddings", "Bearer ")
        body = await request.json()
        self.requests.append(body)
        if self.failure is not None:
            status, said, headers = self.failure
            return web.json_response(said, status=status, headers=headers)
        vectors = [[float(len(text)), 0.5] for text in body["input"]]
        data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
        return web.json_response({"object": "list", "data": data, "model": "v", "usage": {"total_tokens": 4}})


@pytest.fixture
async def voyage() -> AsyncIterator[Voyage]:
    fake = Voyage()
    runner = web.ServerRunner(web.Server(fake), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield fake
    await runner.cleanup()


@pytest.fixture
def serve(proxy: StartProxy, voyage: Voyage) -> StartVoyage:
    async def start(base_url: str | None = None, **provider: JsonValue) -> Proxy:
        given = {"vendor": "voyage", "protocols": ["embeddings"], "limits": {"inputs": 2}, **provider}
        return await proxy({"model": "voyage-3"}, provider={**given, "base_url": base_url or voyage.url})

    return start


async def ask(proxy: Proxy, **body: JsonValue) -> tuple[int, JsonValue]:
    url = f"{proxy.url}/embeddings"
    async with aiohttp.ClientSession() as session, session.post(url, json={"model": "m", **body}) as reply:
        return reply.status, await reply.json()


async def test_vectors_come_in_order_and_in_the_form_asked_for(serve: StartVoyage, voyage: Voyage) -> None:
    status, body = await ask(await serve(), input=["a", "bb", "ccc"], encoding_format="base64")
    assert status == 200, json.dumps(body)
    first = [struct.unpack("<2f", base64.b64decode(item["embedding"]))[0] for item in body["data"]]
    assert first == [1.0, 2.0, 3.0]
    assert len(voyage.requests) == 2, "two inputs for each call"
    assert {"model": "voyage-3", "input": ["a", "bb"]} in voyage.requests


async def test_errors_keep_their_status(serve: StartVoyage, voyage: Voyage) -> None:
    voyage.failure = (429, {"detail": "slow down"}, {"retry-after": "9"})
    status, body = await ask(await serve(), input="a")
    assert (status, body["error"]["message"]) == (429, "slow down")
    assert len(voyage.requests) == 1


async def test_a_provider_that_does_not_listen_is_unreachable(serve: StartVoyage) -> None:
    with socket.socket() as unserved:
        unserved.bind(("127.0.0.1", 0))  # taken, and not listened on
        status, body = await ask(await serve(f"http://127.0.0.1:{unserved.getsockname()[1]}/v1"), input="a")
    assert (status, body["error"]["code"]) == (502, "upstream_unreachable")
    assert body["error"]["message"] == "any: cannot connect"


async def test_a_provider_that_does_not_answer_is_late(serve: StartVoyage) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        status, body = await ask(await serve(address, timeouts={"total": 0.5}), input="a")
    assert (status, body["error"]["code"]) == (504, "upstream_timeout")
