"""However a provider's bytes are cut into reads, the client gets the same bytes, and one terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.common.chunk_template import ChunkTemplate
from dragoman.contract.json_types import JsonObject
from tests.dialects import served

STREAMS = sorted((Path(__file__).parent / "fixtures" / "streams").glob("*.sse"))
CLIENTS = served("completions")

every_stream = pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
every_client = pytest.mark.parametrize("client", CLIENTS)


def relay(path: Path, client: str, reads: list[bytes], replies: str = "repair") -> bytes:
    counter = iter(range(1000))
    wanted = 2 if path.stem == "openai_batch" else 1
    request: JsonObject = {"model": "m", "prompt": ["a", "b"], "n": wanted, "stream": True}
    request["stream_options"] = {"include_usage": True}
    ctx = Context(
        "actual",
        Call("POST", "/", request),
        Receipt(),
        Target("up", policy=Policy(replies=replies)),  # type: ignore[arg-type]
        request,
        lambda: 1.7e9,
        lambda prefix: f"{prefix}-{next(counter)}",
    )
    reader = dialects[path.stem.split("_")[0]].called["completions"].read_stream(ctx)
    writer = dialects[client].served["completions"].write_stream(ctx)
    outputs = [output for read in reads for output in reader.receive(read)] + reader.close()
    assert writer.dropped == 0
    return b"".join(writer.write(output) for output in outputs)


@every_stream
@every_client
@pytest.mark.parametrize("replies", ["repair", "off"])
@settings(max_examples=20)
@given(data=st.data())
def test_any_split_of_the_bytes_gives_the_same_bytes(
    path: Path, client: str, replies: str, data: st.DataObject
) -> None:
    raw = path.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    reads = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert relay(path, client, reads, replies) == relay(path, client, [raw], replies)


@every_stream
@every_client
def test_the_short_way_of_chunks_that_differ_in_their_text_is_as_good(
    path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = path.read_bytes()
    short = relay(path, client, [raw])
    monkeypatch.setattr(ChunkTemplate, "learn", lambda *_: None)
    assert relay(path, client, [raw]) == short


def test_most_chunks_go_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    matched = []
    match = ChunkTemplate.match_run
    monkeypatch.setattr(ChunkTemplate, "match_run", lambda self, *at: matched.append(match(self, *at)) or matched[-1])
    for name in ("openai_text", "databricks_text"):
        path = STREAMS[0].parent / f"{name}.sse"
        relay(path, "openai", [path.read_bytes()])
        assert [len(run.texts) for run, _ in filter(None, matched)] == [2]
        matched.clear()


@every_stream
@every_client
def test_byte_by_byte(path: Path, client: str) -> None:
    raw = path.read_bytes()
    assert relay(path, client, [raw[i : i + 1] for i in range(len(raw))]) == relay(path, client, [raw])


@every_stream
@every_client
@given(data=st.data())
def test_however_it_is_cut_off_a_stream_ends_in_exactly_one_terminal(
    path: Path, client: str, data: st.DataObject
) -> None:
    raw = path.read_bytes()
    written = relay(path, client, [raw[: data.draw(st.integers(0, len(raw)))]])
    assert written.count(b"data: [DONE]\n\n") + written.count(b'data: {"error"') == 1
    assert written.endswith(b"data: [DONE]\n\n") or b'data: {"error"' in written.split(b"\n\n")[-2]
