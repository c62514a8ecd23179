"""Fake providers, one for each dialect: real servers on loopback that can be told how to behave and misbehave.

async with FakeProvider("mindie") as fake:
    fake.script("rate-limit", "text")
    ...  # point a client at fake.base_url
    assert fake.requests[0].body["messages"]
"""

from __future__ import annotations

from .behaviours import BEHAVIOURS, Behaviour
from .choosing import Misuse, listing
from .replay import ReplayProvider
from .serve import introduction, run
from .server import FakeProvider, Received

__all__ = [
    "BEHAVIOURS",
    "Behaviour",
    "FakeProvider",
    "Misuse",
    "Received",
    "ReplayProvider",
    "introduction",
    "listing",
    "run",
]
