"""A request that some targets, or all of them, cannot serve."""

from __future__ import annotations

from dragoman.adapters import dialects
from tests.proxy.first_target import FirstTarget
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Upstream, Wire

WANTED = {"seed": 1, "logit_bias": {"1": 2}, "modalities": ["text", "audio"]}


async def _start(proxy: StartProxy, upstream: Upstream, *spoken: str) -> Proxy:
    """A proxy whose targets speak these dialects; all are the same server."""
    providers = [{"dialect": name, "base_url": f"http://127.0.0.1:{upstream.port}"} for name in spoken]
    return await proxy(*providers, speak=dialects, random=FirstTarget())


async def test_the_next_target_serves_what_the_first_refuses_for_many_reasons(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    p = await _start(proxy, await upstream(wire.ok), "databricks", "openai")
    assert (await p.ask(**WANTED)).status == 200
    (line,) = await p.exchanges()
    assert (line["target"], line["attempts"]) == ("p1/up", 1)


async def test_the_reasons_are_those_of_the_first_target_which_is_named(
    proxy: StartProxy, upstream: StartUpstream
) -> None:
    up = await upstream()
    p = await _start(proxy, up, "databricks", "mindie", "azure")
    error = (await p.ask(**WANTED)).error
    assert [one["param"] for one in error["details"]] == ["seed", "logit_bias", "modalities"]
    assert "(target p0/up; the 2 other targets refuse the request too)" in error["message"]
    assert error["message"].endswith(" (and 2 more reasons: logit_bias, modalities)")
    (line,) = await p.exchanges()
    assert (line["attempts"], line["reasons"]) == (0, ["seed", "logit_bias", "modalities"])
    assert not up.requests


async def test_a_single_target_needs_no_name(proxy: StartProxy, upstream: StartUpstream) -> None:
    p = await _start(proxy, await upstream(), "databricks")
    assert "target" not in (await p.ask(seed=1)).error["message"].replace("the target's API", "")


async def test_every_state_that_is_not_kept_is_named(proxy: StartProxy, upstream: StartUpstream) -> None:
    p = await _start(proxy, await upstream(), "openai")
    body = {"model": "m", "input": "x", "background": True, "conversation": "c"}
    async with p.session.post(f"{p.running.url}/v1/responses", json=body) as response:
        error = (await response.json())["error"]
    assert [one["param"] for one in error["details"]] == ["background", "conversation"]
