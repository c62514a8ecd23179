"""Reading the reply to one call: from status, headers and bytes to canonical form in the client's protocol.

An error is a body, which is collected, bounded, and parsed at its end. Of any other reply the first bytes decide what
it is (`body_form`); until they do, they are collected too. Everything may be compressed.

    form      the client asked for a stream             it did not
    --------  ----------------------------------------  ---------------------------------------------
    events    outputs, as the bytes come                the stream is assembled into one reply
    json      a body: one reply                         a body: one reply
"""

from __future__ import annotations

from functools import lru_cache

from dragoman.adapters.call import Call, Context, Headers, JsonObject, Reply
from dragoman.adapters.changes import Receipt
from dragoman.adapters.common.reply_validation import find_error
from dragoman.adapters.decompression import BadEncoding, DecompressedTooLarge, Decompressor, create_decompressor
from dragoman.adapters.emulation.rewritten_call import RewrittenCall
from dragoman.adapters.error_texts import extract_text
from dragoman.adapters.faults import Fault
from dragoman.adapters.json_repair import parse_leniently
from dragoman.adapters.json_structure import REPLY_COMMAS, REPLY_VALUES, exceeds_values
from dragoman.adapters.streams import Output, PartlyRead, StreamReader, StreamTranslator
from dragoman.adapters.validation import load_validator

from .assembly import StreamAssembler
from .body_form import BodyForm, detect_form
from .plan import ProtocolPlan
from .stream_usage import REFUSALS, names_option, remember_refusal

__all__ = ["REPLY_LIMIT", "SSE", "ReplyReader"]

REPLY_LIMIT = 64 * 1024 * 1024
"""Bytes of a reply that is collected, after decompression."""

SSE = "text/event-stream"
_EVENT_TYPES = (SSE, "application/x-ndjson", "application/jsonl", "application/json-lines")
"""What says that a body is a stream. Of JSON lines each is an event without `data:`."""

_ANSWERS = ("choices", "output", "data")  # the keys of replies that hold what the model said
_READ, _SHOWN = 4096, 100
"""Of a reply that is no JSON: the bytes that its fault looks at, and the characters that it shows."""


