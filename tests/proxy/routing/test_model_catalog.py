"""Lists of models: what the providers behind patterns say about theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.faults import Fault
from dragoman.adapters.listing import ModelList
from dragoman.adapters.registry import dialects as registry
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.routing import model_catalog
from tests.proxy.running_proxy import Proxy, StartProxy


@pytest.fixture
def dialects() -> dict[str, Dialect]:
    return dict(registry)


async def list_names(proxy: Proxy, **headers: str) -> list[str]:
    async with proxy.session.get(f"{proxy.running.url}/v1/models", headers=headers) as response:
        assert response.status == 200
        return [model["id"] for model in (await response.json())["data"]]


def count_lists(fake: FakeProvider) -> int:
    return sum(request.method == "GET" for request in fake.requests)


@pytest.mark.parametrize("dialect", [name for name, one in registry.items() if one.model_list])
async def test_the_names_behind_a_pattern_are_listed(dialect: str, proxy: StartProxy) -> None:
    async with FakeProvider(dialect, api_key="sk-fake") as fake:
        key = {} if dialect == "mindie" else {"api_key": "sk-fake"}
        provider = {"dialect": dialect, "base_url": fake.base_url, **key}
        running = await proxy(provider, models={"own/*": {"targets": [{"provider": "p0", "strip": "own/"}]}})
        names = await list_names(running)
        assert names and all(name.startswith("own/fake") or "/" in name for name in names)
        assert await list_names(running) == names
        assert count_lists(fake) == 1, "the list is kept"


async def test_a_request_to_a_model_asks_for_no_list(proxy: StartProxy) -> None:
    async with FakeProvider("openai") as fake:
        running = await proxy(
            {"dialect": "openai", "base_url": fake.base_url}, models={"*": {"targets": [{"provider": "p0"}]}}
        )
        assert (await running.ask(model="any")).status == 200
        assert count_lists(fake) == 0


async def test_a_name_belongs_to_the_most_specific_pattern_and_a_fixed_target_adds_none(proxy: StartProxy) -> None:
    async with FakeProvider("openai") as fake:
        models: JsonObject = {
            "fake-m*": {"targets": [{"provider": "p0"}]},
            "*": {"targets": [{"provider": "p0", "model": "other"}]},
            "plain": {"targets": [{"provider": "p0"}]},
        }
        running = await proxy({"dialect": "openai", "base_url": fake.base_url}, models=models)
        names = await list_names(running)
        assert names == ["fake-model", "plain"]


async def test_models_that_a_key_may_not_use_stay_hidden(proxy: StartProxy) -> None:
    async with FakeProvider("openai") as fake:
        keys = [{"name": "a", "key": "k-all"}, {"name": "b", "key": "k-some", "models": ["x*"]}]
        provider = {"dialect": "openai", "base_url": fake.base_url}
        running = await proxy(provider, models={"*": {"targets": [{"provider": "p0"}]}}, keys=keys)
        assert await list_names(running, Authorization="Bearer k-all")
        assert await list_names(running, Authorization="Bearer k-some") == []


async def test_a_provider_that_does_not_answer_adds_no_names_and_is_logged(
    proxy: StartProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_catalog, "_PATIENCE", 0.01)
    running = await proxy(
        1, models={"*": {"targets": [{"provider": "p0"}]}, "plain": {"targets": [{"provider": "p0"}]}}
    )
    assert await list_names(running) == ["plain"]
    assert await list_names(running) == ["plain"]
    [line] = [line for line in running.lines if line["event"] == "model_list_failed"]
    assert (line["provider"], line["level"]) == ("p0", "warning")


def bad_lists() -> Iterator[bytes]:
    yield from (b"", b"{", b"[]", b"1", b'{"data": {}}', b'{"data": null}', b"\xff", b"[" * 100_000)


@pytest.mark.parametrize("body", [*bad_lists()], ids=lambda body: repr(body[:12]))
def test_a_reply_that_is_no_list_is_a_fault(body: bytes) -> None:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    with pytest.raises(Fault, match="no list of models"):
        ModelList("/models").read_names(parsed)


def test_items_without_a_name_are_left_out() -> None:
    body = {"endpoints": [{"name": "a"}, {"name": 1}, {}, None, "b", {"name": "c"}]}
    listed = registry["databricks"].model_list
    assert listed is not None and listed.read_names(body) == ["a", "c"]
