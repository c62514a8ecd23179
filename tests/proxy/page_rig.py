"""A proxy with a page, in front of fake providers of several dialects: for tests, and by hand:

python -m tests.proxy.page_rig --port 8090 [--admin-port 8091 --admin-key KEY]
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start

__all__ = ["DIALECTS", "run_page_rig"]

DIALECTS = ("openai", "databricks", "azure", "mindie")
_KEY = "sk-fake-provider-key-0123456789"


@asynccontextmanager
async def run_page_rig(inspect: str = "bodies", **settings: JsonObject) -> AsyncIterator[RunningProxy]:
    """The proxy. It has a model `to-DIALECT` for each fake, and `any`, which has them all. `settings` are more of the
    configuration."""
    async with AsyncExitStack() as stack:
        fakes = [await stack.enter_async_context(FakeProvider(name, api_key=_key(name))) for name in DIALECTS]
        server = {"port": 0, "inspect": inspect, "drain": {"delay": 0.001, "timeout": 1}, **settings.pop("server", {})}
        providers = {fake.dialect: _describe(fake) for fake in fakes}
        models = {f"to-{name}": {"targets": [{"provider": name, "model": "fake-model"}]} for name in DIALECTS}
        models["any"] = {"targets": [{"provider": name, "model": "fake-model"} for name in DIALECTS]}
        whole = {"server": server, "providers": providers, "models": models, "store": {"kind": "memory"}, **settings}
        proxy = await start(Config.from_values(whole), log_stream=io.BytesIO())
        try:
            yield proxy
        finally:
            proxy.stop_now.set()
            await proxy.stop()


def _key(dialect: str) -> str | None:
    return None if dialect == "mindie" else _KEY


def _describe(fake: FakeProvider) -> JsonObject:
    settings: JsonObject = {"dialect": fake.dialect, "base_url": fake.base_url, "policy": {"unsupported": "drop"}}
    return settings if fake.api_key is None else {**settings, "api_key": fake.api_key}


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--admin-port", type=int)
    parser.add_argument("--admin-key")
    parser.add_argument("--inspect", default="bodies")
    given = parser.parse_args()
    server = {"port": given.port, "admin_port": given.admin_port, "admin_key": given.admin_key}
    async with run_page_rig(given.inspect, server=server) as proxy:
        admin = "" if proxy.admin is None else f", {proxy.admin.url}/"
        print(f"the page: {proxy.url}/{admin}; models: {', '.join(proxy.config.models)}", file=sys.stderr)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
