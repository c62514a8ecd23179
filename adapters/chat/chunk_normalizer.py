"""Mending what the choices of a chat chunk hold: one role, content as text, tool calls by index."""

from __future__ import annotations

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.completeness import ChoiceCompleteness
from dragoman.adapters.common.reply_rules import Reading

from .content import flatten_content, rename_reasoning
from .normalizer import Mender
from .toolcalls import ToolCalls

__all__ = ["ChunkMender"]

_TEXT_ONLY = {"content": None}.keys()
_OF_THE_TEXT = ("index", "delta", "logprobs")


class ChunkMender(Mender):
    protocol = "chat"
    kind = "chat.completion.chunk"
    prefix = "chatcmpl"
    text = ("delta", "content")

    def __init__(self, reading: Reading, ctx: Context, completeness: ChoiceCompleteness) -> None:
        super().__init__(reading, ctx, completeness)
        self._choices: dict[int, _Choice] = {}
        self._beside = False

    def _is_text(self, choice: JsonObject) -> bool:
        return bool(choice["delta"].keys() == _TEXT_ONLY) and not choice.get("finish_reason")

    def ending(self, body: JsonObject) -> JsonObject | None:
        if not self._beside:
            return None
        self._beside = False
        endings = []
        for choice in body["choices"]:
            if choice["finish_reason"] is not None and _says(choice["delta"]):
                end = {key: value for key, value in choice.items() if key not in _OF_THE_TEXT}
                for key in end:
                    del choice[key]
                choice["finish_reason"] = None
                endings.append({"index": choice["index"], "delta": {}, **end})
        self._tell("a finish reason comes after the last piece, in a chunk of its own")
        return {**self._envelope, **({"usage": None} if "usage" in body else {}), "choices": endings}

    def _choice(self, body: JsonObject, choice: JsonObject) -> bool:
        index = choice.setdefault("index", 0)
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice(self._ctx, self._reading)
            self._completeness.see(index)
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
        leftovers = state.tools.leftovers() if word == "tool_calls" else []
        if leftovers:
            delta["tool_calls"] = [*delta.get("tool_calls", ()), *leftovers]
        self._beside |= _says(delta)
        self._completeness.finish(choice["index"])
        if word == native:
            return not leftovers
        choice.update(finish_reason=word, native_finish_reason=native)
        self._tell(f"finish reason {native!r} reads {word!r}")
        return False


def _says(delta: JsonObject) -> bool:
    return any(value for key, value in delta.items() if key != "role")


class _Choice:
    __slots__ = ("called", "started", "tools")

    def __init__(self, ctx: Context, reading: Reading) -> None:
        self.started = False
        self.called = False
        self.tools = ToolCalls(ctx, reading.empty_arguments_come_first)
