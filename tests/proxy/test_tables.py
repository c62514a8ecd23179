"""Mishaps, routes, addresses, masks: what is data."""

from __future__ import annotations

import io
import json
import ssl
from dataclasses import replace
from typing import Any, get_args

import aiohttp
import pytest
from aiohttp.http_exceptions import BadHttpMessage

from dragoman.adapters import dialects as known
from dragoman.adapters.call import Call
from dragoman.adapters.faults import KINDS, Fault, Kind
from dragoman.adapters.routes import RouteTable
from dragoman.proxy.config.models import Provider, Timeouts
from dragoman.proxy.telemetry.log import Mask, logger
from dragoman.proxy.upstreams.credentials import NONE
from dragoman.proxy.upstreams.errors import ERRORS, chance_of, fault_of
from dragoman.proxy.upstreams.http import HttpUpstream

MISHAPS: list[tuple[BaseException, str, int]] = [
    (aiohttp.ConnectionTimeoutError("http://secret"), "upstream_connect_timeout", 504),
    (aiohttp.SocketTimeoutError("http://secret"), "upstream_timeout", 504),
    (aiohttp.ServerDisconnectedError(), "upstream_disconnected", 502),
    (aiohttp.ClientPayloadError("secret"), "upstream_truncated", 502),
    (aiohttp.ClientResponseError(None, (), status=400, message="secret"), "upstream_protocol_error", 502),  # type: ignore[arg-type]
    (aiohttp.ClientOSError(104, "Connection reset by peer"), "upstream_disconnected", 502),
    (aiohttp.ClientConnectionError("secret"), "upstream_protocol_error", 502),
    (BadHttpMessage("secret"), "upstream_protocol_error", 502),
    (ssl.SSLError(1, "secret"), "upstream_tls_failed", 502),
    (TimeoutError(), "upstream_timeout", 504),
    (ConnectionResetError(104, "reset"), "upstream_disconnected", 502),
]


@pytest.mark.parametrize(("error", "code", "status"), MISHAPS)
def test_faults_of_exceptions(error: BaseException, code: str, status: int) -> None:
    assert isinstance(error, ERRORS)
    fault = fault_of(error, "p")
    assert (fault.code, fault.status, fault.owner) == (code, status, "provider")
    assert fault.message.startswith("upstream p: ")


def test_an_alert_after_the_handshake() -> None:
    error = aiohttp.ClientOSError(1, "x")
    error.__cause__ = ssl.SSLError(1, "certificate required")
    assert fault_of(error, "p").code == "upstream_tls_failed"


def test_what_is_no_error_of_the_client() -> None:
    with pytest.raises(TypeError):
        fault_of(KeyError("x"), "p")


def test_every_kind_has_its_chance() -> None:
    elsewhere = {kind for kind in get_args(Kind) if chance_of(Fault(kind, "")).elsewhere}
    assert elsewhere == {kind for kind, (owner, _) in KINDS.items() if owner == "provider"} | {"request_timeout"}
    again = {code for code in ("upstream_unreachable", "upstream_disconnected", "upstream_tls_failed", "x")
             if chance_of(Fault("upstream_unreachable", "", code=code)).again}  # fmt: skip
    assert again == {"upstream_unreachable", "upstream_disconnected"}
    assert not chance_of(Fault("invalid_request", "", code="upstream_unreachable")).elsewhere


