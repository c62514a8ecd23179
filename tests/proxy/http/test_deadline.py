"""Deadlines of an exchange, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dragoman.adapters.faults import Fault
from dragoman.proxy.http.deadline import PHASES, Deadline
from tests.virtual_time import in_virtual_time


async def _run(use: Callable[[Deadline], Awaitable[object]]) -> object:
    """The result of a task that has a deadline: its own, a fault's code, or the cancellation."""
    deadline = Deadline()
    try:
        with deadline:
            return await use(deadline)
    except Fault as fault:
        return fault.code
    except asyncio.CancelledError as cancelled:
        return cancelled
    finally:
        deadline.stop()


@pytest.mark.parametrize("phase", PHASES)
@in_virtual_time
async def test_a_phase_that_lasts_too_long(phase: str) -> None:
    async def use(deadline: Deadline) -> None:
        deadline.enter_phase(phase, 0.02)
        await asyncio.sleep(1)

    assert await asyncio.create_task(_run(use)) == PHASES[phase].code


@in_virtual_time
async def test_phases_that_follow_each_other_in_time() -> None:
    async def use(deadline: Deadline) -> str:
        for _ in range(5):
            deadline.enter_phase("inter_token", 0.05)
            await asyncio.sleep(0.02)
        return "done"

    assert await asyncio.create_task(_run(use)) == "done"


@in_virtual_time
async def test_a_nearer_deadline_takes_over() -> None:
    async def use(deadline: Deadline) -> None:
        deadline.enter_phase("answer", 5)
        deadline.enter_phase("write", 0.02)
        await asyncio.sleep(1)

    assert await asyncio.create_task(_run(use)) == "client_write_stall"


@in_virtual_time
async def test_the_total_ends_every_phase() -> None:
    async def use(deadline: Deadline) -> None:
        deadline.start_try(0.05)
        while True:
            deadline.enter_phase("inter_token", 0.04)
            await asyncio.sleep(0.01)

    assert await asyncio.create_task(_run(use)) == "upstream_timeout"


@in_virtual_time
async def test_tries_share_the_longest_of_their_totals() -> None:
    async def use(deadline: Deadline) -> None:
        assert deadline.start_try(0.2)
        await asyncio.sleep(0.1)
        assert deadline.start_try(60)  # a patient provider after a hasty one
        assert deadline.start_try(0.05)  # its own time counts from here
        deadline.enter_phase("answer", 60)
        await asyncio.sleep(5)

    assert await asyncio.wait_for(asyncio.create_task(_run(use)), 2) == "upstream_timeout"


@in_virtual_time
async def test_no_try_begins_after_the_total() -> None:
    async def use(deadline: Deadline) -> None:
        assert deadline.start_try(0.01)
        await asyncio.sleep(0.02)
        assert not deadline.start_try(0.01)
        deadline.enter_phase("answer", 60)
        await asyncio.sleep(5)

    assert await asyncio.wait_for(asyncio.create_task(_run(use)), 2) == "upstream_timeout"


@in_virtual_time
async def test_a_client_that_leaves_is_no_fault() -> None:
    async def use(deadline: Deadline) -> None:
        deadline.enter_phase("answer", 5)
        await asyncio.sleep(1)

    task = asyncio.create_task(_run(use))
    await asyncio.sleep(0.01)
    task.cancel()
    assert isinstance(await task, asyncio.CancelledError)


@in_virtual_time
async def test_a_client_that_leaves_counts_more_than_a_deadline() -> None:
    async def use(deadline: Deadline) -> None:
        deadline.interrupt(Fault("overloaded", "stop"))
        await asyncio.sleep(1)

    task = asyncio.create_task(_run(use))
    asyncio.get_running_loop().call_soon(task.cancel)
    await asyncio.sleep(0)
    assert isinstance(await task, asyncio.CancelledError)


@in_virtual_time
async def test_the_first_interruption_counts() -> None:
    async def use(deadline: Deadline) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(deadline.interrupt, Fault("overloaded", "first", code="first"))
        loop.call_soon(deadline.interrupt, Fault("overloaded", "second", code="second"))
        await asyncio.sleep(1)

    assert await asyncio.create_task(_run(use)) == "first"


@in_virtual_time
async def test_the_task_goes_on_after_a_fault_of_its_deadline() -> None:
    async def use() -> str:
        deadline = Deadline()
        for _ in range(2):
            deadline.enter_phase("answer", 0.01)
            with pytest.raises(Fault), deadline:
                await asyncio.sleep(1)
        deadline.stop()
        await asyncio.sleep(0.03)
        return "done"

    assert await asyncio.create_task(use()) == "done"


@in_virtual_time
async def test_a_helping_task_leaves_the_decision_to_the_task_of_the_exchange() -> None:
    raised: list[BaseException] = []

    async def use(deadline: Deadline) -> None:
        async def help_out() -> None:
            try:
                with deadline:
                    await asyncio.sleep(1)
            except BaseException as error:
                raised.append(error)
                raise

        deadline.enter_phase("answer", 0.02)
        helper = asyncio.create_task(help_out())
        try:
            await asyncio.wait([helper])
        finally:
            helper.cancel()
            await asyncio.gather(helper, return_exceptions=True)

    assert await asyncio.create_task(_run(use)) == PHASES["answer"].code
    assert [type(one) for one in raised] == [asyncio.CancelledError]
