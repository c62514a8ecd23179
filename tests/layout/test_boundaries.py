"""What importing a part of dragoman must not drag in: heavy modules are imported where they are used, not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENGINE = {"jinja2", "llguidance", "numpy", "onnx", "onnxruntime", "tokenizers"}
HEAVY = {"litellm", "openai", "rich", "prometheus_client", "opentelemetry"} | ENGINE
IO = {"aiohttp", "uvloop", "httpx", "pydantic", "structlog", "typer"}

WALK = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(*sys.modules)
"""
ONE = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*sys.modules)
"""
SERVER = """
import asyncio, sys
from dragoman.proxy.config.load import check_text
from dragoman.proxy.serve import start

config = check_text(sys.argv[1], "x.yaml", {}).config

async def run():
    running = await start(config)
    running.stopping_now.set()
    await running.stop()

asyncio.run(run())
print(*sys.modules)
"""
WITHOUT_ENGINE = """
server: {port: 0, drain: {delay: 1ms}}
providers:
  p: {dialect: openai, base_url: "http://127.0.0.1:9/v1"}
  unused: {engine: litellm, vendor: anthropic}
models: {m: {targets: [{provider: p}]}}
"""


def loaded(script: str, name: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after the script."""
    run = subprocess.run([sys.executable, "-c", script, name], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return {module.partition(".")[0] for module in run.stdout.split()}


@pytest.mark.parametrize("package", ["dragoman.adapters", "dragoman.schemas"])
def test_the_sans_io_part_loads_no_io(package: str) -> None:
    modules = loaded(WALK, package)
    assert "dragoman" in modules
    assert not modules & (HEAVY | IO | {"asyncio"})


@pytest.mark.parametrize(
    "module",
    ["dragoman.proxy", "dragoman.proxy.cli", "dragoman.local_engine.requests", "dragoman.local_engine.providers"],
)
def test_starting_the_proxy_loads_nothing_heavy(module: str) -> None:
    assert not loaded(ONE, module) & HEAVY


def test_a_server_without_an_engine_loads_nothing_heavy() -> None:
    modules = loaded(SERVER, WITHOUT_ENGINE)
    assert "dragoman" in modules
    assert not modules & {"litellm", "onnxruntime", "openai"}


def test_a_heavy_module_would_be_seen() -> None:
    assert loaded(ONE, "rich.console") & HEAVY == {"rich"}