class ReplyReader:
    """Reads one reply. `request` is the client's request in canonical form, `ctx` the context of the call, `rewritten`
    what emulations have made of it."""

    status = 0
    headers: Headers = {}  # noqa: RUF012 - never altered
    reply: JsonObject | None = None  # a whole reply, in canonical form
    further: RewrittenCall | None = None  # the call that the reply makes necessary
    is_stream = False
    has_ended = False  # nothing more is read of this reply
    is_pending = False  # there is more to decompress in what was received
    call_without_usage: Call | None = None  # to be made if the provider refuses to be asked for the usage
    is_without_usage = False  # the call was refused with that option, and is made again without it

    _decompressor: Decompressor | None = None
    _form: BodyForm | None = None
    _media_type = ""
    _is_labelled = False  # its type says that it is a stream
    _is_error = False
    _names_usage = False  # it is an error that mentions the option for the usage of streams
    _wants_stream = False
    _assembler: StreamAssembler | None = None
    _stream: StreamReader | None = None
    _translator: StreamTranslator | None = None
    _size = 0

    def __init__(
        self,
        plan: ProtocolPlan,
        provider: str,
        ctx: Context,
        request: JsonObject,
        rewritten: RewrittenCall | None = None,
    ) -> None:
        self._plan = plan
        self.rewritten = rewritten
        self._provider = provider
        self.ctx = ctx
        self._request = request
        self._parts: list[bytes] = []

    @property
    def is_assembled(self) -> bool:
        """True once a stream that was not asked for has ended: `close` makes a reply of it."""
        return self._assembler is not None and self._assembler.is_complete

    @property
    def is_collecting(self) -> bool:
        """True if bytes are only kept until the reply ends."""
        return self._stream is None and self._assembler is None

    @property
    def may_stream(self) -> bool:
        """False if a stream is held: the call asks for a whole reply."""
        return self.rewritten is None or self.ctx.request.get("stream") is True

    @property
    def receipt(self) -> Receipt:
        return self.ctx.receipt

    @property
    def usage(self) -> JsonObject | None:
        """The usage of a stream that has ended, in the provider's protocol, if the client did not ask for it."""
        return None if self._stream is None else self._stream.usage

    def refuses_usage(self, error: Exception) -> bool:
        """Whether the provider refused the call, as `error` says, because of the option for the usage of streams."""
        return self._names_usage and isinstance(error, Fault) and error.kind in REFUSALS

    def start(self, status: int, headers: Headers, *, wants_stream: bool) -> None:
        """Take the head. Header names are looked up in lower case. Raises Fault."""
        self.status, self.headers, self._wants_stream = status, headers, wants_stream
        if not 200 <= status < 300:  # a status of 0 is an error's that is not known
            self._is_error, self._form = True, "json"
        elif self.is_without_usage:
            remember_refusal(self.ctx)
        if 300 <= status < 400:
            raise self._invalid("it redirects, which is not followed", "upstream_redirect")
        if (encoding := headers.get("content-encoding")) is not None:
            self._decompressor = self._create_decompressor(encoding)
        self._media_type = media_type = _read_media_type(headers.get("content-type", ""))
        self._is_labelled = media_type in _EVENT_TYPES or (wants_stream and not media_type)
        if not self._is_labelled and int(headers.get("content-length") or 0) > REPLY_LIMIT:
            raise self._too_large()

    def receive(self, data: bytes) -> list[Output]:
        """Take bytes; empty bytes go on with what is pending. The outputs of a stream. Raises Fault for a body that is
        too large or wrongly compressed; PartlyRead for an unexpected error."""
        if self._decompressor is not None:
            data = self._decompress(self._decompressor, data)
            self.is_pending = self._decompressor.pending
        if self._stream is None:
            data = self._receive_whole(data)
        if self._stream is None:
            return []
        try:
            outputs = self._stream.receive(data) if data else []
        except PartlyRead as partly:
            raise PartlyRead(self._translate(partly.outputs), partly.error) from partly.error
        self.has_ended = self._stream.has_ended
        return outputs if self._translator is None else self._translate(outputs)

    def close(self, cut: Fault | None = None) -> list[Output]:
        """The bytes ended; `cut` says how, if not cleanly. The last outputs of a stream; a body becomes `reply`.
        Raises Fault, its path the client's, also if the reply reports an error."""
        self.has_ended = True
        if cut is None and self._decompressor is not None:
            cut = self._close_decompressor(self._decompressor)
        data = self._decide_form(ended=True) if self._form is None else b""
        if self._stream is not None:
            outputs = self._stream.receive(data) if data else []
            outputs += self._stream.close(cut)
            return self._translate(outputs)
        try:
            self.reply = self._close_whole(cut)
        except Fault as fault:
            located = fault if self._assembler is not None else self._locate(fault)
            raise located from None
        finally:
            self._parts = []
        return []

    def _locate(self, fault: Fault) -> Fault:
        known = load_validator(f"hub/{self._plan.protocol}.request").known if self._plan.bridge is None else ()
        return fault.locate(self.ctx.receipt, self.ctx.call.body or None, known=known)

    # The form of the reply

    def _receive_whole(self, data: bytes) -> bytes:
        """Take bytes of what is no stream of the client's, or not yet. Returns the bytes of a stream that they open."""
        if self._assembler is not None:
            self._assembler.receive(data)
            return b""
        self._collect(data)
        return self._decide_form() if self._form is None else b""

    def _decide_form(self, *, ended: bool = False) -> bytes:
        """Decide the form by the bytes so far, if they suffice. Returns the bytes of a stream that they open."""
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._form = detect_form(data, labelled_events=self._is_labelled, wants_stream=self._wants_stream, ended=ended)
        if self._form != "events":
            return b""
        self._parts = []
        if self._wants_stream:
            self._open_stream()
            return data
        self._assembler = StreamAssembler(self._plan, self.ctx)
        self._assembler.receive(data)
        return b""

    def _open_stream(self) -> None:
        stream = self._plan.called.read_stream(self.ctx)
        self._stream, self.is_stream = stream if self.rewritten is None else self.rewritten.wrap_stream(stream), True
        if self._plan.bridge is not None:
            self._translator = self._plan.bridge.stream(self._request, self.ctx)

    def _translate(self, outputs: list[Output]) -> list[Output]:
        """The outputs in the client's protocol. Raises PartlyRead."""
        translator = self._translator
        if translator is None:
            return outputs
        if len(outputs) == 1:
            return translator.feed(outputs[0])
        made: list[Output] = []
        try:
            for output in outputs:
                made += translator.feed(output)
        except Exception as error:
            raise PartlyRead(made, error) from error
        return made

    def _collect(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size > REPLY_LIMIT:
            raise self._too_large()

    def _close_whole(self, cut: Fault | None) -> JsonObject | None:
        """The whole reply in the client's protocol; None if a further call is needed first. Raises Fault."""
        hub: JsonObject | None
        if self._assembler is not None:
            hub = self._assembler.close(cut)
        elif cut is not None:
            raise cut
        else:
            hub = self._read_body(b"".join(self._parts))
        if self.rewritten is not None:
            hub = self.rewritten.take_reply(hub)
            self.further = self.rewritten if hub is None else None
        return (
            hub if hub is None or self._plan.bridge is None else self._plan.bridge.reply(hub, self._request, self.ctx)
        )

    def _read_body(self, raw: bytes) -> JsonObject:
        if exceeds_values(raw, REPLY_VALUES, REPLY_COMMAS):
            raise self._invalid(f"its reply has more than {REPLY_VALUES} values", "upstream_response_too_large")
        body = _parse_object(raw, self.ctx.receipt)
        reply = Reply(self.status, body or {}, self.headers, raw)
        if self._is_error:
            self._names_usage = names_option(raw)
            raise self._plan.called.read_fault(reply, self.ctx)
        if body is None:
            code = "upstream_invalid_json" if self._has_known_end() else "upstream_truncated"
            raise self._invalid(f"its reply is not a JSON object: {self._describe(raw)}", code)
        return self._plan.called.read_reply(reply, self.ctx)

    def _describe(self, raw: bytes) -> str:
        label = f"its type is {self._media_type}" if self._media_type else "it has no type"
        text = extract_text(raw[:_READ].decode("utf-8", "replace"))[:_SHOWN]
        return f"{label}, and it begins with {text!r}" if text else f"{label}, and it has {len(raw)} bytes without text"

    def _has_known_end(self) -> bool:
        """False if only the end of the connection shows where the body ends."""
        return "content-length" in self.headers or "transfer-encoding" in self.headers

    # Compression and size

    def _create_decompressor(self, encoding: str) -> Decompressor | None:
        try:
            return create_decompressor(encoding, REPLY_LIMIT)
        except BadEncoding as error:
            raise self._invalid(str(error), "upstream_invalid_encoding") from None

    def _decompress(self, decompressor: Decompressor, data: bytes) -> bytes:
        try:
            return decompressor.feed(data)
        except DecompressedTooLarge:
            raise self._too_large() from None
        except BadEncoding as error:
            raise self._invalid(str(error), "upstream_invalid_encoding") from None

    def _close_decompressor(self, decompressor: Decompressor) -> Fault | None:
        try:
            decompressor.close()
        except BadEncoding as error:
            return self._invalid(str(error), "upstream_invalid_encoding")
        return None

    def _too_large(self) -> Fault:
        return self._invalid(f"its reply is larger than {REPLY_LIMIT // 1024**2} MiB", "upstream_response_too_large")

    def _invalid(self, text: str, code: str) -> Fault:
        return Fault("upstream_invalid_response", f"{self._provider}: {text}", code=code)


@lru_cache(maxsize=64)
def _read_media_type(header: str) -> str:
    """The media type of a header, without its parameters."""
    return header.partition(";")[0].strip().lower()


def _parse_object(raw: bytes, receipt: Receipt) -> JsonObject | None:
    """The object that a body is, or the error object in a list; None if it is neither. Repairs are losses."""
    try:
        body, repairs = parse_leniently(raw)
    except ValueError:
        return None
    if not isinstance(body, dict):
        return find_error(body)
    for reason in repairs:
        receipt.record_conversion((next((key for key in _ANSWERS if key in body), "error"),), reason, "loss")
    return body
