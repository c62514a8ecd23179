"""Which upstream a provider has, and what has to be there before one is made."""

from __future__ import annotations

import asyncio

from .config.models import Config, Provider, Timeouts
from .credentials import Credentials
from .over_http import HttpUpstream
from .over_litellm.upstream import LitellmUpstream
from .upstream import Upstream

__all__ = ["connected", "engines_ready"]


def connected(name: str, provider: Provider, timeouts: Timeouts, credentials: Credentials) -> Upstream:
    """The upstream for a provider. litellm has its own way to show a key."""
    if provider.engine == "litellm":
        return LitellmUpstream(name, provider, timeouts)
    return HttpUpstream(name, provider, timeouts, credentials)


async def engines_ready(config: Config) -> None:
    """Load what the routes need, which takes seconds, off the event loop. Raises ImportError, its text for users."""
    used = {target.provider for model in config.models.values() for target in model.targets}
    if any(config.providers[name].engine == "litellm" for name in used):
        from .over_litellm.library import load

        await asyncio.to_thread(load)
