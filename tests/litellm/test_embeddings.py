"""Embeddings over litellm: its httpx is answered in place."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import httpx
import pytest
import respx

from dragoman.proxy.server.lifecycle import Running, start

from .conftest import configured


def embedded(request: httpx.Request) -> httpx.Response:
    given = json.loads(request.content)["input"]
    data = [{"object": "embedding", "index": i, "embedding": [float(len(text)), 0.5]} for i, text in enumerate(given)]
    return httpx.Response(200, json={"object": "list", "data": data, "model": "v", "usage": {"total_tokens": 4}})


@pytest.fixture
def voyage() -> Iterator[Any]:
    with respx.mock(assert_all_called=False) as router:
        router.route(host="127.0.0.1").pass_through()
        yield router.post("https://api.voyageai.com/v1/embeddings").mock(side_effect=embedded)


@pytest.fixture
async def running(voyage: Any) -> AsyncIterator[Running]:
    provider = {"vendor": "voyage", "protocols": ["embeddings"], "limits": {"inputs": 2}}
    running = await start(configured(provider, {"model": "voyage-3"}), log_level="error")
    yield running
    running.stopping_now.set()
    await running.stop()


async def ask(running: Running, **body: Any) -> tuple[int, Any]:
    url = f"{running.url}/v1/embeddings"
    async with aiohttp.ClientSession() as session, session.post(url, json={"model": "m", **body}) as reply:
        return reply.status, await reply.json()


async def test_vectors_come_in_order_and_in_the_form_asked_for(running: Running, voyage: Any) -> None:
    status, body = await ask(running, input=["a", "bb", "ccc"], encoding_format="base64")
    assert status == 200
    first = [struct.unpack("<2f", base64.b64decode(item["embedding"]))[0] for item in body["data"]]
    assert first == [1.0, 2.0, 3.0]
    assert len(voyage.calls) == 2, "two inputs for each call"
    sent = json.loads(voyage.calls[0].request.content)
    assert sent == {"model": "voyage-3", "input": ["a", "bb"]}


async def test_errors_keep_their_status(running: Running, voyage: Any) -> None:
    voyage.mock(return_value=httpx.Response(429, json={"detail": "slow down"}, headers={"retry-after": "9"}))
    status, body = await ask(running, input="a")
    assert (status, body["error"]["message"]) == (429, "slow down")
    assert len(voyage.calls) == 1


@pytest.mark.parametrize("error", [httpx.ConnectError("x"), httpx.ReadTimeout("x")])
async def test_what_breaks_is_told(running: Running, voyage: Any, error: Exception) -> None:
    voyage.mock(side_effect=error)
    status, body = await ask(running, input="a")
    expected = (504, "upstream_timeout") if isinstance(error, httpx.TimeoutException) else (502, "upstream_unreachable")
    assert (status, body["error"]["code"]) == expected
