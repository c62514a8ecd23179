"""The command `dragoman fake DIALECT --port N`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from .server import FakeProvider

__all__ = ["describe_fake", "run_until_signal"]

Fake = TypeVar("Fake", bound=AbstractAsyncContextManager[Any])

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_ADDRESSES = {
    "openai": "/v1/chat/completions",
    "databricks": "/serving-endpoints/fake-model/invocations",
    "azure": "/chat/completions?api-version=2024-05-01-preview",
    "mindie": "/v1/chat/completions",
}


def run_until_signal(fake: Fake, describe: Callable[[Fake], str], say: Callable[[str], object] = print) -> None:
    """Run a fake until SIGINT or SIGTERM. Once it listens, `say` gets its description. Raises OSError if the port is
    taken."""
    asyncio.run(_serve_until_signal(fake, describe, say))


async def _serve_until_signal(fake: Fake, describe: Callable[[Fake], str], say: Callable[[str], object]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with fake:
        for number in _SIGNALS:
            loop.add_signal_handler(number, stopped.set)
        try:
            say(describe(fake))
            await stopped.wait()
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


def describe_fake(fake: FakeProvider) -> str:
    """Describe the fake: its address, a request to try, and the provider block for dragoman.yaml."""
    key = {"openai": "Authorization: Bearer", "databricks": "Authorization: Bearer", "azure": "api-key:"}
    header = f" -H '{key[fake.dialect]} {fake.api_key}'" if fake.api_key and fake.dialect in key else ""
    options = f', api_key: "{fake.api_key}"' if fake.api_key else ""
    options += "" if fake.profile == "actual" else f", profile: {fake.profile}"
    return f"""\
fake {fake.dialect} ({fake.profile}) at {fake.base_url}, behaviour: {fake.behaviour}

curl -N '{fake.origin}{_ADDRESSES[fake.dialect]}' -H 'content-type: application/json'{header} \\
  -d '{{"model": "fake-model", "messages": [{{"role": "user", "content": "Hello"}}], "stream": true}}'

dragoman.yaml:
providers:
  {fake.dialect}: {{dialect: {fake.dialect}, base_url: "{fake.base_url}"{options}}}
models:
  fake: {{targets: [{{provider: {fake.dialect}, model: fake-model}}]}}

A last user message, or prompt, of `fake:tools`, `fake:rate-limit(retry_after=3)` or `fake:cut` chooses the behaviour
(`dragoman fake --list` shows all); GET {fake.origin}/_fake/requests shows the received requests.
"""
