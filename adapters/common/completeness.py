"""Is a provider's answer complete? This module decides it, alone, for whole replies and for streams of every protocol.

Theory. An answer is complete once it says how it ended:

    protocol            says it with                               in a whole reply        in a stream
    ------------------  -----------------------------------------  ----------------------  ---------------------------
    chat, completions   a finish reason on every choice            `check_finish_reason`   `ChoiceCompleteness`
    responses           a status that is no longer under way       `check_status`          `ResponseCompleteness`: one
                                                                                           of the four terminal events

If the answer is translated into a protocol that has room for one choice (`Context.needs_first_choice`), choice 0 has
to be among the choices as well. Nothing else proves anything: `[DONE]` and a clean end of the bytes may follow half an
answer, and may be missing behind a whole one. A stream reader reports each sign of an end, and `conclude` answers with
the stream's terminal:

    sign                                                           complete     incomplete
    -------------------------------------------------------------  -----------  -----------------------------
    `[DONE]`, or the bytes end cleanly                             End          `upstream_truncated`
    the bytes do not end cleanly: `cut` is the fault               End          that fault
    the bytes end inside an event that cannot be read (`torn`)     that fault, or `upstream_truncated`

A reader returns that terminal, once and last. Translators and writers pass it on: they never turn an End into a Fault
or a Fault into an End.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, End, Output

__all__ = [
    "ChoiceCompleteness",
    "Completeness",
    "ResponseCompleteness",
    "check_finish_reason",
    "check_first_choice",
    "check_status",
    "to_stream_outputs",
]

_UNDER_WAY = ("queued", "in_progress")


class Completeness(ABC):
    """What one stream has shown of its end."""

    __slots__ = ()

    missing: ClassVar[str]
    """What an incomplete stream lacks, for its message."""

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """True if the answer has said how it ended."""

    def conclude(self, cut: Fault | None = None, *, torn: bool = False) -> End | Fault:
        """The terminal of a stream that has shown a sign of its end. `cut` says how the bytes ended, if not cleanly;
        `torn` that they ended inside an event that cannot be read."""
        if torn:
            return cut or _truncated("the provider's stream ended in the middle of an event")
        if not self.is_complete:
            return cut or _truncated(f"the provider's stream ended before {self.missing}")
        return End()


class ChoiceCompleteness(Completeness):
    """The stream of a protocol whose chunks have choices."""

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
        """The stream has shown this choice; it has not finished if this is the first time."""
        if index not in self._seen:
            self._seen.add(index)
            self._unfinished.add(index)

    def finish_choice(self, index: int) -> None:
        """This choice has its finish reason."""
        self._unfinished.discard(index)

    def conclude(self, cut: Fault | None = None, *, torn: bool = False) -> End | Fault:
        terminal = super().conclude(cut, torn=torn)
        if isinstance(terminal, End) and self._needs_first and 0 not in self._seen:
            return _no_first_choice()
        return terminal


class ResponseCompleteness(Completeness):
    """The stream of Responses."""

    __slots__ = ("_has_terminal",)

    missing = "the response did: no event said how it ended"

    def __init__(self) -> None:
        self._has_terminal = False

    @property
    def is_complete(self) -> bool:
        return self._has_terminal

    def finish(self) -> None:
        """The stream has shown one of the four terminal events."""
        self._has_terminal = True


def check_finish_reason(choice: JsonObject) -> Any:
    """The provider's own finish reason of a choice in a whole reply. Raises Fault if there is none."""
    native = choice.get("finish_reason")
    if not native:
        raise _truncated("the provider's answer has no finish reason: it may be incomplete")
    return native


def check_first_choice(choices: list[JsonObject], ctx: Context) -> None:
    """Raise Fault if the answer is to be translated into a protocol with one choice, and choice 0 is not in it."""
    if ctx.needs_first_choice and all(choice["index"] != 0 for choice in choices):
        raise _no_first_choice()


def check_status(response: JsonObject) -> None:
    """Raise Fault for a whole response that has not ended. dragoman asks for no response in the background, so one
    that is under way was cut short."""
    status = response.get("status")
    if status in _UNDER_WAY and not response.get("error"):
        raise _truncated(f"the provider's answer is still {status}: it may be incomplete")


def to_stream_outputs(chunks: list[JsonObject]) -> list[Output]:
    """The stream made of a whole reply, whose reader has found it complete."""
    return [*(Chunk(chunk) for chunk in chunks), End()]


def _truncated(text: str) -> Fault:
    return Fault("upstream_invalid_response", text, code="upstream_truncated")


def _no_first_choice() -> Fault:
    text = "the provider's answer has no choice with index 0"
    return Fault("upstream_invalid_response", text, code="upstream_invalid_response")
