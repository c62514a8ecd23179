"""The proxy as a process: what it prints, and how signals stop it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from dragoman.adapters.call import JsonObject
from dragoman.proxy.cli import server_process
from dragoman.proxy.cli.onboarding import describe_store, suggest_first_requests
from dragoman.proxy.config.models import Config
from tests.ports import find_free_port
from tests.proxy.running_proxy import Proxy
from tests.proxy.scripted_upstream import Upstream, chunked, token

SERVER = """
from dragoman.proxy.cli.server_process import run
from dragoman.proxy.cli.onboarding import describe_store
from dragoman.proxy.config.models import Config
config = Config.from_values({config!r})
raise SystemExit(run(config))
"""


def _spawn(config: JsonObject) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SERVER.format(config=config)], stderr=subprocess.PIPE, text=True)


def _read_address(process: subprocess.Popen[str]) -> str:
    """The URL in the process's greeting, which it prints when it accepts connections."""
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("dragoman listens on http://"), line + process.stderr.read()
    assert "base_url=http://127.0.0.1:" in process.stderr.readline()
    return line.split()[-1]


async def test_a_first_signal_lets_running_streams_finish(upstream: Callable[..., Awaitable[Upstream]]) -> None:
    head, first, second, *rest = chunked(token("a"), token("b", "stop"), b"data: [DONE]\n\n")
    up = await upstream(head, first, 0.5, second, *rest)
    providers = {"p0": {"dialect": "openai", "base_url": f"http://127.0.0.1:{up.port}/v1"}}
    models = {"m": {"targets": [{"provider": "p0"}]}}
    process = _spawn({"server": {"port": 0}, "providers": providers, "models": models})
    try:
        url = await asyncio.to_thread(_read_address, process)
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/v1/chat/completions", json=body) as response,
        ):
            assert await response.content.readany()
            process.send_signal(signal.SIGTERM)
            assert (await response.read()).endswith(b"data: [DONE]\n\n")
        assert await asyncio.to_thread(process.wait, 60) == 0
    finally:
        process.kill()
        _, log = process.communicate()
    assert '"outcome":"ok"' in log
    assert "models: m\n" in log
    assert f"page: {url}/\n" in log
    assert "stopping: 1 still running, for at most 300s; a second signal ends them\n" in log


async def test_a_client_on_the_same_machine_gets_an_address_that_it_can_use() -> None:
    """0.0.0.0 means all interfaces: a listener can have it, a client cannot."""
    keys = [{"name": "ci", "key": "key-0123456789"}]
    process = _spawn({"server": {"port": 0, "host": "0.0.0.0"}, "keys": keys})
    try:
        url = await asyncio.to_thread(_read_address, process)
        assert url.startswith("http://0.0.0.0:")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("has_admin", [False, True])
async def test_with_keys_the_greeting_names_the_page_of_the_admin_listener(has_admin: bool) -> None:
    keys = [{"name": "ci", "key": "key-0123456789"}]
    admin = {"admin_port": 0, "admin_host": "0.0.0.0", "admin_key": "admin-0123456789"} if has_admin else {}
    process = _spawn({"server": {"port": 0, **admin}, "keys": keys})
    url = await asyncio.to_thread(_read_address, process)
    process.send_signal(signal.SIGTERM)
    _, log = await asyncio.to_thread(process.communicate)
    pages = [line.removeprefix("page: ") for line in log.splitlines() if line.startswith("page: ")]
    assert pages == [line.removeprefix("metrics: ")[:-7] for line in log.splitlines() if line.startswith("metrics: ")]
    assert len(pages) == has_admin
    assert all(page.startswith("http://127.0.0.1:") for page in pages), "an address that a browser can use"
    assert f"{url}/" not in pages


async def test_a_second_signal_ends_all_waiting() -> None:
    process = _spawn({"server": {"port": 0, "drain": {"delay": 3600.0}}})
    try:
        await asyncio.to_thread(_read_address, process)
        process.send_signal(signal.SIGINT)
        await asyncio.sleep(0.2)
        assert process.poll() is None, "the first signal alone ended it"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 60) == 0
    finally:
        process.kill()
        process.communicate()


async def test_a_proxy_that_cannot_start_has_status_2(
    proxy: Callable[..., Awaitable[Proxy]], capfd: pytest.CaptureFixture[str]
) -> None:
    port = (await proxy()).port
    config = Config.from_values({"server": {"port": port}})
    assert await asyncio.to_thread(server_process.run, config) == 2
    assert capfd.readouterr().err.startswith(f"error: cannot listen on 127.0.0.1:{port}: ")


def test_two_listeners_with_one_port_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    port = find_free_port()
    assert server_process.run(Config.from_values({"server": {"port": port, "admin_port": port}})) == 2
    assert "(--port, server.port; server.admin_port is the same)." in capfd.readouterr().err


@pytest.mark.parametrize(
    ("store", "line"),
    [
        ({"kind": "sqlite", "path": "/a/b.db", "retention": 3600.0}, "responses are stored for 1h in /a/b.db"),
        ({"kind": "memory", "retention": 90.0}, "responses are stored for 90s in memory"),
        ({"kind": "none"}, "responses are not stored"),
    ],
)
def test_the_greeting_says_where_responses_are_stored(store: JsonObject, line: str) -> None:
    assert describe_store(Config.from_values({"store": store}).store) == line


@pytest.mark.parametrize("keys", [[], [{"name": "me", "key": "a-client-key"}]])
def test_requests_to_try_are_shown_if_they_need_no_key(keys: list[JsonObject]) -> None:
    providers: JsonObject = {"mini": {"engine": "local"}}
    models: JsonObject = {"dragoman-mini": {"targets": [{"provider": "mini"}]}}
    config = Config.from_values({"keys": keys, "providers": providers, "models": models})
    assert bool([*suggest_first_requests(config, "http://127.0.0.1:8080")]) == (not keys)
