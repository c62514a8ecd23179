"""Providers that misbehave, seen by the clients of every dialect: one status, one error in the client's own form, never
the provider's bytes; and, once something was sent, the dialect's own way to end a stream with an error.

Upstreams made of raw bytes, and an OpenAI client: tests/proxy/upstreams/test_bad_upstreams.py.
"""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple

import pytest

from dragoman.adapters.pipeline import reply_reader
from dragoman.contract.json_types import JsonValue
from tests.dialects import DIALECTS

from .client import Answer, Client, MakeClient
from .house import BuildHouse, House

SHORT = {"first_token": 2.0, "inter_token": 1.2, "total": 6.0}
LEAKS = (b"SSH-2.0", b"/_fake", b"127.0.0.1", b"smuggled", b"sk-upstream")


class Outcome(NamedTuple):
    """What becomes of a behaviour: the kind and the code of the fault of a whole reply, and the code of the event that
    ends a stream; no such code where a stream fails before its first event, with the same fault."""

    kind: str
    code: str
    late: str = ""


INVALID, TIMEOUT = "upstream_invalid_response", "upstream_timeout"
TRUNCATED, TOO_LARGE = "upstream_truncated", "upstream_response_too_large"

ROWS = {
    "cut-before": Outcome(INVALID, "upstream_disconnected"),
    "garbage": Outcome(INVALID, "upstream_protocol_error"),
    "cut-body": Outcome(INVALID, TRUNCATED, TRUNCATED),
    "cut": Outcome(INVALID, TRUNCATED, TRUNCATED),
    "cut-fin": Outcome(INVALID, TRUNCATED, TRUNCATED),
    "cut-clean": Outcome(INVALID, TRUNCATED, TRUNCATED),
    "malformed-event": Outcome(INVALID, "upstream_invalid_json", "upstream_invalid_event"),
    "bare-text": Outcome(INVALID, "upstream_invalid_json", "upstream_timeout"),
    "html": Outcome(INVALID, "upstream_invalid_json"),
    "not-json": Outcome(INVALID, "upstream_invalid_json"),
    "empty": Outcome(INVALID, "upstream_invalid_json"),
    "redirect": Outcome(INVALID, "upstream_redirect"),
    "huge-header": Outcome(INVALID, "upstream_protocol_error"),
    "two-lengths": Outcome(INVALID, "upstream_protocol_error"),
    "folded-header": Outcome(INVALID, "upstream_invalid_response"),
    "extra-bytes": Outcome(INVALID, "upstream_invalid_response"),
    "status-401": Outcome("upstream_auth_failed", "upstream_auth_failed"),
    "status-403": Outcome("permission", "permission_denied"),
}
SILENT = {
    "hang": Outcome(TIMEOUT, "upstream_timeout"),
    "hang-after-headers": Outcome(TIMEOUT, "upstream_timeout"),
    "stall": Outcome(TIMEOUT, "upstream_timeout", "upstream_idle_timeout"),
}


@pytest.fixture
def clients(house: House, client_of: MakeClient) -> list[Client]:
    return [client_of(house, dialect) for dialect in DIALECTS]


async def asked(client: Client, provider: str, behaviour: str, stream: bool) -> tuple[Answer, str]:
    """The answer, and the code of its fault in the log."""
    mark = f"{client.dialect}.{provider}.{behaviour.partition('(')[0]}.{stream}"
    headers = {"x-request-id": mark}
    answer = await client.ask(provider, f"fake:{behaviour}", stream=stream, headers=headers)
    assert answer.headers["x-request-id"] == mark
    for _ in range(200):
        if (line := client.house.line(mark)) is not None:
            return answer, line.get("fault", "")
        await asyncio.sleep(0.005)
    raise AssertionError(f"no line in the log tells of {mark}")


