"""Several calls for one request: they run together, one is repeated alone, and their streams become one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Wire

WITHOUT = {"models": {"m": {"targets": [{"provider": "p0", "model": "up", "lacks": ["n", "stop"]}]}}}


class Scripts:
    """A script for each request, the last one for all further ones."""

    def __init__(self, *scripts: list[Step]) -> None:
        self._left = list(scripts)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._left.pop(0) if len(self._left) > 1 else self._left[0])


def read_texts(data: bytes) -> dict[int, str]:
    """What each choice of a complete stream says."""
    *events, done = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line]
    assert done == b"[DONE]"
    texts: dict[int, str] = {}
    for event in events:
        for choice in json.loads(event)["choices"]:
            texts[choice["index"]] = texts.get(choice["index"], "") + (choice["delta"].get("content") or "")
    return texts


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("failing", ["429 X", "503 X", "reset"])
async def test_only_the_call_that_failed_is_repeated(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, stream: bool, failing: str
) -> None:
    good: list[Step] = [wire.stream if stream else wire.ok]
    up = await upstream()
    up.script = Scripts(good, ["reset"] if failing == "reset" else [wire.http(b"{}", status=failing)], good)
    p = await proxy(up, speak=dialects, **WITHOUT)
    answer = await p.ask(n=3, stream=stream)
    assert answer.status == 200
    assert len(up.requests) == 4
    if stream:
        assert read_texts(answer.text) == dict.fromkeys(range(3), "hello")
    else:
        assert [choice["index"] for choice in json.loads(answer.text)["choices"]] == [0, 1, 2]
    assert 'emulated;path="n"' in answer.headers["x-dragoman-changes"]


async def test_a_call_that_fails_twice_fails_the_request(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream()
    busy: list[Step] = [wire.http(b"{}", status="503 X")]
    up.script = Scripts([wire.ok], busy, busy)
    p = await proxy(up, speak=dialects, **WITHOUT)
    assert (await p.ask(n=2)).status == 503
    (line,) = await p.exchanges()
    assert line["outcome"] != "ok"


async def test_a_stream_of_which_one_call_breaks_is_no_success(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream()
    up.script = Scripts([wire.stream], wire.chunked(wire.token("he"), end=False))
    p = await proxy(up, speak=dialects, **WITHOUT)
    answer = await p.ask(n=2, stream=True)
    assert b"[DONE]" not in answer.text
    assert b"error" in answer.text


async def test_streams_come_as_they_are_made(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    go_on = asyncio.Event()
    up = await upstream()
    head, first, *rest = wire.chunked(wire.token("a"), wire.token("b", "stop"), b"data: [DONE]\n\n")
    up.script = Scripts([head, first, go_on, *rest])
    p = await proxy(up, speak=dialects, **WITHOUT)
    body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "n": 2, "stream": True}
    async with p.session.post(p.url, json=body) as response:
        early = await response.content.readuntil(b"\n\n") + await response.content.readuntil(b"\n\n")
        assert early.count(b'"content":"a"') == 2
        go_on.set()
        assert read_texts(early + await response.read()) == {0: "ab", 1: "ab"}


async def test_a_stop_string_cancels_the_call(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(*wire.chunked(wire.token("one #"), end=False), "hang")
    p = await proxy(up, speak=dialects, **WITHOUT)
    answer = await p.ask(stop="#", stream=True, stream_options={"include_usage": True})
    assert b'"finish_reason":"stop"' in answer.text
    assert b'"usage":{' in answer.text
    assert answer.text.endswith(b"data: [DONE]\n\n")
    await asyncio.wait_for(up.closed.wait(), 2)
    (line,) = await p.exchanges()
    assert line["outcome"] == "ok"
