"""The command `dragoman fake DIALECT --port N`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar
from urllib.parse import urlencode

from dragoman.contract.dialects import build_path, load_dialect
from dragoman.contract.routes import MODEL

from .server import FakeProvider

__all__ = ["describe_fake", "run_until_signal"]

Server = TypeVar("Server")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_until_signal(
    server: AbstractAsyncContextManager[Server],
    describe: Callable[[Server], str],
    say: Callable[[str], object] = print,
) -> None:
    """Run a server until SIGINT or SIGTERM. Once it listens, `say` gets its description. Raises OSError if the port is
    taken."""
    asyncio.run(_serve_until_signal(server, describe, say))


async def _serve_until_signal(
    server: AbstractAsyncContextManager[Server], describe: Callable[[Server], str], say: Callable[[str], object]
) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with server as running:
        for number in _SIGNALS:
            loop.add_signal_handler(number, stopped.set)
        try:
            say(describe(running))
            await stopped.wait()
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


def describe_fake(fake: FakeProvider) -> str:
    """Describe the fake: its address, a request to try, and the provider block for dragoman.yaml."""
    dialect = load_dialect(fake.dialect)
    needs_key = fake.api_key and (dialect.accepted_keys is None or dialect.accepted_keys)
    keys = [f"{name}: {form.format(key=fake.api_key)}" for name, form in dialect.key.items()] if needs_key else []
    asked = "chat" if "chat" in dialect.paths else next(iter(dialect.paths))
    limit = ', "max_tokens": 64' if asked == "messages" else ""
    header = "".join(f" -H '{one}'" for one in [*(f"{name}: {it}" for name, it in dialect.headers.items()), *keys])
    query = f"?{urlencode(dialect.query)}" if dialect.query else ""
    options = f', api_key: "{fake.api_key}"' if fake.api_key else ""
    options += "" if fake.profile == "actual" else f", profile: {fake.profile}"
    return f"""\
fake {fake.dialect} ({fake.profile}) at {fake.base_url}, behaviour: {fake.behaviour}

curl -N '{fake.base_url}{build_path(fake.dialect, asked, MODEL)}{query}' -H 'content-type: application/json'{header} \\
  -d '{{"model": "fake-model", "messages": [{{"role": "user", "content": "Hello"}}], "stream": true{limit}}}'

dragoman.yaml:
providers:
  {fake.dialect}: {{dialect: {fake.dialect}, base_url: "{fake.base_url}"{options}}}
models:
  fake: {{targets: [{{provider: {fake.dialect}, model: fake-model}}]}}

A last user message, or prompt, of `fake:tools`, `fake:rate-limit(retry_after=3)` or `fake:cut` chooses the behaviour
(`dragoman fake --list` shows all); GET {fake.origin}/_fake/requests shows the received requests.
"""
