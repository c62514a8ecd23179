"""A Responses client over a chat provider: an answer without choice 0 is not complete, whole or streamed."""

from __future__ import annotations

import json

import pytest

from dragoman.adapters import dialects as real
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire


@pytest.mark.parametrize(("index", "status"), [(0, "completed"), (1, "failed")])
async def test_a_stream_needs_choice_0(
    index: int, status: str, proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    chunk = wire.token("hello", "stop").replace(b'"index": 0', b'"index": %d' % index)
    up = await upstream(*wire.chunked(chunk, b"data: [DONE]\n\n"))
    p = await proxy({"dialect": "openai", "base_url": f"http://127.0.0.1:{up.port}", "protocols": ["chat"]}, speak=real)
    async with p.session.post(
        f"{p.running.url}/v1/responses", json={"model": "m", "input": "hi", "stream": True}
    ) as answer:
        text = await answer.text()
    last = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")][-1]
    assert last["response"]["status"] == status
    assert ("no choice with index 0" in text) == (status == "failed")


@pytest.mark.parametrize(("index", "status"), [(0, 200), (1, 502)])
async def test_a_reply_needs_choice_0(
    index: int, status: int, proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    choices = [{**wire.reply["choices"][0], "index": index}]
    up = await upstream(wire.http(json.dumps({**wire.reply, "choices": choices}).encode()))
    p = await proxy({"dialect": "openai", "base_url": f"http://127.0.0.1:{up.port}", "protocols": ["chat"]}, speak=real)
    async with p.session.post(f"{p.running.url}/v1/responses", json={"model": "m", "input": "hi"}) as answer:
        found = await answer.json()
    assert answer.status == status
    if status == 502:
        assert found["error"]["code"] == "upstream_invalid_response"
        assert "no choice with index 0" in found["error"]["message"]
