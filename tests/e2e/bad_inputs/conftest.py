"""What requests that are wrong have in common: how they are written, and what their answers must be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import pytest

from dragoman.contract.json_types import JsonValue
from tests.e2e.client import Client, MakeClient
from tests.e2e.house import BuildHouse

SERVED = (
    ("openai", "actual"),
    ("databricks", "actual"),
    ("azure", "actual"),
    ("mindie", "documented"),
    ("databricks", "documented"),
    ("azure", "documented"),
    ("mindie", "actual"),
)
KEY = "sk-canary-mine"
HELLO = {"role": "user", "content": "hello"}


class MakeLimitedClient(Protocol):
    """Makes a client of a house that takes small bodies, soon loses patience, and wants a key."""

    async def __call__(self, dialect: str, profile: str | None = None) -> Client: ...


class Case(NamedTuple):
    """A request, the kind of fault that it is, its parameter and code, and words of the answer."""

    kind: str
    code: str
    param: str | None
    body: bytes
    words: tuple[str, ...] = ()
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody alters it
    path: str = ""
    own: dict[str, str] = {}  # noqa: RUF012 - words of one dialect's answer


def text(**more: JsonValue) -> bytes:
    """A request with these parts; what is None is left out."""
    body = {"model": "openai", "messages": [HELLO], **more}
    return json.dumps({key: value for key, value in body.items() if value is not None}).encode()


NO_JSON = {"mindie": "Failed to parse request context to json: ", "databricks": "Bad request: json: "}


@pytest.fixture
async def make(build: BuildHouse, client_of: MakeClient) -> MakeLimitedClient:
    async def client(dialect: str, profile: str | None = None) -> Client:
        server = {
            "body_limit": 100_000,
            "body_timeout": 0.2,
            "profiles": {dialect: profile} if profile else {},
        }
        return client_of(await build(keys=[{"name": "me", "key": KEY}], server=server), dialect, KEY)

    return client


async def check_unharmed(client: Client) -> None:
    """No provider was asked, no secret was told, and the next request works."""
    house = client.house
    for fake in house.fakes.values():
        assert (fake.requests, fake.connections) == ([], 0)
    assert (await client.ask("mindie")).status == 200
    house.fakes["mindie"].requests.clear()
    house.fakes["mindie"].connections = 0
    for secret in (b"sk-canary", b"sk-upstream", b"Traceback"):
        assert secret not in house.log.getvalue()


async def check_cases(client: Client, cases: Iterable[Case], subtests: pytest.Subtests) -> None:
    """Each case gets its answer and harms nothing."""
    for case in cases:
        with subtests.test(code=case.code, body=case.body[:80]):
            answer = await client.send(case.body, case.path, case.headers)
            own = (case.own[client.dialect],) if client.dialect in case.own else ()
            body = client.check_error(answer, case.kind, *case.words, *own)
            check_body(client, case, body, answer.headers)
            for secret in (b"sk-canary", b"sk-upstream", b"Traceback"):
                assert secret not in answer.raw
            await check_unharmed(client)


def check_body(client: Client, case: Case, body: JsonValue, headers: Mapping[str, str]) -> None:
    """Every member of the body beside its words, which `check_error` has looked at."""
    if client.dialect == "openai":
        error = {key: value for key, value in body["error"].items() if key not in ("message", "type", "details")}
        assert error == {"param": case.param, "code": case.code}
        assert body["error"].get("details", {}).keys() <= {"value"}
    elif client.dialect == "azure":
        code = "parameter_not_supported" if case.kind == "unsupported_parameter" else case.code
        assert headers["x-ms-error-code"] == code
        if body["status"] == 422:
            assert body["detail"]["loc"] == ["body", case.param]
            assert body["detail"]["value"] in case.body.decode()
        elif body["status"] != 404:
            assert (body["code"], body["param"]) == (code, case.param)
    elif case.param is not None:
        assert case.param in body.get("message", body.get("error"))
    message = body.get("message") or body["error"]
    assert json.dumps(message).count("got ") <= 1
