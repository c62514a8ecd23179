"""An upstream for tests in which nothing is sent."""

from __future__ import annotations

from typing import NoReturn

__all__ = ["NoUpstream"]


class NoUpstream:
    def __init__(self, *_: object) -> None:
        pass

    async def open(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("nothing is sent from here")

    async def close(self) -> None:
        pass
