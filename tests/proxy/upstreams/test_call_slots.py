"""The places for calls to a provider: a bounded number at one time, and a bounded queue for them."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.adapters.faults import Fault
from dragoman.proxy.upstreams.call_slots import BUSY, CallSlots


async def test_a_place_goes_to_the_one_that_has_waited_longest() -> None:
    slots, served = CallSlots("p", 1, 2), []
    assert slots.take()
    assert not slots.take()

    async def use(name: str) -> None:
        await slots.wait()
        served.append(name)

    tasks = [asyncio.create_task(use(name)) for name in ("first", "second")]
    await asyncio.sleep(0)
    assert (slots.in_use, slots.waiting) == (1, 2)
    for task in tasks:
        slots.release()
        await task
    assert served == ["first", "second"]
    slots.release()
    assert (slots.in_use, slots.waiting) == (0, 0)


async def test_whoever_comes_late_does_not_overtake() -> None:
    slots = CallSlots("p", 1, 5)
    slots.take()
    waiter = asyncio.create_task(slots.wait())
    await asyncio.sleep(0)
    slots.release()
    assert not slots.take()  # the place belongs to the waiter, which has not run yet
    await waiter


async def test_a_full_queue_is_a_fault_that_says_so() -> None:
    slots = CallSlots("lake", 1, 0)
    slots.take()
    with pytest.raises(Fault, match="lake: 1 calls are running, and 0 are waiting") as caught:
        await slots.wait()
    assert (caught.value.code, caught.value.status, caught.value.retry_after) == (BUSY, 503, 1.0)


async def test_no_place_is_lost_if_a_waiter_leaves() -> None:
    slots = CallSlots("p", 1, 5)
    slots.take()
    early, late = (asyncio.create_task(slots.wait()) for _ in range(2))
    await asyncio.sleep(0)
    early.cancel()
    await asyncio.sleep(0)
    slots.release()  # to the second one,
    late.cancel()  # which leaves at the same moment
    await asyncio.wait([early, late])
    assert (slots.in_use, slots.waiting) == (0, 0)
    assert slots.take()
