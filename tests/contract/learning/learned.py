"""Learns fake providers, without waiting."""

from __future__ import annotations

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.learning.findings import Findings
from dragoman.contract.learning.learner import Learner
from dragoman.contract.pacing import Pacer
from dragoman.contract.transport import HttpTransport

__all__ = ["MODEL", "learn_fake", "make_learner"]

MODEL = "fake-model"


async def skip_pause(_seconds: float) -> None:
    """Wait for nothing."""


def make_learner(url: str, **known: object) -> Learner:
    """A learner of that address that never waits."""
    return Learner(url, HttpTransport(20), Pacer(0.0, 60.0, sleep=skip_pause), **{"model": MODEL, **known})  # type: ignore[arg-type]


async def learn_fake(fake: FakeProvider, **known: object) -> Findings:
    """Learn a running fake."""
    learner = make_learner(fake.origin, key=fake.api_key, **known)
    try:
        await learner.learn()
    finally:
        await learner.transport.close()
    return learner.findings
