"""Clients that vanish: every upstream request ends, and nothing of them is left in the proxy."""

from __future__ import annotations

import asyncio
import random

import pytest

from .conftest import Pair
from .vanishing import Leftovers, draw_vanishing, find_leftovers, vanish


async def wait_until_nothing_is_left(pair: Pair, before: Leftovers) -> Leftovers:
    """Wait for the state before; the last state after ten seconds."""
    for _ in range(1000):
        left = find_leftovers(pair.proxy, pair.fake)
        if left == before:
            break
        await asyncio.sleep(0.01)
    return left


@pytest.mark.parametrize("count", [300])
async def test_nothing_is_left_of_clients_that_vanish(pair: Pair, count: int) -> None:
    before = find_leftovers(pair.proxy, pair.fake)
    chance = random.Random(count)
    plans = [draw_vanishing(chance) for _ in range(count)]
    for start in range(0, count, 50):
        await asyncio.gather(*(vanish(pair.proxy.port, plan) for plan in plans[start : start + 50]))
    assert await wait_until_nothing_is_left(pair, before) == before
    assert pair.tracebacks == []
    asked = len(pair.fake.requests)
    assert asked >= count / 4
    assert pair.fake.disconnects >= count / 20, "some vanished while the upstream answered"


async def test_the_proxy_serves_others_meanwhile(pair: Pair) -> None:
    chance = random.Random(1)
    gone = asyncio.gather(*(vanish(pair.proxy.port, draw_vanishing(chance)) for _ in range(50)))
    for _ in range(10):
        assert await pair.ask("fake:text") == 200
    await gone
