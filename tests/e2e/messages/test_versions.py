"""The versions and the betas of requests: what is refused, and what providers are called with."""

from __future__ import annotations

import aiohttp
import anthropic
import pytest
from multidict import CIMultiDict

from .conftest import Build, House

ASK = {"model": "m", "max_tokens": 16, "messages": [{"role": "user", "content": "Hi"}]}
OLD, NEW = "2023-06-01", "2026-10-21"


@pytest.mark.parametrize("version", [OLD, NEW])
async def test_a_provider_is_called_with_the_client_s_version(house: House, version: str) -> None:
    await house.client.messages.create(**ASK, extra_headers={"anthropic-version": version})
    assert house.asked.headers["anthropic-version"] == version


@pytest.mark.parametrize("version", ["2023-01-01", "2026-10-22", "latest", ""])
async def test_an_unknown_version_is_refused(house: House, version: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match="anthropic-version") as caught:
        await house.client.messages.create(**ASK, extra_headers={"anthropic-version": version})
    assert caught.value.type == "invalid_request_error"
    assert house.server.asked == []


async def test_a_missing_version_is_refused_except_at_databricks_addresses(house: House) -> None:
    without = {"anthropic-version": anthropic.omit}
    with pytest.raises(anthropic.BadRequestError, match="anthropic-version: header is required"):
        await house.client.messages.create(**ASK, extra_headers=without)
    client = house.client.copy(base_url=f"{house.proxy.url}/serving-endpoints/anthropic")
    await client.messages.create(**ASK, extra_headers=without)
    assert house.asked.headers["anthropic-version"] == OLD


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
async def test_the_later_version_refuses_sampling(house: House, name: str) -> None:
    asked = {**ASK, "extra_body": {name: 1}}
    with pytest.raises(anthropic.BadRequestError, match=name):
        await house.client.messages.create(**asked)
    await house.client.messages.create(**asked, extra_headers={"anthropic-version": OLD})
    assert house.asked.body[name] == 1 and house.asked.headers["anthropic-version"] == OLD


async def test_a_chat_client_s_temperature_asks_for_the_earlier_version(build: Build) -> None:
    house = await build(provider={"api_version": NEW})
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    await house.client.post("/v1/chat/completions", cast_to=object, body=body)
    await house.client.post("/v1/chat/completions", cast_to=object, body={**body, "temperature": 0.5})
    first, second = house.server.asked
    assert (first.headers["anthropic-version"], second.headers["anthropic-version"]) == (NEW, OLD)
    assert second.body["temperature"] == 0.5


async def test_betas_may_come_in_several_lines(build: Build) -> None:
    house = await build()
    headers = CIMultiDict([("anthropic-version", OLD), ("anthropic-beta", "a-1"), ("anthropic-beta", "b-2,c-3")])
    async with aiohttp.ClientSession(headers=headers) as session:
        reply = await session.post(f"{house.client.base_url}/v1/messages", json=dict(ASK))
        assert reply.status == 200
    assert house.asked.headers["anthropic-beta"] == "a-1,b-2,c-3"


async def test_betas_reach_anthropic_and_nobody_else(build: Build) -> None:
    headers = {"anthropic-beta": "context-1m-2025-08-07,news-2030-01-01"}
    house = await build()
    await house.client.messages.create(**ASK, extra_headers=headers)
    assert house.asked.headers["anthropic-beta"] == headers["anthropic-beta"]
    for provider in ({"dialect": "databricks", "protocols": ["messages"]}, {"dialect": "openai"}):
        other = await build(provider=provider)
        if provider["dialect"] == "databricks":
            await other.client.messages.create(**ASK, extra_headers=headers)
        else:
            with pytest.raises(anthropic.APIStatusError):  # the server answers with a message
                await other.client.messages.create(**ASK, extra_headers=headers)
        assert "anthropic-beta" not in other.asked.headers
        [change] = [one for one in other.exchanges[0]["changes"] if one.get("before") == "anthropic-beta"]
        assert (change["action"], change["weight"]) == ("dropped", "form")


async def test_a_thread_is_refused_with_the_error_that_the_package_recovers_from(house: House) -> None:
    with pytest.raises(anthropic.BadRequestError, match="thread") as caught:
        await house.client.beta.messages.create(**ASK, thread={"type": "create"})
    assert caught.value.error_code == "thread_unsupported_request"
    assert type(caught.value).__name__ == "ThreadUnsupportedRequestError"


async def test_the_tool_runner_goes_on_without_a_thread(house: House) -> None:
    @anthropic.beta_async_tool
    async def weather(city: str) -> str:
        """The weather.

        Args:
          city: The city.
        """
        return f"sunny in {city}"

    runner = house.client.beta.messages.tool_runner(**ASK, tools=[weather])
    final = await runner.until_done()
    assert final.content[0].text == "Hello!"
    assert "thread" not in house.asked.body
    assert house.asked.body["tools"][0]["name"] == "weather"


@pytest.mark.parametrize("betas", ["a b", "x" * 101, "a;b", '"a"'])
async def test_what_is_no_name_of_a_beta_is_refused(house: House, betas: str) -> None:
    with pytest.raises(anthropic.BadRequestError, match="anthropic-beta: not the name of a beta"):
        await house.client.messages.create(**ASK, extra_headers={"anthropic-beta": betas})
    assert house.server.asked == []


async def test_betas_are_written_in_one_form(house: House) -> None:
    await house.client.messages.create(**ASK, extra_headers={"anthropic-beta": "a-1 ,, b-2"})
    assert house.asked.headers["anthropic-beta"] == "a-1,b-2"
