"""What the writers and translators of all protocols share: one terminal closes them, deltas may come many at once."""

from __future__ import annotations

import pytest

from dragoman.adapters.common.stream_translator import StreamTranslatorBase
from dragoman.adapters.common.stream_writer import StreamWriterBase
from dragoman.adapters.faults import Fault
from dragoman.adapters.streams import Chunk, DeltaRun, End, Output, count_events, expand
from dragoman.contract.json_types import JsonObject

RUN = DeltaRun({"a": {"t": "x"}}, ("a", "t"), [b"one", b"t\\u0077o", b'"'.replace(b'"', b'\\"')])
BODIES = [{"a": {"t": "one"}}, {"a": {"t": "two"}}, {"a": {"t": '"'}}]
BROKEN = Fault("upstream_timeout", "late")


class Writer(StreamWriterBase):
    def _encode_chunk(self, chunk: Chunk) -> bytes:
        return f"<{chunk.body['a']['t']}>".encode()

    def _encode_end(self) -> bytes:
        return b"end"

    def _encode_fault(self, fault: Fault) -> bytes:
        return fault.message.encode()


class Translator(StreamTranslatorBase):
    def _translate_chunk(self, body: JsonObject) -> list[Output]:
        return [Chunk({"b": body["a"]["t"]})]


def test_a_run_is_its_chunks() -> None:
    assert [chunk.body for chunk in RUN.chunks()] == BODIES
    assert expand([RUN, End()]) == [*map(Chunk, BODIES), End()]
    assert [count_events(one) for one in (RUN, Chunk({}), End(), BROKEN)] == [3, 1, 0, 0]
    before, after = RUN.frame()
    assert [before + text + after for text in RUN.encoded_texts()] == [
        b'{"a":{"t":"one"}}',
        b'{"a":{"t":"two"}}',
        b'{"a":{"t":"\\""}}',
    ]


@pytest.mark.parametrize(("terminal", "written"), [(End(), b"end"), (BROKEN, b"late")])
def test_the_first_terminal_closes_a_writer(terminal: Output, written: bytes) -> None:
    writer = Writer()
    assert writer.write(RUN) == b'<one><two><">'
    assert writer.write(terminal) == written
    assert [writer.write(one) for one in (RUN, Chunk(BODIES[0]), End(), BROKEN)] == [b""] * 4
    assert writer.dropped == 4


@pytest.mark.parametrize("terminal", [End(), BROKEN])
def test_the_first_terminal_closes_a_translator_and_stays_what_it_is(terminal: Output) -> None:
    translator = Translator()
    assert translator.feed(RUN) == [Chunk({"b": "one"}), Chunk({"b": "two"}), Chunk({"b": '"'})]
    assert translator.feed(terminal) == [terminal]
    assert [translator.feed(one) for one in (RUN, Chunk(BODIES[0]), End(), BROKEN)] == [[]] * 4
    assert translator.dropped == 4
