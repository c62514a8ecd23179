"""Which upstream a provider has, and the engines that start before the proxy listens and stop with it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dragoman.proxy.config.models import Config, Provider, Timeouts
from dragoman.proxy.telemetry.log import Log

from .credentials import Credentials
from .http import HttpUpstream
from .interface import Upstream
from .local.supervisor import EngineError
from .local.upstream import LocalUpstream

__all__ = ["connected", "described", "engines_ready", "start_engines"]


def connected(name: str, provider: Provider, timeouts: Timeouts, credentials: Credentials) -> Upstream:
    """The upstream for a provider. litellm has its own way to show a key, the local engine needs none."""
    match provider.engine:
        case "local":
            return LocalUpstream(name, provider, timeouts)
        case "litellm":
            from .litellm.upstream import LitellmUpstream

            return LitellmUpstream(name, provider, timeouts)
        case None:
            return HttpUpstream(name, provider, timeouts, credentials)


async def engines_ready(config: Config) -> None:
    """Load what the routes need, which takes seconds, off the event loop. Raises ImportError, its text for users."""
    used = {target.provider for model in config.models.values() for target in model.targets}
    if any(config.providers[name].engine == "litellm" for name in used):
        from .litellm.library import load

        await asyncio.to_thread(load)


async def start_engines(upstreams: Iterable[Upstream], log: Log) -> None:
    """Start every engine, all at once, and wait until they are ready. Raises EngineError, its text for users."""
    engines = [upstream.engine for upstream in upstreams if isinstance(upstream, LocalUpstream)]
    if not engines:
        return
    with _progress(", ".join(engine.name for engine in engines)):
        found = await asyncio.gather(*(engine.start(log) for engine in engines), return_exceptions=True)
    for engine, health in zip(engines, found, strict=True):
        if isinstance(health, EngineError):
            raise EngineError(f"the engine {engine.name} cannot start: {health}")
        if isinstance(health, BaseException):
            raise health
        log.info("engine_ready", provider=engine.name, pid=engine.pid, **health)


def described(upstreams: Iterable[Upstream]) -> list[str]:
    """What runs, a line for each engine."""
    return [_line(upstream.engine.health) for upstream in upstreams if isinstance(upstream, LocalUpstream)]


def _line(health: Mapping[str, Any]) -> str:
    text = f"engine: {health.get('model')} on {health.get('device')}"
    return f"{text} ({note})" if (note := health.get("note")) else text


@contextmanager
def _progress(names: str) -> Iterator[None]:
    """A turning wheel on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"loading {names}"):
        yield
