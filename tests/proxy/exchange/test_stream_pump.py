"""Reads of a stream: however its bytes are cut, and whether texts are taken as a run or one by one, a client gets the
same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Context, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.common.chunk_template import ChunkTemplate
from dragoman.adapters.streams import DeltaRun, Output, StreamReader
from dragoman.adapters.translate.bridge import bridges
from dragoman.proxy.config.models import Timeouts
from dragoman.proxy.exchange.stream_pump import outputs_of
from dragoman.proxy.exchange.streamed_reply import translated
from dragoman.proxy.http.deadline import Clock
from dragoman.proxy.upstreams.interface import Incoming

STREAMS = sorted((Path(__file__).parents[2] / "adapters" / "chat" / "fixtures" / "streams").glob("*.sse"))
CLIENTS = [
    "openai/chat/actual",
    "databricks/chat/actual",
    "databricks/chat/documented",
    "azure/chat/actual",
    "mindie/chat/documented",
    "mindie/chat/actual",
    "openai/responses/actual",
    "databricks/responses/actual",
    "databricks/responses/documented",
]
DONE = b"data: [DONE]\n\n"


def event(delta: dict[str, Any], finish: str | None = None, *, ascii_only: bool = False, **more: Any) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return b"data: " + json.dumps(body, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") + b"\n\n"


def words(count: int) -> list[bytes]:
    return [event({"content": f" word{number}"}) for number in range(count)]


class Reads:
    """An upstream that gives these bytes, read by read."""

    def __init__(self, reads: list[bytes]) -> None:
        self._reads = [read for read in reads if read]

    async def chunk(self) -> bytes:
        return self._reads.pop(0) if self._reads else b""


class Relayed(NamedTuple):
    told: bytes  # to the client
    changes: list[Any]
    runs: list[DeltaRun]


def relayed(reads: list[bytes], client: str = CLIENTS[0], dialect: str = "openai", *, usage: bool = True) -> Relayed:
    counter = iter(range(10_000))
    request = {"model": "m", "stream": True, "stream_options": {"include_usage": usage}, "messages": [], "input": "x"}
    call = Call("POST", "/", request)
    ctx = Context(
        "actual", call, Receipt(), Target("m"), request, lambda: 1.0, lambda prefix: f"{prefix}-%d%%{next(counter)}"
    )
    served, protocol, profile = client.split("/")
    writer = dialects[served].served[protocol].write_stream(ctx._replace(profile=profile))
    outputs = asyncio.run(read(reads, dialects[dialect].called["chat"].read_stream(ctx)))
    runs = [output for output in outputs if isinstance(output, DeltaRun)]
    if protocol == "responses":
        translator = bridges["responses"].stream(request, ctx)
        outputs = translated(translator, outputs)
    told = b"".join(map(writer.write, outputs))
    return Relayed(told, ctx.receipt.changes, runs)


async def read(reads: list[bytes], reader: StreamReader) -> list[Output]:
    incoming = cast(Incoming, Reads(reads))
    return [
        made async for some in outputs_of(incoming, reader, Clock(), Timeouts(), lambda error: error) for made in some
    ]


def cut(raw: bytes, places: list[int]) -> list[bytes]:
    cuts = sorted(place for place in places if place < len(raw))
    return [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@settings(max_examples=10, deadline=None)
@given(places=st.lists(st.integers(1, 6000), max_size=12))
def test_however_the_bytes_are_cut(path: Path, client: str, places: list[int]) -> None:
    dialect, raw = path.stem.split("_")[0], path.read_bytes()
    by_byte = relayed([raw[i : i + 1] for i in range(len(raw))], client, dialect)
    assert relayed(cut(raw, places), client, dialect)[:2] == by_byte[:2]
    assert relayed([raw], client, dialect)[:2] == by_byte[:2]


TEXTS = st.one_of(
    st.builds(lambda text, plain: event({"content": text}, ascii_only=plain), st.text(), st.booleans()),
    st.builds(lambda middle: event({"content": "TEXT"}).replace(b"TEXT", middle), st.binary(max_size=20)),
    st.sampled_from([event({"content": "a\\/b"}), event({"content": "x"}, usage=None), event({"role": "assistant"})]),
    st.builds(
        lambda middle: event({"content": "T"}).replace(b'"T"', middle),
        st.sampled_from([b'"\\/"', b'"a\\"', b'","', b'"a" , "b"', b'"\\u00e9%b%d%%"', b'"\\ud83d\\ude00"', b'""']),
    ),
)


@pytest.mark.parametrize("client", CLIENTS)
@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, max_size=12), st.lists(st.integers(1, 2000), max_size=6), st.booleans())
def test_a_run_is_what_its_chunks_are(client: str, events: list[bytes], places: list[int], usage: bool) -> None:
    raw = b"".join([*words(2), *events, event({}, "stop"), DONE])
    taken = relayed(cut(raw, places), client, usage=usage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChunkTemplate, "match_run", lambda *_: None)
        assert relayed([raw], client, usage=usage)[:2] == taken[:2]


@pytest.mark.parametrize("mended", [False, True])
def test_texts_that_come_together_are_one_run(mended: bool) -> None:
    events = [event({"role": "assistant", "content": ""}), *words(100), event({}, "stop"), DONE]
    found = relayed([b"".join(events)], usage=mended)
    assert [len(run.texts) for run in found.runs] == [99]
    assert found.told.count(b"data: {") == 102


def test_a_run_ends_where_a_read_tears_an_event() -> None:
    raw = b"".join([event({"role": "assistant", "content": ""}), *words(10)])
    found = relayed([raw[:-20], raw[-20:], event({}, "stop") + DONE], usage=False)
    assert [len(run.texts) for run in found.runs] == [8]
    assert found.told == raw + event({}, "stop") + DONE


def test_a_text_stands_nowhere_else_in_its_chunk() -> None:
    """Whatever else a chunk says: what marks the place of the text is not in it."""
    odd = {"service_tier": "\x00 text", "system_fingerprint": "TEXT"}
    raw = [event({"content": f"w{number}"}, created=number, **odd) for number in range(6)]
    same = [event({"content": f"w{number}"}, created=9, usage=None, **odd) for number in range(6)]
    for events in (raw, same):
        whole = [event({"role": "assistant", "content": ""}), *events, event({}, "stop"), DONE]
        by_byte = relayed([b"".join(whole)[i : i + 1] for i in range(len(b"".join(whole)))], usage=False)
        assert relayed([b"".join(whole)], usage=False).told == by_byte.told


def test_a_finish_reason_is_never_a_part_of_a_run() -> None:
    two = [
        event({"role": "assistant", "content": ""}),
        event({"content": "b"}, "stop").replace(b'"index": 0', b'"index": 1'),
    ]
    finishing = [event({"content": f"a{number}"}, "stop") for number in range(4)]
    assert relayed([b"".join([*two, *finishing, DONE])]).runs == []
