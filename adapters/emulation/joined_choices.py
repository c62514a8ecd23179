"""Several replies with choices, of chat or completions, as one: choices are renumbered, token counts are added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.usage import sum_usage
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output

__all__ = ["ChoiceMerger", "Renumber", "join_choices", "join_usage"]

Renumber: TypeAlias = Callable[[int, int], int]
"""The number of a choice in the whole reply, from its part and its index there. Raises Fault for a choice too many."""

_COUNTED = "not every call reported its usage"
_ENVELOPE = ("id", "created")


def join_choices(replies: list[JsonObject], renumber: Renumber, ctx: Context) -> JsonObject:
    """Join whole replies in hub form. Alters their choices. Raises Fault."""
    for part, reply in enumerate(replies):
        for choice in reply["choices"]:
            choice["index"] = renumber(part, choice["index"])
    choices = sorted((choice for reply in replies for choice in reply["choices"]), key=lambda choice: choice["index"])
    return join_usage(replies, {**replies[0], "choices": choices}, ctx)


def join_usage(replies: list[JsonObject], joined: JsonObject, ctx: Context) -> JsonObject:
    """The joined reply with the usage of all replies; without one if a reply has none, which is recorded."""
    usages = [usage for reply in replies if (usage := reply.get("usage"))]
    if len(usages) == len(replies):
        return {**joined, "usage": sum_usage(usages)}
    if usages:
        ctx.receipt.record_drop(("usage",), _COUNTED)
    return {key: value for key, value in joined.items() if key != "usage"}


class ChoiceMerger:
    """A StreamMerger: the chunks of all parts as they come, the usage when all have ended."""

    def __init__(self, ctx: Context, parts: int, renumber: Renumber) -> None:
        self._receipt = ctx.receipt
        self._renumber = renumber
        self._parts = self._open = parts
        self._envelope: JsonObject = {}
        self._usages: list[JsonObject] = []
        self._run_bodies: dict[int, tuple[JsonObject, JsonObject]] = {}
        self._has_ended = False

    def feed(self, part: int, outputs: list[Output]) -> list[Output]:
        """Return these outputs as those of the merged stream."""
        made: list[Output] = []
        for output in () if self._has_ended else outputs:
            try:
                made += self._merge(part, output)
            except Fault as fault:
                made.append(fault)
            if isinstance(made[-1] if made else None, Fault | End):
                self._has_ended = True
                break
        return made

    def _merge(self, part: int, output: Output) -> list[Output]:
        if isinstance(output, DeltaRun):
            return [DeltaRun(self._convert_run_body(part, output.body), output.place, output.texts)]
        if isinstance(output, Chunk):
            if output.body["choices"]:
                return [Chunk(self._convert(part, output.body))]
            self._usages.append(output.body)
            return []
        if isinstance(output, Fault):
            return [output]
        self._open -= 1
        return [] if self._open else [*self._add_usage(), output]

    def _convert_run_body(self, part: int, body: JsonObject) -> JsonObject:
        """The body of a run in the merged stream: the same object for all runs of one kind."""
        known = self._run_bodies.get(part)
        if known is None or known[0] is not body:
            known = self._run_bodies[part] = body, self._convert(part, body)
        return known[1]

    def _convert(self, part: int, body: JsonObject) -> JsonObject:
        if not self._envelope:
            self._envelope = {key: body[key] for key in _ENVELOPE if key in body}
        choices = [{**choice, "index": self._renumber(part, choice["index"])} for choice in body["choices"]]
        return {**body, **self._envelope, "choices": choices}

    def _add_usage(self) -> list[Output]:
        """The chunk with the usage of all parts, if each part has reported its own."""
        if not self._usages:
            return []
        if len(self._usages) < self._parts:
            self._receipt.record_drop(("usage",), _COUNTED)
            return []
        usage = sum_usage([body["usage"] for body in self._usages])
        return [Chunk({**self._usages[0], **self._envelope, "usage": usage})]
