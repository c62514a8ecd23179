"""A headless Chromium, driven over its DevTools protocol as a user would."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = ["Page", "find_browser", "open_page"]

TIMEOUT = 60.0
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_LISTENING = re.compile(rb"DevTools listening on (ws://\S+)")
_KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "/": 191,
    "ArrowUp": 38,
    "ArrowDown": 40,
    "ArrowLeft": 37,
    "ArrowRight": 39,
}
_FEATURES = {"scheme": "color-scheme", "motion": "reduced-motion"}
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
    """One page. `complaints` are the errors, warnings and exceptions of its console; `requests` are the URLs that it
    requested."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._number, self._session = socket, 0, ""
        self.complaints: list[str] = []
        self.requests: list[str] = []

    async def attach(self) -> None:
        target = await self.send("Target.createTarget", url="about:blank")
        self._session = (await self.send("Target.attachToTarget", flatten=True, **target))["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.send(f"{domain}.enable")

    async def send(self, method: str, **params: JsonValue) -> JsonValue:
        """Send a command and return its result. Raises AssertionError if the browser reports an error."""
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        await self._socket.send_json({"id": self._number, "method": method, "params": params, **session})
        while True:
            message = await self._socket.receive_json(timeout=TIMEOUT)
            if message.get("id") == self._number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self._record(message)

    def _record(self, message: JsonObject) -> None:
        match message["method"], message["params"]:
            case "Network.requestWillBeSent", params:
                self.requests.append(params["request"]["url"])
            case "Log.entryAdded", {"entry": entry}:
                self.complaints.append(entry["text"])
            case "Runtime.exceptionThrown", {"exceptionDetails": details}:
                self.complaints.append(str(details.get("exception", details)))
            case "Runtime.consoleAPICalled", {"type": "error" | "warning"} as params:
                self.complaints.append(str(params["args"]))

    async def reset(self) -> None:
        """Give the window and the media features back what they are without `resize` and `prefer`."""
        await self.send("Emulation.clearDeviceMetricsOverride")
        await self.send("Emulation.setEmulatedMedia", features=[])

    async def go(self, url: str) -> None:
        """Load the URL, and wait until its scripts have run."""
        await self.send("Page.navigate", url="about:blank")
        self.requests.clear()
        self.complaints.clear()
        await self.send("Page.navigate", url=url)
        await self.until(f"document.readyState == 'complete' && location.href.startsWith({json.dumps(url)})")

    async def until(self, condition: str) -> None:
        """Wait until a JavaScript condition holds. Raises TimeoutError."""
        async with asyncio.timeout(TIMEOUT):
            while not await self.run(f"Boolean({condition})"):  # noqa: ASYNC110 - the page is in another process
                await asyncio.sleep(0.02)

    async def run(self, expression: str) -> JsonValue:
        """Evaluate a JavaScript expression; wait for its promise."""
        outcome = await self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in outcome, outcome
        return outcome["result"].get("value")

    async def press(self, key: str) -> None:
        """Press a key by its name: a character, Enter, Tab, Escape or an arrow."""
        text, code = {"Enter": "\r"}.get(key, key if len(key) == 1 else ""), _KEYS.get(key, ord(key[0].upper()))
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **typed)

    async def write(self, text: str) -> None:
        """Write text where the focus is."""
        await self.send("Input.insertText", text=text)

    async def resize(self, width: int, height: int) -> None:
        """Make the page so large, in pixels; a narrow one is a phone's."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        await self.send("Emulation.setDeviceMetricsOverride", **size)

    async def prefer(self, **features: str) -> None:
        """Set media features: `scheme` (light or dark) and `motion` (reduce)."""
        given = [{"name": f"prefers-{_FEATURES[name]}", "value": value} for name, value in features.items()]
        await self.send("Emulation.setEmulatedMedia", features=given)

    async def photograph(self) -> bytes:
        """Return what the window shows as PNG."""
        return base64.b64decode((await self.send("Page.captureScreenshot", format="png"))["data"])

    async def click(self, selector: str) -> None:
        """Click in the middle of the first element that matches."""
        x, y = await self.run(
            f"(() => {{ const found = document.querySelector({selector!r}); found.scrollIntoView({{block: 'center'}});"
            " const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


async def _read_address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(TIMEOUT):
        while line := await process.stderr.readline():
            if found := _LISTENING.search(line):
                return found[1].decode()
    raise AssertionError(f"the browser ended with status {await process.wait()}")


def find_browser() -> str:
    """The program; skips the test if there is none, unless the environment says that there is one."""
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if program is None:
        assert not os.environ.get("DRAGOMAN_TEST_BROWSER"), "DRAGOMAN_TEST_BROWSER is set, and there is no browser"
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    return program


@asynccontextmanager
async def open_page(folder: Path, *more_flags: str) -> AsyncIterator[Page]:
    """Open a page of a new browser, whose files go to the folder. Skips the test if there is no browser."""
    program, flags = find_browser(), (*_FLAGS, f"--user-data-dir={folder}", *more_flags)
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(program, *flags, stderr=pipe, stdout=nothing)
    try:
        address = await _read_address(process)
        async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
            page = Page(socket)
            await page.attach()
            yield page
            await page.send("Browser.close")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
