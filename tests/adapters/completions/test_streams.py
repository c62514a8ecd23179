"""What becomes of a provider's completions stream: mended chunks, and one terminal that tells the truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Context
from dragoman.adapters.faults import Fault
from dragoman.adapters.sse import Event, Framer
from dragoman.adapters.streams import Chunk, End, Output, expand
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.adapters.conftest import MakeContext

STREAMS = Path(__file__).parent / "fixtures" / "streams"
TEXT = "Once upon a time, “grüß 你好 👋🏽”"
USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def asked(**more: JsonValue) -> JsonObject:
    return {"model": "m", "prompt": "x", "stream": True, "stream_options": {"include_usage": True}, **more}


def read(name: str, ctx: Context, raw: bytes | None = None) -> Sequence[Output]:
    data = (STREAMS / f"{name}.sse").read_bytes() if raw is None else raw
    reader = dialects[name.split("_")[0]].called["completions"].read_stream(ctx)
    return expand([*reader.receive(data), *reader.close()])


def said(outputs: Sequence[Output]) -> dict[int, tuple[str, str | None]]:
    """Each choice's text and finish reason."""
    found: dict[int, tuple[str, str | None]] = {}
    for output in outputs:
        for choice in output.body["choices"] if isinstance(output, Chunk) else ():
            text, finish = found.get(choice["index"], ("", None))
            found[choice["index"]] = (text + choice["text"], choice["finish_reason"] or finish)
    return found


WHOLE: dict[str, dict[int, tuple[str, str | None]]] = {
    "openai_text": {0: (TEXT, "stop")},
    "openai_crlf": {0: (TEXT, "stop")},
    "openai_no_done": {0: (TEXT, "stop")},
    "openai_vllm": {0: (TEXT, "stop")},
    "openai_logprobs": {0: (TEXT, "length")},
    "openai_batch": {0: (TEXT, "stop"), 1: (TEXT, "stop"), 2: (TEXT, "length"), 3: (TEXT, "stop")},
    "databricks_text": {0: (TEXT, "stop")},
    "databricks_batch": {0: (TEXT, "stop"), 1: (TEXT, "stop")},
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_streams(name: str, context: MakeContext) -> None:
    ctx = context(request=asked(prompt=["a", "b"], n=2 if name == "openai_batch" else 1))
    outputs = read(name, ctx)
    assert said(outputs) == WHOLE[name]
    assert isinstance(outputs[-1], End)
    chunks = [output.body for output in outputs if isinstance(output, Chunk)]
    for chunk in chunks:
        assert [v.message for v in load_validator("hub/completions.event").violations(chunk)] == []
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1


BROKEN = {
    "openai_truncated": "upstream_truncated",
    "openai_one_unfinished": "upstream_truncated",
    "openai_bare_text": "upstream_invalid_event",
    "openai_no_text": "upstream_invalid_event",
    "openai_error_event": None,
    "databricks_error": None,
}


def test_every_fixture_is_expected_to_end_in_some_way() -> None:
    assert {path.stem for path in STREAMS.glob("*.sse")} == WHOLE.keys() | BROKEN.keys()


@pytest.mark.parametrize("name", BROKEN)
def test_broken_streams_end_in_a_fault(name: str, context: MakeContext) -> None:
    *before, last = read(name, context(request=asked()))
    assert isinstance(last, Fault)
    assert last.owner == "provider"
    assert last.code == BROKEN[name]
    assert not any(isinstance(output, End | Fault) for output in before)


def test_a_chunk_that_needs_no_mending_keeps_its_bytes(context: MakeContext) -> None:
    data = (STREAMS / "openai_text.sse").read_bytes()
    reader = dialects["openai"].called["completions"].read_stream(context(request=asked()))
    outputs = [output for at in range(len(data)) for output in reader.receive(data[at : at + 1])]
    raws = [output.raw for output in outputs if isinstance(output, Chunk)]
    assert all(raw is not None and b"data: " + raw + b"\n\n" in data for raw in raws[:-1])
    assert raws[-1] is None  # the usage is written anew


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [1]},
        {"choices": [{"index": "0", "text": "a"}]},
        {"choices": [{"index": 0, "text": ["a"]}]},
        {"choices": [{"index": 0, "text": 7}]},
    ],
)
def test_choices_that_are_none(event: JsonValue, context: MakeContext) -> None:
    raw = b"data: " + json.dumps(event).encode() + b"\n\n"
    [fault] = read("openai_x", context(request=asked()), raw)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.code) == ("upstream_invalid_response", "upstream_invalid_event")


