"""A gateway in front of a fake provider, which passes everything on, and may have a typical defect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import aiohttp
from aiohttp import web

from dragoman.contract.fake_upstream import FakeUpstream
from dragoman.contract.json_types import JsonObject

__all__ = ["DEFECTS", "Defect", "run_gateway"]

Change: TypeAlias = Callable[[JsonObject], JsonObject]

_CHAT = {"openai": "/v1/chat/completions", "databricks": "/serving-endpoints/chat/completions"}


def _keep(body: JsonObject) -> JsonObject:
    return body


@dataclass(frozen=True)
class Defect:
    """A defect: `change_request` alters the body of each request, `change_reply` each object of a reply. With
    `ignores_disconnects` the gateway reads the reply to the end even if its client has left. `dropped_field` is a field
    that it drops silently after the provider has refused it."""

    change_request: Change = _keep
    change_reply: Change | None = None
    ignores_disconnects: bool = False
    dropped_field: str = ""


def _change_counts(body: JsonObject) -> JsonObject:
    return (
        {**body, "usage": {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}} if "usage" in body else body
    )


def _drop_last_delta(body: JsonObject) -> JsonObject:
    for choice in body["choices"]:
        if choice["finish_reason"] is not None:
            choice["delta"] = {}
    return body


def _write_thinking_blocks(body: JsonObject) -> JsonObject:
    for choice in body["choices"]:
        message = choice["message"]
        if isinstance(message["content"], list):
            thought, text = message["content"]
            message |= {"content": text["text"], "thinking_blocks": thought["summary"]}
    return body


def _drop_blocks(body: JsonObject) -> JsonObject:
    for message in body["messages"]:
        if isinstance(message["content"], list):
            message["content"] = message["content"][-1]["text"]
    return body


def _add_key(body: JsonObject) -> JsonObject:
    for choice in body["choices"]:
        choice["message"]["annotations"] = []
    return body


def _convert_to_chat(effort: Callable[[JsonObject], JsonObject]) -> Change:
    """Convert a request of Responses to chat. The reply is not converted back, as no check reads it."""

    def convert(body: JsonObject) -> JsonObject:
        return {"messages": [{"role": "user", "content": body["input"]}], "model": body["model"], **effort(body)}

    return convert


def _change_roles(body: JsonObject) -> JsonObject:
    if isinstance(body["input"], list):
        body["input"] = [{"type": "message", **item} for item in body["input"] if item.get("type") != "message"]
        return body | {"input": [{**item, "role": "thinker"} for item in body["input"]]}
    return body


DEFECTS = {
    "none": Defect(),
    "ignored disconnect": Defect(ignores_disconnects=True),
    "silent retry": Defect(dropped_field="temperature"),
    "own token counts": Defect(change_reply=_change_counts),
    "lost last delta": Defect(change_reply=_drop_last_delta),
    "thinking blocks": Defect(change_reply=_write_thinking_blocks),
    "lost reasoning": Defect(change_request=_drop_blocks),
    "additional key": Defect(change_reply=_add_key),
    "effort as an object": Defect(
        change_request=_convert_to_chat(lambda body: {"reasoning_effort": body["reasoning"]})
    ),
    "lost effort": Defect(change_request=_convert_to_chat(lambda body: {})),
    "unknown roles": Defect(change_request=_change_roles),
}


@asynccontextmanager
async def run_gateway(fake: FakeUpstream, defect: Defect) -> AsyncIterator[str]:
    """Run a gateway; the value is its base URL for OpenAI's clients."""
    async with aiohttp.ClientSession() as session:
        kept: set[asyncio.Task[None]] = set()

        async def serve(request: web.Request) -> web.StreamResponse:
            return await _handle(request, fake, defect, session, kept)

        app = web.Application()
        app.router.add_post("/{path:.*}", serve)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            for task in kept:
                task.cancel()
            await asyncio.gather(*kept, return_exceptions=True)
            await runner.cleanup()


async def _handle(
    request: web.Request,
    fake: FakeUpstream,
    defect: Defect,
    session: aiohttp.ClientSession,
    kept: set[asyncio.Task[None]],
) -> web.StreamResponse:
    body = defect.change_request(await request.json())
    path = request.path if fake.dialect == "openai" else _CHAT[fake.dialect]
    if not defect.ignores_disconnects:
        return await _forward(request, session, fake.origin + path, body, defect)
    task = asyncio.ensure_future(_read_to_the_end(session, fake.origin + path, body))
    kept.add(task)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    if body.get("stream"):
        await response.prepare(request)
        await response.write(b": begun\n\n")
    await asyncio.shield(task)
    return response


async def _read_to_the_end(session: aiohttp.ClientSession, url: str, body: JsonObject) -> None:
    async with session.post(url, json=body) as reply:
        await reply.read()


async def _forward(
    request: web.Request, session: aiohttp.ClientSession, url: str, body: JsonObject, defect: Defect
) -> web.StreamResponse:
    async with session.post(url, json=body) as reply:
        if reply.status == 400 and defect.dropped_field in body:
            return await _forward(request, session, url, _drop_field(body, defect.dropped_field), defect)
        headers = {"Content-Type": reply.headers["Content-Type"]}
        if defect.change_reply is not None and reply.status == 200:
            return web.Response(
                status=200, headers=headers, body=_change_objects(await reply.read(), defect.change_reply)
            )
        response = web.StreamResponse(status=reply.status, headers=headers)
        await response.prepare(request)
        async for data in reply.content.iter_any():
            await response.write(data)
        return response


def _drop_field(body: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in body.items() if key != name}


def _change_objects(data: bytes, change: Change) -> bytes:
    if not data.startswith(b"data:"):
        return json.dumps(change(json.loads(data))).encode()
    events = [event.removeprefix(b"data: ") for event in data.split(b"\n\n") if event]
    changed = [event if event == b"[DONE]" else json.dumps(change(json.loads(event))).encode() for event in events]
    return b"".join(b"data: " + event + b"\n\n" for event in changed)
