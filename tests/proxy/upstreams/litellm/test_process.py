"""litellm's process: what reaches it, what it leaves in the proxy, and what happens when it dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.upstreams.litellm.upstream import LitellmUpstream
from dragoman.proxy.upstreams.supervision import supervisor
from dragoman.proxy.upstreams.supervision.supervisor import Supervisor

from .conftest import KEY, Messages, Proxy, StartProxy, Step, event, message, started, stopped, text

WHOLE = message({"type": "text", "text": "hello"})


async def ask(proxy: Proxy) -> tuple[int, JsonObject, Mapping[str, str]]:
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with aiohttp.ClientSession() as session, session.post(f"{proxy.url}/chat/completions", json=asked) as reply:
        return reply.status, await reply.json(), reply.headers


def engine_of(proxy: Proxy) -> Supervisor:
    engines = {upstream.engine for upstream in proxy.running.upstreams if isinstance(upstream, LitellmUpstream)}
    (engine,) = engines
    return engine


def read_proc(engine: Supervisor, name: str) -> str:
    return Path(f"/proc/{engine.pid}/{name}").read_text()


def logged(proxy: Proxy, event: str) -> list[JsonObject]:
    lines = [json.loads(line) for line in proxy.log.getvalue().splitlines()]
    return [line for line in lines if line["event"] == event]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_no_variable_of_the_proxy_reaches_it(
    lone_proxy: StartProxy, fake: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {
        "OPENAI_API_KEY": "sk-of-the-environment",
        "ANTHROPIC_API_KEY": "sk-of-the-environment",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "ANTHROPIC_API_BASE": "http://127.0.0.1:9",
        "AZURE_API_BASE": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "AWS_PROFILE": "canary",
        "LITELLM_LOG": "DEBUG",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    proxy = await lone_proxy(provider={"api_key": None})
    engine = engine_of(proxy)
    environment = read_proc(engine, "environ").split("\0")
    names = {variable.partition("=")[0] for variable in environment if variable}
    assert names <= {"PATH", "LANG", "HOME", "PYTHONPATH"}
    assert f"HOME={engine.folder}" in environment
    fake.says(WHOLE)
    status, body, _ = await ask(proxy)
    assert (status, body["error"]["code"]) == (502, "upstream_auth_failed"), "there is no key in the configuration"
    assert not fake.requests


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_keys_are_in_no_command_line_and_no_environment(lone_proxy: StartProxy, fake: Messages) -> None:
    fake.says(WHOLE)
    proxy = await lone_proxy()
    assert (await ask(proxy))[0] == 200
    assert fake.requests[0][1]["x-api-key"] == KEY
    for name in ("cmdline", "environ"):
        assert KEY not in read_proc(engine_of(proxy), name)


async def test_all_providers_share_one_process_which_ends_with_the_proxy(
    lone_proxy: StartProxy, fake: Messages
) -> None:
    second = {"engine": "litellm", "vendor": "anthropic", "api_key": KEY, "base_url": fake.url}
    first = {**second, "api_key": "sk-ant-first-0123456789"}
    targets = [{"provider": "first", "model": "claude"}, {"provider": "second", "model": "claude", "weight": 0}]
    models = {"m": {"targets": targets}}
    proxy = await lone_proxy(providers={"first": first, "second": second}, models=models, retries={"attempts": 2})
    fake.says(b"{}", status=529)
    await ask(proxy)
    assert [headers["x-api-key"] for _, headers, _ in fake.requests] == [first["api_key"], KEY]
    engine = engine_of(proxy)
    pid, folder = engine.pid, engine.folder
    assert pid is not None and folder.exists()
    await proxy.running.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not folder.exists()


async def test_killed_it_comes_back_and_calls_meanwhile_are_503(
    lone_proxy: StartProxy, fake: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.says(WHOLE)
    proxy = await lone_proxy()
    engine = engine_of(proxy)
    before = engine.pid
    assert before is not None
    monkeypatch.setattr(supervisor, "READY_TIMEOUT", 0.2)
    os.kill(before, signal.SIGKILL)
    status, body, headers = await ask(proxy)
    assert (status, body["error"]["code"], headers["retry-after"]) == (503, "engine_down", "10")
    monkeypatch.setattr(supervisor, "READY_TIMEOUT", 120)
    assert (await ask(proxy))[0] == 200
    assert engine.pid != before and engine.restarts == 1
    (ended,) = logged(proxy, "engine_ended")
    assert (ended["provider"], ended["reason"]) == ("litellm", "the process was killed by SIGKILL")


async def test_killed_during_a_call_the_call_is_made_again(lone_proxy: StartProxy, fake: Messages) -> None:
    fake.says("hang")
    proxy = await lone_proxy()
    asking = asyncio.ensure_future(ask(proxy))
    await asyncio.wait_for(fake.asked.wait(), 20)
    fake.says(WHOLE)
    os.kill(engine_of(proxy).pid or 0, signal.SIGKILL)
    assert (await asking)[0] == 200
    assert len(fake.requests) == 2


OVERLOADED = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


@pytest.mark.parametrize(
    ("script", "last"),
    [
        ([started() + text("hel"), stopped()], "finish_reason"),
        ([started() + text("hel"), OVERLOADED], "error"),
        ([started() + text("hel")], "content"),
    ],
    ids=["complete", "an error", "cut short"],
)
async def test_a_stream_ends_with_what_the_provider_sent_last(
    litellm_socket: Path, fake: Messages, script: list[Step], last: str
) -> None:
    """Nothing is added to it: no [DONE], no second error, no finish reason of litellm's own."""
    fake.says(*script)
    arguments = {"model": "anthropic/claude", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    settings = {"api_key": KEY, "api_base": fake.url, "connect_timeout": 5, "timeout": 20, "max_retries": 0}
    connector, call = aiohttp.UnixConnector(str(litellm_socket)), {"arguments": arguments, "settings": settings}
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.post("http://litellm/chat/completions", json=call) as reply,
    ):
        body = await asyncio.wait_for(reply.read(), 20)
    events = [json.loads(part.removeprefix(b"data: ")) for part in body.split(b"\n\n") if part]
    reasons = [choice["finish_reason"] for one in events for choice in one.get("choices", ())]
    assert [one for one in events if "error" in one] == events[len(events) - (last == "error") :]
    assert any(reasons) is (last == "finish_reason")