@pytest.mark.parametrize("wanted", [True, False])
def test_usage_comes_last_and_only_where_it_is_asked_for(wanted: bool, context: MakeContext) -> None:
    request = asked() if wanted else {"model": "m", "prompt": "x", "stream": True}
    for name in ("openai_text", "databricks_text"):
        chunks = [output.body for output in read(name, context(request=request)) if isinstance(output, Chunk)]
        if wanted:
            assert [chunk["usage"] for chunk in chunks] == [None] * (len(chunks) - 1) + [USAGE]
            assert chunks[-1]["choices"] == []
        else:
            assert not any("usage" in chunk for chunk in chunks)


def test_the_usage_of_several_prompts_is_added_up(context: MakeContext) -> None:
    outputs = read("databricks_batch", context(request=asked(prompt=["a", "b"])))
    last = outputs[-2]
    assert isinstance(last, Chunk)
    assert last.body["usage"] == {"prompt_tokens": 6, "completion_tokens": 8, "total_tokens": 14}


def written(outputs: Sequence[Output], client: str, ctx: Context) -> list[JsonValue]:
    writer = dialects[client].served["completions"].write_stream(ctx)
    items = Framer().feed(b"".join(map(writer.write, outputs)))
    datas = [item.data for item in items if isinstance(item, Event)]
    return [data if data == b"[DONE]" else json.loads(data) for data in datas]


@pytest.mark.parametrize("profile", ["documented", "actual"])
def test_databricks_clients_get_usage_beside_the_finish(profile: str, context: MakeContext) -> None:
    ctx = context(profile, request=asked())
    *events, done = written(read("openai_text", ctx), "databricks", ctx)
    assert done == b"[DONE]"
    assert [event.get("usage") for event in events] == [None] * (len(events) - 1) + [USAGE]
    for event in events:
        assert [v.message for v in load_validator("databricks/completions.event", profile).violations(event)] == []
        assert ("model" in event) == (profile == "actual")


def test_databricks_clients_get_the_choices_of_a_prompt_one_after_the_other(context: MakeContext) -> None:
    ctx = context(request=asked(prompt=["a", "b"], n=2))
    *events, done = written(read("openai_batch", ctx), "databricks", ctx)
    assert done == b"[DONE]"
    texts, indexes, text = [], [], ""
    for event in events:
        (choice,) = event["choices"]
        text += choice["text"]
        if choice["finish_reason"]:
            texts.append(text)
            indexes.append(choice["index"])
            text = ""
    assert (texts, indexes, text) == ([TEXT] * 4, [0, 0, 1, 1], "")


def test_a_fault_closes_choices_that_wait_for_their_turn(context: MakeContext) -> None:
    ctx = context(request=asked(n=2))
    *events, last = written(read("openai_one_unfinished", ctx), "databricks", ctx)
    assert [event["choices"][0]["index"] for event in events] == [0, 0, 0]
    assert last["error"]["message"] and last["error_code"] == "INTERNAL_ERROR"


@pytest.mark.parametrize("replies", ["report", "off"])
def test_replies_left_alone_are_still_watched(replies: str, context: MakeContext) -> None:
    ctx = context(request=asked(), policy={"replies": replies})
    outputs = read("databricks_text", ctx)
    assert isinstance(outputs[-1], End)
    assert all("model" not in output.body for output in outputs if isinstance(output, Chunk))
    assert isinstance(read("openai_truncated", context(request=asked(), policy={"replies": replies}))[-1], Fault)


def test_strict_ends_at_what_the_dialect_does_not_allow(context: MakeContext) -> None:
    event = b'data: {"id":1,"choices":[{"index":0,"text":"a"}]}\n\n'
    [fault] = read("openai_x", context(request=asked(), policy={"replies": "strict"}), event)
    assert isinstance(fault, Fault) and fault.code == "upstream_invalid_event"
