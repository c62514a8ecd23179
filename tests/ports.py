"""Ports for processes that tests start."""

from __future__ import annotations

import contextlib
import random
import socket

__all__ = ["find_free_port"]

_RANGE = range(10_000, 30_000)
"""Below the ports that the system gives to outgoing connections and to servers that ask for any: those of other tests
could take one before the process listens."""


def find_free_port() -> int:
    """A port that nothing uses."""
    while True:
        port = random.choice(_RANGE)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
