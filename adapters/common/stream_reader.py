"""The base class of stream readers: it frames bytes into items, and ends the stream exactly once.

Theory of operation. A reader frames the bytes into items and hands the JSON of each to its protocol's `_process_body`.
Most chunks of a stream differ only in their text. If a protocol recognizes such chunks by their bytes, it sets
`_template`: all matching chunks of one read then become one DeltaRun, without framing. The first of them may have begun
in the read before. One read may hold a whole stream, so its first events are framed one by one until there is a
template.

`completeness` decides how a stream ends: the reader reports `[DONE]` and the end of the bytes to it. An error, stray
text or an event that cannot be read is a fault, and ends the stream too. If the bytes end inside an event, the event
counts if it can be read. If it cannot, the fault says that the stream was truncated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import orjson

from dragoman.adapters.call import Context, JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.json_structure import REPLY_COMMAS, REPLY_VALUES, exceeds_values
from dragoman.adapters.jsontext import is_too_deep
from dragoman.adapters.native_errors import read_error_object, read_stray_text
from dragoman.adapters.paths import Path
from dragoman.adapters.sse import FIELDS, Event, Framer, Item, Stray, TooLong
from dragoman.adapters.streams import Chunk, DeltaRun, Output, PartlyRead
from dragoman.adapters.validation import load_validator

from .completeness import Completeness
from .reply_rules import ReplyRules
from .stream_items import DONE, NOT_JSON, parse_item

__all__ = ["StreamReaderBase"]

_FIRST_EVENTS = 4  # of a read: how many are framed one by one before the rest is framed at once
_UNREADABLE = "upstream_invalid_event"


class _Template(Protocol):
    def match(self, raw: bytes) -> Chunk | None:
        """The chunk in the data of one event; None if the bytes do not match."""

    def match_run(self, data: bytes, at: int) -> tuple[DeltaRun, int] | None:
        """The run of events that begins at the offset `at`, and the offset after it; None if there is none."""


class StreamReaderBase(ABC):
    """A StreamReader. `wrong_event` describes an event that cannot be read, for the message of its fault."""

    wrong_event: ClassVar[str]
    usage: JsonObject | None = None
    place: ClassVar[Path]
    """The path of the changes of a stream."""

    def __init__(self, rules: ReplyRules, ctx: Context, events: str, completeness: Completeness) -> None:
        """`events` names the schema of the provider's own events."""
        self.has_ended = False
        self._ctx = ctx
        self._rules = rules
        self._completeness = completeness
        self._framer = Framer()
        self._template: _Template | None = None
        self._native = load_validator(events, ctx.profile)
        self._protocol = events.partition("/")[2].partition(".")[0]
        self._normalizes = ctx.target.policy.replies in ("repair", "strict")
        self._validates_natively = ctx.target.policy.replies in ("report", "strict")

    def receive(self, data: bytes) -> list[Output]:
        """The outputs that these bytes complete; the result does not depend on how the stream is split into reads.
        Raises PartlyRead for an unexpected error."""
        if self.has_ended:
            return []
        outputs: list[Output] = []
        at = 0
        try:
            for _ in range(_FIRST_EVENTS):
                template = self._template
                if template is not None:
                    is_between = self._framer.between_events
                    if not is_between and not at and (begun := self._framer.take_begun_line(len(data))):
                        data, is_between = begun + data, True
                    if is_between and (found := template.match_run(data, at)) is not None:
                        outputs.append(found[0])
                        at = found[1]
                        break
                end = data.find(b"\n\n", at) + 2
                if end < 2 or end == len(data):
                    break
                self._process_items(self._framer.feed(data[at:end]), outputs)
                if self.has_ended:
                    return outputs
                at = end
            if at < len(data):
                self._process_items(self._framer.feed(data[at:]), outputs)
        except TooLong as error:
            outputs += self._fail_as_too_long(error)
        except Exception as error:
            raise PartlyRead(outputs, error) from error
        return outputs

    def close(self, cut: Fault | None = None) -> list[Output]:
        """The last outputs of the stream; `cut` is the fault of bytes that did not end cleanly. Raises PartlyRead for
        an unexpected error."""
        if self.has_ended:
            return []
        outputs: list[Output] = []
        try:
            items = self._framer.close()
        except TooLong as error:
            if cut is None:
                return self._fail_as_too_long(error)
            items = []
        try:
            self._process_items(items, outputs)
        except TooLong as error:
            return outputs + self._fail_as_too_long(error)
        except Exception as error:
            raise PartlyRead(outputs, error) from error
        if not self.has_ended:
            return outputs + self._conclude(cut)
        last = outputs[-1]
        if isinstance(last, Fault) and last.code == _UNREADABLE and _is_torn_event(items[-1]):
            outputs[-1] = self._completeness.conclude(cut, torn=True)
        return outputs

    def _process_items(self, items: list[Item], outputs: list[Output]) -> None:
        for item in items:
            outputs += self._process_item(item)
            if self.has_ended:
                return

    def _process_item(self, item: Item) -> list[Output]:
        """The outputs of one item of the framer."""
        if isinstance(item, Event):
            data, name = item.data, item.event
            if self._template is not None and (chunk := self._template.match(data)) is not None:
                return [chunk]
        else:
            data, name = item.text.strip(), None
        body, raw = self._parse(data, name)
        try:
            return self._process_body(body, raw, data, name)
        except Fault as fault:
            return self._fail(fault)

    @abstractmethod
    def _process_body(self, body: Any, raw: bytes | None, data: bytes, name: bytes | None) -> list[Output]:
        """The outputs of an event with this `data`, and the name of its `event:` line; `body` and `raw` are what
        `_parse` returns. Only `_conclude` and `_fail` make a terminal. Raises Fault if the event ends the stream."""

    def _parse(self, data: bytes, name: bytes | None) -> tuple[Any, bytes | None]:
        """The value of an item's data, NOT_JSON if it has none, and the bytes that may be forwarded as they are."""
        if data == DONE:
            return NOT_JSON, None  # the end of most streams, without two parsers that refuse it
        if len(data) > REPLY_VALUES and exceeds_values(data, REPLY_VALUES // 2, REPLY_COMMAS):
            raise TooLong(f"a server-sent event has more than {REPLY_VALUES // 2} values")
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError:
            body, reasons = parse_item(data)
            for reason in reasons:
                self._ctx.receipt.record_conversion(self.place, reason, "loss")
            return body, None
        if is_too_deep(body, data):
            return NOT_JSON, None
        # If a payload spans several data lines, its line ends would split the event when its bytes are written.
        return body, data if name is not None and b"\n" not in data else None

    def _handle_idle(self, _body: None, _raw: bytes | None) -> list[Output]:
        return []

    # What ends a stream

    def _conclude(self, cut: Fault | None = None) -> list[Output]:
        """End the stream, which has shown a sign of its end. Returns the terminal that `completeness` decides."""
        terminal = self._completeness.conclude(cut)
        if isinstance(terminal, Fault):
            return self._fail(terminal)
        self.has_ended = True
        return [terminal]

    def _fail(self, fault: Fault) -> list[Output]:
        self.has_ended = True
        ctx = self._ctx
        known = () if ctx.accepted_by is None else load_validator(f"hub/{self._protocol}.request").known
        fault.locate(ctx.receipt, ctx.call.body or None, known=known)
        return [fault]

    def _fail_as_too_long(self, error: TooLong) -> list[Output]:
        return self._fail(Fault("upstream_invalid_response", str(error), code="upstream_response_too_large"))

    def _handle_text(self, text: bytes, raw: bytes | None) -> list[Output]:
        return self._fail(read_stray_text(text))

    def _handle_error(self, body: JsonObject, raw: bytes | None) -> list[Output]:
        return self._fail(read_error_object(body, 200, self._rules.words, self._ctx.clock()))

    def _handle_broken(self, text: bytes, raw: bytes | None) -> list[Output]:
        shown = text[:200].decode("utf-8", "replace")
        message = f"the provider sent {self.wrong_event}: {shown!r}"
        return self._fail(Fault("upstream_invalid_response", message, code=_UNREADABLE))

    def _handle_done(self, _body: None, _raw: bytes | None) -> list[Output]:
        return self._conclude()

    def _record_violation(self, body: JsonObject) -> None:
        """Count a violation of the provider's own schema. Raises Fault under the policy `strict`."""
        self._ctx.receipt.violations += 1
        if self._normalizes and (violation := self._native.first_violation(body)):
            text = f"the provider sent an event that its dialect does not allow: {violation.message}"
            raise Fault("upstream_invalid_response", text, code=_UNREADABLE)


def _is_torn_event(item: Item) -> bool:
    """Whether a last, unfinished item is part of an event, and not plain text that the provider ends with."""
    if not isinstance(item, Stray):
        return True
    name = item.text.partition(b":")[0]
    return item.text[:1] in (b"{", b"[") or any(field.startswith(name) for field in FIELDS)
