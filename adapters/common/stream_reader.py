"""What the readers of all protocols' streams have in common: how a stream fails."""

from __future__ import annotations

from typing import Any, ClassVar

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import read_error_object, read_stray_text
from dragoman.adapters.streams import Output, Run
from dragoman.adapters.validation import judge

from .reply_rules import Reading

__all__ = ["FailingReader"]


class FailingReader:
    """A reader's state, and the handlers of what is no part of an answer. Each ends the stream with a fault."""

    wrong_event: ClassVar[str]
    """What an event that cannot be read is, for a message."""
    truncated: ClassVar[str]
    """What has not come where a stream ends too early."""

    def __init__(self, reading: Reading, ctx: Context, events: str) -> None:
        """`events` names the schema of the provider's own events."""
        self.state: str = "empty"
        self._ctx = ctx
        self._reading = reading
        self._native = judge(events, ctx.profile)
        self._mends = ctx.target.policy.replies in ("repair", "strict")
        self._judges_natively = ctx.target.policy.replies in ("report", "strict")

    @property
    def ended(self) -> bool:
        return self.state == "ended"

    def run(self, data: bytes, at: int) -> Run | None:
        return None

    def _text(self, text: bytes, raw: bytes | None) -> list[Output]:
        return self._end(read_stray_text(text))

    def _error(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        return self._end(read_error_object(body, 200, self._reading.words))

    def _broken(self, text: bytes, raw: bytes | None) -> list[Output]:
        shown = text[:200].decode("utf-8", "replace")
        message = f"the provider sent {self.wrong_event}: {shown!r}"
        return self._end(Fault("upstream_invalid_response", message, code="upstream_invalid_event"))

    def _truncated(self, *_: Any) -> list[Output]:
        message = f"the provider's stream ended before {self.truncated}"
        return self._end(Fault("upstream_invalid_response", message, code="upstream_truncated"))

    def _cut(self, cut: Fault, raw: bytes | None) -> list[Output]:
        return self._end(cut)

    def _nothing(self, *_: Any) -> list[Output]:
        return []

    def _end(self, fault: Fault) -> list[Output]:
        self.state = "ended"
        fault.located(self._ctx.receipt)
        return [fault]

    def _violated(self, body: JsonObject) -> None:
        self._ctx.receipt.violations += 1
        if self._mends:
            message = next(self._native.violations(body)).message
            text = f"the provider sent an event that its dialect does not allow: {message}"
            raise Fault("upstream_invalid_response", text, code="upstream_invalid_event")
