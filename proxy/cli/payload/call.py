"""The command `call`: one request through the whole proxy, which runs in this process during the call.

The answer goes to standard output. Everything else goes to standard error, as it happens.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random, SystemRandom
from secrets import token_urlsafe
from typing import Any

import aiohttp
import orjson
from yarl import URL

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import KINDS, Fault
from dragoman.proxy.config.models import Config, Drain, Key
from dragoman.proxy.config.rules import SecretText
from dragoman.proxy.server.lifecycle import start
from dragoman.proxy.server.page.exchanges import create_content_mask, render_exchange
from dragoman.proxy.telemetry.mask import Mask, collect_secrets

from .client_request import ClientRequest
from .explain import explain, find_key
from .formatting import Line, format_response_head
from .output import format_json, print_json, print_lines, write_bytes
from .plan_formatting import format_plan
from .recorded_answers import format_raw_answers, format_reply_changes

__all__ = ["call"]

_SSE = "text/event-stream"
_TRANSPORT_HEADERS = frozenset({"date", "server", "connection", "content-length", "transfer-encoding"})
_EXIT_CODES = {"client": 1, "provider": 3, "proxy": 3}
_NO_ANSWER = 3
_MOST_RECORDED = 1024**3  # bytes of an exchange: a sixteenth of it, and a quarter of that for each message


async def call(config: Config, request: ClientRequest, *, raw: bool = False) -> int:
    """Print the plan, send the request, print the answer; if `raw`, also what providers answered, as it came. Returns
    the exit status: 0 for a complete answer, 1 for a fault of the client, 3 for one of the provider or the network.

    The plan and the call draw targets with the same seed, so both have the same targets. Raises UsageError,
    StartError.
    """
    seed = SystemRandom().getrandbits(64)
    print_lines(_format_client_request(request))
    print_lines(format_plan(await explain(config, request, Random(seed)), config))
    print_lines([("", "")])
    log = io.BytesIO()
    private = _create_private_config(config, request.key)
    proxy = await start(private, log_stream=log, random=Random(seed))
    proxy.inspector.configure("bodies" if raw else "heads", _MOST_RECORDED, is_used=True)
    try:
        status = await _send(proxy.url, private, request)
    finally:
        await proxy.stop()
    exchange = next(proxy.inspector.list_newest(), None)
    if exchange is not None and (recording := exchange.unfold_recording()) is not None:
        if raw:
            mask = create_content_mask(exchange, Mask(collect_secrets(private)))
            print_lines(format_raw_answers(render_exchange(exchange, mask)["tries"]))
        print_lines(format_reply_changes(recording))
    log_line = _find_exchange(log.getvalue())
    print_lines(_format_outcome(log_line))
    return _choose_exit_code(status, log_line)


def _create_private_config(config: Config, key: str | None) -> Config:
    """The same configuration for one client on this machine. Without a key, the proxy requires none. Keys of which only
    the hash is known become others."""
    drain = Drain(delay=0.001, timeout=5.0)
    server = replace(config.server, host="127.0.0.1", port=0, admin_port=None, drain=drain)
    known = [one for one in config.keys if one.key is not None]
    made = [_replace_key(one) for one in config.keys if one.key is None]
    return replace(config, server=server, keys=[*known, *made] if key else [])


def _replace_key(key: Key) -> Key:
    return replace(key, key=SecretText(token_urlsafe()), key_hash=None)


async def _send(url: str, config: Config, request: ClientRequest) -> int:
    """Send the request, and print the response. Returns its status, or 0 if the connection broke."""
    target, headers, data = _create_http_request(config, request)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            async with session.post(URL(url + target, encoded=True), data=data, headers=headers) as response:
                await _print_response(response)
                return response.status
        except aiohttp.ClientError as error:
            print_lines([("bold red", f"the connection broke: {type(error).__name__}")])
            return 0


def _create_http_request(config: Config, request: ClientRequest) -> tuple[str, dict[str, str], bytes]:
    """Target, headers and body."""
    headers = {"content-type": "application/json", **request.head.merge_headers(request.wire_format)}
    key = find_key(config, request.key)
    if key is not None and key.key is not None:
        headers["authorization"] = f"Bearer {key.key.get_secret_value()}"
    try:
        body = request.parse_body()
    except Fault:  # the proxy answers with this fault
        return request.target({}), headers, request.data
    return request.target(body), headers, orjson.dumps(body)


async def _print_response(response: aiohttp.ClientResponse) -> None:
    headers = {name: value for name, value in response.headers.items() if name.lower() not in _TRANSPORT_HEADERS}
    print_lines(format_response_head(response.status, headers))
    if response.content_type == _SSE:
        async for piece in response.content.iter_any():
            write_bytes(piece)
        return
    data = await response.read()
    try:
        print_json(orjson.loads(data))
    except orjson.JSONDecodeError:
        write_bytes(data)


def _format_client_request(request: ClientRequest) -> Iterator[Line]:
    try:
        text = format_json(request.parse_body())
    except Fault:
        text = request.data.decode("utf-8", "replace")
    yield "bold", f"{request.wire_format.label} request"
    yield "", text
    yield "", ""


def _find_exchange(log: bytes) -> JsonObject:
    """The log line of the exchange, empty if there is none."""
    lines: list[JsonObject] = [orjson.loads(line) for line in log.splitlines()]
    return next((line for line in lines if line["event"] == "exchange"), {})


def _format_outcome(log_line: Mapping[str, Any]) -> Iterator[Line]:
    """The last target, the number of attempts, the duration, and the fault if there is one."""
    if "target" in log_line:
        yield "", f"target {log_line['target']}, attempts: {log_line['attempts']}"
    first = f", first event after {log_line['first_token_ms']:.1f} ms" if "first_token_ms" in log_line else ""
    events = f", {log_line['events']} events" if log_line.get("stream") else ""
    if log_line:
        yield "", f"took {log_line['duration_ms']:.1f} ms{first}{events}"
    if "fault" in log_line:
        yield "bold red", f"error: {log_line['message']}"
        yield "", f"  kind: {log_line['fault_kind']}, code {log_line['fault']}"


def _choose_exit_code(status: int, log_line: Mapping[str, Any]) -> int:
    if "fault_kind" in log_line:
        return _EXIT_CODES[KINDS[log_line["fault_kind"]][0]]
    if 200 <= status < 300:
        return 0
    return 1 if 400 <= status < 500 else _NO_ANSWER
