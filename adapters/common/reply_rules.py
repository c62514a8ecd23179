"""The rules of a dialect's replies: data for the readers of replies and streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import Words, read_error_object, read_fault

from .finish_words import Failure, find_ending, has_finished

__all__ = ["CHAT_FINISH_REASONS", "FinishRule", "ReplyRules"]

FinishRule: TypeAlias = str | Callable[[JsonObject, JsonObject, Context], str]

CHAT_FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})


@dataclass(frozen=True)
class ReplyRules:
    """How to read a dialect's replies.

    `words` are the dialect's error codes, for error objects sent instead of a reply. `finish` has the finish reasons
    that mean something else than in `finish_words`; a rule may be a function of (body, choice, ctx), which may raise
    Fault. `known` are the hub's own finish reasons for the protocol. `to_hub_forms` converts an event of Responses in
    place, or `{"response": ...}` for a whole response, if the dialect's forms differ from the hub's; it returns True if
    it changed anything.
    """

    dialect: str
    words: Words = field(default_factory=dict)
    finish: Mapping[str, FinishRule] = field(default_factory=dict)
    known: frozenset[str] = CHAT_FINISH_REASONS
    to_hub_forms: Callable[[JsonObject], bool] | None = None

    def finish_reason(self, body: JsonObject, choice: JsonObject, ctx: Context) -> str | None:
        """The hub's finish reason for the choice's; None if nobody knows the word.

        A finish reason that the protocol lacks becomes `stop`. Raises Fault if it reports a failure.
        """
        native = choice["finish_reason"]
        if self.is_clear(native):
            return str(native)
        native = str(native)
        rule = self.finish.get(native)
        if callable(rule):
            return rule(body, choice, ctx)
        ending = rule or find_ending(native)
        if isinstance(ending, Failure):
            raise ending.to_fault(native)
        return ending if ending is None or ending in self.known else "stop"

    def find_failure(self, body: JsonObject, choice: JsonObject, ctx: Context) -> Fault | None:
        """The fault that a choice reports by its finish reason or its key `error`; None if it reports none."""
        error = choice.get("error")
        if error:
            return read_error_object({"error": error}, 200, self.words, ctx.clock())
        native = choice.get("finish_reason")
        if native is not None and not self.is_clear(native) and has_finished(native):
            try:
                self.finish_reason(body, choice, ctx)
            except Fault as fault:
                return fault
        return None

    def is_clear(self, native: Any) -> bool:
        """Whether this is one of the hub's own words, and has no other meaning in this dialect."""
        return type(native) is str and native in self._clear_words

    @cached_property
    def _clear_words(self) -> frozenset[str]:
        return self.known - self.finish.keys()

    def read_fault(self, reply: Reply, ctx: Context) -> Fault:
        """Read an error reply of the provider, in any of its forms."""
        return read_fault(reply, ctx, self.words)
