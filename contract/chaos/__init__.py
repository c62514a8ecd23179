"""A TCP proxy that injects faults, with Toxiproxy's names and HTTP API, and toxics for HTTP and event streams.

async with ChaosProxy("provider", "127.0.0.1:9001") as proxy:
    proxy.add_toxic(Toxic("latency", {"latency": 300}))
    ...  # connect to proxy.listen instead of 127.0.0.1:9001
"""

from __future__ import annotations

from .collection import ChaosProxies
from .proxy import ChaosProxy
from .toxics import ChaosError, Toxic, list_toxics, parse_toxic

__all__ = ["ChaosError", "ChaosProxies", "ChaosProxy", "Toxic", "list_toxics", "parse_toxic"]
