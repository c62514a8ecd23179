"""What nobody foresaw in a reply: the next target is asked, and the log says where it happened."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dragoman.adapters import dialects as real
from dragoman.adapters.call import Context, Reply
from dragoman.adapters.dialect import Dialect
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.proxy.first_target import FirstTarget
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

CANARY = "canary-of-a-reply"
WHOLE = {"read": "read_reply", "write": "write_reply"}
STREAM = {"read": "read_stream", "write": "write_stream"}


def _odd(wire: Wire, stream: bool) -> list[bytes]:
    if stream:
        return list(wire.chunked(wire.token(CANARY), b"data: [DONE]\n\n"))
    return [wire.http(json.dumps({**wire.reply, "id": CANARY}).encode())]


def _fails_at(dialect: Dialect, side: str, verb: str) -> Dialect:
    """The dialect with a verb that cannot deal with the canary."""
    table = getattr(dialect, side)
    verbs = table["chat"]
    own = getattr(verbs, verb)

    def whole(body: JsonValue, ctx: Context) -> JsonObject | Reply:
        if CANARY in str(body):
            raise KeyError(CANARY)
        return own(body, ctx)

    def stream(ctx: Context) -> JsonValue:
        machine = own(ctx)
        method = "receive" if side == "called" else "write"
        usual = getattr(machine, method)

        def fails(given: JsonValue) -> JsonValue:
            if CANARY in str(given):
                raise KeyError(CANARY)
            return usual(given)

        setattr(machine, method, fails)
        return machine

    changed = replace(verbs, **{verb: stream if verb.endswith("stream") else whole})
    return replace(dialect, **{side: {**table, "chat": changed}})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("side", "verb"), [("called", "read"), ("served", "write")])
async def test_the_next_target_is_asked(
    proxy: StartProxy,
    upstream: StartUpstream,
    wire: Wire,
    dialects: dict[str, Dialect],
    side: str,
    verb: str,
    stream: bool,
) -> None:
    odd, well = await upstream(*_odd(wire, stream)), await upstream(wire.stream if stream else wire.ok)
    speak = {"openai": _fails_at(dialects["openai"], side, (STREAM if stream else WHOLE)[verb])}
    p = await proxy(odd, well, speak=speak, random=FirstTarget())
    answer = await p.ask(stream=stream)
    assert answer.status == 200, answer.text
    assert CANARY.encode() not in answer.text
    (exchange,) = await p.exchanges()
    assert (exchange["attempts"], exchange["outcome"]) == (2, "ok")
    (defect,) = [line for line in p.lines if line["event"] == "defect"]
    assert (defect["provider"], defect["error"]) == ("p0", "KeyError")
    assert "in whole" in defect["traceback"] or "in fails" in defect["traceback"]
    assert CANARY not in json.dumps(p.lines)


async def test_a_reply_that_is_left_as_it_is(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    """Under the policy off nobody judges what a provider sent: here a choice lacks its message."""
    choices = [{"index": 0, "finish_reason": "stop"}]
    up = await upstream(wire.http(json.dumps({**wire.reply, "choices": choices}).encode()))
    p = await proxy(up, speak=real, policy={"replies": "off"})
    answer = await p.ask(stream=True)
    assert (answer.status, answer.error["code"]) == (502, "upstream_invalid_response")
