"""Chunks of text and of reasoning are recognized by their bytes: the client gets what it would get without."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.common.chunk_template import ChunkTemplate
from dragoman.adapters.streams import DeltaRun, Output
from dragoman.contract.json_types import JsonObject

ENVELOPE = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
REQUEST: JsonObject = {"model": "m", "messages": [], "stream": True}
SAID = st.text(max_size=3)
KEYS = st.sampled_from(["content", "reasoning_content", "reasoning", "refusal"])
REST = st.sampled_from([{}, {"tool_calls": None}, {"content": None}, {"content": ""}, {"reasoning_content": None}])
CITED = {"type": "text", "text": "cited", "citations": [{"type": "web", "url": "https://a.test", "title": "A"}]}


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """A stream of a few kinds of chunks, each several times, with content that has a citation at the end."""
    deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
    for key, rest, texts in draw(st.lists(st.tuples(KEYS, REST, st.lists(SAID, max_size=5)), max_size=5)):
        deltas += [{**rest, key: text} for text in texts]
    deltas.append({"content": [CITED]})
    choices: list[JsonObject] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    bodies = [orjson.dumps({**ENVELOPE, "choices": [choice]}) for choice in choices]
    return b"".join(b"data: " + body + b"\n\n" for body in [*bodies, b"[DONE]"])


def read(raw: bytes, size: int, *, tags: bool) -> tuple[list[Output], Context]:
    target = Target("up", reasoning_tags=tags)
    ctx = Context("actual", Call("POST", "/", REQUEST), Receipt(), target, REQUEST, lambda: 1.0)
    reader = dialects["openai"].called["chat"].read_stream(ctx)
    parts = [raw[at : at + size] for at in range(0, len(raw), size)]
    return [output for part in parts for output in reader.receive(part)] + reader.close(), ctx


def write(outputs: list[Output]) -> bytes:
    writer = dialects["openai"].served["chat"].write_stream(read(b"", 1, tags=False)[1])
    return b"".join(map(writer.write, outputs))


@given(raw=streams(), size=st.integers(50, 3000), tags=st.booleans())
def test_recognized_chunks_are_the_chunks_that_they_are(raw: bytes, size: int, tags: bool) -> None:
    outputs, ctx = read(raw, size, tags=tags)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChunkTemplate, "learn", lambda *_: None)
        wanted, known = read(raw, size, tags=tags)
    assert write(outputs) == write(wanted)
    assert ctx.receipt.changes == known.receipt.changes


@pytest.mark.parametrize("rest", [{}, {"content": None}, {"content": "", "tool_calls": None}])
def test_reasoning_comes_in_runs(rest: JsonObject) -> None:
    deltas: list[JsonObject] = [{**rest, "reasoning_content": text} for text in ("zero", "one", "two", "three")]
    deltas[0]["role"] = "assistant"
    bodies = [{**ENVELOPE, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    ctx = read(b"", 1, tags=False)[1]
    reader = dialects["openai"].called["chat"].read_stream(ctx)
    first, second, *others = [b"data: " + orjson.dumps(body) + b"\n\n" for body in bodies]
    reader.receive(first + second)
    (run,) = reader.receive(b"".join(others))
    assert isinstance(run, DeltaRun)
    assert (run.place[-1], run.texts) == ("reasoning_content", [b"two", b"three"])
