"""What a dialect says about its replies: data for the readers of replies and streams."""

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

    `words` are its error codes, for error objects in place of a reply. `finish` maps its finish reasons to the hub's; a
    rule that is a function gets (body, choice, ctx) and may raise Fault. `known` are the hub's own.
    `to_hub_forms` alters an event of Responses, or `{"response": ...}` for a whole response, if the dialect has other
    forms than the hub; it returns True if it altered anything.
    `empty_arguments_come_first`: a tool call's first delta may carry `{}` before the real arguments.
    """

    dialect: str
    words: Words = field(default_factory=dict)
    finish: Mapping[str, FinishRule] = field(default_factory=dict)
    known: frozenset[str] = CHAT_FINISH_REASONS
    empty_arguments_come_first: bool = False
    to_hub_forms: Callable[[JsonObject], bool] | None = None

    def finish_reason(self, body: JsonObject, choice: JsonObject, ctx: Context) -> str:
        """The hub's word for the choice's finish reason; a word that no table has reads as `stop`. Raises Fault."""
        native = str(choice["finish_reason"])
        rule = self.finish.get(native)
        if callable(rule):
            return rule(body, choice, ctx)
        return rule or (native if native in self.known else "stop")

    def read_fault(self, reply: Reply, ctx: Context) -> Fault:
        """The fault in a provider's answer, whatever its form."""
        return read_fault(reply, ctx, self.words)