def test_what_is_served_follows_from_the_dialects(dialects: Any) -> None:
    one = dialects["openai"]
    every = {
        name: replace(dialect, served=dict.fromkeys(dialect.served, one.served["chat"]))
        for name, dialect in known.items()
    }
    routes = RouteTable(every, {"azure": "documented"})
    found = {}
    for path in (
        "/v1/chat/completions",
        "/openai/v1/chat/completions",
        "/serving-endpoints/chat/completions",
        "/serving-endpoints/m/invocations",
        "/databricks/serving-endpoints/m/invocations",
        "/azure/chat/completions",
        "/mindie/v1/chat/completions",
    ):
        route = routes.match(path)
        assert route is not None
        found[path] = (route.dialect.name, route.profile, route.strip_prefix(path))
    assert found == {
        "/v1/chat/completions": ("openai", "actual", "/v1/chat/completions"),
        "/openai/v1/chat/completions": ("openai", "actual", "/v1/chat/completions"),
        "/serving-endpoints/chat/completions": ("databricks", "actual", "/serving-endpoints/chat/completions"),
        "/serving-endpoints/m/invocations": ("databricks", "actual", "/serving-endpoints/m/invocations"),
        "/databricks/serving-endpoints/m/invocations": ("databricks", "actual", "/serving-endpoints/m/invocations"),
        "/azure/chat/completions": ("azure", "documented", "/chat/completions"),
        "/mindie/v1/chat/completions": ("mindie", "documented", "/v1/chat/completions"),
    }
    for path in ("/serving-endpoints//invocations", "/serving-endpoints/a/b/invocations", "/serving-endpoints/m"):
        assert routes.match(path) is None
    assert RouteTable(dialects, {}).match("/azure/chat/completions") is None


OPENAI = ": dragoman has no such API; to openai clients it serves /v1/chat/completions, /v1/responses, /v1/completions,"
UNKNOWN = {
    "/v1/chat/completion": "; did you mean /v1/chat/completions?",
    "/v1/chat/completions/": "; did you mean /v1/chat/completions?",
    "/v1/v1/chat/completions": "; did you mean /v1/chat/completions?",
    "/responses": "; did you mean /v1/responses?",
    "/v1/embedding": "; did you mean /v1/embeddings?",
    "/serving-endpoints/m/invocation": "; did you mean /serving-endpoints/{name}/invocations?",
    "/openai/deployments/m/images/generations": ": dragoman has no such API; to openai clients it serves "
    "/openai/deployments/{name}/chat/completions,",
    "/models/images/embeddings": ": dragoman has no such API; to azure clients it serves /models/chat/completions,",
    "/api/2.0/clusters/list": ": dragoman has no such API; to databricks clients it serves /serving-endpoints/",
    "/api/chat": OPENAI,
    "/.well-known/openid-configuration": OPENAI,
    "/": OPENAI,
    "": OPENAI,
}
APIS = """images/generations images/edits audio/speech audio/transcriptions moderations files uploads batches assistants
threads threads/t/messages realtime realtime/sessions realtime/client_secrets conversations vector_stores
fine_tuning/jobs evals containers videos responses/compact responses/input_tokens messages complete rerank"""


@pytest.mark.parametrize("path", [*UNKNOWN, *(f"/v1/{api}" for api in APIS.split())])
def test_who_asks_for_another_api_hears_what_is_served(path: str) -> None:
    fault = RouteTable(known, {}).unknown_path(path)
    assert (fault.status, fault.code) == (404, "unknown_url")
    assert fault.message.startswith("nothing is served at this address" + UNKNOWN.get(path, OPENAI))


PATHS = {
    "/chat/completions": True,
    "/serving-endpoints/a%2Fb/invocations": True,
    "/serving-endpoints/a..b/invocations": True,
    "/serving-endpoints/../admin": False,
    "/serving-endpoints/%2e%2E/admin": False,
    "/serving-endpoints/./admin": False,
    "/a/..": False,
    "/a?b=c": False,
    "/a#b": False,
    "/a b": False,
    "/a\\b": False,
    "/a%5Cb": False,
    "/a%00b": False,
    "/a%zz": False,
    "/a\r\nX: y": False,
    "": False,
    "http://evil/": False,
    "@evil/": False,
}


@pytest.mark.parametrize("path", PATHS)
async def test_addresses_are_joined_and_never_normalised(path: str) -> None:
    provider = Provider(dialect="openai", base_url="https://host/base/")
    up = HttpUpstream("p", provider, Timeouts(), NONE)
    try:
        if PATHS[path]:
            assert up._target(path, "a=b") == f"/base{path}?a=b"
        else:
            with pytest.raises(Fault, match="cannot be part of an address"):
                up._target(path, "")
    finally:
        await up.close()


