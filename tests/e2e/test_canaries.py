"""Seventeen secrets, one for each place that can hold one, and providers that repeat whatever they get: no client, log,
store or command shows any of them."""

from __future__ import annotations

import asyncio
import io
import json
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from typer.testing import CliRunner

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.cli.main import app
from dragoman.proxy.config.load import check, load
from dragoman.proxy.server.lifecycle import RunningProxy, start
from tests.tables import sample_rows

CANARIES = {
    name: f"canary-of-{name}-0123456789"
    for name in (
        "a-key-in-the-file",
        "a-key-in-the-environment",
        "a-key-in-an-env-file",
        "a-key-file",
        "a-mounted-secret",
        "a-header",
        "a-header-after-a-word",
        "a-client-secret",
        "a-client-secret-in-a-file",
        "an-access-token",
        "a-proxy-password",
        "a-client-key",
        "another-client-key",
        "a-wrong-client-key",
        "the-environment",
        "a-cookie",
        "an-admin-key",
    )
}
PAIRS = {
    "basic authentication at the token endpoint": f"an-id:{CANARIES['a-client-secret']}",
    "basic authentication at the proxy": f"a-user:{CANARIES['a-proxy-password']}",
}
FORMS = {
    **{name: [text, quote(text, safe="")] for name, text in CANARIES.items()},
    **{name: [b64encode(pair.encode()).decode()] for name, pair in PAIRS.items()},
}

CONFIG = """
server: {{port: 0, drain: {{delay: 1ms}}, admin_port: 0, admin_key: {an-admin-key}, inspect: bodies}}
keys:
  - {{name: a, key: {a-client-key}}}
  - {{name: b, key: {another-client-key}, models: [literal-whole]}}
store: {{path: responses.db}}
providers:
  literal: {{dialect: openai, base_url: "{base}", api_key: {a-key-in-the-file}}}
  environment: {{dialect: databricks, kind: provisioned-throughput, base_url: "{base}", api_key: "${{A_KEY}}"}}
  env-file: {{dialect: mindie, base_url: "{origin}", api_key: "${{ANOTHER_KEY}}"}}
  file: {{dialect: azure, base_url: "{base}", api_key_file: key.txt}}
  mounted: {{dialect: openai, base_url: "{base}", api_key: "${{file:mounted.txt}}"}}
  headers:
    dialect: openai
    base_url: "{base}"
    headers: {{X-Auth-Token: {a-header}, Helicone-Auth: Bearer {a-header-after-a-word}}}
  token:
    dialect: openai
    base_url: "{base}"
    oauth:
      {{token_url: "{origin}/token", client_id: an-id, scope: all, client_secret: {a-client-secret}, auth_style: basic}}
  no-token:
    dialect: openai
    base_url: "{base}"
    oauth: {{token_url: "{origin}/no-token", client_id: an-id, scope: all, client_secret_file: secret.txt}}
  proxied: {{dialect: openai, base_url: "http://a-host.test/v1", proxy: "http://a-user:{a-proxy-password}@{authority}"}}
models:
"""
PROVIDERS = ("literal", "environment", "env-file", "file", "mounted", "headers", "token", "no-token", "proxied")
WAYS = ("whole", "streamed", "header", "status-400", "status-401", "status-407", "status-500", "page", "event", "cut")
ROUTES: dict[str, JsonObject] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses": {"input": "hi"},
    "/serving-endpoints/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/mindie/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/models/chat/completions?api-version=2024-05-01-preview": {"messages": [{"role": "user", "content": "hi"}]},
}


