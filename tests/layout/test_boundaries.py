"""What importing a part of dragoman must not drag in: heavy modules are imported where they are used, not before."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from dragoman.contract.fakes import FakeProvider

ENGINE = {"jinja2", "llguidance", "numpy", "onnx", "onnxruntime", "tokenizers"}
HEAVY = {"litellm", "openai", "rich", "prometheus_client", "opentelemetry"} | ENGINE
IO = {"aiohttp", "uvloop", "httpx", "pydantic", "typer"}

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
from dragoman.proxy.server.lifecycle import start

config = check_text(sys.argv[1], "x.yaml", {}).config

async def run():
    running = await start(config)
    running.stop_now.set()
    await running.stop()

asyncio.run(run())
print(*sys.modules)
"""
OVER_HTTP = """
server: {port: 0, drain: {delay: 1ms}}
store: {kind: none}
models: {m: {targets: [{provider: p}]}}
providers:
  p: {dialect: openai, base_url: "http://127.0.0.1:9/v1"}
"""
WITHOUT_ENGINE = f"{OVER_HTTP}  unused: {{engine: litellm, vendor: anthropic}}\n"
COMMAND = """
import sys
from dragoman.proxy.cli.main import main
try:
    main()
finally:
    print(*sys.modules)
"""
NOT_TO_SERVE = (
    "typer",
    "pydantic",
    "pydantic_core",
    "ruamel",
    "aiohttp.web",
    "dragoman.local_engine.model_folder.folder",
    "dragoman.proxy.upstreams.litellm",
    "dragoman.contract",
    "dragoman.proxy.conversations.stores.sqlite",
    "sqlite3",
    "jsonschema",
    "jinja2",
    "httpx",
)
"""Neither with the first answer nor with a reload, if the configuration names neither a store nor an engine."""

OF_SERVE = {"configuration_source", "main", "onboarding", "serve_apart", "server_process"}
"""The modules of the command line that the process has which serves."""


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
    [
        "dragoman.proxy",
        "dragoman.proxy.cli.main",
        "dragoman.local_engine.generation",
        "dragoman.local_engine.runtime.providers",
    ],
)
def test_starting_the_proxy_loads_nothing_heavy(module: str) -> None:
    assert not loaded(ONE, module) & HEAVY


def test_a_server_without_an_engine_loads_nothing_heavy() -> None:
    modules = loaded(SERVER, WITHOUT_ENGINE)
    assert "dragoman" in modules
    assert not modules & {"litellm", "onnxruntime", "openai"}


async def test_serving_and_reloading_need_nothing_heavy(tmp_path: Path) -> None:
    """The whole command. What it loads is most of its memory, and of the time from its start to its first answer."""
    config = tmp_path / "dragoman.yaml"
    async with FakeProvider("openai") as fake:
        config.write_text(OVER_HTTP.replace("http://127.0.0.1:9/v1", fake.base_url))
        words = (sys.executable, "-c", COMMAND, "serve", "--config", str(config), "--log-format", "json")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe)
        try:
            assert process.stderr is not None
            url = re.search(r"http://\S+", (await process.stderr.readline()).decode())
            assert url is not None
            body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{url[0]}/v1/chat/completions", json=body) as answer,
            ):
                assert (answer.status, (await answer.json())["model"]) == (200, "m")
            process.send_signal(signal.SIGHUP)
            while b'"event":"reloaded"' not in (line := await process.stderr.readline()):
                assert line, "it was not reloaded"
            process.terminate()
            said, _ = await asyncio.wait_for(process.communicate(), 20)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    modules = set(said.decode().split())
    assert {"dragoman.proxy.exchange.exchange", "aiohttp.web_response"} <= modules
    assert modules & (HEAVY | {"pygments", *NOT_TO_SERVE}) == set()
    commands = {name.split(".")[3] for name in modules if name.startswith("dragoman.proxy.cli.")}
    assert commands == OF_SERVE


def test_a_heavy_module_would_be_seen() -> None:
    assert loaded(ONE, "rich.console") & HEAVY == {"rich"}
