"""Decides whether a provider's answer is complete: whole replies and streams, for every protocol.

No other module decides it. Theory of operation. An answer is complete if it states how it ended:

    protocol            says it with                               in a whole reply        in a stream
    ------------------  -----------------------------------------  ----------------------  ---------------------------
    chat, completions   a finish reason on every choice            `check_finish_reason`   `ChoiceCompleteness`
    responses           a status that is no longer under way       `check_status`          `ResponseCompleteness`: one
                                                                                           of the four terminal events
    messages            a stop reason                              `check_stop_reason`     `MessageCompleteness`

One exception: a whole chat reply is complete if its only choice has an answer and an empty finish reason, and it
has token counts. Such servers never say how an answer ended: `infer_finish_reason` names the ending, which the receipt
has as a loss. A stream is no such case: gateways add token counts and `[DONE]` to streams that were cut.

If the answer is translated into a protocol with one choice (`Context.needs_first_choice`), it must also have choice 0.
Nothing else proves completeness: `[DONE]` or a clean end of the bytes may follow half an answer, and may be missing
after a whole one. A stream reader reports each sign of an end, and `conclude` returns the stream's terminal:

    sign                                                           complete     incomplete
    -------------------------------------------------------------  -----------  -----------------------------
    `[DONE]`, or the bytes end cleanly                             End          `upstream_truncated`
    the bytes do not end cleanly: `cut` is the fault               End          that fault
    the bytes end inside an event that cannot be read (`torn`)     that fault, or `upstream_truncated`

A reader returns the terminal once, as its last output. Translators and writers pass it on: they never turn an End into
a Fault or a Fault into an End. If dragoman cuts the choices of a stream at stop strings, the stream ends before the
provider's: `end_cut_stream`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, End, Output

from .finish_words import has_finished
from .usage import normalize_usage

__all__ = [
    "ChoiceCompleteness",
    "Completeness",
    "MessageCompleteness",
    "ResponseCompleteness",
    "check_finish_reason",
    "check_first_choice",
    "check_status",
    "check_stop_reason",
    "end_cut_stream",
    "infer_finish_reason",
    "to_stream_outputs",
]

_UNDER_WAY = ("queued", "in_progress")
_ROUND = 1024  # servers' own limits on tokens are multiples of it


class Completeness(ABC):
    """Tracks whether one stream is complete."""

    __slots__ = ()

    missing: ClassVar[str]
    """What an incomplete stream lacks, for the message of its fault."""

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """True once the answer has stated how it ended."""

    def conclude(self, cut: Fault | None = None, *, torn: bool = False) -> End | Fault:
        """The terminal of a stream that has shown a sign of its end: an End, or the Fault of an incomplete stream.

        `cut` is the fault of bytes that did not end cleanly. `torn`: they ended inside an event that cannot be read.
        """
        if torn:
            return cut or _truncated("the provider's stream ended in the middle of an event")
        if not self.is_complete:
            return cut or _truncated(f"the provider's stream ended before {self.missing}")
        return End()


class ChoiceCompleteness(Completeness):
    """Completeness of a stream whose chunks have choices: every choice that has begun has a finish reason."""

    __slots__ = ("_needs_first", "_seen", "_unfinished")

    missing = "the answer was complete: no finish reason came"

    def __init__(self, ctx: Context) -> None:
        self._needs_first = ctx.needs_first_choice
        self._seen: set[int] = set()
        self._unfinished: set[int] = set()

    @property
    def is_complete(self) -> bool:
        return bool(self._seen) and not self._unfinished

    def add_choice(self, index: int) -> None:
        """Record that the stream has shown this choice."""
        if index not in self._seen:
            self._seen.add(index)
            self._unfinished.add(index)

    def finish_choice(self, index: int) -> None:
        """Record that this choice has its finish reason."""
        self._unfinished.discard(index)

    def conclude(self, cut: Fault | None = None, *, torn: bool = False) -> End | Fault:
        """The terminal, as in the base class; a Fault too if choice 0 is needed and has not come."""
        terminal = super().conclude(cut, torn=torn)
        if isinstance(terminal, End) and self._needs_first and 0 not in self._seen:
            return _no_first_choice()
        return terminal


class ResponseCompleteness(Completeness):
    """Completeness of a Responses stream: one of the four terminal events has come."""

    __slots__ = ("_has_terminal",)

    missing = "the response was complete: no terminal event came"

    def __init__(self) -> None:
        self._has_terminal = False

    @property
    def is_complete(self) -> bool:
        return self._has_terminal

    def finish(self) -> None:
        """Record that one of the four terminal events has come."""
        self._has_terminal = True


class MessageCompleteness(Completeness):
    """Completeness of a Messages stream: a stop reason has come. `message_stop` proves nothing without one."""

    __slots__ = ("_has_reason",)

    missing = "the message was complete: no stop reason came"

    def __init__(self) -> None:
        self._has_reason = False

    @property
    def is_complete(self) -> bool:
        return self._has_reason

    def finish(self) -> None:
        """Record that a stop reason has come."""
        self._has_reason = True


def check_finish_reason(choice: JsonObject) -> Any:
    """Return the provider's own finish reason of a choice in a whole reply. Raises Fault if there is none."""
    native = choice.get("finish_reason")
    if not has_finished(native):
        raise _truncated("the provider's answer has no finish reason: it may be incomplete")
    return native


