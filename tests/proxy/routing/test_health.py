"""When a target pauses, for how long, and when it is tried again."""

from __future__ import annotations

from random import Random

import pytest

from dragoman.proxy.config.traffic import Breaker
from dragoman.proxy.routing.health import HealthRegistry, TargetHealth, Verdict


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Middle(Random):
    """Draws the middle of every interval."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> TargetHealth:
    return HealthRegistry(Breaker(), Middle(), clock).find("p", "m")


def try_target(health: TargetHealth, verdict: Verdict, times: int = 1, retry_after: float | None = None) -> float:
    pause = 0.0
    for _ in range(times):
        health.begin()
        pause = health.end(verdict, retry_after)
    return pause


def test_five_failures_in_a_row_make_a_pause(health: TargetHealth) -> None:
    assert try_target(health, "failed", 4) == 0
    assert health.is_available
    assert try_target(health, "failed") == 5.0
    assert (health.is_available, health.state) == (False, "open")


def test_an_answer_in_between_starts_the_count_again(health: TargetHealth) -> None:
    for _ in range(4):
        try_target(health, "failed", 4)
        try_target(health, "answered", 5)
    assert health.is_available


def test_more_than_half_of_twenty_requests_make_a_pause(health: TargetHealth) -> None:
    for _ in range(3):
        try_target(health, "failed", 4)
        try_target(health, "answered")
    try_target(health, "answered", 4)
    assert health.is_available  # 12 of 19
    assert try_target(health, "failed") == 5.0


def test_what_is_long_ago_does_not_count(health: TargetHealth, clock: Clock) -> None:
    for _ in range(3):
        try_target(health, "failed", 4)
        try_target(health, "answered")
    clock.now += 61
    try_target(health, "answered", 4)
    assert try_target(health, "failed") == 0


def test_after_the_pause_one_request_tries_the_target(health: TargetHealth, clock: Clock) -> None:
    try_target(health, "failed", 5)
    clock.now += 5
    assert (health.is_available, health.state) == (True, "half-open")
    health.begin()
    assert not health.is_available
    assert health.end("answered") == 0
    assert (health.is_available, health.state) == (True, "closed")


def test_each_pause_is_twice_as_long_up_to_a_minute(health: TargetHealth, clock: Clock) -> None:
    pauses = [try_target(health, "failed", 5)]
    for _ in range(5):
        clock.now += pauses[-1]
        pauses.append(try_target(health, "failed"))
    assert pauses == [5, 10, 20, 40, 60, 60]
    clock.now += 60
    try_target(health, "answered")
    assert try_target(health, "failed", 5) == 5


def test_failures_of_requests_that_began_before_the_pause_do_not_lengthen_it(health: TargetHealth) -> None:
    for _ in range(9):
        health.begin()
    assert [health.end("failed") for _ in range(9)] == [0, 0, 0, 0, 5, 0, 0, 0, 0]
    assert health.in_flight == 0


@pytest.mark.parametrize(
    ("verdict", "retry_after", "pause", "afterwards"),
    [
        ("limited", 7.0, 7.0, "closed"),
        ("limited", None, 1.0, "closed"),
        ("limited", 900.0, 60.0, "closed"),
        ("locked_out", None, 60.0, "half-open"),
    ],
)
def test_pauses_that_a_provider_asks_for(
    health: TargetHealth, clock: Clock, verdict: Verdict, retry_after: float | None, pause: float, afterwards: str
) -> None:
    """The metric shows them too: the alert about a key that is refused needs them, if other targets answer."""
    assert try_target(health, verdict, retry_after=retry_after) == pause
    assert (health.is_available, health.state) == (False, "open")
    clock.now += pause
    assert (health.is_available, health.state) == (True, afterwards)
    try_target(health, "answered")
    assert (health.is_available, health.state) == (True, "closed")


def test_a_client_that_leaves_says_nothing(health: TargetHealth) -> None:
    assert try_target(health, "unknown", 30) == 0
    assert health.is_available


def test_the_latency_is_smoothed(health: TargetHealth) -> None:
    assert health.latency is None
    health.measure(1.0)
    health.measure(2.0)
    assert health.latency == pytest.approx(1.2)


def test_models_have_their_own_health_and_old_ones_are_forgotten(clock: Clock) -> None:
    registry = HealthRegistry(Breaker(), Middle(), clock)
    first = registry.find("p", "a")
    assert registry.find("p", "a") is first
    assert registry.find("p", "b") is not first
    for number in range(3000):
        registry.find("p", str(number))
    assert registry.find("p", "a") is not first
