"""Pages in a real Chromium: those of other sites reach no provider, those that are allowed read every event."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp.web
import pytest

from tests.browser import open_page

from .house import BuildHouse, House

pytestmark = pytest.mark.heavy

KEYS = [{"name": "a", "key": "a-client-key"}]
NAME = "rebound.example"  # leads to 127.0.0.1, as a name does after DNS rebinding
CHAT = {"model": "openai", "messages": [{"role": "user", "content": "hi"}]}

# JavaScript: `url` is an address of the proxy, `chat` is JSON. Each returns "sent" if the browser sends the request,
# whether or not the page may read the answer.
ATTACKS = {
    "fetch without CORS": "fetch(url, {method: 'POST', mode: 'no-cors', body: chat})",
    "fetch as JSON": "fetch(url, {method: 'POST', body: chat, headers: {'Content-Type': 'application/json'}})",
    "fetch without a type": "fetch(url, {method: 'POST', mode: 'no-cors', body: new TextEncoder().encode(chat)})",
    "fetch a blob": "fetch(url, {method: 'POST', mode: 'no-cors', body: new Blob([chat])})",
    "fetch a blob of JSON": "fetch(url, {method: 'POST', mode: 'no-cors', body: new Blob([chat], {type: JSON_TYPE})})",
    "fetch kept alive": "fetch(url, {method: 'POST', mode: 'no-cors', body: new Blob([chat]), keepalive: true})",
    "beacon": "navigator.sendBeacon(url, chat)",
    "beacon of a blob": "navigator.sendBeacon(url, new Blob([chat]))",
    "beacon of JSON": "navigator.sendBeacon(url, new Blob([chat], {type: JSON_TYPE}))",
    "XMLHttpRequest": "request(url, chat)",
    "form": "submit(url, chat, 'text/plain')",
    "encoded form": "submit(url, chat, 'application/x-www-form-urlencoded')",
    "form of parts": "submit(url, chat, 'multipart/form-data')",
}
SCRIPT = """
const JSON_TYPE = 'application/json';
const request = (url, chat) => new Promise(resolve => {
  const made = new XMLHttpRequest();
  made.onloadend = () => resolve(made.status);
  made.open('POST', url);
  made.send(new Blob([chat]));
});
const submit = (url, chat, type) => new Promise(resolve => {
  const frame = document.createElement('iframe');
  const form = document.body.appendChild(document.createElement('form'));
  const input = form.appendChild(document.createElement('input'));
  frame.name = form.target = 'f' + document.forms.length;
  document.body.appendChild(frame);
  [form.action, form.method, form.enctype] = [url, 'POST', type];
  [input.name, input.value] = type == 'text/plain' ? [chat.slice(0, -1) + ', "x": "', '"}'] : ['chat', chat];
  frame.onload = resolve;
  form.submit();
});
const settle = promise => Promise.race([promise, new Promise(done => setTimeout(done, 2000))]).catch(String);
"""
READ_STREAM = """
(async () => {
  const response = await fetch(%s, {method: 'POST', headers: %s, body: %s});
  const reader = response.body.getReader();
  let text = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    text += new TextDecoder().decode(value);
  }
  return [response.status, response.headers.get('x-request-id'), text];
})()
"""


@dataclass
class Site:
    """A web site with one empty page."""

    port: int

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def open_site() -> AsyncIterator[Site]:
    async def show(_: aiohttp.web.BaseRequest) -> aiohttp.web.Response:
        return aiohttp.web.Response(text=f"<script>{SCRIPT}</script><body>", content_type="text/html")

    runner = aiohttp.web.ServerRunner(aiohttp.web.Server(show))
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield Site(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def count_calls(house: House) -> int:
    return sum(len(fake.requests) for fake in house.fakes.values())


async def wait_for_line(house: House, count: int) -> int:
    """Wait until the log has more than `count` lines; return how many it has."""
    async with asyncio.timeout(30):
        while (found := house.log.getvalue().count(b"\n")) <= count:  # noqa: ASYNC110 - the browser is another process
            await asyncio.sleep(0.01)
    return found


@pytest.mark.parametrize("keys", [[], KEYS], ids=["no keys", "keys"])
async def test_pages_of_other_sites_reach_no_provider(build: BuildHouse, tmp_path: Path, keys: list[object]) -> None:
    house, seen = await build(keys=keys), 0
    async with open_site() as site, open_page(tmp_path, f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as page:
        await page.go(site.origin)
        for host in ("127.0.0.1", "localhost", NAME):
            url = f"http://{host}:{house.proxy.port}/v1/chat/completions"
            for name, attack in ATTACKS.items():
                given = json.dumps([url, json.dumps(CHAT)])
                await page.run(f"settle((([url, chat]) => {attack})({given}))")
                if not (keys and "JSON" in name):  # these ask first, which is not logged
                    seen = await wait_for_line(house, seen)
        assert count_calls(house) == 0
    log = house.log.getvalue().decode()
    assert '"outcome":"ok"' not in log
    assert log.count('"fault"') >= 3 * sum("JSON" not in name for name in ATTACKS)


@pytest.mark.parametrize("keys", [[], KEYS], ids=["no keys", "keys"])
async def test_a_name_that_leads_here_reads_nothing(build: BuildHouse, tmp_path: Path, keys: list[object]) -> None:
    """The page and the proxy have one origin for the browser: no rule of CORS applies."""
    house = await build(keys=keys)
    async with open_page(tmp_path, f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as page:
        url = f"http://{NAME}:{house.proxy.port}"
        await page.go(f"{url}/live")
        made = {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": json.dumps(CHAT)}
        fetching = f"fetch('{url}/v1/chat/completions', {json.dumps(made)}).then(response => response.status)"
        assert await page.run(fetching) == (401 if keys else 403)
    assert count_calls(house) == 0


@pytest.mark.parametrize("keys", [[], KEYS], ids=["no keys", "keys"])
async def test_an_allowed_page_reads_a_stream(build: BuildHouse, tmp_path: Path, keys: list[object]) -> None:
    async with open_site() as site, open_page(tmp_path) as page:
        house = await build(keys=keys, server={"allowed_origins": [site.origin]})
        await page.go(site.origin)
        headers = {"Content-Type": "application/json", "Authorization": "Bearer a-client-key", "X-Stainless-Lang": "js"}
        url, body = json.dumps(f"{house.base_url}/chat/completions"), json.dumps(json.dumps({**CHAT, "stream": True}))
        status, request_id, text = await page.run(READ_STREAM % (url, json.dumps(headers), body))
        assert status == 200
        assert house.line(request_id) is not None
        assert text.endswith("data: [DONE]\n\n")
        wrong = json.dumps(f"{house.base_url}/chat/nowhere")
        status, request_id, text = await page.run(READ_STREAM % (wrong, json.dumps(headers), body))
        assert (status, json.loads(text)["error"]["code"]) == (404, "unknown_url")
        assert not [text for text in page.complaints if "CORS" in text]