async def test_what_could_end_a_header_line_stays_here() -> None:
    provider = Provider(dialect="openai", base_url="https://host", headers={"X-Own": "provider"})
    up = HttpUpstream("p", provider, Timeouts(), NONE)
    try:
        forwarded = {"a": "1", "b": "x\r\nEvil: 1", "c": "\0", "d": "caf\udce9", "x-own": "client"}
        assert up._forward(forwarded) == b"a: 1\r\nd: caf\xe9\r\n"
    finally:
        await up.close()


def test_masks() -> None:
    mask = Mask(["sk-abcde", "sk-abcdefg", 'quote"quote', "", "error", "7 chars"])
    said = b'x sk-abcdefg sk-abcde quote"quote quote\\"quote quote\\\\\\"quote'
    assert mask(said) == b"x *** *** *** *** ***"
    assert mask(b'{"error": "7 chars are no secret"}') == b'{"error": "7 chars are no secret"}'
    assert Mask()(b"sk-abcde") == b"sk-abcde"


def test_logs_are_masked_in_every_format() -> None:
    for style in ("json", "console"):
        stream = io.BytesIO()
        log = logger(Mask(["sk-canary"]), style, "info", stream)
        try:
            raise ValueError("sk-canary")
        except ValueError as error:
            log.error("defect sk-canary", key="sk-canary", exc_info=error)
        log.debug("nothing")
        assert b"canary" not in stream.getvalue()
        assert b"ValueError: ***" in stream.getvalue()
        assert style == "console" or json.loads(stream.getvalue())["level"] == "error"


@pytest.mark.parametrize("style", ["json", "console"])
@pytest.mark.parametrize("level", ["debug", "info", "warning"])
def test_the_line_of_an_exchange_is_like_any_other(style: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.25)
    line = {"request_id": "r", "model": "sk-canary", "usage": {"total_tokens": 3}}
    short, long = io.BytesIO(), io.BytesIO()
    logger(Mask(["sk-canary"]), style, level, short).exchange(dict(line))
    logger(Mask(["sk-canary"]), style, level, long).info("exchange", **line)
    assert short.getvalue() == long.getvalue()
    assert (b"***" in short.getvalue()) is (level != "warning")


def test_nothing_is_critical() -> None:
    stream = io.BytesIO()
    logger(Mask(), "json", "critical", stream).error("x")
    assert stream.getvalue() == b""


def test_control_characters_stay_escaped_in_the_log() -> None:
    stream = io.BytesIO()
    logger(Mask(), "json", "info", stream).info("x", model="a\r\n\x1b[31mb")
    assert stream.getvalue().count(b"\n") == 1
    assert b"\x1b" not in stream.getvalue()


TASKS = {"vectors": "embeddings"}


@pytest.mark.parametrize(
    ("path", "body", "protocol"),
    [
        ("/serving-endpoints/m/invocations", {"messages": []}, "chat"),
        ("/databricks/serving-endpoints/m/invocations", {"input": [{}]}, "responses"),
        ("/serving-endpoints/chat/completions", {"input": [{}]}, "chat"),
        ("/serving-endpoints/responses", {"messages": []}, "responses"),
        ("/v1/chat/completions", {"input": [{}]}, "chat"),
    ],
)
def test_an_address_of_several_protocols_is_settled_by_the_body(path: str, body: Any, protocol: str) -> None:
    route = RouteTable(known, {}).match(path)
    assert route is not None
    asked = route.resolve(Call("POST", route.strip_prefix(path), body), TASKS.get)
    assert (asked.protocol, asked.dialect, asked.profile) == (protocol, route.dialect, route.profile)


def test_a_protocol_that_is_not_served_is_named() -> None:
    dialect = known["databricks"]
    fewer = replace(dialect, served={name: dialect.served[name] for name in ("chat", "responses")})
    route = RouteTable({"databricks": fewer}, {}).match("/serving-endpoints/vectors/invocations")
    assert route is not None
    with pytest.raises(Fault, match="asks for embeddings, which is not served here; served are: chat, responses"):
        route.resolve(Call("POST", "/serving-endpoints/vectors/invocations", {"input": [{}]}), TASKS.get)
