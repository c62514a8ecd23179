from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.adapters.sse import Event, Framer, Item, Stray, TooLong, encode
from tests.tables import for_each

FIXTURES = sorted((Path(__file__).parent / "fixtures/sse").glob("*.sse"))

FIELDS = [b"data: ", b"data:", b"data", b"event: e", b"id: 1", b"retry: 5", b": c", b":", b"{}", b"[DONE]", b"foo: bar"]
PARTS = [b" ", b"x", b"\xc3\xa9", b"\xef\xbb\xbf", b"\xef", b"\n", b"\n\n", b"\r", b"\r\n", b"\r\n\r\n", b"data: y\n\n"]
PIECES = st.lists(st.sampled_from(FIELDS + PARTS), max_size=25).map(b"".join)


def frame(*chunks: bytes, limit: int = 1000) -> list[Item]:
    framer = Framer(limit)
    items = [item for chunk in chunks for item in framer.feed(chunk)]
    return items + framer.close()


def reference(data: bytes) -> list[Event]:
    """The event stream format as a browser reads it, on a whole stream that ends in a blank line."""
    lines = re.split(b"\r\n|\r|\n", data.removeprefix(b"\xef\xbb\xbf"))
    events, buffer, name = [], b"", b""
    for line in lines:
        if line == b"":
            if buffer:
                events.append(Event(buffer[:-1], name))
            buffer, name = b"", b""
        elif not line.startswith(b":"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                buffer += value + b"\n"
            elif field == b"event":
                name = value
    return events


@for_each(
    ("data", "items"),
    [
        (b"", []),
        (b"data: a\n\n", [Event(b"a")]),
        (b"data: a\n\ndata: b\n\n", [Event(b"a"), Event(b"b")]),
        (b"data:a\n\n", [Event(b"a")]),
        (b"data:  a\n\n", [Event(b" a")]),
        (b"data\n\n", [Event(b"")]),
        (b"data: \n\n", [Event(b"")]),
        (b"data\ndata\n\n", [Event(b"\n")]),
        (b"data: a\ndata: b\n\n", [Event(b"a\nb")]),
        (b"\n\n\ndata: a\n\n\n\n", [Event(b"a")]),
        (b"event: e\ndata: a\n\ndata: b\n\n", [Event(b"a", b"e"), Event(b"b")]),
        (b"event: e\n\ndata: b\n\n", [Event(b"b")]),
        (b"id: 1\nretry: 10\ndata: a\n\n", [Event(b"a")]),
        (b": ping\n\n:\n\ndata: a\n: pong\n\n", [Event(b"a")]),
        (b"data: a\r\rdata: b\r\n\r\n", [Event(b"a"), Event(b"b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
        (b"data: \xef\xbb\xbfa\n\n", [Event(b"\xef\xbb\xbfa")]),
        (b'{"a": 1}\n', [Stray(b'{"a": 1}')]),
        (b"[DONE]\n", [Stray(b"[DONE]")]),
        (b"Data: a\n\n", [Stray(b"Data: a")]),
        (b" data: a\n\n", [Stray(b" data: a")]),
        (b"foo: bar\ndata: a\n\n", [Stray(b"foo: bar"), Event(b"a")]),
        (b"data: a\nEngine callback timeout: x\n\n", [Event(b"a"), Stray(b"Engine callback timeout: x")]),
        (b"event: e\nfoo\ndata: a\n\n", [Stray(b"foo"), Event(b"a", b"e")]),
    ],
)
def test_items(data: bytes, items: list[Item]) -> None:
    framer = Framer()
    assert framer.feed(data) == items
    assert framer.close() == []


@pytest.mark.parametrize(
    ("data", "items"),
    [
        (b"data: a\n", [Event(b"a")]),
        (b"data: a", [Event(b"a")]),
        (b"data: a\ndata: b", [Event(b"a\nb")]),
        (b"event: e\ndata: a", [Event(b"a", b"e")]),
        (b"data: a\ndat", [Event(b"a"), Stray(b"dat")]),
        (b"dat", [Stray(b"dat")]),
        (b"database", [Stray(b"database")]),
        (b"event: e", [Stray(b"event: e")]),
        (b'{"error":', [Stray(b'{"error":')]),
        (b"Failed to get engine response", [Stray(b"Failed to get engine response")]),
        (b"\xef\xbb", [Stray(b"\xef\xbb")]),
        (b"\xef\xbb\xbf", []),
        (b": ping", []),
        (b"event: e\n", []),
        (b"data: a\r", [Event(b"a")]),
    ],
)
def test_close_gives_what_was_left(data: bytes, items: list[Item]) -> None:
    framer = Framer()
    assert framer.feed(data) == []
    assert framer.close() == items
    assert framer.close() == []


def test_events_come_out_as_soon_as_their_blank_line_does() -> None:
    framer = Framer()
    assert framer.feed(b"data: a\n\r") == [Event(b"a")]
    assert framer.feed(b"\ndata: b\r\n\r") == [Event(b"b")]
    assert framer.feed(b"\n") == []
    assert framer.close() == []


def test_strays_come_out_with_their_line() -> None:
    framer = Framer()
    assert framer.feed(b"[DO") == []
    assert framer.feed(b"NE]\r") == [Stray(b"[DONE]")]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_byte_by_byte(path: Path) -> None:
    data = path.read_bytes()
    whole = frame(data)
    assert whole
    assert frame(*(data[i : i + 1] for i in range(len(data)))) == whole


def test_fixture_of_every_feature() -> None:
    items = frame((Path(__file__).parent / "fixtures/sse/named_crlf.sse").read_bytes())
    assert items == [Event(b'{"a":\n 1}', b"response.created"), Event(b""), Event(b"x")]


@given(PIECES, st.data())
def test_any_split_gives_the_same_items(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=6)))
    chunks = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert frame(*chunks) == frame(data)
    assert frame(*(bytes([byte]) for byte in data)) == frame(data)


@given(PIECES)
def test_well_formed_streams_read_as_a_browser_reads_them(data: bytes) -> None:
    fields = (b"data", b"event", b"id", b"retry", b"")
    lines = re.split(b"\r\n|\r|\n", data.removeprefix(b"\xef\xbb\xbf"))
    known = b"\n".join(line for line in lines if line.partition(b":")[0] in fields) + b"\n\n"
    assert frame(known) == reference(known)


@given(PIECES)
def test_no_line_is_lost(data: bytes) -> None:
    items = frame(data)
    fields = (b"data", b"event", b"id", b"retry", b"")
    lines = re.split(b"\r\n|\r|\n", data.removeprefix(b"\xef\xbb\xbf"))
    strays = [line for line in lines[:-1] if line.partition(b":")[0] not in fields]
    assert [item.text for item in items if isinstance(item, Stray)][: len(strays)] == strays
    written = [line.partition(b":")[2].removeprefix(b" ") for line in lines if line.partition(b":")[0] == b"data"]
    assert b"\n".join(item.data for item in items if isinstance(item, Event)) == b"\n".join(written)


@given(st.binary(max_size=60), st.sampled_from([b"", b"response.created"]))
def test_round_trip(data: bytes, event: bytes) -> None:
    read = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert frame(encode(data, event)) == [Event(read, event)]


def test_encode() -> None:
    assert encode(b"{}") == b"data: {}\n\n"
    assert encode(b"a\r\nb", b"e") == b"event: e\ndata: a\ndata: b\n\n"


@pytest.mark.parametrize(
    "data",
    [b"data: " + b"x" * 95 + b"\n\n", b"data: 1\n" * 20, b"x" * 101, b"x" * 101 + b"\n", b": " + b"x" * 99 + b"\n"],
)
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_too_long(data: bytes, step: int) -> None:
    framer = Framer(limit=100)
    with pytest.raises(TooLong, match="longer than 100 bytes"):
        for start in range(0, len(data), step):
            framer.feed(data[start : start + step])


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_the_limit_itself_is_fine(step: int) -> None:
    data = (b"data: " + b"x" * 94 + b"\n\n") * 5
    assert frame(*(data[i : i + step] for i in range(0, len(data), step)), limit=100) == [Event(b"x" * 94)] * 5


@given(PIECES, st.integers(0, 60), st.integers(0, 60))
@example(b"data: a\ndata: b\n\n", 10, 9)
@example(b"event: e\ndata: b\n\n", 10, 9)
@example(b"data: b\n\n", 5, 4)
@example(b"\xef\xbb\xbfdata: b\n\n", 1, 9)
def test_a_begun_line_that_is_taken_back_is_fed_again(stream: bytes, at: int, most: int) -> None:
    expected, framer = Framer(), Framer()
    items = framer.feed(stream[:at])
    begun = framer.take_begun_line(most)
    assert len(begun) <= most
    assert framer.between_events or not begun
    items += framer.feed(begun + stream[at:]) + framer.close()
    assert items == expected.feed(stream) + expected.close()
