"""The upstream for a model folder on this machine, which a separate engine process serves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from dragoman.local_engine import embedded
from dragoman.local_engine.large_pages import request_large_pages
from dragoman.proxy.config.models import Provider
from dragoman.proxy.upstreams.supervision.process import Command, environment_without_secrets
from dragoman.proxy.upstreams.supervision.supervisor import Supervisor
from dragoman.proxy.upstreams.supervision.upstream import SupervisedUpstream

__all__ = ["COMMAND", "LocalUpstream", "create_engine", "engine_options"]

COMMAND = (sys.executable, "-P", "-m", "dragoman.local_engine.serve")

_OPTIONS = {"device": "device", "device_index": "index", "threads": "threads", "slots": "slots", "queue": "queue"}


class LocalUpstream(SupervisedUpstream):
    """The upstream of one provider, which does not share its engine with others."""


def create_engine(name: str, provider: Provider) -> Supervisor:
    """The engine of a provider, not started."""
    command = Command((*COMMAND, *engine_options(provider)), _make_environment)
    return Supervisor(name, command, provider.step_timeout)


def engine_options(provider: Provider) -> Iterator[str]:
    """The options of the engine's command line that the configuration sets."""
    if provider.model_dir is None:
        yield from ("--model-dir", str(embedded.embedded_folder()), "--name", embedded.NAME)
    else:
        yield from ("--model-dir", provider.model_dir)
    for key, option in _OPTIONS.items():
        yield from (f"--{option}", str(getattr(provider, key)))
    if provider.context is not None:
        yield from ("--context", str(provider.context))


def _make_environment(folder: Path) -> dict[str, str]:
    return request_large_pages(environment_without_secrets(folder))
