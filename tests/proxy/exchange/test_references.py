"""An exchange is freed when it ends: garbage collection would cost more than the exchange."""

from __future__ import annotations

import gc

import pytest

from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire


@pytest.mark.parametrize("stream", [False, True])
async def test_an_exchange_leaves_no_cycles_of_references(
    stream: bool, proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    running = await proxy(await upstream(wire.stream if stream else wire.ok))
    await running.ask(stream=stream)
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            assert (await running.ask(stream=stream)).status == 200
        await running.exchanges(21)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [type(each).__name__ for each in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert [name for name in left if name in ("Exchange", "Pipeline", "Attempt", "RequestContext", "Context")] == []
