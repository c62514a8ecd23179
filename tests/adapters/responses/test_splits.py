"""However a provider's bytes are cut into reads, the client gets the same bytes; wherever they end, one terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from dragoman.adapters.call import Call, Context, Policy, Target
from dragoman.adapters.changes import Receipt
from dragoman.adapters.common.reply_rules import ReplyRules
from dragoman.adapters.openai.faults import error_body
from dragoman.adapters.responses.stream import ResponsesStreamReader
from dragoman.adapters.responses.writer import ResponsesStreamWriter
from dragoman.adapters.sse import Event, Framer

STREAMS = sorted((Path(__file__).parent / "fixtures" / "streams").glob("*.sse"))
ORACLE: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
WHOLE = {"openai_text", "openai_tools", "openai_incomplete"}


def relay(dialect: str, reads: list[bytes], replies: Literal["off", "report", "repair", "strict"] = "repair") -> bytes:
    counter = iter(range(1000))
    request = {"model": "m", "input": "hello", "stream": True}
    target = Target("up", policy=Policy(replies=replies))
    call = Call("POST", "/", request)
    ctx = Context("actual", call, Receipt(), target, request, lambda: 1.7e9, lambda prefix: f"{prefix}_{next(counter)}")
    reader, writer = ResponsesStreamReader(ReplyRules(dialect), ctx), ResponsesStreamWriter(error_body)
    outputs = [output for read in reads for output in reader.receive(read)] + reader.close()
    written = b"".join(map(writer.write, outputs))
    assert writer.dropped == 0
    return written


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("replies", ["repair", "off"])
@settings(max_examples=20)
@given(data=st.data())
def test_any_split_of_the_bytes_gives_the_same_bytes(path: Path, replies: str, data: st.DataObject) -> None:
    dialect, raw = path.stem.split("_")[0], path.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=12)))
    reads = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert relay(dialect, reads, replies) == relay(dialect, [raw], replies)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
@settings(max_examples=30)
@given(data=st.data())
def test_however_it_is_cut_off_a_stream_ends_in_exactly_one_terminal(path: Path, data: st.DataObject) -> None:
    raw = path.read_bytes()
    written = relay(path.stem.split("_")[0], [raw[: data.draw(st.integers(0, len(raw)))]])
    *items, done = Framer().feed(written)
    assert done == Event(b"[DONE]")
    bodies = [orjson.loads(item.data) for item in items if isinstance(item, Event)]
    for number, body in enumerate(bodies):
        assert body["sequence_number"] == number
        ORACLE.validate_python(body)
    ends = [body["type"] for body in bodies if body.get("response", {}).get("status") not in (None, "in_progress")]
    failed = bodies[-1]["type"] == "error" or "error" in [body["type"] for body in bodies]
    assert ends == ([] if bodies[-1]["type"] == "error" else [bodies[-1]["type"]])
    assert not failed or ends in ([], ["response.failed"])


@pytest.mark.parametrize("path", [path for path in STREAMS if path.stem in WHOLE], ids=lambda path: path.stem)
def test_a_whole_stream_goes_through_byte_for_byte(path: Path) -> None:
    raw = path.read_bytes()
    done = b"data: [DONE]\n\n"
    assert relay("openai", [raw]) == raw.removesuffix(done) + done
