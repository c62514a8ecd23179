"""Which target is asked, which one next, and when there is no next."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from dragoman.contract.json_types import JsonValue
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Upstream, Wire

DOWN = {"base_url": "http://127.0.0.1:1/v1"}


async def _failing(upstream: StartUpstream, wire: Wire, status: str) -> Upstream:
    return await upstream(wire.http(b"{}", status=status), "keep")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", ["408 X", "429 X", "500 X", "502 X", "503 X", "529 X", "401 X"])
async def test_another_target_is_asked(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, status: str, stream: bool
) -> None:
    first = await _failing(upstream, wire, status)
    second = await upstream(wire.stream if stream else wire.ok)
    p = await proxy(first, second, random=_InOrder())
    assert (await p.ask(stream=stream)).status == 200
    (line,) = await p.exchanges()
    assert (line["attempts"], line["target"], line["outcome"]) == (2, "p1/up", "ok")


@pytest.mark.parametrize("status", ["400 X", "404 X", "409 X", "413 X", "422 X"])
async def test_a_request_at_fault_is_not_passed_around(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, status: str
) -> None:
    first, second = await _failing(upstream, wire, status), await upstream(wire.ok)
    p = await proxy(first, second, random=_InOrder())
    assert (await p.ask()).status == int(status[:3])
    assert second.connections == 0


async def test_a_silent_target_is_left(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    for stream in (False, True):
        first, second = await upstream("hang"), await upstream(wire.stream if stream else wire.ok)
        hasty = {"base_url": f"http://127.0.0.1:{first.port}/v1", "timeouts": {"first_token": 0.1, "total": 0.2}}
        p = await proxy(hasty, second, random=_InOrder())
        assert (await p.ask(stream=stream)).status == 200
        await asyncio.wait_for(first.closed.wait(), 1)


async def test_all_tries_together_have_one_deadline(proxy: StartProxy, upstream: StartUpstream) -> None:
    ups = [await upstream("hang") for _ in range(3)]
    p = await proxy(*ups, random=_InOrder(), timeouts={"first_token": 0.2, "total": 0.3})
    for count, (stream, asked) in enumerate([(False, 1), (True, 2)], 1):
        answer = await p.ask(stream=stream)
        assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
        assert (await p.exchanges(count))[-1]["attempts"] <= asked
    assert ups[2].connections == 0


async def test_a_broken_connection_gets_a_second_try(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok)  # it closes the connection after each reply, without saying so
    p = await proxy(up)
    up.script = ["reset"]
    task = asyncio.create_task(p.ask())
    await up.asked.wait()
    up.script = [wire.ok]
    assert (await task).status == 200
    assert (await p.exchanges())[0]["attempts"] == 2


async def test_there_are_three_attempts_at_most(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    ups = [await _failing(upstream, wire, "503 X") for _ in range(5)]
    p = await proxy(*ups, random=_InOrder())
    assert (await p.ask()).status == 503
    assert [len(up.requests) for up in ups] == [1, 1, 1, 0, 0]


async def test_nothing_is_asked_after_the_first_byte(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    first, second = await upstream(*wire.chunked(wire.token("a"))), await upstream(wire.stream)
    p = await proxy(first, second, random=_InOrder())
    assert (await p.ask(stream=True)).events[-1]["error"]["code"] == "upstream_truncated"
    assert second.connections == 0


async def test_targets_that_lack_something_are_skipped(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    able = await upstream(wire.ok, "keep")
    targets = [
        {"provider": "p0", "model": "up", "lacks": ["tools", "seed"]},
        {"provider": "p1", "model": "up", "weight": 0},
    ]
    p = await proxy(DOWN, able, models={"m": {"targets": targets}})
    assert (await p.ask(tools=[])).status == 200
    assert (await p.exchanges())[0]["attempts"] == 1


async def test_the_first_reason_is_told_where_no_target_is_able(proxy: StartProxy) -> None:
    targets = [
        {"provider": "p0", "model": "up", "lacks": ["seed"]},
        {"provider": "p0", "model": "up", "lacks": ["seed"]},
    ]
    answer = await (await proxy(DOWN, models={"m": {"targets": targets}})).ask(seed=1)
    assert (answer.status, answer.error["param"], answer.error["code"]) == (400, "seed", "unsupported_parameter")


async def test_fallback_models_come_last(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok, "keep")
    models = {
        "m": {"targets": [{"provider": "p0"}], "fallbacks": ["n", "m"]},
        "n": {"targets": [{"provider": "p1"}], "fallbacks": ["m"]},
    }
    p = await proxy(DOWN, up, models=models)
    assert (await p.ask()).status == 200
    assert up.bodies[0]["model"] == "n"


async def test_wildcards_keep_the_clients_name(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok, "keep")
    models = {"gpt-*": {"targets": [{"provider": "p0", "model": "*"}]}, "gpt-x*": {"targets": [{"provider": "p1"}]}}
    p = await proxy(up, DOWN, models=models)
    assert (await p.ask(model="gpt-5")).status == 200
    assert (await p.ask(model="gpt-x5")).error["code"] == "upstream_unreachable"
    assert up.bodies[0]["model"] == "gpt-5"


@pytest.mark.parametrize("name", ["nope", "../../admin", "x" * 300, "a\x00b", "gpt-é", "gpt-../x/../y"])
async def test_unknown_models(proxy: StartProxy, upstream: StartUpstream, wire: Wire, name: str) -> None:
    up = await upstream(wire.ok)
    answer = await (await proxy(up, models={"gpt-*": {"targets": [{"provider": "p0"}]}})).ask(model=name)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (404, "model_not_found", "model")
    assert up.connections == 0


async def test_a_model_that_is_meant_is_named(proxy: StartProxy) -> None:
    models = {name: {"targets": [{"provider": "p0"}]} for name in ("careful", "fast")}
    answer = await (await proxy(DOWN, models=models)).ask(model="carefull")
    assert "did you mean careful?" in answer.error["message"]


async def test_a_request_without_a_model(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok, "keep")
    assert (await (await proxy(up)).ask(model=None)).status == 200
    two = {name: {"targets": [{"provider": "p0"}]} for name in ("a", "b")}
    answer = await (await proxy(up, models=two)).ask(model=None)
    assert (answer.status, answer.error["param"]) == (400, "model")
    assert (await (await proxy(up, models=two, server={"default_model": "b"})).ask(model=None)).status == 200
    assert up.bodies[-1]["model"] == "b"


async def test_weights(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    ups = [await upstream(wire.ok, "keep") for _ in range(3)]
    targets = [{"provider": f"p{n}", "weight": weight} for n, weight in enumerate((3, 1, 0))]
    p = await proxy(*ups, models={"m": {"targets": targets}}, random=Random(7))
    for _ in range(200):
        await p.ask()
    counts = [len(up.requests) for up in ups]
    assert counts[2] == 0
    assert 130 <= counts[0] <= 170


async def test_the_client_decides_about_extra_parameters(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok, "keep")
    p = await proxy(up, policy={"extra_parameters": "pass-through"})
    for word in ("pass-through", "Allow", "drop", "IGNORE"):
        await p.ask(extra=1, headers={"extra-parameters": word})
    assert ["extra" in body for body in up.bodies] == [True, True, False, False]


async def test_the_nearest_policy_wins(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok, "keep")
    provider = {"base_url": f"http://127.0.0.1:{up.port}", "policy": {"extra_parameters": "pass-through"}}
    drop = {"extra_parameters": "drop"}
    models = {
        "provider": {"targets": [{"provider": "p0"}]},
        "model": {"targets": [{"provider": "p0"}], "policy": drop},
        "target": {"targets": [{"provider": "p0", "policy": provider["policy"]}], "policy": drop},
    }
    p = await proxy(provider, models=models, policy=drop)
    for model in models:
        await p.ask(model=model, extra=1)
    assert ["extra" in body for body in up.bodies] == [True, False, True]


# Keys

KEYS = [{"name": "all", "key": "sk-all"}, {"name": "few", "key": "sk-few", "models": ["gpt-*", "careful"]}]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer sk-wrong-canary"},
        {"Authorization": "Basic sk-all"},
        {"Authorization": "Bearer ' OR 1=1--"},
        {"api-key": "sk-al"},
        {"Authorization": "Bearer sk-all", "api-key": "sk-few"},
    ],
)
async def test_who_has_no_key_gets_nothing(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, headers: dict[str, str]
) -> None:
    up = await upstream(wire.ok)
    answer = await (await proxy(up, keys=KEYS)).ask(headers=headers)
    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")
    assert b"canary" not in answer.text
    assert up.connections == 0


@pytest.mark.parametrize("name", ["Authorization", "api-key", "x-api-key"])
async def test_a_key_may_come_in_three_headers(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, name: str
) -> None:
    up = await upstream(wire.ok)
    value = "Bearer sk-all" if name == "Authorization" else "sk-all"
    assert (await (await proxy(up, keys=KEYS)).ask(headers={name: value})).status == 200


async def test_a_key_sees_its_models_only(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok, "keep")
    models = {name: {"targets": [{"provider": "p0"}]} for name in ("careful", "carefulx", "gpt-5")}
    p = await proxy(up, keys=KEYS, models=models)
    few = {"Authorization": "Bearer sk-few"}
    seen = {model: (await p.ask(model=model, headers=few)).status for model in models}
    assert seen == {"careful": 200, "carefulx": 404, "gpt-5": 200}
    message = (await p.ask(model="carefulxx", headers=few)).error["message"]
    assert message == "the model 'carefulxx' does not exist here; did you mean careful?"


class _InOrder(Random):
    """Draws the first of what is left."""

    def choices(self, population: JsonValue, *args: JsonValue, **kwargs: JsonValue) -> list[JsonValue]:
        return [population[0]]
