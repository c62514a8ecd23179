"""The system's certificate authorities, which are read only if a provider needs them.

aiohttp reads them twice when it is imported, for the contexts that its clients share. That takes a tenth
of the start and a megabyte, and a proxy whose providers have http addresses never uses them.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["defer_authorities", "load_authorities"]

_without: list[ssl.SSLContext] = []
"""The contexts that do not trust any authority yet."""


@contextmanager
def defer_authorities() -> Iterator[None]:
    """Contexts that are made inside, and that verify certificates, trust nobody before `load_authorities`."""
    ssl.SSLContext.set_default_verify_paths = _defer  # type: ignore[method-assign]
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths  # what it inherits is the real one


def _defer(self: ssl.SSLContext) -> None:
    if self.verify_mode != ssl.CERT_NONE:
        _without.append(self)


def load_authorities() -> None:
    """Let the contexts that were made without authorities trust the system's. It reads their files."""
    while _without:
        _without.pop().set_default_verify_paths()
