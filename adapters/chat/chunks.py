"""Mending the chunks of one chat stream. The reader decides what a chunk means for the stream; this keeps them uniform.

All methods alter the chunk in place and return True where it was left as it came.
"""

from __future__ import annotations

from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import judge

from .content import flatten_content, rename_reasoning
from .parameters import wants_usage
from .pattern import Pattern
from .reading import Reading
from .repair import repair
from .toolcalls import ToolCalls
from .usage import UsageTally

__all__ = ["ChunkMender"]

_OBJECT = "chat.completion.chunk"
_PATIENCE = 8  # chunks of a stream that are remembered, one after the other


class ChunkMender:
    def __init__(self, reading: Reading, ctx: Context) -> None:
        self.finished = False
        self.pattern: Pattern | None = None
        self._reading = reading
        self._ctx = ctx
        self._choices: dict[int, _Choice] = {}
        self._unfinished: set[int] = set()
        self._envelope: JsonObject = {}
        self._held: JsonObject = {}
        self._added = False  # what was held went into the chunk that was mended last
        self._usage = UsageTally()
        self._wants_usage = wants_usage(ctx.request)
        self._told: set[str] = set()
        self._patience = _PATIENCE

    def remember(self, body: JsonObject, raw: bytes, same: bool) -> None:
        """Note a valid chunk, mended from `raw` (`same`: without a change). Whatever made it valid, and mended it, does
        the same for the next one, if that is of its pattern; most chunks of a stream are."""
        if self._patience and not self._added and len(body["choices"]) == 1:
            self.pattern = Pattern.of(body, raw, same)
            self._patience -= 1

    def mend(self, body: JsonObject) -> bool:
        """Bring a chunk with choices into hub form. Raises Fault where a finish reason tells of one."""
        same = self._same_envelope(body)
        for choice in body["choices"]:
            same &= self._choice(body, choice)
        same &= self._same_usage(body)
        self._added = bool(self._held)
        if self._held:
            body.update({key: value for key, value in self._held.items() if key not in body})
            self._held, same = {}, False
        self.finished = not self._unfinished
        return same

    def watch(self, body: JsonObject) -> bool:
        """Only follow which choices have finished, for policies that leave replies as they are. Raises Fault."""
        for choice in body["choices"]:
            index = choice.get("index", 0)
            self._unfinished.add(index)
            if choice.get("finish_reason"):
                self._reading.finish_reason(body, choice, self._ctx)
                self._unfinished.discard(index)
        self.finished = not self._unfinished
        return True

    def repair(self, body: JsonObject) -> bool:
        """Last resort for a chunk that the hub's schema does not accept. Raises Fault where it can't be mended."""
        violation = repair(body, judge("hub/chat.event"))
        if violation is not None:
            message = f"the provider sent an event that cannot be mended: {violation.message}"
            raise Fault("upstream_invalid_response", message, code="upstream_invalid_event")
        self._tell("keys that may be null are filled, nulls that may not be are left out")
        return False

    def keep(self, body: JsonObject) -> None:
        """An event without choices: its usage is tallied, other keys go out with the next chunk."""
        self._usage.note(body.pop("usage", None), [])
        body.pop("choices", None)
        for key in ("id", "object", "created", "model"):
            body.pop(key, None)
        if body and not self.finished:
            self._held.update(body)
            self.pattern = None

    def last(self) -> JsonObject | None:
        """The chunk with the usage that ends the stream, where the client asked for it and the provider told it."""
        usage = self._usage.total()
        if usage is None or not self._wants_usage:
            return None
        return {**self._envelope, "choices": [], "usage": usage}

    def _same_envelope(self, body: JsonObject) -> bool:
        envelope = self._envelope
        if not envelope:
            envelope = self._envelope = self._first_envelope(body)
        if (
            body.get("id") == envelope["id"]
            and body.get("created") == envelope["created"]
            and body.get("object") == _OBJECT
            and body.get("model") == envelope["model"]
        ):
            return True
        body.update(envelope)
        self._tell("id, created, object and model are the same in every chunk")
        return False

    def _first_envelope(self, body: JsonObject) -> JsonObject:
        created = body.get("created")
        return {
            "id": body.get("id") or self._ctx.new_id("chatcmpl"),
            "object": _OBJECT,
            "created": int(created) if isinstance(created, int | float) and created > 0 else int(self._ctx.clock()),
            "model": body.get("model") or self._ctx.target.model,
        }

    def _choice(self, body: JsonObject, choice: JsonObject) -> bool:
        index = choice.setdefault("index", 0)
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice(self._ctx, self._reading)
            self._unfinished.add(index)
        delta = choice.get("delta")
        same = isinstance(delta, dict)
        if not isinstance(delta, dict):
            delta = choice["delta"] = {}
            self._tell("a choice without delta gets an empty one")
        same &= self._role(delta, state)
        same &= self._content(delta)
        if "tool_calls" in delta:
            same &= self._tools(delta, state)
        return self._finish(body, choice, delta, state) and same

    def _role(self, delta: JsonObject, state: _Choice) -> bool:
        if state.started:
            if "role" not in delta:
                return True
            del delta["role"]
            self._tell("the role comes once, in the first delta")
            return False
        state.started = True
        if delta.get("role") == "assistant":
            return True
        delta["role"] = "assistant"
        self._tell("the first delta has the role")
        return False

    def _content(self, delta: JsonObject) -> bool:
        same = True
        if isinstance(delta.get("content"), list):
            for kind in flatten_content(delta):
                self._tell(f"content of type {kind} has no place in a chat message", loss=True)
            self._tell("content blocks become text and reasoning_content")
            same = False
        return not ("reasoning" in delta and rename_reasoning(delta)) and same

    def _tools(self, delta: JsonObject, state: _Choice) -> bool:
        pieces = delta["tool_calls"]
        if not pieces:
            del delta["tool_calls"]
            self._tell("an empty list of tool calls is left out")
            return False
        state.called = True
        if not isinstance(pieces, list) or not state.tools.mend(pieces):
            return True
        self._tell("tool calls have one index each; id, type and name come once")
        return False

    def _finish(self, body: JsonObject, choice: JsonObject, delta: JsonObject, state: _Choice) -> bool:
        native = choice.get("finish_reason")
        if not native:
            same = native is None and "finish_reason" in choice
            choice["finish_reason"] = None
            return same
        word = self._reading.finish_reason(body, choice, self._ctx)
        if word == "stop" and state.called:
            word = "tool_calls"
        leftovers = state.tools.leftovers()
        if leftovers:
            delta["tool_calls"] = [*delta.get("tool_calls", ()), *leftovers]
        self._unfinished.discard(choice["index"])
        if word == native:
            return not leftovers
        choice.update(finish_reason=word, native_finish_reason=native)
        self._tell(f"finish reason {native!r} reads {word!r}")
        return False

    def _same_usage(self, body: JsonObject) -> bool:
        usage: Any = body.get("usage")
        if usage is not None:
            self._usage.note(usage, body["choices"])
        if self._wants_usage:
            same = usage is None and "usage" in body
            body["usage"] = None
            return same
        return "usage" not in body or body.pop("usage", self) is self

    def _tell(self, reason: str, loss: bool = False) -> None:
        """Into the receipt, once per stream: the same mending happens to chunk after chunk."""
        if reason not in self._told:
            self._told.add(reason)
            self._ctx.receipt.converted(("choices",), reason, "loss" if loss else "form")


class _Choice:
    __slots__ = ("called", "started", "tools")

    def __init__(self, ctx: Context, reading: Reading) -> None:
        self.started = False
        self.called = False
        self.tools = ToolCalls(ctx, reading.empty_arguments_come_first)
