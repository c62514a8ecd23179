"""Requests, tokens and concurrency: what is admitted, what is left, and when there is more."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.adapters import dialects
from dragoman.proxy.config.traffic import RateLimits
from dragoman.proxy.routing.rate_limits import Limiter, LocalCounters, Rate, RateDecision
from tests.proxy.first_target import FirstTarget
from tests.proxy.running_proxy import Proxy, StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def count_admitted(counters: LocalCounters, rate: Rate, tries: int) -> int:
    return sum([(await counters.take("k", rate, 1)).is_allowed for _ in range(tries)])


async def test_a_burst_and_then_the_rate() -> None:
    clock = Clock()
    counters, rate = LocalCounters(clock), Rate(60, 10)
    assert await count_admitted(counters, rate, 50) == 10
    clock.now += 3
    assert await count_admitted(counters, rate, 50) == 3
    clock.now += 3600
    assert await count_admitted(counters, rate, 50) == 10


async def test_what_is_left_and_when_more_comes() -> None:
    clock = Clock()
    counters, rate = LocalCounters(clock), Rate(60, 3)
    assert [(await counters.take("k", rate, 1)).remaining for _ in range(3)] == [2, 1, 0]
    decision = await counters.take("k", rate, 1)
    assert (decision.is_allowed, decision.remaining, decision.reset, decision.retry_after) == (False, 0, 3.0, 1.0)
    clock.now += 1
    assert (await counters.take("k", rate, 1)).is_allowed


@given(st.integers(1, 600), st.integers(1, 600), st.lists(st.floats(0, 5), max_size=60))
def test_no_minute_has_more_than_the_rate_and_one_burst(limit: int, burst: int, pauses: list[float]) -> None:
    clock = Clock()
    counters, rate = LocalCounters(clock), Rate(limit, min(burst, limit))
    admitted: list[float] = []

    async def run() -> None:
        for pause in pauses:
            clock.now += pause
            if (await counters.take("k", rate, 1)).is_allowed:
                admitted.append(clock.now)

    asyncio.run(run())
    for start in admitted:
        assert sum(start <= at < start + 60 for at in admitted) <= rate.burst + limit


async def test_tokens_are_counted_at_the_end_and_may_go_into_debt() -> None:
    clock = Clock()
    limiter = Limiter("the key a", RateLimits(tokens_per_minute=600), LocalCounters(clock))
    (left,), refusal = await limiter.admit()
    assert (left[:3], refusal) == (("tokens", 600, 599), None)
    limiter.settle(1200)
    (left,), refusal = await limiter.admit()
    assert refusal is not None
    assert refusal.message == "the key a may use 600 tokens a minute; more will be free in 1m1s"
    assert (refusal.code, refusal.status) == ("rate_limit_exceeded", 429)
    assert (left[:3], left.reset) == (("tokens", 600, 0), 120.0)
    clock.now += 60.2
    assert (await limiter.admit()).refusal is None


async def test_a_request_that_is_refused_for_its_tokens_does_not_count_as_one() -> None:
    limiter = Limiter("k", RateLimits(requests_per_minute=2, tokens_per_minute=10), LocalCounters(Clock()))
    await limiter.admit()
    limiter.settle(50)
    for _ in range(3):
        left, refusal = await limiter.admit()
        assert refusal is not None
        assert "tokens a minute" in refusal.message
        assert [one[:3] for one in left] == [("requests", 2, 1), ("tokens", 10, 0)]


async def test_concurrency() -> None:
    limiter = Limiter("the key a", RateLimits(concurrency=1), LocalCounters())
    assert await limiter.admit() == ((), None)
    refusal = (await limiter.admit()).refusal
    assert refusal is not None
    assert refusal.message == "the key a may have 1 requests at one time"
    limiter.settle(0)
    assert await limiter.admit() == ((), None)


class RemoteCounters(LocalCounters):
    """Counts elsewhere: every answer takes a while."""

    async def take(self, name: str, rate: Rate, amount: float) -> RateDecision:
        await asyncio.sleep(0.001)
        return await super().take(name, rate, amount)


async def test_counters_of_another_process_admit_no_more_than_the_limits() -> None:
    """Several limiters share them, and requests that wait for them count as running."""
    counters = RemoteCounters()
    limiters = [Limiter("the key a", RateLimits(requests_per_minute=5), counters) for _ in range(2)]
    found = await asyncio.gather(*(limiter.admit() for limiter in limiters * 5))
    assert [one.refusal for one in found].count(None) == 5
    limiter = Limiter("the key b", RateLimits(requests_per_minute=100, concurrency=3), counters)
    found = await asyncio.gather(*(limiter.admit() for _ in range(10)))
    assert [one.refusal for one in found].count(None) == 3


async def test_a_request_that_leaves_while_it_is_counted_does_not_run() -> None:
    limiter = Limiter("the key a", RateLimits(requests_per_minute=100, concurrency=1), RemoteCounters())
    leaving = asyncio.create_task(limiter.admit())
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    assert (await limiter.admit()).refusal is None


KEYS = [
    {"name": "small", "key": "small-key-0123456789", "rate": {"requests_per_minute": 2}},
    {"name": "free", "key": "free-key-01234567890"},
]


async def ask_as(p: Proxy, key: str) -> tuple[int, dict[str, str]]:
    answer = await p.ask(headers={"Authorization": f"Bearer {key}"})
    return answer.status, {name.lower(): value for name, value in answer.headers.items()}


async def test_a_key_over_its_limit_gets_429_and_all_answers_say_what_is_left(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok, "keep")
    p = await proxy(up, keys=KEYS)
    answers = [await ask_as(p, "small-key-0123456789") for _ in range(3)]
    assert [status for status, _ in answers] == [200, 200, 429]
    headers = answers[0][1]
    assert (headers["x-ratelimit-limit-requests"], headers["x-ratelimit-remaining-requests"]) == ("2", "1")
    assert headers["x-ratelimit-reset-requests"].endswith("s")
    assert 1 <= int(answers[2][1]["retry-after"]) <= 30
    assert (await ask_as(p, "free-key-01234567890"))[0] == 200
    assert len(up.requests) == 3


PATHS = {
    "openai": ("/v1/chat/completions", {}),
    "azure-openai": ("/openai/deployments/m/chat/completions?api-version=2024-10-21", {}),
    "azure": ("/models/chat/completions?api-version=2024-05-01-preview", {}),
    "anthropic": ("/v1/messages", {"max_tokens": 5}),
    "databricks": ("/serving-endpoints/m/invocations", {"max_tokens": 5}),
    "mindie": ("/mindie/v1/chat/completions", {"max_tokens": 5}),
}
DURATION, SECONDS, TIME = r"(\d+m)?[\d.]+m?s", r"\d+", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
FORMS = {
    "openai": ("x-ratelimit-{}-{}", DURATION),
    "azure-openai": ("x-ratelimit-{}-{}", SECONDS),
    "azure": ("x-ratelimit-{}-{}", SECONDS),
    "anthropic": ("anthropic-ratelimit-{1}-{0}", TIME),
}
"""The dialects that have such headers: their names, and how they write when all units are there again."""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", PATHS)
async def test_what_is_left_is_written_as_the_clients_dialect_does(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, client: str, stream: bool
) -> None:
    up = await upstream(wire.stream if stream else wire.ok, "keep")
    rate = {"requests_per_minute": 2, "tokens_per_minute": 1000}
    keys = [{"name": "small", "key": "small-key-0123456789", "rate": rate}]
    p = await proxy(up, speak=dialects, keys=keys)
    path, more = PATHS[client]
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": stream, **more}
    found = []
    for status in (200, 200, 503 if client == "mindie" else 429):  # MindIE documents no 429
        given = {"Authorization": "Bearer small-key-0123456789", "anthropic-version": "2023-06-01"}
        async with p.session.post(f"{p.running.url}{path}", json=body, headers=given) as response:
            assert response.status == status, await response.text()
            found.append({name.lower(): text for name, text in response.headers.items() if "rate" in name.lower()})
            waits = response.headers.get("retry-after")
    assert waits is not None
    assert 1 <= int(waits) <= 30
    if client not in FORMS:
        assert found == [{}, {}, {}]
        return
    name, reset = FORMS[client]
    for headers, left in zip(found, ("1", "0", "0"), strict=True):
        assert (headers[name.format("limit", "requests")], headers[name.format("remaining", "requests")]) == ("2", left)
        assert headers[name.format("limit", "tokens")] == "1000"
        assert 900 < int(headers[name.format("remaining", "tokens")]) < 1000
        for unit in ("requests", "tokens"):
            assert re.fullmatch(reset, headers[name.format("reset", unit)])
        assert headers.get("x-ratelimit-renewalperiod-tokens") == ("60" if client.startswith("azure") else None)


async def test_a_provider_over_its_limit_is_passed_by(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    first, second = await upstream(wire.ok, "keep"), await upstream(wire.ok, "keep")
    limited = {"base_url": f"http://127.0.0.1:{first.port}/v1", "rate": {"requests_per_minute": 1}}
    p = await proxy(limited, second, random=FirstTarget())
    assert [(await p.ask()).status for _ in range(3)] == [200] * 3
    assert (len(first.requests), len(second.requests)) == (1, 2)
    assert [line["target"] for line in await p.exchanges(3)] == ["p0/up", "p1/up", "p1/up"]


async def test_if_no_other_provider_is_left_the_client_waits(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(wire.ok, "keep")
    p = await proxy({"base_url": f"http://127.0.0.1:{up.port}/v1", "rate": {"tokens_per_minute": 1}})
    assert (await p.ask()).status == 200  # three tokens
    answer = await p.ask()
    assert (answer.status, answer.error["code"]) == (429, "provider_rate_limit")
    assert int(answer.headers["retry-after"]) > 60
    assert len(up.requests) == 1
