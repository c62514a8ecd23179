from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.adapters.faults import Fault
from dragoman.proxy.http.deadline import PHASES, Clock


async def _run(use: Callable[[Clock], Any]) -> Any:
    """What comes out of a task with a clock: a fault's code, or the exception's or result's own."""
    clock = Clock()
    try:
        return await use(clock)
    except asyncio.CancelledError as stop:
        verdict = clock.verdict(stop)
        return verdict.code if isinstance(verdict, Fault) else verdict
    finally:
        clock.stop()


@pytest.mark.parametrize("phase", PHASES)
async def test_a_phase_that_lasts_too_long(phase: str) -> None:
    async def use(clock: Clock) -> None:
        clock.enter(phase, 0.02)
        await asyncio.sleep(1)

    assert await asyncio.create_task(_run(use)) == PHASES[phase].code


async def test_phases_that_follow_each_other_in_time() -> None:
    async def use(clock: Clock) -> str:
        for _ in range(5):
            clock.enter("inter_token", 0.05)
            await asyncio.sleep(0.02)
        return "done"

    assert await asyncio.create_task(_run(use)) == "done"


async def test_a_nearer_deadline_takes_over() -> None:
    async def use(clock: Clock) -> None:
        clock.enter("answer", 5)
        clock.enter("write", 0.02)
        await asyncio.sleep(1)

    assert await asyncio.create_task(_run(use)) == "client_write_stall"


async def test_the_total_ends_every_phase() -> None:
    async def use(clock: Clock) -> None:
        clock.limit(0.05)
        while True:
            clock.enter("inter_token", 0.04)
            await asyncio.sleep(0.01)

    assert await asyncio.create_task(_run(use)) == "upstream_timeout"


async def test_tries_share_the_longest_of_their_totals() -> None:
    async def use(clock: Clock) -> None:
        assert clock.limit(0.2)
        await asyncio.sleep(0.1)
        assert clock.limit(60)  # a patient provider after a hasty one
        assert clock.limit(0.05)  # its own time counts from here
        clock.enter("answer", 60)
        await asyncio.sleep(5)

    assert await asyncio.wait_for(asyncio.create_task(_run(use)), 2) == "upstream_timeout"


async def test_no_try_begins_after_the_total() -> None:
    async def use(clock: Clock) -> None:
        assert clock.limit(0.01)
        await asyncio.sleep(0.02)
        assert not clock.limit(0.01)
        clock.enter("answer", 60)
        await asyncio.sleep(5)

    assert await asyncio.wait_for(asyncio.create_task(_run(use)), 2) == "upstream_timeout"


async def test_a_client_that_leaves_is_no_fault() -> None:
    async def use(clock: Clock) -> None:
        clock.enter("answer", 5)
        await asyncio.sleep(1)

    task = asyncio.create_task(_run(use))
    await asyncio.sleep(0.01)
    task.cancel()
    assert isinstance(await task, asyncio.CancelledError)


async def test_a_client_that_leaves_counts_more_than_a_deadline() -> None:
    async def use(clock: Clock) -> None:
        clock.interrupt(Fault("overloaded", "stop"))
        await asyncio.sleep(1)

    task = asyncio.create_task(_run(use))
    asyncio.get_running_loop().call_soon(task.cancel)
    await asyncio.sleep(0)
    assert isinstance(await task, asyncio.CancelledError)


async def test_the_first_interruption_counts() -> None:
    async def use(clock: Clock) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(clock.interrupt, Fault("overloaded", "first", code="first"))
        loop.call_soon(clock.interrupt, Fault("overloaded", "second", code="second"))
        await asyncio.sleep(1)

    assert await asyncio.create_task(_run(use)) == "first"


async def test_after_a_verdict_the_task_goes_on() -> None:
    async def use() -> str:
        clock = Clock()
        for _ in range(2):
            clock.enter("answer", 0.01)
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError as stop:
                assert isinstance(clock.verdict(stop), Fault)
        clock.stop()
        await asyncio.sleep(0.03)
        return "done"

    assert await asyncio.create_task(use()) == "done"


async def test_a_helping_task_leaves_the_verdict_to_the_exchange() -> None:
    told: list[BaseException] = []

    async def use(clock: Clock) -> None:
        async def help_out() -> None:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError as stop:
                told.append(clock.verdict(stop))
                raise

        clock.enter("answer", 0.02)
        helper = asyncio.create_task(help_out())
        try:
            await asyncio.wait([helper])
        finally:
            helper.cancel()
            await asyncio.gather(helper, return_exceptions=True)

    assert await asyncio.create_task(_run(use)) == PHASES["answer"].code
    assert [type(one) for one in told] == [asyncio.CancelledError]
