"""The rules of a dialect's replies: data for the readers of replies and streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dragoman.adapters.call import Context, JsonObject, Reply
from dragoman.adapters.faults import Fault
from dragoman.adapters.native_errors import Words, read_fault

__all__ = ["CHAT_FINISH_REASONS", "FinishRule", "ReplyRules"]

FinishRule: TypeAlias = str | Callable[[JsonObject, JsonObject, Context], str]

CHAT_FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})


@dataclass(frozen=True)
class ReplyRules:
    """How to read a dialect's replies.

    `words` are the dialect's error codes, for error objects sent instead of a reply. `finish` maps its finish reasons
    to the hub's; a rule may be a function of (body, choice, ctx), which may raise Fault. `known` are the hub's own
    finish reasons. `empty_arguments_come_first`: a tool call's first delta may carry `{}` before the real arguments.
    `to_hub_forms` converts an event of Responses in place, or `{"response": ...}` for a whole response, if the
    dialect's forms differ from the hub's; it returns True if it changed anything.
    """

    dialect: str
    words: Words = field(default_factory=dict)
    finish: Mapping[str, FinishRule] = field(default_factory=dict)
    known: frozenset[str] = CHAT_FINISH_REASONS
    empty_arguments_come_first: bool = False
    to_hub_forms: Callable[[JsonObject], bool] | None = None

    def finish_reason(self, body: JsonObject, choice: JsonObject, ctx: Context) -> str:
        """The hub's finish reason for the choice's; an unknown one becomes `stop`.

        Raises Fault if the dialect's rule says that the finish reason reports a failure.
        """
        native = str(choice["finish_reason"])
        rule = self.finish.get(native)
        if callable(rule):
            return rule(body, choice, ctx)
        return rule or (native if native in self.known else "stop")

    def read_fault(self, reply: Reply, ctx: Context) -> Fault:
        """Read an error reply of the provider, in any of its forms."""
        return read_fault(reply, ctx, self.words)
