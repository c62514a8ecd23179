"""Asking once for what several cases ask alike.

Requests are alike where method, address, headers and body are, byte for byte. What one case was answered serves the
others too, unless the answer may be another in a moment (429, 5xx, a key that is refused, a connection that broke). A
case that sends a request twice wants two answers and gets them; so does one that is tried again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from .model import Case
from .target import Target, written
from .values import Missing
from .wire import Answer, Asked, Transport

__all__ = ["Cost", "Key", "Shared", "fresh", "key_of"]

Key: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...], bytes]

_FLEETING = (401, 403, 408, 429)


class Shared:
    """The answers so far. `requests` counts what was really sent."""

    def __init__(self, transport: Transport) -> None:
        self.requests = 0
        self._transport = transport
        self._answers: dict[Key, asyncio.Future[Answer]] = {}

    @property
    def known(self) -> Collection[Key]:
        return self._answers.keys()

    async def send(self, asked: Asked) -> Answer:
        """An answer that is nobody else's. Raises Unreachable."""
        self.requests += 1
        return await self._transport.send(asked)

    async def get(self, asked: Asked) -> Answer:
        """The answer that another case got, or is about to get, where there is one. Raises Unreachable."""
        key = key_of(asked)
        if (pending := self._answers.get(key)) is not None:
            await asyncio.wait([pending])
            if _lasting(pending):
                return pending.result()
        self._answers[key] = mine = asyncio.ensure_future(self.send(asked))
        try:
            return await mine
        finally:
            if not _lasting(mine) and self._answers.get(key) is mine:
                del self._answers[key]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a case sends, and the most tokens that the model writes for it."""

    case: Case
    requests: int
    tokens: int


def _lasting(pending: asyncio.Future[Answer]) -> bool:
    if not pending.done() or pending.cancelled() or pending.exception() is not None:
        return False
    answer = pending.result()
    return answer.status < 500 and answer.status not in _FLEETING and answer.broken is None


def key_of(asked: Asked) -> Key:
    return asked.method, asked.url, tuple(sorted(asked.headers.items())), asked.body


def fresh(case: Case, target: Target, known: Collection[Key | None]) -> list[Key | None]:
    """The requests of the case that are not among the known ones; None is one that needs an earlier reply."""
    mine: list[Key] = []
    found: list[Key | None] = []
    for step in case.steps:
        try:
            key = key_of(written(step, case, target, {})[0])
        except Missing:
            found.append(None)
            continue
        if key in mine or key not in known:
            found.append(key)
        mine.append(key)
    return found
