"""Keys of clients: which headers hold them, and which models they may use."""

from __future__ import annotations

from hashlib import sha256

import pytest
from pydantic import ValidationError

from dragoman.proxy.config.models import Key
from dragoman.proxy.config.values import parse_expiry
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

KEYS = [{"name": "all", "key": "sk-all"}, {"name": "few", "key": "sk-few", "models": ["gpt-*", "careful"]}]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer sk-wrong-canary"},
        {"Authorization": "Basic sk-all"},
        {"Authorization": "Bearer ' OR 1=1--"},
        {"api-key": "sk-al"},
        {"Authorization": "Bearer sk-all", "api-key": "sk-few"},
    ],
)
async def test_who_has_no_key_gets_nothing(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, headers: dict[str, str]
) -> None:
    up = await upstream(wire.ok)
    answer = await (await proxy(up, keys=KEYS)).ask(headers=headers)
    assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")
    assert b"canary" not in answer.text
    assert up.connections == 0


@pytest.mark.parametrize("name", ["Authorization", "api-key", "x-api-key"])
async def test_a_key_may_come_in_three_headers(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, name: str
) -> None:
    up = await upstream(wire.ok)
    value = "Bearer sk-all" if name == "Authorization" else "sk-all"
    assert (await (await proxy(up, keys=KEYS)).ask(headers={name: value})).status == 200


async def test_a_key_sees_its_models_only(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    up = await upstream(wire.ok, "keep")
    models = {name: {"targets": [{"provider": "p0"}]} for name in ("careful", "carefulx", "gpt-5")}
    p = await proxy(up, keys=KEYS, models=models)
    few = {"Authorization": "Bearer sk-few"}
    seen = {model: (await p.ask(model=model, headers=few)).status for model in models}
    assert seen == {"careful": 200, "carefulx": 404, "gpt-5": 200}
    message = (await p.ask(model="carefulxx", headers=few)).error["message"]
    assert message == "the model 'carefulxx' does not exist here; did you mean careful?"
    message = (await p.ask(model="other", headers=few)).error["message"]
    assert message == "the model 'other' does not exist here; GET /v1/models lists those that do"


def hash_of(key: str) -> str:
    return f"sha256:{sha256(key.encode()).hexdigest()}"


async def test_a_key_is_known_by_its_hash(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    keys = [{"name": "hashed", "key_hash": hash_of("sk-secret"), "metadata": {"team": "search"}}, *KEYS]
    p = await proxy(await upstream(wire.ok, "keep"), keys=keys)
    asked = ["sk-secret", "sk-all", "sk-wrong", hash_of("sk-secret"), hash_of("sk-secret").removeprefix("sha256:")]
    answers = [(await p.ask(headers={"Authorization": f"Bearer {key}"})).status for key in asked]
    assert answers == [200, 200, 401, 401, 401]
    first, second, *_ = await p.exchanges(5)
    assert (first["key"], first["key_metadata"]) == ("hashed", {"team": "search"})
    assert (second["key"], "key_metadata" in second) == ("all", False)


async def test_an_expired_key_is_refused_with_a_sentence(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire
) -> None:
    keys = [{"name": "old", "key": "sk-old", "expires": "2020-01-31"}, {"name": "new", "key": "sk-new"}]
    keys[1]["expires"] = "2999-01-31T12:00:00+01:00"
    p = await proxy(await upstream(wire.ok, "keep"), keys=keys)
    assert (await p.ask(headers={"x-api-key": "sk-new"})).status == 200
    answer = await p.ask(headers={"x-api-key": "sk-old"})
    assert (answer.status, answer.error["code"]) == (401, "api_key_expired")
    assert answer.error["message"] == "the API key old expired on 2020-02-01 00:00:00 UTC"


@pytest.mark.parametrize("key", [{"name": "a"}, {"name": "a", "key": "b", "key_hash": hash_of("b")}])
def test_a_key_has_one_secret(key: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="the key a has "):
        Key.from_values(key)


@pytest.mark.parametrize("text", ["2027-13-01", "tomorrow", "2027-01-31T12:00:00", "", "1"])
def test_an_expiry_names_a_day_or_a_time_with_its_zone(text: str) -> None:
    assert parse_expiry(text) is None


def test_a_date_means_its_end_in_utc() -> None:
    assert parse_expiry("1970-01-01") == 86400
    assert parse_expiry("1970-01-02T01:00:00+01:00") == 86400
