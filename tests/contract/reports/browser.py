"""A headless Chromium, driven over its DevTools protocol: enough of it to use a page as a person would."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

PATIENCE = 60.0
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_LISTENING = re.compile(rb"DevTools listening on (ws://\S+)")
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "/": 191}
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--window-size=1200,900",
    "--remote-debugging-port=0",
)


class Page:
    """One page. `complaints` are errors and warnings of its console, exceptions included; `requests` are the addresses
    that it asked for."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._number, self._session = socket, 0, ""
        self.complaints: list[str] = []
        self.requests: list[str] = []

    async def begin(self) -> None:
        target = await self.send("Target.createTarget", url="about:blank")
        self._session = (await self.send("Target.attachToTarget", flatten=True, **target))["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.send(f"{domain}.enable")

    async def send(self, method: str, **params: Any) -> Any:
        """The result. Raises AssertionError where the browser calls it wrong."""
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        await self._socket.send_json({"id": self._number, "method": method, "params": params, **session})
        while True:
            told = await self._socket.receive_json(timeout=PATIENCE)
            if told.get("id") == self._number:
                assert "error" not in told, (method, told["error"])
                return told["result"]
            self._note(told)

    def _note(self, told: dict[str, Any]) -> None:
        match told["method"], told["params"]:
            case "Network.requestWillBeSent", params:
                self.requests.append(params["request"]["url"])
            case "Log.entryAdded", {"entry": entry}:
                self.complaints.append(entry["text"])
            case "Runtime.exceptionThrown", {"exceptionDetails": details}:
                self.complaints.append(str(details.get("exception", details)))
            case "Runtime.consoleAPICalled", {"type": "error" | "warning"} as params:
                self.complaints.append(str(params["args"]))

    async def go(self, url: str) -> None:
        """Open the address anew, and wait until its scripts have run."""
        await self.send("Page.navigate", url="about:blank")
        self.requests.clear()
        self.complaints.clear()
        await self.send("Page.navigate", url=url)
        await self.until(f"document.readyState == 'complete' && location.href.startsWith({json.dumps(url)})")

    async def until(self, condition: str) -> None:
        """Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE):
            while not await self.run(condition):  # noqa: ASYNC110 - it is in another process
                await asyncio.sleep(0.02)

    async def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        told = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    async def press(self, key: str) -> None:
        text = {"Enter": "\r", "/": "/"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=_KEYS[key], **typed)

    async def click(self, selector: str) -> None:
        """With the mouse, in the middle of the first element that fits."""
        x, y = await self.run(
            f"(() => {{ const found = document.querySelector({selector!r}); found.scrollIntoView({{block: 'center'}});"
            " const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        while line := await process.stderr.readline():
            if found := _LISTENING.search(line):
                return found[1].decode()
    raise AssertionError(f"the browser ended: {await process.wait()}")


@asynccontextmanager
async def opened(program: str, folder: Path) -> AsyncIterator[Page]:
    """A page of a browser that lives as long as the block. Its files go to the folder."""
    flags = (*_FLAGS, f"--user-data-dir={folder}")
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(program, *flags, stderr=pipe, stdout=nothing)
    try:
        address = await _address(process)
        async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
            page = Page(socket)
            await page.begin()
            yield page
            await page.send("Browser.close")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        assert not os.environ.get("DRAGOMAN_TEST_BROWSER"), "DRAGOMAN_TEST_BROWSER is set, and there is no browser"
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    async with opened(program, tmp_path_factory.mktemp("chromium")) as page:
        yield page