SERVE = """
import asyncio, json, sys, urllib.request
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()

def ask(url):
    request = urllib.request.Request(url + "/v1/chat/completions", BODY, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]

async def main():
    running = await start(Config.from_values(json.loads(sys.argv[1])), log_level="critical")
    content = await asyncio.to_thread(ask, running.url)
    running.stop_now.set()
    await running.stop()
    return content

print(json.dumps([asyncio.run(main()), sorted(sys.modules)]))
"""


async def test_the_proxy_itself_imports_nothing_of_litellm(fake: Messages) -> None:
    fake.says(WHOLE)
    provider = {"engine": "litellm", "vendor": "anthropic", "api_key": KEY, "base_url": fake.url}
    models = {"m": {"targets": [{"provider": "any", "model": "claude"}]}}
    config = {"server": {"port": 0}, "providers": {"any": provider}, "models": models, "store": {"kind": "none"}}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVE, json.dumps(config)), stdout=subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    content, modules = json.loads(output)
    assert content == "hello"
    assert not {module.partition(".")[0] for module in modules} & {"litellm", "openai", "httpx", "boto3", "tiktoken"}
    assert "dragoman.proxy.upstreams.litellm.upstream" in modules


async def test_without_a_route_it_does_not_start(lone_proxy: StartProxy, fake: Messages) -> None:
    other = {"dialect": "openai", "base_url": fake.url}
    unused = {"engine": "litellm", "vendor": "anthropic"}
    providers = {"unused": unused, "other": other}
    proxy = await lone_proxy(providers=providers, models={"m": {"targets": [{"provider": "other"}]}})
    assert engine_of(proxy).pid is None