async def check_rows(clients: list[Client], table: dict[str, Outcome], subtests: pytest.Subtests) -> None:
    rows = [
        (client, provider, name, stream)
        for client in clients
        for provider in DIALECTS
        for name in table
        for stream in (False, True)
    ]
    answers = await asyncio.gather(*(asked(*row) for row in rows))
    for (client, provider, behaviour, stream), (answer, code) in zip(rows, answers, strict=True):
        row = table[behaviour]
        with subtests.test(client=client.dialect, provider=provider, name=behaviour, stream=stream):
            assert code == (row.late if stream and row.late else row.code)
            if stream and row.late:
                assert client.check_broken(answer), "what came before the failure was delivered"
            else:
                client.check_error(answer, row.kind)
            assert not [leak for leak in LEAKS if leak in answer.raw]


async def test_every_misbehaviour_of_every_provider(clients: list[Client], subtests: pytest.Subtests) -> None:
    await check_rows(clients, ROWS, subtests)
    for provider, fake in clients[0].house.fakes.items():
        assert "/_fake/canary" not in {request.path for request in fake.requests}
        assert (await clients[0].ask(provider)).status == 200


async def test_every_silence_of_every_provider(
    build: BuildHouse, client_of: MakeClient, subtests: pytest.Subtests
) -> None:
    house = await build(timeouts=SHORT)
    await check_rows([client_of(house, dialect) for dialect in DIALECTS], SILENT, subtests)


async def test_nothing_listens(build: BuildHouse, client_of: MakeClient) -> None:
    nowhere = {name: {"dialect": name, "base_url": "http://127.0.0.1:1"} for name in DIALECTS}
    house = await build(providers=nowhere)
    clients = [client_of(house, dialect) for dialect in DIALECTS]
    rows = [(client, name, stream) for client in clients for name in DIALECTS for stream in (False, True)]
    answers = await asyncio.gather(*(asked(client, name, "text", stream) for client, name, stream in rows))
    for (client, *_), (answer, code) in zip(rows, answers, strict=True):
        assert code == "upstream_unreachable"
        client.check_error(answer, INVALID)
        assert b"127.0.0.1" not in answer.raw


