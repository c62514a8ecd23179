"""A fake provider on the command line: `dragoman fake DIALECT --port N`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar
from urllib.parse import urlencode

from dragoman.contract.dialects import dialect, path_of

from .dialects import MODEL
from .server import FakeProvider

__all__ = ["introduction", "run"]

Fake = TypeVar("Fake", bound=AbstractAsyncContextManager[Any])

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(fake: Fake, introduction: Callable[[Fake], str], say: Callable[[str], object] = print) -> None:
    """Run a fake until SIGINT or SIGTERM; `say` gets the introduction once it listens. Raises OSError where the port is
    taken."""
    asyncio.run(_until_a_signal(fake, introduction, say))


async def _until_a_signal(fake: Fake, introduction: Callable[[Fake], str], say: Callable[[str], object]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with fake:
        for number in _SIGNALS:
            loop.add_signal_handler(number, stopped.set)
        try:
            say(introduction(fake))
            await stopped.wait()
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


def introduction(fake: FakeProvider) -> str:
    """Where the fake is, a request to try, and the provider block for dragoman.yaml."""
    row = dialect(fake.dialect)
    asked = row.accepted_keys is None or row.accepted_keys
    keys = [f"{name}: {form.format(key=fake.api_key)}" for name, form in row.key.items()] if asked else []
    header = "".join(f" -H '{key}'" for key in keys) if fake.api_key else ""
    query = f"?{urlencode(row.query)}" if row.query else ""
    options = f', api_key: "{fake.api_key}"' if fake.api_key else ""
    options += "" if fake.profile == "actual" else f", profile: {fake.profile}"
    return f"""\
fake {fake.dialect} ({fake.profile}) at {fake.base_url}, behaviour: {fake.behaviour}

curl -N '{fake.base_url}{path_of(fake.dialect, "chat", MODEL)}{query}' -H 'content-type: application/json'{header} \\
  -d '{{"model": "fake-model", "messages": [{{"role": "user", "content": "Hello"}}], "stream": true}}'

dragoman.yaml:
providers:
  {fake.dialect}: {{dialect: {fake.dialect}, base_url: "{fake.base_url}"{options}}}
models:
  fake: {{targets: [{{provider: {fake.dialect}, model: fake-model}}]}}

A last user message, or prompt, of `fake:tools`, `fake:rate-limit(retry_after=3)` or `fake:cut` chooses what happens
(`dragoman fake --list` shows all); GET {fake.origin}/_fake/requests shows what was received.
"""