async def repeat(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with everything that came, in the way that the model's name says."""
    body = (await request.read()).decode()
    said = "\n".join(f"{name}: {value}" for name, value in request.headers.items()) + f"\n{request.raw_path}\n{body}"
    if request.path == "/token":
        return web.json_response({"access_token": CANARIES["an-access-token"], "expires_in": 3600, "scope": said})
    if request.path == "/no-token":
        return web.json_response({"error": "invalid_client", "error_description": said}, status=401)
    asked = json.loads(body)
    way = str(asked.get("model") or request.path.split("/")[2])  # Databricks' addresses name the model
    if way.startswith("status"):
        error = {"message": said, "code": said[:50], "type": said}
        return web.json_response({"error": error, "message": said, "detail": said}, status=int(way.partition("-")[2]))
    if way == "page":
        return web.Response(text=f"<html><title>{said}</title><pre>{said}</pre></html>", content_type="text/html")
    if way in ("streamed", "event", "cut") or asked.get("stream"):
        return await stream(request, said, way)
    flat = {name: said.replace("\n", " ") for name in ("served-model-name", "x-request-id", "x-ms-error-code")}
    choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    reply = {"id": said, "object": "chat.completion", "created": 1, "model": said, "choices": [choice], "usage": USAGE}
    return web.json_response(reply, headers=flat if way == "header" else {})


USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


async def stream(request: web.BaseRequest, said: str, way: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for text in ("a", "b", said, said):
        choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
        await send_event(response, {"id": said, "object": said, "model": said, "choices": [choice]})
    if way == "event":
        await send_event(response, {"error": {"message": said, "type": said, "code": said}})
    elif way != "cut":
        await send_event(response, {"id": said, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        await response.write(b"data: [DONE]\n\n")
    return response


async def send_event(response: web.StreamResponse, body: JsonValue) -> None:
    await response.write(b"data: " + json.dumps(body).encode() + b"\n\n")


@pytest_asyncio.fixture
async def parrot() -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(repeat))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
def file(parrot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration, and all that it refers to."""
    monkeypatch.setenv("A_KEY", CANARIES["a-key-in-the-environment"])
    monkeypatch.setenv("UNRELATED_PASSWORD", CANARIES["the-environment"])
    (tmp_path / "key.txt").write_text(CANARIES["a-key-file"])
    (tmp_path / "mounted.txt").write_text(CANARIES["a-mounted-secret"])
    (tmp_path / "secret.txt").write_text(CANARIES["a-client-secret-in-a-file"])
    (tmp_path / "env").write_text(f"ANOTHER_KEY={CANARIES['a-key-in-an-env-file']}\n")
    text = CONFIG.format(base=f"http://{parrot}/v1", origin=f"http://{parrot}", authority=parrot, **CANARIES)
    for provider in PROVIDERS:
        for way in WAYS:
            text += f'  "{provider}-{way}": {{targets: [{{provider: {provider}, model: "{way}"}}]}}\n'
    path = tmp_path / "dragoman.yaml"
    path.write_text(text)
    return path


def find_canaries(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace")
    return [name for name, forms in FORMS.items() if any(form in text for form in forms)]


async def ask(session: aiohttp.ClientSession, method: str, url: str, key: str, body: JsonValue = None) -> bytes:
    """The whole response, head included."""
    headers = {"Authorization": f"Bearer {CANARIES[key]}", "Cookie": f"session={CANARIES['a-cookie']}"}
    try:
        async with session.request(method, url, json=body, headers=headers) as response:
            return str(response.raw_headers).encode() + b"".join([part async for part in response.content.iter_any()])
    except aiohttp.ClientError as error:  # a stream that MindIE's dialect can only break off
        return str(error).encode()


async def ask_everything(session: aiohttp.ClientSession, proxy: RunningProxy, model: str) -> AsyncIterator[bytes]:
    for route, body in ROUTES.items():
        for streams in (False, True):
            asked = {"model": model, "stream": streams, **body}
            answer = await ask(session, "POST", proxy.url + route, "a-client-key", asked)
            yield answer
            if b'"resp_' in answer:
                stored = answer.partition(b'"id":"resp_')[2][:32].decode()
                yield await ask(session, "GET", f"{proxy.url}/v1/responses/resp_{stored}", "a-client-key")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_no_answer_and_no_log_and_no_store_shows_a_secret(file: Path, provider: str) -> None:
    env = {**os.environ, "ANOTHER_KEY": CANARIES["a-key-in-an-env-file"]}
    log = io.BytesIO()
    proxy = await start(load(file, env), log_stream=log)
    count = 0
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
        for way in WAYS:
            async for answer in ask_everything(session, proxy, f"{provider}-{way}"):
                assert find_canaries(answer) == [], (way, answer)
                count += b"***" in answer
        for path in ("/v1/models", "/mindie/v1/models", "/nowhere", "/v1/responses/resp_1", "/live"):
            for key in ("a-client-key", "another-client-key", "a-wrong-client-key"):
                assert find_canaries(await ask(session, "GET", proxy.url + path, key)) == []
    await proxy.stop()
    assert find_canaries(log.getvalue()) == []
    assert count or provider in ("no-token",)  # what is masked was repeated
    for stored in file.parent.glob("responses.db*"):
        assert find_canaries(stored.read_bytes()) == []


@pytest.mark.parametrize("provider", sample_rows(PROVIDERS, 3))
async def test_the_page_and_its_exports_show_no_secret(file: Path, provider: str) -> None:
    env = {**os.environ, "ANOTHER_KEY": CANARIES["a-key-in-an-env-file"]}
    checked = check(file, env)
    proxy = await start(checked.config, log_stream=io.BytesIO(), text=checked.text)
    assert proxy.admin is not None
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60)) as session:
        for way in WAYS:
            async for _ in ask_everything(session, proxy, f"{provider}-{way}"):
                pass
        await ask(session, "POST", f"{proxy.url}/v1/responses", "a-wrong-client-key", {"input": "hi"})
        page = f"{proxy.admin.url}/page/api/"
        listed = await ask(session, "GET", page + "exchanges?limit=1000", "an-admin-key")
        ids = [one["id"] for one in json.loads(listed[listed.index(b'{"exchanges"') :])["exchanges"]]
        assert len(ids) > len(WAYS)
        paths = ["exchanges?limit=1000", "about", "state", "configuration"]
        paths += [f"exchanges/{one}" for one in ids]
        paths += [f"exchanges/{one}{export}" for one, export in zip(ids, cycle(EXPORTS), strict=False)]
        answers = [await ask(session, "GET", page + path, "an-admin-key") for path in paths]
        for path, answer in zip(paths, answers, strict=True):
            assert find_canaries(answer) == [], (path, answer)
        assert sum(b"***" in answer for answer in answers) > len(ids) / 2
        assert sum(b"attachment" in answer for answer in answers) > len(ids) / 2
    await proxy.stop()


EXPORTS = ("/export?as=curl", "/export?as=recording", "/export?as=case")


def break_names(file: Path) -> None:
    """Misspell two keys of the configuration."""
    file.write_text(file.read_text().replace("proxy:", "prox:").replace("api_key_file", "api_kye_file"))


COMMANDS = (
    ("check", "{file}"),
    ("check", "{file}", "--format", "json"),
    ("explain", "--config", "{file}", "--model", "literal-whole", "--message", "hi"),
    ("explain", "--config", "{file}", "--model", "proxied-whole", "--message", "hi"),
    ("explain", "--config", "{file}", "--model", "token-whole", "--message", "hi"),
    ("explain", "--config", "{file}", "--model", "headers-whole", "--message", "hi"),
    ("call", "--config", "{file}", "--model", "literal-whole", "--message", "hi"),
    ("call", "--config", "{file}", "--model", "headers-status-401", "--message", "hi"),
    ("call", "--config", "{file}", "--model", "nothing", "--message", "hi"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:1] + command[3:6]))
@pytest.mark.parametrize("is_broken", [False, True], ids=["a good file", "a bad file"])
async def test_no_command_shows_a_secret(file: Path, command: tuple[str, ...], is_broken: bool) -> None:
    if is_broken:
        break_names(file)
    arguments = [*(part.format(file=file) for part in command), "--env-file", str(file.parent / "env")]
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert find_canaries((result.stdout + result.stderr).encode()) == []
    assert result.stdout + result.stderr
