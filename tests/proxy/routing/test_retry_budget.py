"""How many retries a provider gets."""

from __future__ import annotations

from dragoman.proxy.config.traffic import Retries
from dragoman.proxy.routing.retry_budget import RetryBudget


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def take_all(budget: RetryBudget) -> int:
    count = 0
    while budget.take():
        count += 1
    return count


def test_a_quiet_provider_gets_some_retries_a_second() -> None:
    clock = Clock()
    budget = RetryBudget(Retries(), clock)
    assert take_all(budget) == 30  # what ten seconds saved
    clock.now += 2
    assert take_all(budget) == 6


def test_a_busy_provider_gets_one_for_ten_requests() -> None:
    budget = RetryBudget(Retries(per_second=0.1), Clock())
    take_all(budget)
    retries = 0
    for _ in range(1000):
        budget.add_request()
        retries += budget.take()
    assert 90 <= retries <= 100


def test_no_retries_at_all() -> None:
    budget = RetryBudget(Retries(ratio=0, per_second=0), Clock())
    assert take_all(budget) == 0
