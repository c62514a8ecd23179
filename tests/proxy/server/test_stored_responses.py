"""Asking for a kept response of a store that does not answer."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.adapters import dialects as real
from dragoman.proxy.conversations import owner_store
from tests.proxy.running_proxy import Proxy, StartProxy

PARTS = [("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel")]


class _Silent:
    """A store that never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def get(self, *_: object) -> None:
        self.asked.set()
        await asyncio.Event().wait()

    delete = get

    async def close(self) -> None: ...


async def _proxy(proxy: StartProxy) -> Proxy:
    p = await proxy(speak=real, server={"drain": {"delay": 0.001, "timeout": 0.1}})
    p.running._gateway.store = _Silent()
    return p


@pytest.mark.parametrize(("method", "part"), PARTS)
async def test_it_is_not_waited_for_long(
    proxy: StartProxy, monkeypatch: pytest.MonkeyPatch, method: str, part: str
) -> None:
    monkeypatch.setattr(owner_store, "STORE_TIMEOUT", 0.05)
    p = await _proxy(proxy)
    async with asyncio.timeout(5), p.session.request(method, f"{p.running.url}/v1/responses/x{part}") as response:
        told = await response.json()
    assert (response.status, told["error"]["code"]) == (500, "store_timeout")
    (line,) = await p.exchanges()
    assert (line["outcome"], line["fault"]) == ("fault", "store_timeout")


async def test_a_proxy_that_stops_waits_for_it_like_for_an_exchange(proxy: StartProxy) -> None:
    p = await _proxy(proxy)
    asking = asyncio.create_task(p.session.get(f"{p.running.url}/v1/responses/x"))
    await p.running._gateway.store.asked.wait()
    await p.running.stop()
    response = await asking
    assert (response.status, (await response.json())["error"]["code"]) == (503, "shutting_down")


async def test_a_client_that_leaves_shows_in_the_log(proxy: StartProxy) -> None:
    p = await _proxy(proxy)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await p.session.get(f"{p.running.url}/v1/responses/x")
    (line,) = await p.exchanges()
    assert line["outcome"] == "client_left"
    assert not p.running._gateway.running
