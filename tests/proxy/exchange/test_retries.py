"""Second tries, targets that pause, and how much load retries may add."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject
from tests.ports import find_free_port
from tests.proxy.first_target import FirstTarget
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Upstream, Wire

ALWAYS = {"failures": 10**6, "requests": 10**6}


class Turns(Iterable[Step]):
    """Another script for each request."""

    def __init__(self, *scripts: list[Step]) -> None:
        self._left = iter(scripts)

    def __iter__(self) -> Iterator[Step]:
        return iter(next(self._left))


async def start_failing(upstream: StartUpstream, wire: Wire, status: str = "503 X", *headers: str) -> Upstream:
    return await upstream(wire.http(b"{}", *headers, status=status), "keep")


@pytest.mark.parametrize("status", ["500 X", "502 X", "503 X", "529 X"])
async def test_a_target_without_alternative_gets_a_second_try(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, status: str
) -> None:
    up = await start_failing(upstream, wire, status)
    answer = await (await proxy(up)).ask()
    assert len(up.requests) == 2
    assert "x-should-retry" not in answer.headers  # a client that waits longer may still succeed


async def test_the_other_targets_come_before_a_second_try(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    ups = [await start_failing(upstream, wire) for _ in range(2)]
    p = await proxy(*ups, random=FirstTarget())
    answer = await p.ask()
    assert [len(up.requests) for up in ups] == [2, 1]
    assert (answer.status, answer.headers["x-should-retry"]) == (503, "false")
    assert (await p.exchanges())[0]["attempts"] == 3


async def test_the_other_targets_come_before_one_that_refuses_connections(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    down, up = Upstream([], port=find_free_port()), await start_failing(upstream, wire)
    p = await proxy(down, up, random=FirstTarget(), retries={"attempts": 2})
    assert (await p.ask()).status == 503
    assert (len(up.requests), (await p.exchanges())[0]["attempts"]) == (1, 2)


async def test_the_number_of_tries_is_configurable(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    ups = [await start_failing(upstream, wire) for _ in range(3)]
    p = await proxy(*ups, random=FirstTarget(), retries={"attempts": 1})
    assert (await p.ask()).headers["x-should-retry"] == "false"
    assert [len(up.requests) for up in ups] == [1, 0, 0]


async def test_a_short_retry_after_is_waited_for(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream()
    up.script = Turns([wire.http(b"{}", "retry-after: 0.2", status="429 X"), "keep"], [wire.ok, "keep"])
    assert (await (await proxy(up)).ask()).status == 200
    assert len(up.requests) == 2


async def test_a_retry_after_beyond_the_deadline_is_not_waited_for(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await start_failing(upstream, wire, "429 X", "retry-after: 5")
    p = await proxy(up, timeouts={"first_token": 1, "total": 2})
    assert (await p.ask()).status == 429
    assert len(up.requests) == 1


async def test_a_long_retry_after_is_the_clients(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await start_failing(upstream, wire, "429 X", "retry-after: 30")
    answer = await (await proxy(up)).ask()
    assert (answer.status, answer.headers["retry-after"], len(up.requests)) == (429, "30", 1)
    assert "x-should-retry" not in answer.headers


@pytest.mark.parametrize(("extra", "tries"), [({}, 2), ({"store": True}, 1)])
async def test_what_would_be_stored_twice_is_not_sent_again_over_a_new_connection(
    proxy: StartProxy, upstream: StartUpstream, extra: JsonObject, tries: int
) -> None:
    up = await upstream("reset")
    answer = await (await proxy(up)).ask(**extra)
    assert (answer.status, answer.error["code"]) == (502, "upstream_disconnected")
    assert len(up.requests) == tries


async def test_a_connection_of_the_pool_that_was_closed_is_replaced_in_any_case(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok, "keep")
    p = await proxy(up, retries={"attempts": 1, "ratio": 0, "per_second": 0})
    assert (await p.ask(store=True)).status == 200
    up.script = Turns(["reset"], [wire.ok, "keep"])
    assert (await p.ask(store=True)).status == 200


async def fail_until_it_pauses(p: Proxy) -> None:
    for _ in range(5):
        await p.ask()


async def test_a_target_that_fails_is_left_alone(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    down, up = await start_failing(upstream, wire), await upstream(wire.ok, "keep")
    p = await proxy(down, up, random=FirstTarget())
    await fail_until_it_pauses(p)
    asked = len(down.requests)
    assert [(await p.ask()).status for _ in range(10)] == [200] * 10
    assert len(down.requests) == asked == 5
    (line,) = [line for line in p.lines if line["event"] == "target_pauses"]
    assert (line["target"], line["level"]) == ("p0/up", "warning")
    assert 4.5 <= line["seconds"] <= 5.5


async def test_it_gets_the_requests_back_after_the_pause(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    down, up = await start_failing(upstream, wire), await upstream(wire.ok, "keep")
    p = await proxy(down, up, random=FirstTarget(), breaker={"pause": 0.001})
    await fail_until_it_pauses(p)
    down.script = [wire.ok, "keep"]
    asked = len(down.requests)
    for _ in range(5):
        assert (await p.ask()).status == 200
    assert len(down.requests) > asked


async def test_if_every_target_pauses_one_is_asked_once(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    ups = [await start_failing(upstream, wire) for _ in range(3)]
    p = await proxy(*ups, random=FirstTarget())
    for _ in range(8):
        await p.ask()
    before = sum(len(up.requests) for up in ups)
    answers = [await p.ask() for _ in range(20)]
    assert sum(len(up.requests) for up in ups) - before == 20
    assert {answer.headers.get("x-should-retry") for answer in answers} == {"false"}
    for up in ups:
        up.script = [wire.ok, "keep"]
    assert (await p.ask()).status == 200  # recovered: nobody waits for the end of a pause


async def test_retries_end_with_the_budget(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await start_failing(upstream, wire)
    p = await proxy(up, breaker=ALWAYS, retries={"ratio": 0.1, "per_second": 0})
    answers = [await p.ask() for _ in range(20)]
    assert 20 < len(up.requests) <= 23
    assert answers[-1].headers["x-should-retry"] == "false"


async def test_a_fallback_for_a_reason_comes_before_second_tries(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    error = b'{"error": {"message": "flagged", "code": "content_filter"}}'
    failing, other = await start_failing(upstream, wire), await upstream(wire.ok, "keep")
    filtering = await upstream(wire.http(error, status="400 X"), "keep")
    models = {
        "m": {"targets": [{"provider": "p0"}, {"provider": "p1"}], "fallbacks_for": {"content_filter": ["other"]}},
        "other": {"targets": [{"provider": "p2"}]},
    }
    p = await proxy(failing, filtering, other, models=models, speak=dialects, random=FirstTarget())
    assert (await p.ask()).status == 200
    assert [len(up.requests) for up in (failing, filtering, other)] == [1, 1, 1]


@pytest.mark.parametrize(("store", "tries"), [(None, 1), (True, 1), (False, 2)])
async def test_a_response_that_its_provider_keeps_by_default_is_not_sent_again(
    proxy: StartProxy, upstream: StartUpstream, store: bool | None, tries: int
) -> None:
    up = await upstream("reset")
    provider = {"base_url": f"http://127.0.0.1:{up.port}/v1", "protocols": ["responses"]}
    p = await proxy(provider, speak=dialects, store={"kind": "none"})
    body = {"model": "m", "input": "hi", **({} if store is None else {"store": store})}
    async with p.session.post(f"{p.running.url}/v1/responses", json=body) as response:
        assert response.status == 502
    assert len(up.requests) == tries
