"""Emulates `parallel_tool_calls: false`: of the calls in an answer the client gets the first.

If the model can hardly make a second call, because it has one tool at most, or must call a certain one or none, the
parameter is dropped and nothing is said to be lost. In all cases further calls are dropped, and that is a loss. If the
token limit cuts one of them off, the first call is complete all the same, and so is the choice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.paths import Path
from dragoman.adapters.responses.built_in_tools import BUILT_IN_CALLS
from dragoman.adapters.streams import Chunk, DeltaRun, Output

from .interface import Emulation, StreamMerger

__all__ = ["DROPPED", "SINGLE_TOOL_CALL", "PositionedCalls", "record_split"]

_FIELD = "parallel_tool_calls"
DROPPED = "the model makes several calls at once, and one was asked for: this one is left out"
_ITEMS = ("function_call", "custom_tool_call", *BUILT_IN_CALLS)


def _is_exact(request: JsonObject) -> bool:
    """Whether the model can call one tool at most."""
    tools, choice = request.get("tools"), request.get("tool_choice")
    forced = isinstance(choice, dict) and choice.get("type") in ("function", "custom")
    return not isinstance(tools, list) or len(tools) < 2 or choice == "none" or forced


def _split(ctx: Context) -> list[Context]:
    record_split((_FIELD,), _is_exact(ctx.request), ctx)
    return [ctx._replace(request={key: value for key, value in ctx.request.items() if key != _FIELD})]


def record_split(path: Path, is_exact: bool, ctx: Context) -> None:
    """Record that the field at `path` is emulated; `is_exact`: the model can call one tool at most."""
    if is_exact:
        ctx.receipt.record_drop(path, "the model can call one tool at most", "form")
    else:
        ctx.receipt.record_emulation(path, "dragoman gives the first call of an answer, and leaves out the others")


def _join(replies: list[JsonObject], ctx: Context) -> JsonObject:
    (reply,) = replies
    if "output" in reply:
        return {**reply, "output": _keep_first_call(reply["output"], ctx)}
    return {**reply, "choices": [_cut_message(choice, i, ctx) for i, choice in enumerate(reply["choices"])]}


def _cut_message(choice: JsonObject, position: int, ctx: Context) -> JsonObject:
    calls = choice["message"].get("tool_calls") or []
    for i in range(1, len(calls)):
        ctx.receipt.record_drop(("choices", position, "message", "tool_calls", i), DROPPED)
    if len(calls) < 2:
        return choice
    return _finish_choice({**choice, "message": {**choice["message"], "tool_calls": calls[:1]}})


def _finish_choice(choice: JsonObject) -> JsonObject:
    """The choice with the finish reason of its first call, if it ended in another one."""
    return {**choice, "finish_reason": "tool_calls"} if choice["finish_reason"] == "length" else choice


def _keep_first_call(items: list[JsonObject], ctx: Context) -> list[JsonObject]:
    calls = [i for i, item in enumerate(items) if item.get("type") in _ITEMS]
    for i in calls[1:]:
        ctx.receipt.record_drop(("output", i), DROPPED)
    return [item for i, item in enumerate(items) if i not in calls[1:]]


def _merge(ctx: Context, parts: int) -> StreamMerger:
    return _ChatCalls(ctx) if "messages" in ctx.request else _ResponsesCalls(ctx)


class _ChatCalls:
    """Leaves out further calls in a stream of chat. The hub counts the calls of a choice from 0."""

    def __init__(self, ctx: Context) -> None:
        self._receipt = ctx.receipt
        self._cut_choices: set[int] = set()  # the indexes of those with further calls

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return the outputs without further calls."""
        return [made for output in outputs if (made := self._cut(output)) is not None]

    def _cut(self, output: Output) -> Output | None:
        if not isinstance(output, Chunk | DeltaRun):
            return output
        choices = output.body["choices"]
        cut = {choice["index"] for choice in choices if _count_further_calls(choice)}
        if cut:
            self._receipt.record_drop(("choices",), DROPPED)
            self._cut_choices |= cut
        elif not self._is_cut_off(choices):
            return output
        kept = [self._cut_choice(choice) for choice in choices]
        said = [choice for choice in kept if choice is not None]
        return Chunk({**output.body, "choices": said}) if said else None

    def _is_cut_off(self, choices: list[JsonObject]) -> bool:
        return any(choice["finish_reason"] == "length" and choice["index"] in self._cut_choices for choice in choices)

    def _cut_choice(self, choice: JsonObject) -> JsonObject | None:
        left = _leave_out_calls(choice) if _count_further_calls(choice) else choice
        return left if left is None or choice["index"] not in self._cut_choices else _finish_choice(left)


