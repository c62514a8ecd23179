"""Whether an exchange begins the short way or not: clients, providers, log and recording see the same."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.exchange import exchange
from dragoman.proxy.exchange.short_way import NOTHING_DONE, Leftover
from dragoman.proxy.telemetry.recording import Message, Recording
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Upstream, Wire, chunked, http, token

STREAM = chunked(token("he"), token("llo", "stop"), b"data: [DONE]\n\n")
LATE = b'data: {"error": {"message": "too busy", "code": 429}}\n\n'
FILTERED = b'{"error": {"message": "no", "code": "content_filter", "type": "invalid_request_error"}}'
SECRET = "sk-upstream-0123456789abcdef"

CASES: dict[str, list[Step]] = {
    "a stream": [*STREAM, "keep"],
    "a stream in one piece": [b"".join(STREAM), "keep"],
    "a stream that comes later": [STREAM[0], 0.01, *STREAM[1:], "keep"],
    "half a stream": STREAM[:2],
    "a stream that breaks off": [*STREAM[:2], 0.01, "reset"],
    "no connection": ["reset"],
    "an error": [http(b'{"error": {"message": "why"}}', status="400 Bad Request")],
    "a busy provider": [http(b'{"error": {"message": "why"}}', status="503 Busy")],
    "a filtered request": [http(FILTERED, status="400 Bad Request")],
    "a fault in the stream": chunked(token("he"), LATE),
    "a fault as the first event": chunked(LATE),
    "a whole reply": [Wire.ok, "keep"],
    "no JSON": [http(b"{]")],
    "a stream with the credential": chunked(token(f"your key is {SECRET}", "stop"), b"data: [DONE]\n\n"),
}
BODIES: dict[str, tuple[str, JsonObject]] = {
    "chat": ("chat/completions", {"messages": [{"role": "user", "content": "hi"}], "user": "me"}),
    "responses": ("responses", {"input": "hi", "store": False, "prompt_cache_key": "me"}),
    "kept": ("responses", {"input": "hi"}),
    "messages": ("messages", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}),
}
_CHANGING = re.compile(
    rb'("created(?:_at)?": ?|"completed_at": ?)\d+|((?:resp|msg|rs|chatcmpl|item)_)[0-9A-Za-z]+'
    rb"|(127\.0\.0\.1:)\d+"
)
_TIME = "timestamp"


async def begin_nothing(*_: Any) -> Leftover:
    return NOTHING_DONE


def mask(data: bytes) -> bytes:
    """The bytes without what is new in every exchange."""
    return _CHANGING.sub(lambda found: found[found.lastindex or 0], data)


async def run_case(p: Proxy, ups: list[Upstream], name: str, *, stream: bool) -> JsonObject:
    """What everybody sees of the proxy's only exchange."""
    path, body = BODIES[name]
    before = [len(up.requests) for up in ups]
    payload = {"model": "m", "stream": stream, **body}
    headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01", "x-request-id": "one"}
    async with p.session.post(f"{p.running.url}/v1/{path}", data=json.dumps(payload), headers=headers) as response:
        content = response.content
        text = b"".join([data async for data in content.iter_any()])
        shown = {key: value for key, value in response.headers.items() if key != "Date"}
    line = (await p.exchanges(1))[0]
    (newest, *_) = p.running.inspector.list_newest()
    return {
        "status": response.status,
        "headers": shown,
        "text": mask(text),
        "requests": [mask(one) for up, least in zip(ups, before, strict=True) for one in up.requests[least:]],
        "line": {key: value for key, value in line.items() if key != _TIME and not key.endswith("_ms")},
        "recording": None if (recording := newest.unfold_recording()) is None else show(recording),
    }


def show(recording: Recording) -> list[Any]:
    calls = [
        (one.target, one.attempt, one.number, one.fault, join(one.request), join(one.reply), one.secrets)
        for one in recording.calls
    ]
    tries = [(one.request_changes, [*map(str, one.changes)]) for one in recording.tries]
    return [join(recording.request), join(recording.reply), calls, tries]


def join(message: Message) -> tuple[bytes, bool]:
    return mask(b"".join(message.chunks)), message.head is not None


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("case", CASES)
async def test_both_ways_show_the_same(
    proxy: StartProxy, upstream: StartUpstream, monkeypatch: pytest.MonkeyPatch, case: str, stream: bool
) -> None:
    first, other = await upstream(*CASES[case]), await upstream(*STREAM, "keep")
    providers = [{"base_url": f"http://127.0.0.1:{up.port}/v1", "api_key": SECRET} for up in (first, other)]
    after = {"content_filter": ["f"]}
    models = {
        "m": {"targets": [{"provider": "p0", "model": "up"}], "fallbacks": ["n"], "fallbacks_for": after},
        "n": {"targets": [{"provider": "p1", "model": "other"}]},
        "f": {"targets": [{"provider": "p1", "model": "filtered"}]},
    }
    usual: dict[str, Any] = {"models": models, "store": {"kind": "memory"}, "server": {"inspect": "bodies"}}
    for name in BODIES:
        found = []
        for begin in (exchange.take_short_way, begin_nothing):
            p = await proxy(*providers, speak=dialects, **usual)
            monkeypatch.setattr(exchange, "take_short_way", begin)
            found.append(await run_case(p, [first, other], name, stream=stream))
            monkeypatch.undo()
        assert found[0] == found[1], name
