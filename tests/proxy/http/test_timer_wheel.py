"""Timers in groups, in virtual time: each of them is woken in time, unless it has left its group."""

from __future__ import annotations

import asyncio

from dragoman.proxy.http.deadline import Deadline
from dragoman.proxy.http.timer_wheel import find_group
from tests.virtual_time import in_virtual_time


class Clock:
    """Notes when it was woken."""

    def __init__(self) -> None:
        self.woken: list[float] = []

    def wake(self) -> None:
        self.woken.append(asyncio.get_running_loop().time())


@in_virtual_time
async def test_a_group_is_woken_before_its_time_and_not_long_before() -> None:
    loop, clock = asyncio.get_running_loop(), Clock()
    group = find_group(loop, loop.time() + 33)
    assert group is not None
    group.add(clock)
    await asyncio.sleep(40)
    assert len(clock.woken) == 1
    assert 28 <= clock.woken[0] <= 33


@in_virtual_time
async def test_who_leaves_is_not_woken_and_the_others_are() -> None:
    loop, left, stayed = asyncio.get_running_loop(), Clock(), Clock()
    group = find_group(loop, 101.0)
    assert group is not None
    assert find_group(loop, 102.0) is group
    group |= {left, stayed}
    group.discard(left)
    await asyncio.sleep(110)
    assert (left.woken, len(stayed.woken)) == ([], 1)


@in_virtual_time
async def test_a_near_time_has_no_group() -> None:
    assert find_group(asyncio.get_running_loop(), asyncio.get_running_loop().time() + 0.1) is None


@in_virtual_time
async def test_a_far_deadline_is_neither_early_nor_late() -> None:
    async def wait() -> float:
        deadline = Deadline()
        deadline.start_try(1000)
        deadline.enter_phase("answer", 62.5)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            await asyncio.sleep(500)
        except asyncio.CancelledError as error:
            assert deadline.as_fault(error).code == "upstream_timeout"
        return loop.time() - began

    found = await asyncio.gather(*(asyncio.create_task(wait()) for _ in range(3)))
    assert all(62.5 <= seconds < 62.6 for seconds in found)
