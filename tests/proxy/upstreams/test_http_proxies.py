"""Providers behind an HTTP proxy: a tunnel for https, whole addresses for plain http."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import trustme

from dragoman.proxy.config.load import check_text
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

PASSWORD = "canary%2Fp%40ss"
EXPECTED = "Basic " + base64.b64encode(b"me:canary/p@ss").decode()


class Hop:
    """An HTTP proxy. It relays what it is asked for, unless `answer` says otherwise, and notes the heads it sees."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.answer: bytes | None = None
        self.silent = False
        self.port = 0

    def url(self, user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.port}"

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._relay(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode())
        if self.silent:
            await reader.read()
            return
        if self.answer is not None:
            writer.write(self.answer)
            await writer.drain()
            return
        method, target, _ = head.split(b" ", 2)
        authority = target if method == b"CONNECT" else target.split(b"/")[2]
        host, _, port = authority.decode().rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            far_writer.write(head.replace(b"http://" + authority, b"", 1))
        await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()


@pytest.fixture
async def hop() -> AsyncIterator[Hop]:
    made = Hop()
    server = await asyncio.start_server(made, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await asyncio.sleep(0)


def header(head: str, name: str) -> list[str]:
    lines = [line.partition(": ") for line in head.split("\r\n")[1:]]
    return [value for key, _, value in lines if key.lower() == name.lower()]


@pytest.mark.parametrize("user", ["", f"me:{PASSWORD}@"])
async def test_plain_http_goes_to_the_proxy_with_a_whole_address(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, hop: Hop, user: str
) -> None:
    up = await upstream(wire.ok, "keep")
    p = await proxy({"base_url": f"http://127.0.0.1:{up.port}/v1", "api_key": "sk-canary", "proxy": hop.url(user)})
    for _ in range(3):
        assert (await p.ask()).status == 200
    assert (len(hop.heads), up.connections, len(up.requests)) == (1, 1, 3), "the connection is used again"
    head = hop.heads[0]
    assert head.startswith(f"POST http://127.0.0.1:{up.port}/v1/chat/completions HTTP/1.1\r\n")
    assert header(head, "Host") == [f"127.0.0.1:{up.port}"]
    assert header(head, "Proxy-Authorization") == ([EXPECTED] if user else [])
    assert header(head, "Authorization") == ["Bearer sk-canary"]


@pytest.fixture
def authority(tmp_path: Path) -> tuple[str, ssl.SSLContext]:
    made = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    made.issue_cert("127.0.0.1").configure_cert(context)
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem"), context


@pytest.mark.parametrize("user", ["", f"me:{PASSWORD}@"])
async def test_https_goes_through_a_tunnel(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, hop: Hop, user: str, authority: tuple[str, ssl.SSLContext]
) -> None:
    ca, context = authority
    up = await upstream(wire.ok, "keep", ssl=context)
    url = f"https://127.0.0.1:{up.port}/v1"
    p = await proxy({"base_url": url, "api_key": "sk-canary", "proxy": hop.url(user), "tls": {"ca": ca}})
    for _ in range(3):
        assert (await p.ask()).status == 200
    assert (len(hop.heads), up.connections, len(up.requests)) == (1, 1, 3), "the tunnel is used again"
    assert hop.heads[0].startswith(f"CONNECT 127.0.0.1:{up.port} HTTP/1.1\r\n")
    assert header(hop.heads[0], "Proxy-Authorization") == ([EXPECTED] if user else [])
    assert "sk-canary" not in hop.heads[0]
    sent = up.requests[0].decode()
    assert sent.startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    assert "Proxy-Authorization" not in sent
    assert "Bearer sk-canary" in sent


async def test_streams_go_through_a_tunnel(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, hop: Hop, authority: tuple[str, ssl.SSLContext]
) -> None:
    ca, context = authority
    up = await upstream(wire.stream, "keep", ssl=context)
    p = await proxy({"base_url": f"https://127.0.0.1:{up.port}/v1", "proxy": hop.url(), "tls": {"ca": ca}})
    assert (await p.ask(stream=True)).events[-1] == "[DONE]"


async def test_the_other_ends_certificate_is_judged(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, hop: Hop, authority: tuple[str, ssl.SSLContext]
) -> None:
    up = await upstream(wire.ok, ssl=authority[1])
    p = await proxy({"base_url": f"https://127.0.0.1:{up.port}/v1", "proxy": hop.url()})
    answer = await p.ask()
    assert (answer.status, answer.error["code"]) == (502, "upstream_tls_failed")


REFUSED = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 6\r\n\r\ncanary"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_refuses(proxy: StartProxy, hop: Hop, scheme: str) -> None:
    hop.answer = REFUSED
    p = await proxy({"base_url": f"{scheme}://127.0.0.1:9/v1", "proxy": hop.url(f"me:{PASSWORD}@")})
    answer = await p.ask()
    assert (answer.status, answer.error["code"]) == (502, "upstream_proxy_refused")
    assert "its HTTP proxy refused the request (407)" in answer.error["message"]
    assert len(hop.heads) == 1
    assert b"canary" not in answer.text + p.log.getvalue()


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_proxy_there(
    proxy: StartProxy, hop: Hop, scheme: str, unused_tcp_port_factory: Callable[[], int]
) -> None:
    hop.port = unused_tcp_port_factory()
    p = await proxy({"base_url": f"{scheme}://127.0.0.1:9/v1", "proxy": hop.url(f"me:{PASSWORD}@")})
    answer = await p.ask()
    assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
    assert "cannot connect to its HTTP proxy" in answer.error["message"]
    assert b"canary" not in answer.text + p.log.getvalue()


async def test_a_tunnel_that_never_opens_is_no_connection_in_time(proxy: StartProxy, hop: Hop) -> None:
    hop.silent = True
    p = await proxy({"base_url": "https://127.0.0.1:9/v1", "proxy": hop.url()}, timeouts={"connect": 0.1})
    answer = await p.ask()
    assert (answer.status, answer.error["code"]) == (504, "upstream_connect_timeout")


async def test_the_environments_proxies_are_left_alone(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, hop: Hop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy"):
        monkeypatch.setenv(name, hop.url())
    up = await upstream(wire.ok, "keep")
    p = await proxy(up)
    assert (await p.ask()).status == 200
    assert hop.heads == []


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_tokens_come_the_same_way(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, hop: Hop, authority: tuple[str, ssl.SSLContext], scheme: str
) -> None:
    ca, context = authority
    given = wire.http(b'{"access_token": "canary-token", "expires_in": 60}')
    tokens = await upstream(given, "keep", ssl=context if scheme == "https" else None)
    up = await upstream(wire.ok, "keep")
    url = f"{scheme}://127.0.0.1:{tokens.port}/t"
    oauth = {"token_url": url, "client_id": "a", "client_secret": "b", "ca": ca}
    p = await proxy({"base_url": f"http://127.0.0.1:{up.port}/v1", "oauth": oauth, "proxy": hop.url(f"me:{PASSWORD}@")})
    assert (await p.ask()).status == 200
    first, call = hop.heads
    assert first.startswith(f"POST {url} " if scheme == "http" else f"CONNECT 127.0.0.1:{tokens.port} ")
    assert header(first, "Proxy-Authorization") == [EXPECTED]
    assert header(call, "Authorization") == ["Bearer canary-token"]


def test_a_password_in_the_file_is_warned_of_and_never_shown() -> None:
    def text(proxy: str) -> str:
        return "\n".join(
            [
                "providers:",
                f'  p: {{dialect: openai, base_url: "https://h/v1", proxy: "{proxy}"}}',
                "models: {m: {targets: [{provider: p}]}}",
            ]
        )

    checked = check_text(text("http://me:canary-canary@host:3128"), "a.yaml", {})
    [warning] = checked.warnings
    assert warning.code == "literal-secret"
    assert "${P_PROXY}" in warning.hint
    assert "canary" not in repr(warning) + repr(checked.config)
    env = {"PASSWORD": "canary-canary", "PROXY": "http://me:canary@host:3128"}
    for proxy in ("http://me:${PASSWORD}@host:3128", "${PROXY}", "http://host:3128"):
        assert check_text(text(proxy), "a.yaml", env).warnings == ()