@pytest.fixture
def client(house: House, client_of: MakeClient, dialect: str) -> Client:
    return client_of(house, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_and_a_whole_reply_become_what_the_client_asked_for(client: Client, dialect: str) -> None:
    for provider in DIALECTS:
        events = client.check_events(await client.ask(provider, "fake:json-for-stream", stream=True))
        assert [choice["finish_reason"] for event in events for choice in event["choices"]][-1]
        answer = await client.ask(provider, "fake:stream-for-json")
        assert (answer.status, answer.json["object"]) == (200, "chat.completion"), answer.raw
        assert answer.json["choices"][0]["message"]["content"]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_error_in_a_reply_that_claims_success(client: Client, dialect: str) -> None:
    """The error's own words tell its kind; Azure's error also tells its status."""
    for stream in (False, True):
        for provider in DIALECTS:
            kind = "upstream_error" if provider == "azure" else INVALID
            client.check_error((await asked(client, provider, "first-error", stream))[0], kind, "on purpose")
        client.check_error((await asked(client, "databricks", "first-error(status=429)", stream))[0], "rate_limit")
        answer, _ = await asked(client, "mindie", "first-error(status=503)", stream)
        client.check_error(answer, "upstream_unavailable")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_replies_without_bounds(client: Client, dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_reader, "REPLY_LIMIT", 300_000)
    for behaviour in ("huge-body(size=1)", "gzip-bomb(size=1)", "huge-event(size=1)"):
        answer, code = await asked(client, "openai", behaviour, False)
        client.check_error(answer, INVALID)
        assert code == TOO_LARGE
    answer, code = await asked(client, "openai", "huge-event", True)
    assert client.check_broken(answer)
    assert code == TOO_LARGE
    assert client.check_broken((await asked(client, "openai", "gzip-bomb(size=1)", True))[0])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_5xx_status_is_kept(client: Client, dialect: str) -> None:
    """For MindIE's clients too: only what the proxy found out itself has a status of MindIE's own server."""
    for provider in DIALECTS:
        for status, kind in ((500, "upstream_error"), (502, INVALID), (504, "upstream_timeout")):
            for stream in (False, True):
                answer, _ = await asked(client, provider, f"status-{status}", stream)
                client.check_error(answer, kind, status=status)


RETRY_AFTER = {"2": "2", "0.5": "1", "soon": None, "-1": None, "1000000": "3600"}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_how_long_to_wait(build: BuildHouse, client_of: MakeClient, dialect: str) -> None:
    client = client_of(await build(retries={"attempts": 1}), dialect)
    for provider in DIALECTS:
        for given, told in RETRY_AFTER.items():
            for stream in (False, True):
                answer, _ = await asked(client, provider, f"rate-limit(retry_after={given})", stream)
                client.check_error(answer, "rate_limit")
                assert answer.headers.get("retry-after") == told
        answer, _ = await asked(client, provider, "status-503(retry_after=7)", False)
        client.check_error(answer, "upstream_unavailable")
        assert answer.headers["retry-after"] == "7"


# The providers' own ways to say what is wrong: kind, the status for an OpenAI client, the parameter, words that stay.
OWN_WAYS: dict[str, tuple[str, int, str | None, tuple[str, ...]]] = {
    "azure-422-a": ("unsupported_parameter", 422, "user", ()),
    "azure-422-b": ("unsupported_parameter", 422, "user", ()),
    "azure-422-c": ("unsupported_parameter", 422, "user", ()),
    "azure-422-d": ("extra_parameter", 422, "user", ()),
    "azure-422-e": ("extra_parameter", 422, "user", ()),
    "azure-422-f": ("extra_parameter", 422, "user", ()),
    "azure-400-extra": ("extra_parameter", 400, "user", ()),
    "azure-400-numeric": ("extra_parameter", 400, "user", ()),
    "azure-content-filter": ("content_filter", 400, "messages", ("filtered",)),
    "azure-content-filter-nested": ("content_filter", 400, None, ("filtered",)),  # it names `prompt`, in chat
    "azure-generic": ("upstream_error", 500, "model", ("fake service failed",)),
    "databricks-external": ("invalid_request", 400, None, ("user: Extra inputs",)),
    "databricks-text": ("upstream_error", 500, None, ("the fake endpoint failed",)),
    "databricks-html": (INVALID, 502, None, ("upstream connect error",)),
    "databricks-empty": ("upstream_unavailable", 503, None, ("503",)),
    "databricks-unknown-field": ("extra_parameter", 400, "user", ("unknown field",)),
    "mindie-422": ("unprocessable", 422, "top_p", ("(0.0,1.0]",)),
    "mindie-422-type": ("unprocessable", 422, "top_p", ()),
    "mindie-500-text": ("upstream_error", 500, None, ("Server internal error",)),
    "mindie-404-empty": ("not_found", 404, None, ()),
    "mindie-413": ("too_large", 413, None, ("40MB",)),
    "openai-error": ("invalid_request", 400, "temperature", ()),
    "openai-string-error": ("invalid_request", 400, None, ("user is wrong",)),
}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_is_wrong_is_said_in_the_clients_way(
    client: Client, dialect: str, subtests: pytest.Subtests
) -> None:
    for behaviour, (kind, status, param, words) in OWN_WAYS.items():
        for stream in (False, True):
            with subtests.test(behaviour=behaviour, stream=stream):
                answer = await client.ask(behaviour.partition("-")[0], f"fake:{behaviour}", stream=stream)
                kept = dialect == "openai" or status >= 500
                client.check_error(answer, kind, *words, status=status if kept else None)
                check_place(client, answer.json, param)


def check_place(client: Client, body: JsonValue, param: str | None) -> None:
    """The parameter stands where the dialect has a place for it, else in the message."""
    if client.dialect == "openai":
        assert body["error"]["param"] == param
        assert isinstance(body["error"]["code"], str | None)
    elif client.dialect == "azure" and "detail" in body and isinstance(body["detail"], dict):
        assert body["detail"]["loc"] == ["body", param]
    elif client.dialect == "azure" and "param" in body:
        assert body["param"] == param
    elif param is not None:
        assert param in json.dumps(body)
