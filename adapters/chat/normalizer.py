"""Brings a chat choice into hub form: the message of a whole reply, or the delta of a chunk.

Hub form has one role, content as text, reasoning under one name, tool calls with ids and text arguments, and one finish
reason. In a stream the role comes once, and each call has its own index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import NoneType
from typing import Any

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.changes import Weight
from dragoman.adapters.common.annotations import filter_annotations
from dragoman.adapters.common.choice_normalizer import ChoiceNormalizer
from dragoman.adapters.common.completeness import check_finish_reason, infer_finish_reason
from dragoman.adapters.common.repair import REPAIRED
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.common.reply_validation import invalid_reply
from dragoman.adapters.common.stream_changes import ChangeRecorder
from dragoman.adapters.paths import Path

from .citations import annotate, move_citations, number_entries
from .content import flatten_content, read_details, rename_reasoning
from .reasoning import ReasoningBlocks
from .reasoning_tags import TagSplitter, split_delta, split_message
from .tool_call_assembler import ToolCallAssembler
from .tool_calls import (
    NO_ARGUMENTS,
    encode_function,
    fill_arguments,
    move_calls,
    move_function_call,
    normalize_calls,
)

__all__ = ["ChatNormalizer"]

_OF_CALLS = frozenset({"stop", "tool_calls", "function_call"})
_SAID = {"message", "delta", "text"}  # what a choice may hold its answer in
_RUNS = ("content", "reasoning_content")  # texts that most chunks consist of
_OF_THE_TEXT = ("index", "delta", "logprobs")
_TEXT, _OBJECT, _LIST = (str, NoneType), (dict, NoneType), (list, NoneType)
_SENT_BACK: Mapping[str, type | tuple[type, ...]] = {
    "name": _TEXT,
    "tool_call_id": NoneType,
    "refusal": _TEXT,
    "reasoning_content": _TEXT,
    "reasoning_signature": _TEXT,
    "audio": _OBJECT,
    "annotations": _LIST,
}
"""The types of the keys of an assistant's message that requests know, besides those that are always normalized."""
_ORDINARY = frozenset({"role", "content", "tool_calls"})
_PIECE: Path = ("choices", 0, "delta")  # the path of all changes of a stream


