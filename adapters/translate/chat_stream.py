"""The base class of translators that take chat streams: what a chunk says, in the order in which it is written.

Theory of operation. The translators write one item, or block, at a time, and it ends before the next begins. Chat has
no such order, so each chunk is taken apart: its reasoning, its text, then the rest, then the pieces of its calls. A
call is not closed before its arguments are whole: until then, or until the finish, the pieces of other calls are held
(`CallOrder`), and so is everything else.

A signature ends the reasoning that it belongs to: further reasoning opens anew, without the empty line that separates
the texts in chat. Only choice 0 is translated; the reader guarantees that a complete stream has one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.chat.reasoning import SEPARATOR, is_sealed, read_blocks
from dragoman.adapters.chat.spoken_answers import replace_audio
from dragoman.adapters.chat.tool_call_serializer import CallOrder
from dragoman.adapters.common.stream_translator import StreamTranslatorBase
from dragoman.adapters.paths import Path
from dragoman.adapters.streams import DeltaRun, Output

from .replies import CHOICE_KEYS, MESSAGE_KEYS, MORE_CHOICES, SECOND_CALL
from .unused_keys import record_unused_keys

__all__ = ["CALL_PATH", "LATE_ARGUMENTS", "ChatStreamTranslator", "RunKind"]

CALL_PATH = ("choices", 0, "delta", "tool_calls")
LATE_ARGUMENTS = "text after the whole arguments of a call"

RunKind: TypeAlias = Literal["text", "reasoning", "arguments"]
"""What the texts of a run are."""

_DELTA = ("choices", 0, "delta")
_RUN_KINDS: Mapping[Path, RunKind] = {
    (*_DELTA, "content"): "text",
    (*_DELTA, "reasoning_content"): "reasoning",
    (*CALL_PATH, 0, "function", "arguments"): "arguments",
}
_CHUNK_KEYS = frozenset({"id", "object", "created", "model", "choices"})
_CALLS = frozenset({"role", "tool_calls", "function_call"})


Reasoning = TypeVar("Reasoning")
"""The open block or item of reasoning."""


class ChatStreamTranslator(StreamTranslatorBase, Generic[Reasoning]):
    """Hub chat outputs in. A subclass sets `protocol`, the client's protocol, and the keys of a choice and of a delta
    that it translates. What it writes is appended to `out`.
    """

    protocol: ClassVar[str]
    choice_keys: ClassVar[frozenset[str]] = CHOICE_KEYS
    message_keys: ClassVar[frozenset[str]] = MESSAGE_KEYS

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self._ctx = ctx
        self._has_begun = False
        self._has_text = False  # one that is no transcript
        self._reasoning: Reasoning | None = None  # the last one that has a text
        self._run_body: JsonObject | None = None  # runs with this body continue what is open: `_run_kind`
        self._run_kind: RunKind = "text"
        self._order = CallOrder()
        self._waiting: list[JsonObject] = []  # choices with something that comes after the open call
        self._finish: str | None = None
        self._ending: JsonObject = {"finish_reason": "stop"}  # the choice with the finish reason
        self._rest: JsonObject = {}  # what the chunks say outside of the choices

    # What a subclass writes

    @abstractmethod
    def _begin(self, body: JsonObject | None) -> list[Output]:
        """The outputs before everything else. `body` is the first chunk, None if the stream has none."""

    @abstractmethod
    def _open_reasoning(self, out: list[Output]) -> Reasoning:
        """The open reasoning. It is opened unless some is open that has no signature."""

    @abstractmethod
    def _write_thought(self, reasoning: Reasoning, text: str, out: list[Output]) -> None: ...

    @abstractmethod
    def _sign(self, reasoning: Reasoning, signature: str, out: list[Output]) -> None:
        """Write the signature of the reasoning, which ends with it."""

    @abstractmethod
    def _write_sealed(self, data: str, out: list[Output]) -> None:
        """Write a block of reasoning that nobody but its maker can read."""

    @abstractmethod
    def _write_text(self, choice: JsonObject, out: list[Output]) -> None:
        """Write the text of the choice, with what belongs to the text alone; it may have none."""

    @abstractmethod
    def _write_refusal(self, text: str, out: list[Output]) -> None: ...

    @abstractmethod
    def _write_annotations(self, delta: JsonObject, out: list[Output]) -> None:
        """Write the annotations and citations of a delta, if it has any."""

    @abstractmethod
    def _write_call(self, piece: JsonObject, out: list[Output]) -> None: ...

    @abstractmethod
    def _close_open(self, out: list[Output], *, last: bool = False) -> None:
        """Close what is open; `last`: nothing follows."""

    @abstractmethod
    def _takes_run(self, kind: RunKind) -> bool:
        """Whether a run continues what is open."""

    @abstractmethod
    def _write_run(self, run: DeltaRun) -> list[Output]:
        """Write a run that continues what is open. Empty texts are left out."""

    # Runs

    def _translate_run(self, run: DeltaRun) -> list[Output]:
        """Translate a run to one run if it continues what is open, else chunk by chunk."""
        if run.body is not self._run_body and not self._begin_run(run):
            return super()._translate_run(run)
        if self._run_kind == "arguments":
            self._order.add_fragments(run.texts)
        return self._write_run(run)

    def _begin_run(self, run: DeltaRun) -> bool:
        kind, choice = _RUN_KINDS.get(run.place), run.body["choices"][0]
        if kind is None or choice["index"] or choice.get("logprobs") or not self._takes_run(kind):
            return False
        if kind == "arguments" and (self._waiting or not self._order.continues(choice["delta"]["tool_calls"])):
            return False
        self._run_body, self._run_kind = run.body, kind
        return True

    # Taking a chunk apart

    def _translate_chunk(self, body: JsonObject) -> list[Output]:
        self._run_body = None
        out: list[Output] = [] if self._has_begun else self._make_beginning(body)
        for key in body.keys() - _CHUNK_KEYS:
            if body[key] is not None:
                if self._rest.setdefault(key, body[key]) != body[key]:
                    self._ctx.receipt.record_drop((key,), "a later chunk has another value")
                self._rest[key] = body[key]
        for choice in body["choices"]:
            if choice["index"] == 0:
                self._translate_choice(choice, out)
            else:
                self._ctx.receipt.record_drop(("choices", choice["index"]), MORE_CHOICES)
        return out

    def _make_beginning(self, body: JsonObject | None) -> list[Output]:
        self._has_begun = True
        return self._begin(body)

    def _translate_choice(self, choice: JsonObject, out: list[Output]) -> None:
        delta = choice["delta"]
        if not choice.keys() <= self.choice_keys:
            record_unused_keys(choice, self.choice_keys, _DELTA[:2], self._ctx, self.protocol)
        if self._order.is_open and (choice.get("logprobs") or any(delta[key] for key in delta.keys() - _CALLS)):
            self._waiting.append(choice)
        else:
            self._write_content(choice, out)
        if choice.get("finish_reason"):
            self._finish, self._ending = choice["finish_reason"], choice
        pieces = delta.get("tool_calls") or _list_legacy_call(delta)
        if delta.get("function_call") and delta.get("tool_calls"):
            self._ctx.receipt.record_drop((*_DELTA, "function_call"), SECOND_CALL)
        if pieces or self._finish:
            self._write_calls(pieces, out)
        if self._finish:
            self._close_open(out, last=True)

    def _write_content(self, choice: JsonObject, out: list[Output]) -> None:
        delta = choice["delta"]
        only_text = len(delta) == 1 and "content" in delta
        if not only_text:
            if delta.get("audio"):
                delta = replace_audio(delta, _DELTA, self._ctx, has_text=self._has_text)
                choice = {**choice, "delta": delta}
            elif delta.get("content"):
                self._has_text = True
            self._write_reasoning(delta, out)
        elif delta["content"]:
            self._has_text = True
        self._write_text(choice, out)
        if not only_text:
            self._write_rest(delta, out)

    def _write_reasoning(self, delta: JsonObject, out: list[Output]) -> None:
        if text := delta.get("reasoning_content"):
            before, self._reasoning = self._reasoning, self._open_reasoning(out)
            if before is not None and before is not self._reasoning:
                text = text.removeprefix(SEPARATOR)  # the text of another block
            if text:
                self._write_thought(self._reasoning, text, out)
        if delta.get("reasoning_signature"):
            self._sign(self._open_reasoning(out), delta["reasoning_signature"], out)
        for block in read_blocks(delta.get("reasoning_details")):
            if is_sealed(block):
                self._write_sealed(block["data"], out)

    def _write_rest(self, delta: JsonObject, out: list[Output]) -> None:
        record_unused_keys(delta, self.message_keys, _DELTA, self._ctx, self.protocol)
        if delta.get("refusal"):
            self._write_refusal(delta["refusal"], out)
        self._write_annotations(delta, out)

    def _write_calls(self, pieces: list[JsonObject], out: list[Output]) -> None:
        for piece in self._order.release(pieces, last=self._finish is not None):
            self._write_call(piece, out)
        if self._waiting and (self._finish or not self._order.is_open):
            waiting, self._waiting = self._waiting, []
            for choice in waiting:
                self._write_content(choice, out)


def _list_legacy_call(delta: JsonObject) -> list[Any]:
    """The call in the deprecated key `function_call`, which has neither index nor id, as a list of pieces."""
    call = delta.get("function_call")
    return [{"index": -1, "function": call}] if isinstance(call, dict) else []
