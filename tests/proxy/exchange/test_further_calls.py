"""An answer that is not valid is asked for once more: a further call of the same exchange."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject
from tests.proxy.running_proxy import Answer, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Wire

EMULATED: JsonObject = {"lacks": ["n", "response_format"], "emulate": {"response_format": "instruct"}}
ASKED: JsonObject = {"response_format": {"type": "json_object"}}
VALID = '{"a": 1}'


class Scripts:
    """A script for each request."""

    def __init__(self, *scripts: list[Step]) -> None:
        self._left = list(scripts)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._left.pop(0))


def answer_with(wire: Wire, text: str) -> list[Step]:
    reply = json.loads(json.dumps(wire.reply))
    reply["choices"][0]["message"]["content"] = text
    return [wire.http(json.dumps(reply).encode()), "keep"]


def read_texts(answer: Answer, *, stream: bool) -> list[str]:
    if not stream:
        return [choice["message"]["content"] for choice in json.loads(answer.text)["choices"]]
    *events, done = [line.removeprefix(b"data: ") for line in answer.text.split(b"\n\n") if line]
    assert done == b"[DONE]"
    texts: dict[int, str] = {}
    for event in events:
        for choice in json.loads(event)["choices"]:
            texts[choice["index"]] = texts.get(choice["index"], "") + (choice["delta"].get("content") or "")
    return [texts[index] for index in sorted(texts)]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_second_answer_is_the_clients(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, stream: bool
) -> None:
    up = await upstream()
    up.script = Scripts(answer_with(wire, "no"), answer_with(wire, VALID))
    models: JsonObject = {"m": {"targets": [{"provider": "p0", "model": "up", **EMULATED}]}}
    p = await proxy(up, speak=dialects, models=models)
    answer = await p.ask(stream=stream, **ASKED)
    assert read_texts(answer, stream=stream) == [VALID]
    assert len(up.requests) == 2
    (line,) = await p.exchanges()
    assert line["outcome"] == "ok"
    one = wire.reply["usage"]
    assert line["tokens_in"] + line["tokens_out"] == 2 * one["total_tokens"]


@pytest.mark.parametrize("stream", [False, True])
async def test_each_of_several_calls_has_its_own_further_call(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, stream: bool
) -> None:
    """The further call of one of them is also made once more if the provider is busy."""
    up = await upstream()
    busy: list[Step] = [wire.http(b"{}", status="503 X")]
    up.script = Scripts(*[answer_with(wire, "no")] * 2, busy, *[answer_with(wire, VALID)] * 2)
    models: JsonObject = {"m": {"targets": [{"provider": "p0", "model": "up", **EMULATED}]}}
    p = await proxy(up, speak=dialects, models=models)
    answer = await p.ask(n=2, stream=stream, **ASKED)
    assert read_texts(answer, stream=stream) == [VALID, VALID]
    assert len(up.requests) == 5


@pytest.mark.parametrize("failing", ["503 X", "reset"])
async def test_only_the_further_call_is_repeated(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, failing: str
) -> None:
    up = await upstream()
    broken: list[Step] = ["reset"] if failing == "reset" else [wire.http(b"{}", status=failing), "keep"]
    up.script = Scripts(answer_with(wire, "no"), broken, answer_with(wire, VALID))
    models: JsonObject = {"m": {"targets": [{"provider": "p0", "model": "up", **EMULATED}]}}
    p = await proxy(up, speak=dialects, models=models)
    assert read_texts(await p.ask(**ASKED), stream=False) == [VALID]
    assert [b"cannot be used" in request for request in up.requests] == [False, True, True]


async def test_if_the_further_call_fails_the_next_target_is_asked(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    first, second = await upstream(), await upstream()
    busy: list[Step] = [wire.http(b"{}", status="503 X"), "keep"]
    first.script = Scripts(answer_with(wire, "no"), busy, busy)
    second.script = Scripts(answer_with(wire, VALID))
    models: JsonObject = {
        "m": {"targets": [{"provider": "p0", "model": "up", **EMULATED}], "fallbacks": ["n"]},
        "n": {"targets": [{"provider": "p1", "model": "up"}]},
    }
    p = await proxy(first, second, speak=dialects, models=models)
    answer = await p.ask(**ASKED)
    assert read_texts(answer, stream=False) == [VALID]
    assert len(second.requests) == 1
