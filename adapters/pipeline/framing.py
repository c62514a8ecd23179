"""Bytes of a stream to outputs (replaced by the readers' own `receive`)."""

from __future__ import annotations

from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import FIELDS, Framer, Item, Stray, TooLong
from dragoman.adapters.streams import Output, Run, StreamReader, StreamTranslator, StreamWriter

__all__ = ["FramedReader", "translate_output", "write_output"]

_FIRST = 4


def translate_output(translator: StreamTranslator, output: Output | Run) -> list[Output | Run]:
    return [*(translator.feed_run(output) if isinstance(output, Run) else translator.feed(output))]


def write_output(writer: StreamWriter, output: Output | Run) -> bytes:
    return writer.write_run(output) if isinstance(output, Run) else writer.write(output)


class FramedReader:
    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self._framer = Framer()

    @property
    def ended(self) -> bool:
        return self._reader.ended

    def receive(self, data: bytes) -> list[Output | Run]:
        try:
            return self._read(data)
        except TooLong as error:
            return [Fault("upstream_invalid_response", str(error), code="upstream_response_too_large")]

    def _read(self, data: bytes) -> list[Output | Run]:
        outputs: list[Output | Run] = []
        at, framer, reader = 0, self._framer, self._reader
        for _ in range(_FIRST):
            run = reader.run(data, at) if framer.between_events else None
            if run is not None:
                outputs.append(run)
                at += run.size
                break
            end = data.find(b"\n\n", at) + 2
            if end < 2 or end == len(data):
                break
            outputs += _fed(reader, framer.feed(data[at:end]))
            at = end
        if at < len(data):
            outputs += _fed(reader, framer.feed(data[at:]))
        return outputs

    def close(self, cut: Fault | None = None) -> list[Output | Run]:
        framer, reader = self._framer, self._reader
        try:
            items = framer.close()
        except TooLong as error:
            if cut is None:
                return [Fault("upstream_invalid_response", str(error), code="upstream_response_too_large")]
            items = []
        outputs = _fed(reader, items)
        if not reader.ended:
            return [*outputs, *reader.close(cut)]
        last = outputs[-1]
        torn = isinstance(last, Fault) and last.code == "upstream_invalid_event" and _is_part(items[-1])
        return [*outputs[:-1], cut or _torn()] if torn else [*outputs]


def _fed(reader: StreamReader, items: list[Item]) -> list[Output]:
    if len(items) == 1:
        return reader.feed(items[0])
    return [output for item in items for output in reader.feed(item)]


def _is_part(item: Item) -> bool:
    if not isinstance(item, Stray):
        return True
    name = item.text.partition(b":")[0]
    return item.text[:1] in (b"{", b"[") or any(field.startswith(name) for field in FIELDS)


def _torn() -> Fault:
    text = "the provider's stream ended in the middle of an event"
    return Fault("upstream_invalid_response", text, code="upstream_truncated")
