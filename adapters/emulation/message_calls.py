"""Emulates `disable_parallel_tool_use` of Messages: of the calls in a message the client gets the first.

It does for Messages what `single_tool_call` does for the other protocols.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.messages.events import BLOCK_START, MESSAGE_DELTA
from dragoman.adapters.paths import Path

from .interface import Emulation, StreamMerger
from .single_tool_call import DROPPED, PositionedCalls, record_split

__all__ = ["MESSAGE_CALLS"]

_PLACE: Path = ("tool_choice", "disable_parallel_tool_use")
_ONE_AT_MOST = ("tool", "none")  # types of tool_choice


def _find_obstacle(request: JsonObject) -> str | None:
    choice = request.get("tool_choice")
    return None if isinstance(choice, dict) and _PLACE[1] in choice else ""


def _is_exact(request: JsonObject) -> bool:
    """Whether the model can call one tool at most."""
    tools = request.get("tools")
    return not isinstance(tools, list) or len(tools) < 2 or request["tool_choice"].get("type") in _ONE_AT_MOST


def _split(ctx: Context) -> list[Context]:
    record_split(_PLACE, _is_exact(ctx.request), ctx)
    choice = {key: value for key, value in ctx.request["tool_choice"].items() if key != _PLACE[1]}
    return [ctx._replace(request={**ctx.request, "tool_choice": choice})]


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    (reply,) = replies
    calls = [i for i, block in enumerate(reply["content"]) if _is_call(block)]
    if len(calls) < 2:
        return reply
    for i in calls[1:]:
        ctx.receipt.record_drop(("content", i), DROPPED)
    kept = [block for i, block in enumerate(reply["content"]) if i not in calls[1:]]
    return {**_finish(reply), "content": kept}


def _finish(ending: JsonObject) -> JsonObject:
    """The message, or its last delta, with the stop reason of its first call, if it ended in another one."""
    return {**ending, "stop_reason": "tool_use"} if ending["stop_reason"] == "max_tokens" else ending


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"


class _MessageCalls(PositionedCalls):
    key = "index"

    def _begins_call(self, event: JsonObject) -> bool:
        return event["type"] == BLOCK_START and _is_call(event["content_block"])

    def _cut_event(self, event: JsonObject) -> JsonObject:
        if event["type"] != MESSAGE_DELTA:
            return event
        for position in sorted(self._dropped):
            self._ctx.receipt.record_drop(("content", position), DROPPED)
        return {**event, "delta": _finish(event["delta"])}


def _merge(ctx: Context, parts: int) -> StreamMerger:
    return _MessageCalls(ctx)


MESSAGE_CALLS = Emulation(_split, _join, _merge, _find_obstacle, _is_exact)
