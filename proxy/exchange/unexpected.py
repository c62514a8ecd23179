"""What nobody foresaw in what an upstream sent.

An exception in there is a defect of ours, and is logged as one. But this reply brought it out, and another target's may
not: so it becomes a fault of the upstream, after which the next target is asked.
"""

from __future__ import annotations

import traceback
from types import TracebackType

from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import TooLong

from .attempts import Asked, Attempt

__all__ = ["Unforeseen"]


class Unforeseen:
    """To be put around all that is made of an upstream's bytes. It may be entered again and again; where that happens
    for every event of a stream, `except Exception` and `fault` cost less.

    Raises Fault. The log is told where it happened, never the exception's text: that may quote the reply.
    """

    __slots__ = ("_asked", "_provider")

    def __init__(self, asked: Asked, attempt: Attempt) -> None:
        self._asked = asked
        self._provider = attempt.candidate.provider.name

    def fault(self, error: Exception) -> Exception:
        """What to raise for it: the same, where somebody did foresee it."""
        if isinstance(error, Fault | TooLong):
            return error
        where = "".join(traceback.format_tb(error.__traceback__))
        identity = self._asked.note.request_id
        self._asked.log.error(
            "defect", request_id=identity, provider=self._provider, error=type(error).__name__, traceback=where
        )
        text = f"{self._provider}: its reply cannot be read"
        return Fault("upstream_invalid_response", text, code="upstream_invalid_response")

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and (raised := self.fault(error)) is not error:
            raise raised from None
