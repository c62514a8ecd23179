"""However a provider's bytes are cut into reads, the client gets the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.contract.json_types import JsonObject

STREAMS = sorted((Path(__file__).parent / "fixtures" / "streams").glob("*.sse"))


def relay(dialect: str, reads: list[bytes], replies: str) -> bytes:
    counter = iter(range(1000))
    request: JsonObject = {"model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}}
    ctx = Context(
        "actual",
        Call("POST", "/", request),
        Receipt(),
        Target("up", policy=Policy(replies=replies)),  # type: ignore[arg-type]
        request,
        lambda: 1.7e9,
        lambda prefix: f"{prefix}-{next(counter)}",
    )
    reader = dialects[dialect].called["chat"].read_stream(ctx)
    writer = dialects["openai"].served["chat"].write_stream(ctx)
    outputs = [output for read in reads for output in reader.receive(read)] + reader.close()
    assert writer.dropped == 0
    return b"".join(writer.write(output) for output in outputs)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("replies", ["repair", "off"])
@settings(max_examples=30)
@given(data=st.data())
def test_any_split_of_the_bytes_gives_the_same_bytes(path: Path, replies: str, data: st.DataObject) -> None:
    dialect, raw = path.stem.split("_")[0], path.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    reads = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert relay(dialect, reads, replies) == relay(dialect, [raw], replies)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_byte_by_byte(path: Path) -> None:
    dialect, raw = path.stem.split("_")[0], path.read_bytes()
    assert relay(dialect, [raw[i : i + 1] for i in range(len(raw))], "repair") == relay(dialect, [raw], "repair")


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@given(data=st.data())
def test_however_it_is_cut_off_a_stream_ends_in_exactly_one_terminal(path: Path, data: st.DataObject) -> None:
    dialect, raw = path.stem.split("_")[0], path.read_bytes()
    end = data.draw(st.integers(0, len(raw)))
    written = relay(dialect, [raw[:end]], "repair")
    assert written.count(b"data: [DONE]\n\n") + written.count(b'data: {"error"') == 1
    assert written.endswith(b"data: [DONE]\n\n") or b'data: {"error"' in written.split(b"\n\n")[-2]
