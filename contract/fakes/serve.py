"""A fake provider on the command line: `dragoman fake DIALECT --port N`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from .server import FakeProvider

__all__ = ["introduction", "run", "serve"]

_ADDRESSES = {
    "openai": "/v1/chat/completions",
    "databricks": "/serving-endpoints/fake-model/invocations",
    "azure": "/chat/completions?api-version=2024-05-01-preview",
    "mindie": "/v1/chat/completions",
}


async def serve(
    dialect: str,
    host: str = "127.0.0.1",
    port: int = 0,
    behaviour: str = "as-asked",
    *,
    profile: str = "actual",
    api_key: str | None = None,
    validate: bool = True,
    say: Callable[[str], object] = print,
) -> None:
    """Run a fake until SIGINT or SIGTERM; `say` gets the introduction once it listens.

    Raises ValueError for an unknown dialect, profile or behaviour, OSError where the port is taken.
    """
    fake = FakeProvider(
        dialect, host=host, port=port, behaviour=behaviour, profile=profile, api_key=api_key, validate=validate
    )
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    async with fake:
        for number in signals:
            loop.add_signal_handler(number, stopped.set)
        try:
            say(introduction(fake))
            await stopped.wait()
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def run(
    dialect: str,
    host: str = "127.0.0.1",
    port: int = 0,
    behaviour: str = "as-asked",
    *,
    profile: str = "actual",
    api_key: str | None = None,
    validate: bool = True,
    say: Callable[[str], object] = print,
) -> None:
    """`serve`, for callers that have no event loop."""
    asyncio.run(serve(dialect, host, port, behaviour, profile=profile, api_key=api_key, validate=validate, say=say))


def introduction(fake: FakeProvider) -> str:
    """Where the fake is, a request to try, and the provider block for dragoman.yaml."""
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

A last user message, or prompt, of `fake:tools`, `fake:rate-limit(retry_after=3)` or `fake:cut` chooses what happens
(`dragoman fake --list` shows all); GET {fake.origin}/_fake/requests shows what was received.
"""