class ChatNormalizer(ChoiceNormalizer):
    """The ChoiceNormalizer of chat, for every dialect."""

    protocol = "chat"
    reply_object = "chat.completion"
    chunk_object = "chat.completion.chunk"
    id_prefix = "chatcmpl"
    ends_apart = True
    settled = "hub/chat.settled_reply"

    def __init__(self, rules: ReplyRules, ctx: Context, changes: ChangeRecorder) -> None:
        super().__init__(rules, ctx, changes)
        self._choices: dict[int, _Choice] = {}
        self._tags = ctx.target.reasoning_tags

    @staticmethod
    def fill_answer(choice: JsonObject, position: int, ctx: Context) -> None:
        """Give an empty message to a choice that a filter has taken it from: Azure OpenAI leaves it out."""
        if choice.get("finish_reason") == "content_filter" and not choice.keys() & _SAID:
            choice["message"] = {"role": "assistant", "content": None}
            ctx.receipt.record_fill(("choices", position, "message"), "the filter has removed it")

    @staticmethod
    def check_answer(choice: JsonObject, position: int) -> None:
        """Check that the choice has a message. Raises Fault."""
        if not isinstance(choice.get("message"), dict):
            raise invalid_reply(f"choices[{position}] has no message")

    def normalize_whole(self, body: JsonObject, choice: JsonObject, position: int) -> None:
        """Normalize `message` and the finish reason. Raises Fault if either is missing."""
        self.check_answer(choice, position)
        message = choice["message"]
        path: Path = ("choices", position, "message")
        self._drop_odd_keys(message, path)
        self._fill_role(message, path)
        self._set_content(message, path)
        message.setdefault("content", None)
        length = _measure_content(message)
        if self._tags and split_message(message, implied=self._tags == "implied"):
            move_citations(message, _measure_content(message) - length)
            self._record_tags(path)
        if "refusal" not in message:
            message["refusal"] = None
            self._changes.record_conversion(("choices",), REPAIRED)
        if "annotations" in message:
            self._drop_invalid_annotations(message, path)
        called = self._set_whole_calls(message, path)
        if not self._rules.is_clear(choice.get("finish_reason")):
            self._infer_finish_reason(body, choice, path[:-1])
            check_finish_reason(choice)
            self.set_finish_reason(body, choice, path[:-1])
        self._match_calls(choice, path[:-1], called, bool(message.get("function_call")))
        if choice["finish_reason"] == "tool_calls" and fill_arguments(message.get("tool_calls")):
            self._changes.record_fill((*path, "tool_calls"), NO_ARGUMENTS)
        if choice["finish_reason"] == "function_call" and fill_arguments([{"function": message.get("function_call")}]):
            self._changes.record_fill((*path, "function_call"), NO_ARGUMENTS)

    def normalize_piece(self, body: JsonObject, choice: JsonObject, index: int) -> bool:
        """Normalize `delta` and the finish reason; True if nothing changed. Raises Fault if the reason reports one."""
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice(self._ctx, self._changes)
        delta = choice.get("delta")
        same = isinstance(delta, dict)
        if not isinstance(delta, dict):
            weight: Weight = "form" if delta is None else "loss"
            delta = choice["delta"] = _take_answer(choice, index, is_first=not state.has_role)
            reason = "a choice without delta gets its message, its text, or an empty one"
            self._changes.record_conversion(_PIECE, reason, weight)
        same &= self._drop_odd_keys(delta, _PIECE)
        same &= self._set_role(delta, state, _PIECE)
        same &= self._set_content(delta, _PIECE, state)
        if self._tags and split_delta(delta, state.tags, is_last=False):
            same = False
            self._record_tags(_PIECE)
        if "message" in choice:
            same = False
            self._take_message(choice, delta, state)
        if "function_call" in delta:
            same &= not self._move_function_call(delta, _PIECE)
            same &= not self._encode_function(delta, _PIECE, is_whole=False)
            state.has_function_call |= bool(delta.get("function_call"))
        if "tool_calls" in delta:
            same &= self._set_call_pieces(delta, state)
        state.length += _measure_content(delta)
        return self.read_finish_reason(body, choice, _PIECE[:-1]) and same

    def count_text(self, index: int, length: int, key: str) -> None:
        """Add the characters of recognized chunks to the content of a choice, if they are content."""
        if key == "content":
            self._choices[index].length += length

    @staticmethod
    def has_content(choice: JsonObject) -> bool:
        """Whether the delta holds a text, a call or anything else but the role."""
        delta = choice.get("delta")
        return isinstance(delta, dict) and _holds_text(delta)

    def find_text(self, choice: JsonObject) -> tuple[str, ...] | None:
        """The path of the content or the reasoning, if the delta says nothing else, and no finish reason comes."""
        said = [key for key, value in choice["delta"].items() if value]
        if len(said) != 1 or said[0] not in _RUNS or choice.get("finish_reason"):
            return None
        if self._tags and not self._choices[choice["index"]].tags.is_passing:
            return None
        return "delta", said[0]

    def split_ending(self, choice: JsonObject) -> JsonObject:
        """Move the finish reason and what belongs to it to a choice with an empty delta, and return that."""
        end = {key: value for key, value in choice.items() if key not in _OF_THE_TEXT}
        for key in end:
            del choice[key]
        choice["finish_reason"] = None
        return {"index": choice["index"], "delta": {}, **end}

    def finish_choice(self, choice: JsonObject) -> bool:
        """Make the finish reason agree with the calls, and add what is still missing. True if nothing changed."""
        state, delta = self._choices[choice["index"]], choice["delta"]
        has_late_text = bool(self._tags) and split_delta(delta, state.tags, is_last=True)
        if has_late_text:
            self._record_tags(_PIECE)
        has_late_text |= state.blocks.finish(delta)
        same = self._match_calls(choice, _PIECE[:-1], state.calls.has_calls, state.has_function_call)
        leftovers = state.calls.finish(choice["finish_reason"])
        if leftovers:
            delta["tool_calls"] = [*delta.get("tool_calls", ()), *leftovers]
        return same and not leftovers and not has_late_text

    # The same for a message and a delta

    def _drop_odd_keys(self, holder: JsonObject, path: Path) -> bool:
        """Drop keys that a client could not send back with the message. Returns True if nothing changed."""
        if holder.keys() <= _ORDINARY:
            return True
        odd = [key for key, value in holder.items() if not isinstance(value, _SENT_BACK.get(key, object))]
        for key in odd:
            del holder[key]
            self._changes.record_drop((*path, key), "a message of a request cannot have such a value")
        return not odd

    def _set_role(self, holder: JsonObject, state: _Choice, path: Path) -> bool:
        if state.has_role:
            if "role" not in holder:
                return True
            del holder["role"]
            self._changes.record_drop((*path, "role"), "only the first delta has the role", "form")
            return False
        state.has_role = True
        return self._fill_role(holder, path)

    def _fill_role(self, holder: JsonObject, path: Path) -> bool:
        if holder.get("role") == "assistant":
            return True
        given, holder["role"] = holder.get("role"), "assistant"
        record = self._changes.record_conversion if given else self._changes.record_fill
        record((*path, "role"), "the role of a reply is assistant")
        return False

    def _set_content(self, holder: JsonObject, path: Path, state: _Choice | None = None) -> bool:
        same = True
        if isinstance(holder.get("content"), list):
            same = False
            place = (*path, "content")
            start, blocks = (0, None) if state is None else (state.length, state.blocks)
            for kind in flatten_content(holder, blocks, start):
                self._changes.record_drop(place, f"a chat message cannot hold content of type {kind}")
            annotate(holder)
            if state is not None:
                number_entries(holder, state.entries)
            self._changes.record_conversion(place, "content blocks become text and reasoning_content", after=path)
        elif "reasoning_details" in holder and read_details(holder):
            same = False
            self._changes.record_conversion((*path, "reasoning_details"), "its text is in reasoning_content too")
        if "reasoning" in holder and rename_reasoning(holder):
            same = False
            after = (*path, "reasoning_content")
            self._changes.record_conversion((*path, "reasoning"), "the hub's name for it", after=after)
        return same

    def _record_tags(self, path: Path) -> None:
        reason = "reasoning between tags has its own key"
        self._changes.record_conversion((*path, "content"), reason, after=(*path, "reasoning_content"))

    def _match_calls(self, choice: JsonObject, path: Path, called: bool, called_function: bool) -> bool:
        """Make the finish reason agree with the calls, the deprecated one too. Returns True if nothing changed."""
        word = choice["finish_reason"]
        if word not in _OF_CALLS:
            return True
        fitting = "tool_calls" if called else word if word == "stop" else "function_call" if called_function else "stop"
        if fitting == word:
            return True
        choice.update(finish_reason=fitting, native_finish_reason=choice.get("native_finish_reason", word))
        weight: Weight = "loss" if fitting == "stop" else "form"  # a call that the provider names has not come
        self._changes.record_conversion((*path, "finish_reason"), f"finish reason {word!r} reads {fitting!r}", weight)
        return False

    # A whole message

    def _infer_finish_reason(self, body: JsonObject, choice: JsonObject, path: Path) -> None:
        word = infer_finish_reason(body, self._ctx.request)
        if word is not None and self._ctx.target.policy.replies != "strict":
            choice.update(finish_reason=word, native_finish_reason="")
            reason = f"the provider does not say how the answer ended: its token counts suggest {word!r}"
            self._changes.record_conversion((*path, "finish_reason"), reason, "loss")

    def _drop_invalid_annotations(self, message: JsonObject, path: Path) -> None:
        given = message["annotations"]
        message["annotations"] = filter_annotations(given, with_files=True)
        if given is not None and given != message["annotations"]:
            reason = "chat does not support these annotations, or they have no position"
            self._changes.record_drop((*path, "annotations"), reason)

    def _set_whole_calls(self, message: JsonObject, path: Path) -> bool:
        """Normalize the calls of a message. Returns True if it has any."""
        if not self._move_function_call(message, path):
            self._encode_function(message, path, is_whole=True)
        calls: Any = message.get("tool_calls")
        if calls:
            message["tool_calls"] = normalize_calls(calls, self._ctx)
            if message["tool_calls"] is not calls:
                reason = "each call has a type and an id of its own, and its arguments are text"
                self._changes.record_conversion((*path, "tool_calls"), reason)
            return True
        if "tool_calls" in message:
            self._drop_empty_calls(message, path)
        return False

    def _move_function_call(self, holder: JsonObject, path: Path) -> bool:
        function, calls = holder.get("function_call"), holder.get("tool_calls")
        if not move_function_call(holder, self._ctx.request):
            return False
        if calls and not any(isinstance(call, dict) and call.get("function") == function for call in calls):
            self._changes.record_drop((*path, "function_call"), "there are tool calls too, and it is none of them")
            return True
        after = (*path, "tool_calls")
        reason = "the deprecated function_call becomes a tool call, because the request offers tools"
        self._changes.record_conversion((*path, "function_call"), reason, after=after)
        return True

    def _encode_function(self, holder: JsonObject, path: Path, *, is_whole: bool) -> bool:
        if not encode_function(holder.get("function_call"), is_whole=is_whole):
            return False
        self._changes.record_conversion((*path, "function_call"), "the arguments of a call are text")
        return True

    def _drop_empty_calls(self, holder: JsonObject, path: Path) -> None:
        del holder["tool_calls"]
        self._changes.record_drop((*path, "tool_calls"), "an empty list of tool calls is removed", "form")

    # A delta

    def _set_call_pieces(self, delta: JsonObject, state: _Choice) -> bool:
        pieces = delta["tool_calls"]
        if not pieces:
            self._drop_empty_calls(delta, _PIECE)
            return False
        made = state.calls.add(pieces)
        if made is pieces:
            return True
        del delta["tool_calls"]
        if made:
            delta["tool_calls"] = made
        self._changes.record_conversion(_PIECE, "each tool call has one index; its id, type and name come once")
        return False

    def _take_message(self, choice: JsonObject, delta: JsonObject, state: _Choice) -> None:
        """Take the calls of a whole message in a chunk, unless they came in pieces."""
        message = choice.pop("message")
        if not state.calls.has_calls and move_calls(message, delta):
            reason = "the calls of a message in a chunk become pieces"
            self._changes.record_conversion(_PIECE, reason)
        else:
            self._changes.record_drop(_PIECE, "a message in a chunk repeats what came in pieces", "form")


