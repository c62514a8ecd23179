"""A server with the page's files and invented exchanges: tests of the page alone need no proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from dragoman.contract.json_types import JsonObject, JsonValue

__all__ = ["CSP", "FIXTURES", "FakeServer", "read_fixture", "serve_fake"]

FIXTURES = Path(__file__).with_name("fixtures")
FILES = Path(__file__).resolve().parents[3] / "proxy" / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Trusted types make every use of innerHTML a violation."""


def read_fixture(name: str) -> JsonValue:
    return json.loads((FIXTURES / f"{name}.json").read_text("utf-8"))


@dataclass
class FakeServer:
    """`exchanges` are the summaries, oldest first; `details` by id; `posted` what came by POST: path and body."""

    url: str = ""
    about: JsonObject = field(default_factory=lambda: read_fixture("about"))
    state: JsonObject = field(default_factory=lambda: read_fixture("state"))
    configuration: JsonObject = field(default_factory=lambda: read_fixture("configuration"))
    exchanges: list[JsonObject] = field(default_factory=lambda: read_fixture("exchanges"))
    details: dict[str, JsonObject] = field(default_factory=dict)
    posted: list[tuple[str, JsonObject]] = field(default_factory=list)
    export: str = "curl -sS http://127.0.0.1:8080/v1/chat/completions"
    is_down: bool = False
    sent: list[str] = field(default_factory=list)
    """The events that the playground gets."""
    listeners: list[asyncio.Queue[tuple[str, JsonValue] | None]] = field(default_factory=list)

    def tell(self, name: str, data: JsonValue) -> None:
        """Send an event to all open pages."""
        for listener in self.listeners:
            listener.put_nowait((name, data))

    def hang_up(self) -> None:
        """End the streams of events."""
        for listener in self.listeners:
            listener.put_nowait(None)

    def list_exchanges(self, request: web.Request) -> JsonValue:
        before, limit = int(request.query.get("before", 10**12)), int(request.query.get("limit", 200))
        found = [one for one in reversed(self.exchanges) if one["seq"] < before]
        return {"exchanges": found[:limit], "buffer": self.about["buffer"]}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request to the page."""
        match request.method, request.path.removeprefix("/page/").split("/"):
            case "GET", ["api", "events"] if self.is_down:
                return web.json_response({"error": "the proxy stops"}, status=503)
            case "GET", ["api", "events"]:
                return await self._send_events(request)
            case "GET", ["api", "exchanges", id_, "export"]:
                return web.Response(text=self.export, headers={"Content-Disposition": f'attachment; filename="{id_}"'})
            case "GET", ["api", *path]:
                return self._answer_json(request, path)
            case "POST", ["logout"]:
                self.posted.append(("logout", {}))
                self.about["signed_in"] = False
                return web.Response(status=303, headers={"Location": "/"})
            case "POST", ["api", *path]:
                return await self._take(request, "/".join(path))
        name = request.path.removeprefix("/page/").removeprefix("/") or "index.html"
        file = FILES / name
        if not file.is_file():
            return web.json_response({"error": "nothing is here"}, status=404)
        headers = {"Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff"}
        return web.Response(text=file.read_text("utf-8"), content_type=TYPES[file.suffix], headers=headers)

    def _answer_json(self, request: web.Request, path: list[str]) -> web.Response:
        match path:
            case ["about"]:
                found: JsonValue = self.about
            case ["exchanges"]:
                found = self.list_exchanges(request)
            case ["exchanges", id_]:
                found = self.details.get(id_)
            case ["state"]:
                found = self.state
            case ["configuration"]:
                found = self.configuration
            case _:
                found = None
        if found is None:
            return web.json_response({"error": "no exchange has this id"}, status=404)
        return web.json_response(found)

    async def _take(self, request: web.Request, path: str) -> web.StreamResponse:
        if request.headers.get("X-Csrf-Token") != self.about["csrf"]:
            return web.json_response({"error": "the token is not the one of this process"}, status=403)
        self.posted.append((path, await request.json()))
        if path != "send":
            return web.json_response({"id": "req-stream"})
        headers = {"Content-Type": "text/event-stream", "x-request-id": "req-stream"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for text in self.sent:
            await response.write(text.encode())
        return response

    async def _send_events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        queue: asyncio.Queue[tuple[str, JsonValue] | None] = asyncio.Queue()
        self.listeners.append(queue)
        queue.put_nowait(("state", self.state["gauges"]))
        while (item := await queue.get()) is not None:
            await response.write(f"event: {item[0]}\ndata: {json.dumps(item[1])}\n\n".encode())
        return response


@asynccontextmanager
async def serve_fake() -> AsyncIterator[FakeServer]:
    """Serve on a free port until the context ends."""
    fake = FakeServer()
    for name in ("receipt", "stream", "heads"):
        detail = read_fixture(f"exchange-{name}")
        fake.details[detail["id"]] = detail
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield fake
    finally:
        fake.hang_up()
        await runner.cleanup()
