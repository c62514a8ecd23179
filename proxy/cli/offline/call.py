"""Sending one request through the whole proxy, in this process, and telling what happens as it happens.

The answer goes to standard output, the rest to standard error.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from random import Random, SystemRandom
from typing import Any

import aiohttp
import orjson
from yarl import URL

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import KINDS, Fault
from dragoman.proxy.config.models import Config, Drain
from dragoman.proxy.server.lifecycle import start

from .explain import Inquiry, explain, key_of
from .plans import plan_lines
from .screen import pretty, put, put_json, say
from .texts import Line, head_lines

__all__ = ["call"]

_SSE = "text/event-stream"
_OF_TRANSPORT = frozenset({"date", "server", "connection", "content-length", "transfer-encoding"})
_EXIT = {"client": 1, "provider": 3, "proxy": 3}
_UNREAD = 3


async def call(config: Config, inquiry: Inquiry) -> int:
    """The exit status: 0 for a whole answer, 1 for a client's fault, 3 for a provider's or the network's.

    What is shown first and what is sent have the same seed, so both draw the same targets. Raises Misuse, CannotServe.
    """
    seed = SystemRandom().getrandbits(64)
    say(_asked(inquiry))
    say(plan_lines(await explain(config, inquiry, Random(seed)), config))
    say([("", "")])
    log = io.BytesIO()
    running = await start(_alone(config, inquiry.key), log_stream=log, random=Random(seed))
    try:
        status = await _sent(running.url, config, inquiry)
    finally:
        await running.stop()
    line = _exchange(log.getvalue())
    say(_told(line))
    return _exit_code(status, line)


def _alone(config: Config, key: str | None) -> Config:
    """The same configuration for one caller on this machine; without a key nobody is asked for one."""
    drain = Drain(delay=0.001, timeout=5.0)
    server = config.server.model_copy(update={"host": "127.0.0.1", "port": 0, "drain": drain})
    return config.model_copy(update={"server": server, "keys": config.keys if key else []})


async def _sent(url: str, config: Config, inquiry: Inquiry) -> int:
    """The status of the answer, once all of it is shown; 0 where the connection broke."""
    address, headers, data = _request(config, inquiry)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            async with session.post(URL(url + address, encoded=True), data=data, headers=headers) as response:
                await _show(response)
                return response.status
        except aiohttp.ClientError as error:
            say([("bold red", f"the connection broke: {type(error).__name__}")])
            return 0


def _request(config: Config, inquiry: Inquiry) -> tuple[str, dict[str, str], bytes]:
    headers = {"content-type": "application/json", **inquiry.asking.headers}
    key = key_of(config, inquiry.key)
    if key is not None:
        headers["authorization"] = f"Bearer {key.key.get_secret_value()}"
    try:
        body = inquiry.body()
    except Fault:  # the proxy shall say so itself
        return inquiry.address({}), headers, inquiry.data
    return inquiry.address(body), headers, orjson.dumps(body)


async def _show(response: aiohttp.ClientResponse) -> None:
    shown = {name: value for name, value in response.headers.items() if name.lower() not in _OF_TRANSPORT}
    say(head_lines(response.status, shown))
    if response.content_type == _SSE:
        async for piece in response.content.iter_any():
            put(piece)
        return
    data = await response.read()
    try:
        put_json(orjson.loads(data))
    except orjson.JSONDecodeError:
        put(data)


def _asked(inquiry: Inquiry) -> Iterator[Line]:
    """The request as it was given."""
    try:
        text = pretty(inquiry.body())
    except Fault:
        text = inquiry.data.decode("utf-8", "replace")
    yield "bold", f"{inquiry.speech.dialect.name}/{inquiry.speech.protocol} request"
    yield "", text
    yield "", ""


def _exchange(log: bytes) -> JsonObject:
    """The proxy's own line about the exchange."""
    lines: list[JsonObject] = [orjson.loads(line) for line in log.splitlines()]
    return next((line for line in lines if line["event"] == "exchange"), {})


def _told(line: Mapping[str, Any]) -> Iterator[Line]:
    """Who answered, after how many attempts, how long it took, and how it ended."""
    if "target" in line:
        yield "", f"asked {line['target']}, attempts: {line['attempts']}"
    first = f", first event after {line['first_token_ms']:.1f} ms" if "first_token_ms" in line else ""
    events = f", {line['events']} events" if line.get("stream") else ""
    if line:
        yield "", f"took {line['duration_ms']:.1f} ms{first}{events}"
    if "fault" in line:
        yield "bold red", f"error: {line['message']}"
        yield "", f"  kind: {line['fault_kind']}, code {line['fault']}"


def _exit_code(status: int, line: Mapping[str, Any]) -> int:
    if "fault_kind" in line:
        return _EXIT[KINDS[line["fault_kind"]][0]]
    if 200 <= status < 300:
        return 0
    return 1 if 400 <= status < 500 else _UNREAD
