"""The anthropic package over dragoman: requests, streams, counts and models."""

from __future__ import annotations

import anthropic
import pytest

from .conftest import EVENTS, MESSAGE, Build, House, MessagesServer

ASK = {"model": "m", "max_tokens": 16, "messages": [{"role": "user", "content": "Hi"}]}


async def test_a_whole_message(house: House) -> None:
    message = await house.client.messages.create(**ASK)
    assert message.content[0].text == "Hello!"
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 1)
    asked = house.asked
    assert (asked.path, asked.body) == ("/v1/messages", {**ASK, "model": "claude"})
    assert asked.headers["x-api-key"] == "sk-upstream-key" and "authorization" not in asked.headers


async def test_the_stream_helper_ends_with_the_final_message(house: House) -> None:
    async with house.client.messages.stream(**ASK) as stream:
        texts = [text async for text in stream.text_stream]
        final = await stream.get_final_message()
    assert texts == ["Hel", "lo!"]
    assert final.content[0].text == "Hello!" and final.stop_reason == "end_turn"


async def test_raw_events_have_their_names(house: House) -> None:
    raw = await house.client.messages.with_raw_response.create(**ASK, stream=True)
    text = await raw.http_response.aread()
    names = [line.removeprefix("event: ") for line in text.decode().splitlines() if line.startswith("event: ")]
    assert names == [event["type"] for event in EVENTS]


async def test_the_id_of_a_request_is_in_the_header_that_the_package_reads(house: House) -> None:
    raw = await house.client.messages.with_raw_response.create(**ASK)
    assert raw.request_id == raw.headers["x-request-id"] == house.exchanges[0]["request_id"]


async def test_tokens_are_counted_by_a_provider_that_counts(house: House) -> None:
    count = await house.client.messages.count_tokens(model="m", messages=ASK["messages"])
    assert count.input_tokens == 42
    assert (house.asked.path, house.asked.body) == (
        "/v1/messages/count_tokens",
        {"model": "claude", "messages": ASK["messages"]},
    )


async def test_tokens_are_estimated_if_the_provider_has_no_such_address(build: Build) -> None:
    house = await build(MessagesServer(missing=frozenset({"/v1/messages/count_tokens"})))
    for _ in range(2):
        raw = await house.client.messages.with_raw_response.count_tokens(
            model="m", system="Be brief.", messages=[{"role": "user", "content": "x" * 350}]
        )
        assert "input_tokens" in raw.headers["x-dragoman-changes"]
        assert 100 < (await raw.parse()).input_tokens < 120
    assert len(house.server.asked) == 1  # the second time the provider is known not to have it


async def test_tokens_are_estimated_for_a_chat_provider_without_a_call(build: Build) -> None:
    house = await build(provider={"dialect": "openai", "protocols": ["chat"]})
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x" * 9000}}
    count = await house.client.messages.count_tokens(
        model="m", messages=[{"role": "user", "content": [{"type": "text", "text": "Hi"}, image]}]
    )
    assert 1600 < count.input_tokens < 1620
    assert house.server.asked == []


async def test_an_exact_policy_refuses_an_estimate(build: Build) -> None:
    house = await build(provider={"dialect": "openai", "policy": {"unsupported": "refuse-exactly"}})
    with pytest.raises(anthropic.BadRequestError, match="does not count tokens"):
        await house.client.messages.count_tokens(model="m", messages=ASK["messages"])


MODELS = {name: {"targets": [{"provider": "p", "model": name}]} for name in ("a", "b", "c", "*")}


async def test_models_are_listed_page_by_page(build: Build) -> None:
    house = await build(models=MODELS)
    assert [one.id async for one in house.client.models.list()] == ["a", "b", "c"]
    assert [one.id async for one in house.client.models.list(limit=1)] == ["a", "b", "c"]
    page = await house.client.models.list(before_id="c", limit=1)
    assert ([one.id for one in page.data], page.has_more) == (["b"], True)
    one = await house.client.models.retrieve("b")
    assert (one.id, one.type, one.display_name, one.lifecycle) == ("b", "model", "b", "active")
    assert one.created_at.year > 2020


async def test_errors_about_models_are_anthropic_s(build: Build) -> None:
    house = await build(models={"a": MODELS["a"]})
    with pytest.raises(anthropic.NotFoundError) as missing:
        await house.client.models.retrieve("zzz")
    assert missing.value.type == "not_found_error" and missing.value.request_id
    for limit in (0, 1001, 10**4000):
        with pytest.raises(anthropic.BadRequestError, match="limit"):
            await house.client.models.list(limit=limit)


async def test_openai_s_clients_get_openai_s_list_at_the_same_address(build: Build) -> None:
    house = await build(models={"a": MODELS["a"]})
    raw = await house.client.get(
        "/v1/models", cast_to=object, options={"headers": {"anthropic-version": anthropic.omit}}
    )
    assert raw["object"] == "list"  # type: ignore[index]


@pytest.mark.parametrize(
    "base", ["/anthropic", "/serving-endpoints/anthropic", "/ai-gateway/anthropic", "/azure/anthropic"]
)
async def test_other_addresses(house: House, base: str) -> None:
    client = house.client.copy(base_url=house.proxy.url + base)
    assert (await client.messages.create(**ASK)).content[0].text == "Hello!"
    assert (await client.messages.count_tokens(model="m", messages=ASK["messages"])).input_tokens == 42


GATEWAY = {"dialect": "databricks", "address": "ai-gateway"}


@pytest.mark.parametrize(
    ("provider", "path", "credentials"),
    [
        ({"dialect": "databricks", "protocols": ["messages"]}, "/serving-endpoints/anthropic", "authorization"),
        ({**GATEWAY, "protocols": ["messages"]}, "/ai-gateway/anthropic", "authorization"),
        ({"dialect": "azure", "address": "anthropic"}, "/anthropic", "x-api-key"),
        ({"dialect": "anthropic", "auth": "bearer"}, "", "authorization"),
    ],
)  # fmt: skip
async def test_providers_of_every_dialect_with_messages(
    build: Build, provider: dict[str, object], path: str, credentials: str
) -> None:
    house = await build(provider=provider)
    await house.client.messages.create(**ASK)
    asked = house.asked
    assert asked.path == f"{path}/v1/messages"
    assert "sk-upstream-key" in asked.headers[credentials]
    assert asked.headers["anthropic-version"] == "2026-10-21"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-api-key": "sk-known-1"}, 200),
        ({"authorization": "Bearer sk-known-1"}, 200),
        ({"authorization": "Bearer sk-known-1", "x-api-key": "unused"}, 200),
        ({"authorization": "Bearer sk-known-1", "x-api-key": "sk-known-2"}, 401),
        ({"x-api-key": "unused"}, 401),
        ({}, 401),
    ],
)
async def test_keys_come_in_either_header(build: Build, headers: dict[str, str], status: int) -> None:
    keys = [{"name": name, "key": f"sk-known-{name}"} for name in ("1", "2")]
    house = await build(keys=keys)
    left_out = {"authorization": anthropic.omit, "x-api-key": anthropic.omit}
    try:
        await house.client.messages.create(**ASK, extra_headers={**left_out, **headers})
    except anthropic.AuthenticationError as error:
        assert (error.status_code, error.type, status) == (401, "authentication_error", 401)
    else:
        assert status == 200
        assert "sk-known" not in str(house.asked.headers)


async def test_no_limit_is_filled_for_a_request_that_has_one(house: House) -> None:
    message = await house.client.messages.create(**ASK)
    assert message.model == MESSAGE["model"]
    assert house.asked.body["max_tokens"] == 16
