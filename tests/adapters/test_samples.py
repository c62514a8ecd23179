"""Each dialect's samples: its schemas accept them, and its adapters read them."""

from __future__ import annotations

import json

import orjson
import pytest

from dragoman.adapters import dialects
from dragoman.adapters.call import Call, Reply
from dragoman.adapters.dialect_check import SIDES
from dragoman.adapters.faults import Fault
from dragoman.adapters.samples import load_sample
from dragoman.adapters.streams import Chunk, End, Output
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonValue
from tests.adapters.conftest import MakeContext
from tests.dialects import ALL_DIALECTS

PAIRS = [
    (name, protocol)
    for name in ALL_DIALECTS
    for protocol in dict.fromkeys((*dialects[name].served, *dialects[name].called))
]
SERVED = [(name, protocol) for name, protocol in PAIRS if protocol in dialects[name].served]
CALLED = [(name, protocol) for name, protocol in PAIRS if protocol in dialects[name].called]
STREAMED = [(name, protocol) for name, protocol in CALLED if "event" in SIDES[protocol]]


def accepts(schema: str, profile: str, body: JsonValue) -> list[str]:
    return [violation.message for violation in load_validator(schema, profile).violations(body)]


@pytest.mark.parametrize(("name", "protocol"), PAIRS)
def test_schemas_accept_them(name: str, protocol: str) -> None:
    sample, profile = load_sample(name, protocol), dialects[name].called_profile
    assert accepts(f"{name}/{protocol}.request", profile, sample["request"]) == []
    assert accepts(f"{name}/{protocol}.reply", profile, sample["reply"]) == []
    assert accepts(f"{name}/{protocol}.error", profile, sample["error"]["body"]) == []
    assert ("events" in sample) == ("event" in SIDES[protocol])
    for event in sample.get("events", ()):
        assert accepts(f"{name}/{protocol}.event", profile, event) == []


@pytest.mark.parametrize(("name", "protocol"), SERVED)
def test_a_request_is_read(name: str, protocol: str, context: MakeContext) -> None:
    dialect, body = dialects[name], load_sample(name, protocol)["request"]
    paths = dialect.paths[protocol] if "model" in body else (path for some in dialect.paths.values() for path in some)
    path = next(one for one in paths if ("{name}" in one) == ("model" not in body))
    call = Call("POST", path.replace("{name}", "m"), body, dialect.query, {"anthropic-version": "2023-06-01"})
    hub = dialect.served[protocol].read_request(call, context(dialect.served_profile)._replace(call=call))
    assert accepts(f"hub/{protocol}.request", "documented", {"model": "m", **hub}) == []


@pytest.mark.parametrize(("name", "protocol"), CALLED)
def test_a_reply_and_an_error_are_read(name: str, protocol: str, context: MakeContext) -> None:
    sample, called = load_sample(name, protocol), dialects[name].called[protocol]
    ctx = context(dialects[name].called_profile, {"input": ["Hello"]} if protocol == "embeddings" else {})
    reply = json.loads(json.dumps(sample["reply"]))
    assert accepts(f"hub/{protocol}.reply", "documented", called.read_reply(Reply(200, reply), ctx)) == []
    error = sample["error"]
    fault = called.read_fault(Reply(error["status"], error["body"], {}, orjson.dumps(error["body"])), ctx)
    assert 400 <= fault.status < 500 and "at least 1" in fault.message


@pytest.mark.parametrize(("name", "protocol"), STREAMED)
def test_a_stream_is_read(name: str, protocol: str, context: MakeContext) -> None:
    reader = dialects[name].called[protocol].read_stream(context(dialects[name].called_profile))
    named = protocol in ("responses", "messages")
    outputs: list[Output] = []
    for event in load_sample(name, protocol)["events"]:
        head = f"event: {event['type']}\n" if named else ""
        outputs += reader.receive(f"{head}data: {json.dumps(event)}\n\n".encode())
    outputs += reader.close()
    assert not [output for output in outputs if isinstance(output, Fault)]
    assert isinstance(outputs[-1], End)
    for output in outputs:
        if isinstance(output, Chunk):
            assert accepts(f"hub/{protocol}.event", "documented", output.body) == []
