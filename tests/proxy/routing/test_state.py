"""Which model and targets a request names, and which policy applies."""

from __future__ import annotations

from random import Random

import pytest

from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

DOWN = {"base_url": "http://127.0.0.1:1/v1"}


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
