"""Mending the chunks of one stream in chat's manner, whatever its choices hold: one envelope, usage in a chunk of its
own. The reader decides what a chunk means for the stream; this keeps the chunks uniform.

All methods alter the chunk in place and return True where it was left as it came.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.common.completeness import ChoiceCompleteness
from dragoman.adapters.common.parameters import wants_usage
from dragoman.adapters.common.repair import repair
from dragoman.adapters.common.reply_rules import Reading
from dragoman.adapters.common.usage import UsageTally
from dragoman.adapters.counts import is_time
from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import judge

from .chunk_template import Pattern

__all__ = ["Mender"]

_PATIENCE = 8  # chunks of a stream that are remembered, one after the other


class Mender(ABC):
    """A subclass says what its chunks have: `kind` is their `object`, `prefix` begins an id that the provider left
    out, `text` is where a choice says something. `pattern` is that of the chunk of text that came last."""

    protocol: ClassVar[str]
    kind: ClassVar[str]
    prefix: ClassVar[str]
    text: ClassVar[tuple[str, ...]]

    def __init__(self, reading: Reading, ctx: Context, completeness: ChoiceCompleteness) -> None:
        self.pattern: Pattern | None = None
        self._reading = reading
        self._ctx = ctx
        self._completeness = completeness
        self._envelope: JsonObject = {}
        self._held: JsonObject = {}
        self._added = False  # what was held went into the chunk that was mended last
        self._usage = self._tally(ctx)
        self._wants_usage = wants_usage(ctx.request)
        self._told: set[str] = set()
        self._patience = _PATIENCE

    def remember(self, body: JsonObject, raw: bytes, same: bool) -> None:
        """Note a valid chunk, mended from `raw` (`same`: without a change). Whatever made it valid, and mended it, does
        the same for the next one, if that is of its pattern; most chunks of a stream are."""
        if self._patience and not self._added and len(body["choices"]) == 1 and self._is_text(body["choices"][0]):
            self.pattern = Pattern.of(body, raw, same, self.text)
            self._patience -= 1

    @abstractmethod
    def _is_text(self, choice: JsonObject) -> bool:
        """True for a choice that holds nothing beside its text that the next one might not have."""

    @abstractmethod
    def _choice(self, body: JsonObject, choice: JsonObject) -> bool:
        """Mend one choice, and tell of it to `_completeness`. Raises Fault."""

    def _tally(self, ctx: Context) -> UsageTally:
        return UsageTally()

    def mend(self, body: JsonObject) -> bool:
        """Bring a chunk with choices into hub form. Raises Fault where a finish reason tells of one."""
        same = self._same_envelope(body)
        for choice in _indexed(body):
            same &= self._choice(body, choice)
        same &= self._same_usage(body)
        self._added = bool(self._held)
        if self._held:
            body.update({key: value for key, value in self._held.items() if key not in body})
            self._held, same = {}, False
        return same

    def watch(self, body: JsonObject) -> bool:
        """Only follow which choices have finished, for policies that leave replies as they are. Raises Fault."""
        for choice in _indexed(body):
            index = choice.get("index", 0)
            self._completeness.see(index)
            if choice.get("finish_reason"):
                self._reading.finish_reason(body, choice, self._ctx)
                self._completeness.finish(index)
        return True

    def repair(self, body: JsonObject) -> bool:
        """Last resort for a chunk that the hub's schema does not accept. Raises Fault where it can't be mended."""
        violation = repair(body, judge(f"hub/{self.protocol}.event"))
        if violation is not None:
            message = f"the provider sent an event that cannot be mended: {violation.message}"
            raise Fault("upstream_invalid_response", message, code="upstream_invalid_event")
        self._tell("keys that may be null are filled, nulls that may not be are left out")
        return False

    def ending(self, body: JsonObject) -> JsonObject | None:
        """What the chunk that was mended last tells of choices' ends, taken out of it where it stands beside something
        else; None where nothing is to be taken out."""
        return None

    def keep(self, body: JsonObject) -> None:
        """An event without choices: its usage is tallied, other keys go out with the next chunk."""
        self._usage.note(body.pop("usage", None), [])
        body.pop("choices", None)
        for key in ("id", "object", "created", "model"):
            body.pop(key, None)
        if body and not self._completeness.is_complete:
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
            and body.get("object") == self.kind
            and body.get("model") == envelope["model"]
        ):
            return True
        body.update(envelope)
        self._tell("id, created, object and model are the same in every chunk")
        return False

    def _first_envelope(self, body: JsonObject) -> JsonObject:
        created = body.get("created")
        return {
            "id": body.get("id") or self._ctx.new_id(self.prefix),
            "object": self.kind,
            "created": int(created) if is_time(created) else int(self._ctx.clock()),
            "model": body.get("model") or self._ctx.target.model,
        }

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


def _indexed(body: JsonObject) -> list[JsonObject]:
    """The choices, once it is sure that they can be told apart."""
    choices: list[JsonObject] = body["choices"]
    for choice in choices:
        if type(choice) is not dict or type(choice.get("index", 0)) is not int:
            message = f"the provider sent an event with a choice that is none: {str(choice)[:100]}"
            raise Fault("upstream_invalid_response", message, code="upstream_invalid_event")
    return choices