def _count_further_calls(choice: JsonObject) -> int:
    return sum(call["index"] > 0 for call in choice["delta"].get("tool_calls") or ())


def _leave_out_calls(choice: JsonObject) -> JsonObject | None:
    """The choice without further calls; None if it says nothing else."""
    calls = [call for call in choice["delta"].get("tool_calls") or () if not call["index"]]
    delta: JsonObject = {key: value for key, value in choice["delta"].items() if key != "tool_calls"}
    if calls:
        delta["tool_calls"] = calls
    return {**choice, "delta": delta} if choice["finish_reason"] is not None or any(delta.values()) else None


class PositionedCalls(ABC):
    """Leaves out further calls in a stream whose events have the position of their item, and renumbers the items after
    them. A subclass says where the position is: at `key`."""

    key: ClassVar[str]

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._first: int | None = None  # the position of the first call
        self._dropped: set[int] = set()
        self._run: tuple[JsonObject, JsonObject] | None = None

    @abstractmethod
    def _begins_call(self, event: JsonObject) -> bool:
        """Whether an event with a position begins a call, or repeats one."""

    @abstractmethod
    def _cut_event(self, event: JsonObject) -> JsonObject:
        """An event without a position, after calls were left out."""

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return the outputs without further calls."""
        return [made for output in outputs if (made := self._cut(output)) is not None]

    def _cut(self, output: Output) -> Output | None:
        if not isinstance(output, Chunk | DeltaRun):
            return output
        event = output.body
        position = event.get(self.key)
        if isinstance(position, int):
            return self._cut_item(output, event, position)
        made = self._cut_event(event) if self._dropped else event
        return output if made is event else Chunk(made)

    def _cut_item(self, output: Chunk | DeltaRun, event: JsonObject, position: int) -> Output | None:
        if self._begins_call(event):
            self._first = position if self._first is None else self._first
            if position != self._first:
                self._dropped.add(position)
        if position in self._dropped:
            return None
        shift = sum(dropped < position for dropped in self._dropped)
        if not shift:
            return output
        if isinstance(output, DeltaRun):
            return DeltaRun(self._convert_run_body(event, position - shift), output.place, output.texts)
        return Chunk({**event, self.key: position - shift})

    def _convert_run_body(self, event: JsonObject, position: int) -> JsonObject:
        """The body of a run with another position: the same object for all runs of one kind."""
        if self._run is None or self._run[0] is not event:
            self._run = event, {**event, self.key: position}
        return self._run[1]


class _ResponsesCalls(PositionedCalls):
    key = "output_index"

    def _begins_call(self, event: JsonObject) -> bool:
        item: Any = event.get("item")
        return isinstance(item, dict) and item.get("type") in _ITEMS

    def _cut_event(self, event: JsonObject) -> JsonObject:
        response = event.get("response")
        if not isinstance(response, dict):
            return event
        items = _keep_first_call(response.get("output") or [], self._ctx)
        return {**event, "response": {**response, "output": items}}


SINGLE_TOOL_CALL = Emulation(_split, _join, _merge, is_exact=_is_exact)
