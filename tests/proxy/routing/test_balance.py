"""The order of a model's targets: by weight, load, latency or session."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from random import Random

import pytest

from dragoman.adapters import dialects
from dragoman.proxy.config.models import Config
from dragoman.proxy.routing.keys import ANYONE
from dragoman.proxy.routing.state import RouterState
from dragoman.proxy.routing.targets import Candidate
from tests.proxy.first_target import FirstTarget
from tests.proxy.no_upstream import NoUpstream
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire


def create_state(balance: str, *weights: float) -> RouterState:
    providers = {f"p{n}": {"dialect": "openai", "base_url": "http://127.0.0.1:1"} for n in range(len(weights))}
    targets = [{"provider": f"p{n}", "model": "up", "weight": weight} for n, weight in enumerate(weights)]
    models = {"m": {"targets": targets, "balance": balance}}
    config = Config.from_values({"providers": providers, "models": models})
    return RouterState(config, dialects, Random(3), create_upstream=NoUpstream)


def list_targets(state: RouterState, session: str | None = None) -> list[Candidate]:
    return [*state.list_candidates("m", ANYONE, session=session)]


def count_first(state: RouterState, times: int = 400) -> Counter[str]:
    return Counter(list_targets(state, f"session {number}")[0].provider.name for number in range(times))


@pytest.mark.parametrize("balance", ["weighted", "least-busy", "fastest", "sticky"])
def test_every_order_has_every_target_once_and_respects_weights(balance: str) -> None:
    state = create_state(balance, 3, 1, 0)
    orders = [[one.provider.name for one in list_targets(state, str(n))] for n in range(50)]
    assert {tuple(sorted(order)) for order in orders} == {("p0", "p1", "p2")}
    assert {order[-1] for order in orders} == {"p2"}
    if balance != "fastest":  # two choices of two targets are all targets
        first = count_first(state)
        assert 260 <= first["p0"] <= 340


def test_the_least_busy_target_comes_first() -> None:
    state = create_state("least-busy", 1, 1, 2)
    zero, one, two = sorted(list_targets(state), key=lambda target: target.provider.name)
    for target, running in ((zero, 2), (one, 1), (two, 3)):
        for _ in range(running):
            target.health.begin()
    assert [target.provider.name for target in list_targets(state)] == ["p1", "p2", "p0"]


def test_the_faster_target_gets_more_and_none_is_forgotten() -> None:
    state = create_state("fastest", 1, 1, 1)
    for target, seconds in zip(sorted(list_targets(state), key=lambda one: one.label), (1.0, 0.1, 3.0), strict=True):
        target.health.measure(seconds)
    first = count_first(state)
    assert first["p1"] > first["p0"] > first["p2"] == 0  # the slowest loses every comparison,
    list_targets(state)
    unmeasured = create_state("fastest", 1, 1)
    list_targets(unmeasured)[0].health.measure(1.0)
    assert list_targets(unmeasured)[0].health.latency is None  # and a new one is tried


def test_a_fast_target_with_many_requests_is_not_preferred() -> None:
    state = create_state("fastest", 1, 1)
    fast, slow = list_targets(state)
    fast.health.measure(0.5)
    slow.health.measure(1.0)
    for _ in range(3):
        fast.health.begin()
    assert list_targets(state)[0].health is slow.health


def test_a_session_keeps_its_target_and_few_move_if_one_is_added() -> None:
    small, large = create_state("sticky", 1, 1, 1), create_state("sticky", 1, 1, 1, 1)
    names = [f"user-{number}" for number in range(300)]
    before = [list_targets(small, name)[0].provider.name for name in names]
    assert before == [list_targets(small, name)[0].provider.name for name in names]
    after = [list_targets(large, name)[0].provider.name for name in names]
    moved = [new for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {"p3"}
    assert len(moved) < 110
    assert len({list_targets(small)[0].provider.name for _ in range(50)}) == 3  # without a session


async def test_requests_of_one_user_go_to_one_target(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    ups = [await upstream(wire.ok, "keep") for _ in range(3)]
    targets = [{"provider": f"p{number}", "model": "up"} for number in range(3)]
    p = await proxy(*ups, models={"m": {"targets": targets, "balance": "sticky"}})
    await asyncio.gather(*(p.ask(user="ada") for _ in range(12)))
    assert sorted(len(up.requests) for up in ups) == [0, 0, 12]


@pytest.mark.parametrize(
    ("reason", "status", "message"),
    [
        ("context_length", "400 X", "This model's maximum context length is 4096 tokens"),
        ("content_filter", "400 X", "content_filter"),
    ],
)
async def test_a_model_for_what_the_first_one_refuses(
    upstream: StartUpstream, proxy: StartProxy, wire: Wire, reason: str, status: str, message: str
) -> None:
    error = {"error": {"message": message, "code": "content_filter" if reason == "content_filter" else None}}
    small = await upstream(wire.http(json.dumps(error).encode(), status=status), "keep")
    usual, large = await upstream(wire.ok, "keep"), await upstream(wire.ok, "keep")
    models = {
        "m": {"targets": [{"provider": "p0"}], "fallbacks_for": {reason: ["large"]}},
        "large": {"targets": [{"provider": "p2", "model": "large"}]},
    }
    p = await proxy(small, usual, large, speak=dialects, models=models, random=FirstTarget())
    assert (await p.ask()).status == 200
    assert [len(up.requests) for up in (small, usual, large)] == [1, 0, 1]
    assert (await p.exchanges())[0]["target"] == "p2/large"
    without = {**models, "m": {"targets": [{"provider": "p0"}], "fallbacks_for": {}}}
    answer = await (await proxy(small, usual, large, speak=dialects, models=without)).ask()
    assert answer.status == 400
