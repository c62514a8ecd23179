"""Chunks that only differ in their text: the short way gives what the long way gives, whatever the bytes."""

from __future__ import annotations

import json
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Change, Receipt
from dragoman.adapters.common.chunk_template import ChunkTemplate
from dragoman.adapters.sse import encode
from dragoman.adapters.streams import Chunk, DeltaRun
from dragoman.contract.json_types import JsonObject, JsonValue

FORMS = {
    "plain": {"delta": {"content": "TEXT"}, "finish_reason": None},
    "with its role": {"delta": {"role": "assistant", "content": "TEXT"}, "finish_reason": None},
    "without finish": {"delta": {"content": "TEXT"}, "logprobs": None},
    "in blocks": {"delta": {"content": [{"type": "text", "text": "TEXT"}]}, "finish_reason": None},
    "as reasoning": {"delta": {"reasoning_content": "TEXT"}, "finish_reason": None},
    "said twice": {"delta": {"content": "TEXT"}, "finish_reason": None, "copy": "TEXT"},
}


def chunk(form: str, text: str, *, ascii_only: bool = True, **more: JsonValue) -> bytes:
    choice = json.loads(json.dumps(FORMS[form]).replace('"TEXT"', json.dumps(text)))
    body = {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, **choice}],
    }
    return json.dumps({**body, **more}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


def read(
    events: list[bytes], usage: bool, short: bool, sizes: list[int] | None = None
) -> tuple[list[JsonObject | str], bytes, list[Change]]:
    """The outputs, their bytes for a client, and the receipt's changes. `sizes` are those of the reads; without them
    each event is torn between its line ends, so that there are no runs."""
    request = {"stream": True, "stream_options": {"include_usage": usage}}
    ctx = Context("actual", Call("POST", "/", request), Receipt(), Target("m"), request, clock=lambda: 1.0)
    reader, writer = (
        dialects["openai"].called["chat"].read_stream(ctx),
        dialects["openai"].served["chat"].write_stream(ctx),
    )
    with pytest.MonkeyPatch.context() as patch:
        if not short:
            patch.setattr(ChunkTemplate, "learn", lambda *_: None)
        reads = [part for event in map(encode, events) for part in (event[:-1], event[-1:])]
        if sizes is not None:
            reads = cut(b"".join(reads), sizes)
        outputs = [output for part in reads for output in reader.receive(part)]
    written = b"".join(map(writer.write, outputs))
    chunks = [one for output in outputs for one in (output.chunks() if isinstance(output, DeltaRun) else [output])]
    bodies = [one.body if isinstance(one, Chunk) else str(one) for one in chunks]
    return bodies, written, ctx.receipt.changes


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    ends = [0, *accumulate(sizes), len(data)]
    return [data[start:end] for start, end in pairwise(ends) if data[start:end]]


EVENTS = st.one_of(
    st.builds(chunk, st.sampled_from(sorted(FORMS)), st.text(), ascii_only=st.booleans()),
    st.builds(
        chunk, st.just("plain"), st.sampled_from(["", "a", "plain", '"', "\\", "\n", "é", '"},"finish_reason":"stop'])
    ),
    st.builds(chunk, st.just("plain"), st.text(), usage=st.none()),
    st.just(b'{"choices": [], "remark": "to be kept", "usage": null}'),
    st.just(b'{"id": "x", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "length"}]}'),
)


@given(st.lists(EVENTS, max_size=12), st.booleans())
def test_the_short_way_is_as_good(events: list[bytes], usage: bool) -> None:
    assert read(events, usage, short=True) == read(events, usage, short=False)


@given(st.lists(EVENTS, max_size=12), st.booleans(), st.lists(st.integers(1, 400), max_size=12))
def test_where_a_read_ends_does_not_matter(events: list[bytes], usage: bool, sizes: list[int]) -> None:
    assert read(events, usage, True, sizes) == read(events, usage, True)


@pytest.mark.parametrize("torn_at", [1, 8, 100, -2, -1])
def test_an_event_that_a_read_tears_apart_is_a_part_of_a_run(torn_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    matched: list[Chunk | None] = []
    match = ChunkTemplate.match
    monkeypatch.setattr(ChunkTemplate, "match", lambda self, raw: matched.append(match(self, raw)) or matched[-1])
    events = [chunk("plain", f"word{i:02}") for i in range(12)]
    sizes = [len(b"".join(map(encode, events[:count]))) + torn_at % len(encode(events[0])) for count in (4, 8)]
    bodies, *_ = read(events, False, True, [sizes[0], sizes[1] - sizes[0]])
    assert len(bodies) == 12
    assert bool(matched) == (torn_at == -1), "if only the blank line is missing, an event is read alone"


@given(st.binary(max_size=40))
def test_any_bytes_in_the_place_of_the_text(middle: bytes) -> None:
    whole = chunk("plain", "TEXT")
    events = [whole, whole, whole.replace(b"TEXT", middle)]
    assert read(events, False, short=True) == read(events, False, short=False)


@pytest.mark.parametrize("form", ["plain", "with its role", "without finish"])
@pytest.mark.parametrize("usage", [False, True])
def test_most_chunks_go_the_short_way(form: str, usage: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    matched = []
    match = ChunkTemplate.match
    monkeypatch.setattr(ChunkTemplate, "match", lambda self, raw: matched.append(match(self, raw)) or matched[-1])
    read([chunk(form, f"word{i}") for i in range(10)], usage, short=True)
    assert sum(one is not None for one in matched) == 8


def test_a_stream_in_which_no_two_chunks_are_alike_is_not_remembered_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    of = ChunkTemplate.learn
    monkeypatch.setattr(ChunkTemplate, "learn", lambda *words: made.append(of(*words)) or made[-1])
    events = [chunk("plain", "a", obfuscation=f"{i:x}") for i in range(100)]
    bodies, *_ = read(events, False, short=True)
    assert (len(bodies), len(made)) == (100, 8)


MIDDLES = st.one_of(
    st.text().map(lambda text: json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")[1:-1]),
    st.sampled_from(
        [b"", b"a\nb", b'"', b"\\", b'"}\n\nda', b"}\n\nev", b'a"},"finish_reason":"stop', b"\xff", b"\\ud800"]
    ),
    st.binary(max_size=6),
)


@given(st.lists(MIDDLES, min_size=1, max_size=8), st.sampled_from([b"data: ", b"event: piece\ndata: "]), st.binary())
def test_a_run_that_is_split_at_once_is_the_one_that_is_found_event_by_event(
    middles: list[bytes], begin: bytes, rest: bytes
) -> None:
    raw = chunk("plain", "TEXT")
    template = ChunkTemplate.learn(json.loads(raw), raw, True, ("choices", 0, "delta", "content"), begin)
    assert template is not None
    data = b"".join(begin + raw.replace(b"TEXT", middle) + b"\n\n" for middle in middles)
    data += begin + rest if rest else b""
    at_once = template.match_run(data, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChunkTemplate, "_split_alike", lambda *_: [b"\n"])
        one_by_one = template.match_run(data, 0)
    found = [one and (one[0].texts, one[0].data, one[1]) for one in (at_once, one_by_one)]
    assert found[0] == found[1]
    if all(middle.isalpha() for middle in middles):
        assert found[0] and found[0][0] == middles
