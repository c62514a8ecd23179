"""Reads of a stream: however its bytes are cut, and whether texts are taken as a run or one by one, a client gets the
same."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Target
from dragoman.adapters.changes import Change
from dragoman.adapters.common.chunk_template import ChunkTemplate
from dragoman.adapters.pipeline import Pipeline, plan_target
from dragoman.adapters.routes import Route
from dragoman.adapters.streams import DeltaRun
from tests.tables import for_each

STREAMS = sorted((Path(__file__).parents[1] / "chat" / "fixtures" / "streams").glob("*.sse"))
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


class Written(NamedTuple):
    data: bytes  # for the client
    changes: frozenset[Change]  # reading and writing take turns, so their order depends on the reads
    runs: list[DeltaRun]


def feed(reads: list[bytes], client: str = CLIENTS[0], dialect: str = "openai", *, usage: bool = True) -> Written:
    """What the pipeline makes of a provider's stream that comes in these reads."""
    counter = iter(range(10_000))
    request = {"model": "m", "stream": True, "stream_options": {"include_usage": usage}, "messages": [], "input": "x"}
    served, protocol, profile = client.split("/")
    route = Route(dialects[served], protocol, dialects[served].served[protocol], profile)
    pipeline = Pipeline(
        route,
        Call("POST", "/", request),
        clock=lambda: 1.0,
        new_id=lambda prefix: f"{prefix}-%d%%{next(counter)}",
    )
    attempt = pipeline.expect_reply(plan_target("p", dialects[dialect], ["chat"], Target("m")), request)
    runs: list[DeltaRun] = []
    with pytest.MonkeyPatch.context() as patch:
        _record_runs(patch, runs)
        outputs = [attempt.start_reply(0, 200, {"content-type": "text/event-stream"})]
        outputs += [attempt.feed(0, read) for read in reads if read and attempt.is_reading(0)]
        outputs.append(attempt.close(0))
    data = b"".join(output.data for output in outputs)
    if attempt.outcome.fault is not None and not attempt.answer.has_begun:
        data = orjson.dumps(pipeline.render_fault(attempt.outcome.fault).body)
    return Written(data, frozenset(attempt.receipt.changes), runs)


def _record_runs(patch: pytest.MonkeyPatch, runs: list[DeltaRun]) -> None:
    """Keep the runs that are recognized in a read."""
    match_run = ChunkTemplate.match_run

    def recorded(pattern: ChunkTemplate, *given: Any) -> Any:
        found = match_run(pattern, *given)
        runs.extend(one for one in (found or ()) if isinstance(one, DeltaRun))
        return found

    patch.setattr(ChunkTemplate, "match_run", recorded)


def cut(raw: bytes, places: list[int]) -> list[bytes]:
    cuts = sorted(place for place in places if place < len(raw))
    return [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@settings(max_examples=10)
@given(places=st.lists(st.integers(1, 6000), max_size=12))
def test_however_the_bytes_are_cut(path: Path, client: str, places: list[int]) -> None:
    dialect, raw = path.stem.split("_")[0], path.read_bytes()
    assert feed(cut(raw, places), client, dialect)[:2] == feed_whole(path, client)[:2]


@for_each("client", CLIENTS)
@for_each("path", STREAMS)
def test_byte_by_byte(path: Path, client: str) -> None:
    dialect, raw = path.stem.split("_")[0], path.read_bytes()
    by_byte = feed([raw[i : i + 1] for i in range(len(raw))], client, dialect)
    assert by_byte[:2] == feed_whole(path, client)[:2]


@cache
def feed_whole(path: Path, client: str) -> Written:
    return feed([path.read_bytes()], client, path.stem.split("_")[0])


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
@given(st.lists(TEXTS, max_size=12), st.lists(st.integers(1, 2000), max_size=6), st.booleans())
def test_a_run_is_what_its_chunks_are(client: str, events: list[bytes], places: list[int], usage: bool) -> None:
    raw = b"".join([*words(2), *events, event({}, "stop"), DONE])
    taken = feed(cut(raw, places), client, usage=usage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChunkTemplate, "match_run", lambda *_: None)
        assert feed([raw], client, usage=usage)[:2] == taken[:2]


@pytest.mark.parametrize("mended", [False, True])
def test_texts_that_come_together_are_one_run(mended: bool) -> None:
    events = [event({"role": "assistant", "content": ""}), *words(100), event({}, "stop"), DONE]
    found = feed([b"".join(events)], usage=mended)
    assert [len(run.texts) for run in found.runs] == [99]
    assert found.data.count(b"data: {") == 102


def test_a_run_ends_where_a_read_tears_an_event() -> None:
    raw = b"".join([event({"role": "assistant", "content": ""}), *words(10)])
    found = feed([raw[:-20], raw[-20:], event({}, "stop") + DONE], usage=False)
    assert [len(run.texts) for run in found.runs] == [8]
    assert found.data == raw + event({}, "stop") + DONE


def test_a_text_stands_nowhere_else_in_its_chunk() -> None:
    """Whatever else a chunk says: what marks the place of the text is not in it."""
    odd = {"service_tier": "\x00 text", "system_fingerprint": "TEXT"}
    raw = [event({"content": f"w{number}"}, created=number, **odd) for number in range(6)]
    same = [event({"content": f"w{number}"}, created=9, usage=None, **odd) for number in range(6)]
    for events in (raw, same):
        whole = [event({"role": "assistant", "content": ""}), *events, event({}, "stop"), DONE]
        by_byte = feed([b"".join(whole)[i : i + 1] for i in range(len(b"".join(whole)))], usage=False)
        assert feed([b"".join(whole)], usage=False).data == by_byte.data


def test_a_finish_reason_is_never_a_part_of_a_run() -> None:
    two = [
        event({"role": "assistant", "content": ""}),
        event({"content": "b"}, "stop").replace(b'"index": 0', b'"index": 1'),
    ]
    finishing = [event({"content": f"a{number}"}, "stop") for number in range(4)]
    assert feed([b"".join([*two, *finishing, DONE])]).runs == []
