"""The routes: fake providers, and the gateways in front of them, dragoman twice and LiteLLM."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.contract.fakes import FakeProvider
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start
from tools.real_servers.catalog import SERVERS
from tools.real_servers.environments import default_cache
from tools.real_servers.processes import run_server

__all__ = [
    "DRAGOMAN",
    "FACES",
    "GATEWAYS",
    "ROUTES",
    "Route",
    "configure_dragoman",
    "configure_litellm",
    "run_gateways",
]

CLIENT_KEY = "sk-of-this-test"
"""What clients send. LiteLLM requires it; dragoman has no keys."""
_KEY = "sk-upstream"


@dataclass(frozen=True, slots=True)
class Route:
    """A provider behind a gateway: the dialect of the fake, what it is for dragoman, and what it is for LiteLLM."""

    dialect: str
    title: str
    provider: Mapping[str, Any]
    litellm: str
    path: str = ""
    """What LiteLLM's address of the provider ends with; dragoman's is the fake's own."""
    more: tuple[tuple[str, Any], ...] = ()


ROUTES: Mapping[str, Route] = {
    "openai": Route("openai", "OpenAI", {}, "openai", "/v1"),
    "databricks": Route("databricks", "Databricks", {}, "databricks", "/serving-endpoints"),
    "azure": Route("azure", "Azure AI", {}, "azure_ai", more=(("api_version", "2024-05-01-preview"),)),
    "mindie": Route("mindie", "MindIE", {}, "openai", "/v1", (("use_chat_completions_api", True),)),
    "responses": Route(
        "openai",
        "OpenAI, Responses only",
        {"protocols": ["responses", "embeddings"]},
        "openai/responses",
        "/v1",
    ),
    "anthropic": Route("anthropic", "Anthropic", {}, "anthropic"),
}
"""A gateway's model for a route is named `over-ROUTE`."""

FACES: Mapping[str, str] = {"openai": "/v1", "azure-openai": "", "azure": "", "databricks": "", "anthropic": ""}
"""Maps a face to the path of its base address."""

_LENIENT = {"preset": "lenient"}
GATEWAYS: Mapping[str, str] = {
    "dragoman": "dragoman, as it comes",
    "lenient": "dragoman, lenient",
    "litellm": "LiteLLM",
}
DRAGOMAN = ("dragoman", "lenient")


def configure_dragoman(fakes: Mapping[str, FakeProvider], gateway: str) -> dict[str, Any]:
    """Write dragoman's configuration: addresses and keys, and nothing else but the policy of the lenient gateway."""
    providers = {
        name: {"dialect": route.dialect, "base_url": fakes[name].base_url, "api_key": _KEY, **route.provider}
        for name, route in ROUTES.items()
    }
    models = {f"over-{name}": {"targets": [{"provider": name, "model": "fake-model"}]} for name in ROUTES}
    policy = {"policy": _LENIENT} if gateway == "lenient" else {}
    server = {"port": 0, "drain": {"delay": 0.001}}
    return {"server": server, "store": {"kind": "memory"}, "providers": providers, "models": models, **policy}


def configure_litellm(fakes: Mapping[str, FakeProvider]) -> dict[str, Any]:
    """Write LiteLLM's configuration: the same providers, what its map of models says of known models, and no retries
    that repeat an error."""
    abilities = ("function_calling", "parallel_function_calling", "tool_choice", "response_schema", "vision")
    info = {f"supports_{ability}": True for ability in abilities}
    models = [
        {
            "model_name": f"over-{name}",
            "litellm_params": {
                "model": f"{route.litellm}/fake-model",
                "api_base": fakes[name].origin + route.path,
                "api_key": _KEY,
                **dict(route.more),
            },
            "model_info": info,
        }
        for name, route in ROUTES.items()
    ]
    router = {"disable_cooldowns": True, "num_retries": 0}
    return {"model_list": models, "router_settings": router, "litellm_settings": {"telemetry": False}}


@asynccontextmanager
async def run_gateways(names: Sequence[str], folder: Path) -> AsyncIterator[dict[str, str]]:
    """Run a fake provider for each route, and the gateways; logs go to the folder. Yields the gateways' origins.

    Raises StartError of the server that does not start."""
    async with AsyncExitStack() as stack:
        fakes = {
            name: await stack.enter_async_context(FakeProvider(route.dialect, api_key=_KEY))
            for name, route in ROUTES.items()
        }
        origins = {}
        for name in names:
            if name in DRAGOMAN:
                log = stack.enter_context((folder / f"{name}.log").open("wb"))
                config = Config.from_values(configure_dragoman(fakes, name))
                running = await start(config, log_stream=log)
                stack.push_async_callback(running.stop)
                origins[name] = running.url
            else:
                manager = _run_litellm(json.dumps(configure_litellm(fakes)))
                origins[name] = await asyncio.to_thread(manager.__enter__)
                stack.callback(manager.__exit__, None, None, None)
        yield origins


@contextmanager
def _run_litellm(configuration: str) -> Any:
    """Run LiteLLM's proxy, which tools.real_servers has installed. Yields its origin."""
    cache, name = default_cache(), f"litellm-{os.getpid()}"
    server = SERVERS["litellm"]
    variables = {**server.variables, "LITELLM_MASTER_KEY": CLIENT_KEY}
    escaped = configuration.replace("{", "{{").replace("}", "}}")
    own = replace(
        server, name=name, environment=server.home, behind="", variables=variables, files={"config.yaml": escaped}
    )
    try:
        with run_server(cache, own) as running:
            yield f"http://127.0.0.1:{running.port}"
    finally:
        shutil.rmtree(cache / name, ignore_errors=True)
