"""Tokens that a provider does not report are counted, for the client and for the log."""

from __future__ import annotations

import json

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire


@pytest.mark.parametrize("stream", [False, True])
async def test_what_is_not_reported_is_counted(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, stream: bool
) -> None:
    silent = json.dumps({key: value for key, value in wire.reply.items() if key != "usage"}).encode()
    up = await upstream(wire.stream if stream else wire.http(silent))
    target: JsonObject = {"provider": "p0", "model": "gpt-4o", "emulate": {"usage": "count"}}
    p = await proxy(up, speak=dialects, models={"m": {"targets": [target]}})
    more: JsonObject = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    answer = await p.ask(**more)
    last = answer.text.split(b"\n\n")[-3].removeprefix(b"data: ") if stream else answer.text
    usage = json.loads(last)["usage"]
    assert usage["completion_tokens"] == 1  # hello
    assert usage["prompt_tokens"] > 1
    (line,) = await p.exchanges()
    assert line["tokens_in"] + line["tokens_out"] == usage["total_tokens"]
    if not stream:
        assert "estimate" in answer.headers["x-dragoman-changes"]