def _take_answer(choice: JsonObject, index: int, *, is_first: bool) -> JsonObject:
    """Take what a choice without delta says: the message of a whole reply that is one event, or a text as completions
    have it. Raises Fault if it is neither."""
    message, text = choice.pop("message", None) if is_first else None, choice.pop("text", None)
    if not isinstance(message, dict | None):
        raise invalid_reply(f"choices[{index}] has a message that is no object")
    if not isinstance(text, str | None):
        raise invalid_reply(f"choices[{index}] has a text that is no string")
    return message or ({"content": text} if text else {})


def _measure_content(holder: JsonObject) -> int:
    content = holder.get("content")
    return len(content) if isinstance(content, str) else 0


def _holds_text(delta: JsonObject) -> bool:
    return any(value for key, value in delta.items() if key != "role")


class _Choice:
    """The state of one choice of a stream."""

    __slots__ = ("blocks", "calls", "entries", "has_function_call", "has_role", "length", "tags")

    def __init__(self, ctx: Context, changes: ChangeRecorder) -> None:
        self.has_role = False
        self.has_function_call = False  # the deprecated one
        self.length = 0  # of the content so far, in characters
        self.entries: Counter[str] = Counter()  # citations and annotations
        self.blocks = ReasoningBlocks()
        self.tags = TagSplitter(implied=ctx.target.reasoning_tags == "implied")
        self.calls = ToolCallAssembler(ctx, changes)
