"""A complete ASGI gateway: clients of any dialect in front of one OpenAI-compatible provider.

    pip install httpx uvicorn
    PROVIDER_URL=http://127.0.0.1:8000/v1 PROVIDER_MODEL=qwen3 uvicorn --app-dir examples asgi_gateway:app

dragoman reads, translates, writes and judges; this file only moves bytes.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import httpx
import orjson

import dragoman

URL = os.environ.get("PROVIDER_URL", "http://127.0.0.1:8000/v1")
TARGET = dragoman.Target(os.environ.get("PROVIDER_MODEL", "default"))
PLAN = dragoman.plan_target("provider", dragoman.dialects["openai"], ["chat"], TARGET)
ROUTES = dragoman.RouteTable(dragoman.dialects, {})
PROVIDER = httpx.AsyncClient(timeout=60, headers={"authorization": f"Bearer {os.environ.get('PROVIDER_KEY', 'none')}"})

Message = MutableMapping[str, Any]


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    if scope["type"] != "http":
        return
    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
    call = dragoman.Call(scope["method"], scope["path"], {}, dict(parse_qsl(scope["query_string"].decode())), headers)
    route = ROUTES.match(call.path) if call.method == "POST" else None
    pipeline = dragoman.Pipeline(route or ROUTES.closest_route(call.path, headers), call)
    has_begun = False
    try:
        if route is None:
            raise ROUTES.unknown_path(call.path, headers)
        pipeline.receive(await read_body(receive))
        pipeline.start_conversation()  # without a store, `previous_response_id` is a fault
        attempt = pipeline.prepare(PLAN)
        async for data in pump(attempt):
            if not has_begun:
                await send(begin(attempt.answer.status, attempt.headers))
                has_begun = True
            await send({"type": "http.response.body", "body": data, "more_body": True})
        if attempt.outcome.fault is not None and not has_begun:
            raise attempt.outcome.fault
        if attempt.answer.breaks_connection:
            raise ConnectionAbortedError("the client's dialect reports a failed stream by a broken connection")
        await send({"type": "http.response.body"})
    except dragoman.Fault as fault:
        reply = pipeline.render_fault(fault)
        await send(begin(reply.status, {"content-type": "application/json", **reply.headers}))
        await send({"type": "http.response.body", "body": orjson.dumps(reply.body)})


async def pump(attempt: dragoman.Attempt) -> AsyncIterator[bytes]:
    """Make the attempt's calls, feed it the replies, and yield the bytes for the client."""
    if not attempt.calls:
        yield attempt.answer_without_calls().data
    for number, request, *_ in attempt.calls:
        cut: dragoman.Fault | None = None
        sent = dict(request.headers)
        try:
            async with PROVIDER.stream("POST", URL + request.path, json=request.body, headers=sent) as response:
                attempt.start_reply(number, response.status_code, response.headers)
                async for received in response.aiter_raw():
                    output = attempt.feed(number, received)
                    while output.more:  # a few compressed bytes may become many
                        yield output.data
                        output = attempt.resume(number)
                    if output.data:
                        yield output.data
                    if not attempt.is_reading(number):
                        break
        except httpx.TransportError as error:
            cut = dragoman.Fault("upstream_unreachable", f"provider: {error or type(error).__name__}")
        if data := attempt.close(number, cut).data:
            yield data


async def read_body(receive: Callable[[], Awaitable[Message]]) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


def begin(status: int, headers: Mapping[str, str]) -> Message:
    lines = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": lines}
