"""How many files the process may open. Each connection is one, and a proxy needs two for each stream.

Beyond the limit of the system new connections are closed without a word. The soft limit of a shell or a container is
often 1,024, or 256 on macOS; a process may raise it to its hard limit.
"""

from __future__ import annotations

import resource
from contextlib import suppress

__all__ = ["raise_file_limit"]

_WANTED = (65_536, 10_240)
"""The second one is the most that some versions of macOS allow."""


def raise_file_limit() -> int:
    """Raise the soft limit as far as the hard one allows and the proxy needs. Returns the limit that is in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in _WANTED:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if _is_enough(soft, most):
            break
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            return most
    return _WANTED[0] if soft == resource.RLIM_INFINITY else soft


def _is_enough(soft: int, most: int) -> bool:
    return soft == resource.RLIM_INFINITY or soft >= most