def infer_finish_reason(body: JsonObject, request: JsonObject) -> str | None:
    """The finish reason of a whole chat reply whose only choice has an empty one; None if the reply is not such a one.

    `length` if the answer has as many tokens as the request allows, or as a server's own limit may. Snowflake's Cortex
    answers in this way for every model but OpenAI's.
    """
    choices, usage = body["choices"], normalize_usage(body.get("usage"))
    if len(choices) != 1 or choices[0].get("finish_reason") != "" or not usage or not usage["completion_tokens"]:
        return None
    message = choices[0].get("message")
    if not isinstance(message, dict) or not (message.get("content") or message.get("tool_calls")):
        return None
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    count: int = usage["completion_tokens"]
    is_cut = count >= limit if isinstance(limit, int) else count % _ROUND == 0
    return "length" if is_cut else "stop"


def check_first_choice(choices: list[JsonObject], ctx: Context) -> None:
    """Check that choice 0 is there if the client's protocol has only one choice. Raises Fault if it is missing."""
    if ctx.needs_first_choice and all(choice["index"] != 0 for choice in choices):
        raise _no_first_choice()


def check_status(response: JsonObject) -> None:
    """Check that a whole response has ended. Raises Fault if its status is `queued` or `in_progress`.

    dragoman never requests background responses, so such a response was cut short.
    """
    status = response.get("status")
    if status in _UNDER_WAY and not response.get("error"):
        raise _truncated(f"the provider's answer is still {status}: it may be incomplete")


def check_stop_reason(message: JsonObject) -> None:
    """Check that a whole message has a stop reason. Raises Fault if it has none."""
    if not has_finished(message.get("stop_reason")):
        raise _truncated("the provider's answer has no stop reason: it may be incomplete")


def end_cut_stream(usage: JsonObject | None = None) -> End:
    """The terminal of a stream that dragoman ends itself: each choice has ended, with a stop string or by itself.
    `usage` is the estimate of its counts, unless a chunk has them."""
    return End(usage)


def to_stream_outputs(chunks: list[JsonObject]) -> list[Output]:
    """The outputs of a stream made from a complete whole reply: its chunks, then an End."""
    return [*(Chunk(chunk) for chunk in chunks), End()]


def _truncated(text: str) -> Fault:
    return Fault("upstream_invalid_response", text, code="upstream_truncated")


def _no_first_choice() -> Fault:
    text = "the provider's answer has no choice with index 0"
    return Fault("upstream_invalid_response", text, code="upstream_invalid_response")
