"""The factory of upstreams, and the start of engines. Engines are ready before the proxy listens, and stop with it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from dragoman.proxy.config.models import Provider
from dragoman.proxy.config.traffic import Timeouts
from dragoman.proxy.telemetry.log import Log

from .credentials import Credentials
from .http import HttpUpstream
from .interface import Upstream
from .supervision.supervisor import EngineError, Supervisor

__all__ = ["UpstreamFactory", "describe_engines", "log_engines", "start_engines"]


class UpstreamFactory:
    """Creates upstreams, those of the next configuration too. The same engine is not started twice: providers of the
    engine litellm share one process, and a local engine serves the upstream that follows if its options stay."""

    def __init__(self) -> None:
        self._engines: dict[tuple[str, ...], Supervisor] = {}

    def create_upstream(self, name: str, provider: Provider, timeouts: Timeouts, credentials: Credentials) -> Upstream:
        """The upstream of a provider. litellm gets the key with each call; the local engine needs none."""
        match provider.engine:
            case "local":
                from .local.upstream import LocalUpstream, create_engine, engine_options

                options = (name, *engine_options(provider), str(provider.step_timeout))
                engine = self._find_engine(options, partial(create_engine, name, provider))
                return LocalUpstream(name, provider, timeouts, engine)
            case "litellm":
                from .litellm.upstream import LitellmUpstream, create_supervisor

                return LitellmUpstream(name, provider, timeouts, self._find_engine(("litellm",), create_supervisor))
            case None:
                return HttpUpstream(name, provider, timeouts, credentials)

    def _find_engine(self, options: tuple[str, ...], create: Callable[[], Supervisor]) -> Supervisor:
        """The engine with these options, unless it has been stopped; else a new one."""
        engine = self._engines.get(options)
        if engine is None or engine.is_stopped:
            engine = self._engines[options] = create()
        return engine


async def start_engines(upstreams: Iterable[Upstream], log: Log) -> None:
    """Start every engine of these upstreams that does not run, all at once, and wait until they are ready. Raises
    EngineError, its text for users."""
    engines = [engine for engine in _find_engines(upstreams) if not engine.is_started]
    if not engines:
        return
    with _show_progress(", ".join(engine.name for engine in engines)):
        found = await asyncio.gather(*(engine.start(log) for engine in engines), return_exceptions=True)
    for engine, health in zip(engines, found, strict=True):
        if isinstance(health, EngineError):
            raise EngineError(f"the engine {engine.name} cannot start: {health}")
        if isinstance(health, BaseException):
            raise health


def log_engines(upstreams: Iterable[Upstream], log: Log) -> None:
    """Log the event `engine_ready` for each engine that runs, with its process and what its /health says."""
    for engine in _find_engines(upstreams):
        if engine.health:
            log.info("engine_ready", provider=engine.name, pid=engine.pid, **engine.health)


def describe_engines(upstreams: Iterable[Upstream]) -> list[str]:
    """A line for each engine that runs."""
    return [_describe_engine(engine) for engine in _find_engines(upstreams) if engine.health]


def _find_engines(upstreams: Iterable[Upstream]) -> list[Supervisor]:
    """The engines of these upstreams, each once."""
    found = (getattr(upstream, "engine", None) for upstream in upstreams)
    return list(dict.fromkeys(engine for engine in found if isinstance(engine, Supervisor)))


def _describe_engine(engine: Supervisor) -> str:
    health = engine.health
    if "device" not in health:
        return f"engine: {engine.name} {health.get('version')}"
    text = f"engine: {health.get('model')} on {health['device']}"
    return f"{text} ({note})" if (note := health.get("note")) else text


@contextmanager
def _show_progress(names: str) -> Iterator[None]:
    """Show a spinner on a terminal, even if `sys.stderr` is redirected."""
    terminal = sys.__stderr__
    if terminal is None or not terminal.isatty():
        yield
        return
    from rich.console import Console

    with Console(file=terminal).status(f"loading {names}"):
        yield
