"""Replies that are read whole: those of one call, and those of a request that became several calls.

The calls of one request run at the same time, a bounded number of them. The first that fails ends the others, and its
fault is the whole's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from dragoman.adapters.call import JsonObject
from dragoman.proxy.http.deadline import Clock
from dragoman.proxy.upstreams.interface import Incoming

from .attempts import Asked, Attempt, open_upstream
from .replies import read_reply
from .unexpected import Unforeseen

__all__ = ["AT_ONCE", "whole_reply"]

AT_ONCE = 8
"""Calls of one request that are under way at the same time."""

_T = TypeVar("_T")


async def whole_reply(asked: Asked, attempt: Attempt) -> tuple[JsonObject, Incoming]:
    """The reply in hub form, and what the provider said beside it, in the first call where there were several.

    Raises Fault.
    """
    batching = attempt.batching
    if batching is None or not attempt.parts:
        return await _one(asked, attempt)
    try:
        answers = await _all([partial(_one, asked, part) for part in attempt.parts], asked.clock)
    finally:
        for part in attempt.parts:
            attempt.ctx.receipt.absorb(part.ctx.receipt)
    with Unforeseen(asked, attempt):
        hub = batching.join([reply for reply, _ in answers], attempt.ctx)
    asked.note.usage = hub.get("usage")
    return hub, answers[0][1]


async def _one(asked: Asked, attempt: Attempt) -> tuple[JsonObject, Incoming]:
    incoming = await open_upstream(asked, attempt)
    try:
        return await read_reply(asked, attempt, incoming), incoming
    finally:
        incoming.close()


async def _all(jobs: Sequence[Callable[[], Awaitable[_T]]], clock: Clock) -> list[_T]:
    """What the jobs return, in their order. Raises what the earliest raised of those that failed."""
    places = asyncio.Semaphore(AT_ONCE)

    async def run(job: Callable[[], Awaitable[_T]]) -> _T:
        async with places:
            return await job()

    tasks = [asyncio.create_task(run(job)) for job in jobs]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError as stop:
        raise clock.verdict(stop) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    return [task.result() for task in tasks]
