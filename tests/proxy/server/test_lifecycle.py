"""Starting, stopping, waiting, and what must never be told."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import aiohttp
import pytest
import trustme

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import StartError, start
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Step, Wire

STREAM = {"model": "m", "messages": [], "stream": True}


# Headers that are held back


async def test_headers_go_out_when_they_were_held_long_enough(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    head, first, *rest = wire.chunked(wire.token("a", "stop"), b"data: [DONE]\n\n")
    client_has_headers = asyncio.Event()
    up = await upstream(client_has_headers, head, first, *rest)
    p = await proxy(up, server={"hold_headers": 0.1})
    async with p.session.post(p.url, json=STREAM) as response:
        client_has_headers.set()
        assert (response.status, UUID(response.headers["x-request-id"]).version) == (200, 4)
        assert (await response.read()).endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("script", [[0.3], [0.3, b"HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\n{}"], ["hang"]])
async def test_a_failure_after_that_is_an_event(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, script: list[Step]
) -> None:
    first, second = await upstream(*script), await upstream(wire.stream)
    targets = [{"provider": "p0"}, {"provider": "p1", "weight": 0}]
    settings = {
        "server": {"hold_headers": 0.1},
        "timeouts": {"first_token": 0.4},
        "models": {"m": {"targets": targets}},
    }
    p = await proxy(first, second, **settings)
    answer = await p.ask(stream=True)
    assert (answer.status, len(answer.events)) == (200, 1)
    assert "error" in answer.events[0]
    assert second.connections == 0
    (line,) = await p.exchanges()
    assert (line["status"], line["outcome"], line["events"]) == (200, "fault", 0)


# Stopping


async def test_a_running_stream_ends_before_the_proxy_does(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    head, first, second, *rest = wire.chunked(wire.token("a"), wire.token("b", "stop"), b"data: [DONE]\n\n")
    up = await upstream(head, first, 0.4, second, *rest)
    p = await proxy(up, server={"drain": {"delay": 1, "timeout": 5}})
    async with p.session.post(p.url, json=STREAM) as response:
        assert await response.content.readany()
        stopping = asyncio.create_task(p.running.stop())
        await asyncio.sleep(0.05)
        async with p.session.get(f"{p.running.url}/ready") as ready:
            assert ready.status == 503
        async with p.session.get(f"{p.running.url}/live") as live:
            assert live.status == 200
        assert (await response.read()).endswith(b"data: [DONE]\n\n")
    await asyncio.wait_for(stopping, 10)
    with pytest.raises(aiohttp.ClientConnectorError):
        await p.session.get(f"{p.running.url}/live")


@pytest.mark.parametrize("stream", [True, False])
async def test_what_takes_too_long_is_told_why_it_ends(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, stream: bool
) -> None:
    up = await upstream(*(wire.chunked(wire.token("a"), end=False) if stream else []), "hang")
    p = await proxy(up, server={"drain": {"delay": 0.01, "timeout": 0.2}})
    asking = asyncio.create_task(p.ask(stream=stream))
    await up.asked.wait()
    await asyncio.sleep(0.05)
    await asyncio.wait_for(p.running.stop(), 3)
    answer = await asking
    error = answer.events[-1]["error"] if stream else answer.error
    assert (answer.status, error["code"]) == (200 if stream else 503, "shutting_down")


# Starting


async def test_a_port_in_use_is_refused(proxy: StartProxy) -> None:
    port = (await proxy()).port
    with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1:{port}: "):
        await start(Config.from_values({"server": {"port": port}}))


async def test_the_world_is_not_served_without_keys() -> None:
    config = Config.from_values({"server": {"host": "0.0.0.0", "port": 0}})
    with pytest.raises(StartError, match=r"refusing to listen on 0\.0\.0\.0 without keys"):
        await start(config)
    running = await start(config, insecure=True)
    await running.stop()
    keyed = replace(config, keys=Config.from_values({"keys": [{"name": "a", "key": "b"}]}).keys)
    await (await start(keyed)).stop()


async def test_tls_files_that_cannot_be_read(tmp_path: Path) -> None:
    for content in (None, "nonsense"):
        path = tmp_path / f"{content}.pem"
        if content:
            path.write_text(content)
        provider = {"dialect": "openai", "base_url": "https://127.0.0.1", "tls": {"ca": str(path)}}
        with pytest.raises(StartError, match="TLS files"):
            await start(Config.from_values({"server": {"port": 0}, "providers": {"p": provider}}))


# TLS


async def test_private_certificates(proxy: StartProxy, upstream: StartUpstream, wire: Wire, tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    mine = authority.issue_cert("proxy@example.org")
    files = {name: str(tmp_path / f"{name}.pem") for name in ("ca", "cert", "key")}
    authority.cert_pem.write_to_path(files["ca"])
    mine.cert_chain_pems[0].write_to_path(files["cert"])
    mine.private_key_pem.write_to_path(files["key"])

    up = await upstream(wire.ok, "keep", ssl=context)
    address = {"base_url": f"https://127.0.0.1:{up.port}/v1"}
    assert (await (await proxy({**address, "tls": files})).ask()).status == 200
    answer = await (await proxy(address)).ask()
    assert (answer.status, answer.error["code"]) == (502, "upstream_tls_failed")
    assert "certificate in certificate chain" in answer.error["message"]
    answer = await (await proxy({**address, "tls": {"ca": files["ca"]}})).ask()
    assert answer.status == 502  # the upstream hangs up on who has no certificate
    assert len(up.requests) == 1


async def test_tls_toward_a_plain_server(proxy: StartProxy) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    answer = await (await proxy({"base_url": f"https://127.0.0.1:{port}"})).ask()
    server.close()
    assert (answer.status, answer.error["code"]) == (502, "upstream_tls_failed")
    assert "if the server speaks plain HTTP, its base_url must begin with http://" in answer.error["message"]


# Pools, secrets


async def test_a_provider_gets_no_more_connections_than_allowed(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    up = await upstream(0.05, wire.ok, "keep")
    p = await proxy({"base_url": f"http://127.0.0.1:{up.port}", "pool": {"connections": 2}})
    answers = await asyncio.gather(*(p.ask() for _ in range(8)))
    assert {answer.status for answer in answers} == {200}
    assert up.connections == 2


async def test_headers_of_a_provider_are_told_to_nobody(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    headers = {"X-Gateway": "gw-canary-1", "X-Token": "Bearer canary-of-a-bearer", "X-Kind": "json"}
    text = b'{"error": {"message": "wrong key gw-canary-1 or token canary-of-a-bearer for the json gateway"}}'
    up = await upstream(wire.http(text, status="400 X"))
    p = await proxy({"base_url": f"http://127.0.0.1:{up.port}/v1", "headers": headers})
    answer = await p.ask()
    assert b"wrong key *** or token *** for the json gateway" in answer.text
    (line,) = await p.exchanges()
    assert "canary" not in str(line)


async def test_secrets_are_told_to_nobody(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    mine, theirs = "sk-canary-mine", 'sk-canary-"quoted"'
    spill = b'{"error": {"message": "Incorrect API key provided: sk-canary-\\"quoted\\" and sk-canary-mine"}}'
    scripts: list[JsonValue] = [[wire.http(spill, status=f"{status} X")] for status in (400, 401, 422, 429, 500)]
    scripts += [[wire.http(spill)], wire.chunked(wire.token("a"), b"data: " + spill + b"\n\n"), ["reset"], []]
    for script in scripts:
        up = await upstream(*script)
        settings = {"base_url": f"http://127.0.0.1:{up.port}", "api_key": theirs}
        p = await proxy(settings, keys=[{"name": "a", "key": mine}])
        for stream in (False, True):
            answer = await p.ask(stream=stream, headers={"api-key": mine})
            assert b"canary" not in answer.text, script
        assert f"Bearer {theirs}".encode() in up.requests[0]
        await p.exchanges(2)
        assert b"canary" not in p.log.getvalue(), script


async def test_no_environment_proxy_is_used(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary, up = await upstream(wire.ok), await upstream(wire.ok)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setitem(os.environ, name, f"http://127.0.0.1:{canary.port}")
    assert (await (await proxy(up)).ask()).status == 200
    assert canary.connections == 0


async def test_what_to_do_if_listening_fails_depends_on_why() -> None:
    async with FakeProvider("openai") as taken:
        for host, port, hint in (
            ("127.0.0.1", taken.port, "Stop the process that uses the address"),
            ("192.0.2.1", 0, "No network interface of this machine has that address"),
        ):
            with pytest.raises(StartError, match=hint):
                await start(Config.from_values({"server": {"host": host, "port": port}}), insecure=True)
