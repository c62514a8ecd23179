"""The whole way: an OpenAI client, the proxy, and a fake provider of each dialect."""

from __future__ import annotations

import pytest

from dragoman.adapters import dialects as real
from dragoman.contract.fakes import FakeProvider
from tests.dialects import DIALECTS
from tests.proxy.running_proxy import Proxy, StartProxy


async def _proxy(proxy: StartProxy, fake: FakeProvider) -> Proxy:
    settings = {"dialect": fake.dialect, "base_url": fake.base_url, "api_key": fake.api_key}
    if fake.dialect == "azure":
        settings["api_version"] = "2024-05-01-preview"
    models = {"m": {"targets": [{"provider": "p0", "model": "fake-model"}]}}
    return await proxy(settings, speak=real, models=models)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_provider_answers(proxy: StartProxy, dialect: str) -> None:
    async with FakeProvider(dialect, api_key="sk-fake") as fake:
        p = await _proxy(proxy, fake)
        whole = await p.ask(temperature=0.5)
        assert whole.status == 200, whole.text
        choice = whole.json["choices"][0]
        assert (choice["message"]["role"], choice["finish_reason"]) == ("assistant", "stop")
        stream = await p.ask(stream=True, temperature=0.5)
        assert stream.status == 200, stream.text
        *chunks, done = stream.events
        parts = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
        assert done == "[DONE]"
        assert "".join(parts) == choice["message"]["content"]
        assert len(fake.requests) == 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_providers_errors_are_understood(proxy: StartProxy, dialect: str, stream: bool) -> None:
    async with FakeProvider(dialect, behaviour="rate-limit") as fake:
        p = await _proxy(proxy, fake)
        answer = await p.ask(stream=stream)
    assert (answer.status, answer.error["code"]) == (429, "rate_limit_exceeded")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stream_that_is_cut_is_never_a_success(proxy: StartProxy, dialect: str) -> None:
    async with FakeProvider(dialect, behaviour="cut") as fake:
        answer = await (await _proxy(proxy, fake)).ask(stream=True)
    assert answer.status == 200
    assert "error" in answer.events[-1]
    assert "[DONE]" not in answer.events


async def test_a_bad_request_goes_nowhere(proxy: StartProxy) -> None:
    async with FakeProvider("openai") as fake:
        answer = await (await _proxy(proxy, fake)).ask(temperature="hot")
        assert (answer.status, answer.error["param"]) == (400, "temperature")
        assert not fake.requests
