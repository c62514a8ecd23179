"""What `dragoman demo` runs: a fake provider of each dialect on a free port, and the proxy with a model for each.

Imported when the command runs, because it loads the whole proxy.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from dragoman.adapters.registry import NAMES
from dragoman.contract.fakes import FakeProvider
from dragoman.local_engine import embedded
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start

from .onboarding import describe_models

__all__ = ["Demo", "create_demo_config", "describe_demo"]

_HOST, _USUAL_PORT = "127.0.0.1", 8080
_LOSSY = "databricks"
"""The model of the first thing to try: its dialect has no field `user`."""
_MOST_REQUESTS = 100
"""How many requests a fake keeps: the demo may run for long."""


class Demo:
    """The fakes and the proxy: `async with Demo(port) as demo:`. Without a port, the usual one or a free one is taken.
    Raises StartError."""

    proxy: RunningProxy

    def __init__(self, port: int | None = None) -> None:
        self._port = port
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            fakes = [
                await stack.enter_async_context(FakeProvider(name, most_requests=_MOST_REQUESTS)) for name in NAMES
            ]
            port = _find_port() if self._port is None else self._port
            self.proxy = await start(
                create_demo_config(fakes, port), log_format="console", log_stream=sys.stderr.buffer
            )
            stack.push_async_callback(self.proxy.stop)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.proxy.stop_now.set()
        await self._stack.aclose()


def create_demo_config(fakes: Sequence[FakeProvider], port: int) -> Config:
    """A model for each fake, by the name of its dialect, and dragoman-mini if its libraries are installed. The page
    shows whole bodies, and nothing is stored on disk."""
    providers: dict[str, Any] = {fake.dialect: {"dialect": fake.dialect, "base_url": fake.base_url} for fake in fakes}
    models = {fake.dialect: {"targets": [{"provider": fake.dialect, "model": "fake-model"}]} for fake in fakes}
    if embedded.can_answer():
        providers["embedded"] = embedded.SETTINGS
        models[embedded.NAME] = {"targets": [{"provider": "embedded"}]}
    server: dict[str, Any] = {"host": _HOST, "port": port, "inspect": "bodies"}
    server |= {"default_model": next(reversed(models)), "drain": {"delay": 0.001, "timeout": 1.0}}
    return Config.from_values({"server": server, "providers": providers, "models": models, "store": {"kind": "memory"}})


def describe_demo(demo: Demo) -> str:
    """What runs, and three things to try."""
    url, config = demo.proxy.url, demo.proxy.config
    missing = f"{embedded.NAME} is left out; to have it too: {embedded.INSTALL}\n"
    elsewhere = f"dragoman chat looks at port {_USUAL_PORT}; here it needs --base-url {url}/v1\n"
    return f"""\
dragoman listens on {url}, with a fake provider of each dialect; nothing leaves this machine
{describe_models(config)}
{"" if embedded.NAME in config.models else missing}{"" if demo.proxy.port == _USUAL_PORT else elsewhere}
Try, in another terminal:

1. A request with a field that Databricks does not have; the header x-dragoman-changes names it.
   curl -si {url}/v1/chat/completions -H 'content-type: application/json' \\
     -d '{{"model": "{_LOSSY}", "messages": [{{"role": "user", "content": "Hello"}}], "user": "ada"}}'
2. The openai package of Python, which asks Anthropic's dialect with OpenAI's Responses.
   uv run --with openai python -c 'from openai import OpenAI; client = OpenAI(base_url="{url}/v1", api_key="unused"); \\
   print(client.responses.create(model="anthropic", input="Hello").output_text)'
3. The page: what each side sent, and why dragoman changed it.
   {url}/

Ctrl-C ends everything. With a provider of your own: dragoman init
"""


def _find_port() -> int:
    """The usual port, or 0, a free one, if it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, _USUAL_PORT))
        except OSError:
            return 0
    return _USUAL_PORT
