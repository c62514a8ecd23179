"""Fake providers, one for each dialect: real servers on loopback that behave and misbehave as a test asks.

async with FakeProvider("mindie") as fake:
    fake.script("rate-limit", "text")
    ...  # point a client at fake.base_url
    assert fake.requests[0].body["messages"]
"""

from __future__ import annotations

from .behaviours import BEHAVIOURS, Behaviour
from .command import describe_fake, run_until_signal
from .replay import ReplayProvider
from .selection import InvalidBehaviourError, list_behaviours
from .server import FakeProvider, ReceivedRequest

__all__ = [
    "BEHAVIOURS",
    "Behaviour",
    "FakeProvider",
    "InvalidBehaviourError",
    "ReceivedRequest",
    "ReplayProvider",
    "describe_fake",
    "list_behaviours",
    "run_until_signal",
]
