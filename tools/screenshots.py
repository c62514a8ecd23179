"""Makes the pictures of the page in docs/images: a proxy over fake providers, some requests, and Chromium.

python -m tools.screenshots [NAME ...]
"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start
from tests.browser import Page, open_page

__all__ = ["main"]

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
_FAKES = {"lakehouse": "databricks", "north": "azure", "spare": "openai"}
_KEY = "a-key-of-a-fake-provider"
_QUESTION = [
    {"role": "user", "content": "Which dialects does dragoman speak?"},
    {"role": "system", "content": "Be brief."},
]
_HEADERS = {"anthropic-version": "2023-06-01", "User-Agent": "a client"}
_ANSWER = "text(say=Five: openai, databricks, azure, mindie and anthropic.)"
_RECEIPT: JsonObject = {"model": "llama", "messages": _QUESTION, "max_completion_tokens": 100, "seed": 7, "user": "ada"}
_CHAT, _RESPONSES, _MESSAGES = "/v1/chat/completions", "/v1/responses", "/anthropic/v1/messages"
_REQUESTS: tuple[tuple[str, JsonObject], ...] = (
    (_RESPONSES, {"model": "gpt", "input": "Hello"}),
    (_CHAT, {"model": "gpt", "messages": _QUESTION, "stream": True}),
    (_MESSAGES, {"model": "llama", "max_tokens": 64, "top_k": 5, "messages": _QUESTION[:1], "stream": True}),
    (_CHAT, {"model": "gpt", "messages": [{"role": "user", "content": "fake:status-503"}]}),
    (_CHAT, {"model": "mini", "messages": _QUESTION, "logit_bias": {"50256": -100}}),
    (_CHAT, {"model": "mini", "messages": _QUESTION, "temperature": 0.2}),
    (_CHAT, {**_RECEIPT, "stream": True}),
    (_CHAT, _RECEIPT),
)


@dataclass(frozen=True)
class Shot:
    """A picture: an address of the page, in which `receipt` and `stream` stand for the exchanges' ids, the keys to
    press there, and what the page is then."""

    hash: str
    ready: str
    keys: str = ""
    scheme: str = "light"
    size: tuple[int, int] = (1280, 760)


_PANES = "document.querySelectorAll('.pane-body .row').length > 8"
_SHOTS = {
    "page-list": Shot("#/", "document.querySelectorAll('.list tbody tr').length >= 8", "jj", size=(1280, 440)),
    "page-exchange": Shot("#/exchange/receipt", _PANES, "nnnn", size=(1280, 800)),
    "page-stream": Shot("#/exchange/stream", _PANES, "4N", "dark"),
    "page-playground": Shot("#/playground", "document.querySelector('textarea')", "!", size=(1280, 560)),
    "page-phone": Shot("#/exchange/receipt", _PANES, "nnnn", size=(390, 780)),
    "page-replay": Shot("#/exchange/receipt", _PANES, "r!"),
}
_SEND = "document.querySelector('button.main').click()"
_SENT = (
    "document.querySelector('.answer')?.innerText.includes('in all') || document.querySelector('.compare-bodies .row')"
)
_PREPARE = """(() => {
  const found = document.querySelector('[data-policy=unsupported]');
  if (!found) { document.getElementById('stream').click(); return; }
  found.value = 'refuse';
  found.dispatchEvent(new Event('change'));
})()"""


@asynccontextmanager
async def _run_proxy() -> AsyncIterator[str]:
    async with AsyncExitStack() as stack:
        fakes = {
            name: await stack.enter_async_context(FakeProvider(dialect, api_key=_KEY, behaviour=_ANSWER))
            for name, dialect in _FAKES.items()
        }
        proxy = await start(_configure(fakes), log_stream=io.BytesIO())
        try:
            for number, (path, body) in enumerate(_REQUESTS):
                if number == len(_REQUESTS) - 2:
                    fakes["lakehouse"].script("slow(delay=0.04)")
                if number == len(_REQUESTS) - 1:
                    fakes["lakehouse"].script("rate-limit")
                async with (
                    aiohttp.ClientSession(proxy.url) as session,
                    session.post(path, json=body, headers=_HEADERS) as response,
                ):
                    await response.read()
            yield proxy.url
        finally:
            proxy.stop_now.set()
            await proxy.stop()


def _configure(fakes: dict[str, FakeProvider]) -> Config:
    providers: dict[str, JsonValue] = {
        name: {"dialect": fake.dialect, "base_url": fake.base_url, "api_key": _KEY} for name, fake in fakes.items()
    }
    targets = {
        "llama": [("lakehouse", "llama-3-70b"), ("lakehouse", "llama-3-8b")],
        "mini": [("north", "gpt-4o-mini")],
        "gpt": [("spare", "gpt-5-mini")],
    }
    models: dict[str, JsonValue] = {
        name: {"targets": [{"provider": provider, "model": model} for provider, model in found]}
        for name, found in targets.items()
    }
    models["llama"]["policy"] = {"unsupported": "drop"}
    server = {"port": 0, "inspect": "bodies", "drain": {"delay": 0.001, "timeout": 1}}
    return Config.from_values({"server": server, "providers": providers, "models": models, "store": {"kind": "memory"}})


async def _take(page: Page, url: str, shot: Shot, ids: dict[str, str]) -> bytes:
    await page.resize(*shot.size)
    await page.prefer(scheme=shot.scheme)
    address = shot.hash
    for name, id_ in ids.items():
        address = address.replace(f"/{name}", f"/{id_}")
    await page.go(f"{url}/{address}")
    await page.until(shot.ready)
    await page.until("document.getElementById('pulse').innerText.includes('live')")
    for key in shot.keys:
        if key == "!":
            await page.run(_PREPARE)
            await page.run(_SEND)
            await page.until(_SENT)
        else:
            await page.press(key)
            if key == "r":
                await page.until("document.querySelector('dialog[open]')")
    await asyncio.sleep(0.3)  # until what moves has come to rest
    return await page.photograph()


async def main(names: list[str]) -> None:
    """Write the pictures with these names, or all of them."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with _run_proxy() as url, open_page(Path(folder)) as page:
            async with aiohttp.ClientSession(url) as session, session.get("/page/api/exchanges") as response:
                receipt, stream, *_ = [one["id"] for one in (await response.json())["exchanges"]]
            for name in names or _SHOTS:
                data = await _take(page, url, _SHOTS[name], {"receipt": receipt, "stream": stream})
                await asyncio.to_thread((FOLDER / f"{name}.png").write_bytes, data)
                print(f"{name}.png: {len(data) / 1000:.0f} KB", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
