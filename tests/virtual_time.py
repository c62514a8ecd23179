"""Time that passes only while an event loop would wait: seconds take no time, and a busy machine delays nothing."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

__all__ = ["in_virtual_time"]

Arguments = ParamSpec("Arguments")


class _JumpingSelector(selectors.SelectSelector):
    """Returns at once, and counts the seconds that it was to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(timeout and 0.0)


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def in_virtual_time(test: Callable[Arguments, Coroutine[Any, Any, None]]) -> Callable[Arguments, None]:
    """Run a test in virtual time. It may await nothing that comes from outside of its event loop."""

    @wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
