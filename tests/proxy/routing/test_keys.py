"""Keys of clients: which headers hold them, and which models they may use."""

from __future__ import annotations

import pytest

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
