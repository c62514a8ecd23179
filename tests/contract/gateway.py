"""A gateway in front of a fake, which passes everything on; told to, with one of the defects that gateways have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp
from aiohttp import web

from dragoman.contract.fake_upstream import FakeUpstream

__all__ = ["DEFECTS", "Defect", "gateway"]

Json: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Json], Json]

_CHAT = {"openai": "/v1/chat/completions", "databricks": "/serving-endpoints/chat/completions"}


def _same(body: Json) -> Json:
    return body


@dataclass(frozen=True)
class Defect:
    """`request` alters what is asked, `reply` each object of what is answered. A `stubborn` gateway asks to the end
    whether its client is there or not; one that `retries` leaves out what it was refused for; one that `pings` fills
    silences of that many seconds with comments."""

    request: Change = _same
    reply: Change | None = None
    stubborn: bool = False
    retries: str = ""
    pings: float = 0.0


def _recounted(body: Json) -> Json:
    return (
        {**body, "usage": {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}} if "usage" in body else body
    )


def _without_last_piece(body: Json) -> Json:
    for choice in body["choices"]:
        if choice["finish_reason"] is not None:
            choice["delta"] = {}
    return body


def _thinking_blocks(body: Json) -> Json:
    for choice in body["choices"]:
        thought, text = choice["message"]["content"] if isinstance(choice["message"]["content"], list) else ("", "")
        if thought:
            choice["message"] |= {"content": text["text"], "thinking_blocks": thought["summary"]}
    return body


def _without_blocks(body: Json) -> Json:
    for message in body["messages"]:
        if isinstance(message["content"], list):
            message["content"] = message["content"][-1]["text"]
    return body


def _own_keys(body: Json) -> Json:
    for choice in body["choices"]:
        choice["message"]["annotations"] = []
    return body


def _as_chat(effort: Callable[[Json], Json]) -> Change:
    """Responses as chat, without the way back, which nobody looks at."""

    def asked(body: Json) -> Json:
        return {"messages": [{"role": "user", "content": body["input"]}], "model": body["model"], **effort(body)}

    return asked


def _without_output(body: Json) -> Json:
    if isinstance(body["input"], list):
        body["input"] = [{"type": "message", **item} for item in body["input"] if item.get("type") != "message"]
        return body | {"input": [{**item, "role": "thinker"} for item in body["input"]]}
    return body


DEFECTS = {
    "none": Defect(),
    "stubborn": Defect(stubborn=True),
    "retries in silence": Defect(retries="temperature"),
    "counts itself": Defect(reply=_recounted),
    "drops the last piece": Defect(reply=_without_last_piece),
    "thinking blocks": Defect(reply=_thinking_blocks),
    "forgets reasoning": Defect(request=_without_blocks),
    "keys of its own": Defect(reply=_own_keys),
    "effort as an object": Defect(request=_as_chat(lambda body: {"reasoning_effort": body["reasoning"]})),
    "no effort": Defect(request=_as_chat(lambda body: {})),
    "roles of its own": Defect(request=_without_output),
    "pings": Defect(pings=0.02),
}


@asynccontextmanager
async def gateway(fake: FakeUpstream, defect: Defect) -> AsyncIterator[str]:
    """The base address, as OpenAI's clients take it."""
    async with aiohttp.ClientSession() as session:
        kept: set[asyncio.Task[None]] = set()

        async def serve(request: web.Request) -> web.StreamResponse:
            return await _served(request, fake, defect, session, kept)

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


async def _served(
    request: web.Request, fake: FakeUpstream, defect: Defect, session: aiohttp.ClientSession, kept: set[asyncio.Task[None]]
) -> web.StreamResponse:
    body = defect.request(await request.json())
    path = request.path if fake.dialect == "openai" else _CHAT[fake.dialect]
    if not defect.stubborn:
        return await _passed(request, session, fake.origin + path, body, defect)
    task = asyncio.ensure_future(_to_the_end(session, fake.origin + path, body))
    kept.add(task)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    if body.get("stream"):
        await response.prepare(request)
        await response.write(b": begun\n\n")
    await asyncio.shield(task)
    return response


async def _to_the_end(session: aiohttp.ClientSession, url: str, body: Json) -> None:
    async with session.post(url, json=body) as reply:
        await reply.read()


async def _passed(
    request: web.Request, session: aiohttp.ClientSession, url: str, body: Json, defect: Defect
) -> web.StreamResponse:
    async with session.post(url, json=body) as reply:
        if reply.status == 400 and defect.retries in body:
            return await _passed(request, session, url, _without(body, defect.retries), defect)
        headers = {"Content-Type": reply.headers["Content-Type"]}
        if defect.reply is not None and reply.status == 200:
            return web.Response(status=200, headers=headers, body=_altered(await reply.read(), defect.reply))
        response = web.StreamResponse(status=reply.status, headers=headers)
        await response.prepare(request)
        while data := await _next(reply, response, defect.pings):
            await response.write(data)
        return response


async def _next(reply: aiohttp.ClientResponse, response: web.StreamResponse, pings: float) -> bytes:
    reading = asyncio.ensure_future(reply.content.readany())
    while not (await asyncio.wait((reading,), timeout=pings or None))[0]:
        await response.write(b": ping\n\n")
    return await reading


def _without(body: Json, name: str) -> Json:
    return {key: value for key, value in body.items() if key != name}


def _altered(data: bytes, change: Change) -> bytes:
    if not data.startswith(b"data:"):
        return json.dumps(change(json.loads(data))).encode()
    events = [event.removeprefix(b"data: ") for event in data.split(b"\n\n") if event]
    told = [event if event == b"[DONE]" else json.dumps(change(json.loads(event))).encode() for event in events]
    return b"".join(b"data: " + event + b"\n\n" for event in told)
