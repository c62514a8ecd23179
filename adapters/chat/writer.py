"""Writes chat streams: hub chunks in, data-only server-sent events out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import orjson

from dragoman.adapters.call import JsonObject
from dragoman.adapters.changes import Receipt
from dragoman.adapters.common.stream_writer import StreamWriterBase
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, DeltaRun

from .tool_call_serializer import ToolCallSerializer

__all__ = ["ChatStreamWriter", "RenderingStreamWriter", "UsagePlace"]

UsagePlace: TypeAlias = Literal["with the finish", "nowhere"]

_DONE = b"data: [DONE]\n\n"
_ENVELOPE = frozenset({"id", "object", "created", "model", "choices", "system_fingerprint"})
_EVENT = b"data: %b%b%b\n\n"


class ChatStreamWriter(StreamWriterBase):
    """`write_stream` of chat.

    `fault_event` makes the object that reports a fault to a client. No `[DONE]` follows it, so that no client mistakes
    a broken stream for a complete one. `aborts_on_fault`: a fault sets `aborts`.
    """

    def __init__(self, fault_event: Callable[[Fault], JsonObject], *, aborts_on_fault: bool = False) -> None:
        super().__init__()
        self._fault_event = fault_event
        self._aborts_on_fault = aborts_on_fault
        self._run_body: JsonObject | None = None  # whose runs are written with `_frame`
        self._frame = b"", b""
        self._calls = ToolCallSerializer()

    def _encode_chunk(self, chunk: Chunk) -> bytes:
        return self._write_chunk(self._calls.serialize(chunk))

    def _encode_run(self, run: DeltaRun) -> bytes:
        if not self._calls.takes_run(run):
            return b"".join(map(self._encode_chunk, run.chunks()))
        if run.data is not None:
            return run.data
        if run.body is not self._run_body:
            self._run_body, self._frame = run.body, run.frame()
        before, after = self._frame
        return b"".join([_EVENT % (before, text, after) for text in run.encoded_texts()])

    def _encode_end(self) -> bytes:
        return self._write_held() + _DONE

    def _encode_fault(self, fault: Fault) -> bytes:
        self.aborts = self._aborts_on_fault
        return self._write_held() + _encode_event(self._fault_event(fault))

    def _write_chunk(self, chunk: Chunk) -> bytes:
        return b"data: " + (chunk.raw or orjson.dumps(chunk.body)) + b"\n\n"

    def _write_held(self) -> bytes:
        """The bytes of the held chunk; empty if none is held."""
        return b""


class RenderingStreamWriter(ChatStreamWriter):
    """`write_stream` of a dialect whose chunks differ from the hub's: `render` converts each chunk.

    The hub has usage in a last chunk of its own. These dialects have it in the chunk with the finish reason, which is
    therefore held until the next output, or they have none.
    """

    def __init__(
        self,
        fault_event: Callable[[Fault], JsonObject],
        render: Callable[[JsonObject], JsonObject],
        usage: UsagePlace,
        receipt: Receipt,
        *,
        aborts_on_fault: bool = False,
    ) -> None:
        """`receipt` records what the dialect's chunks have no place for."""
        super().__init__(fault_event, aborts_on_fault=aborts_on_fault)
        self._receipt = receipt
        self._render = render
        self._usage = usage
        self._held: JsonObject | None = None
        self._held_event = b""

    def _encode_run(self, run: DeltaRun) -> bytes:
        write = self._write_chunk if self._calls.takes_run(run) else self._encode_chunk
        return b"".join(map(write, run.chunks()))

    def _write_chunk(self, chunk: Chunk) -> bytes:
        body = {key: value for key, value in chunk.body.items() if key != "usage"}
        if not body["choices"]:
            return self._write_usage(chunk.body)
        before = self._write_held()
        usage = chunk.body.get("usage")
        if self._usage == "nowhere" or not any(choice.get("finish_reason") for choice in body["choices"]):
            self._record_unwritten("usage", usage)
            return before + _encode_event(self._render(body))
        self._held = chunk.body if usage else body
        self._held_event = _encode_event(self._render(self._held))
        return before

    def _write_usage(self, body: JsonObject) -> bytes:
        held, usage = self._held, body.get("usage")
        if self._usage == "nowhere" or held is None or not usage:
            for key in body.keys() - _ENVELOPE:
                self._record_unwritten(key, body[key])
            return b""
        if held.get("usage") and held["usage"] != usage:
            self._receipt.record_drop(("usage",), "the last counts of a stream are used")
        for key in (body.keys() & held.keys()) - {"choices", "usage"}:
            if body[key] != held[key]:
                self._record_unwritten(key, body[key])
        self._held_event = _encode_event(self._render({**body, **held, "usage": usage}))
        return self._write_held()

    def _record_unwritten(self, key: str, value: Any) -> None:
        if value is not None:
            self._receipt.record_drop((key,), "the client's dialect has it only in a chunk with a finish reason")

    def _write_held(self) -> bytes:
        event, self._held, self._held_event = self._held_event, None, b""
        return event


def _encode_event(body: JsonObject) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"
