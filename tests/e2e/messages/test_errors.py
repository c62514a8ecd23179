"""Errors as Anthropic's package sees them: classes, types, ids, retries."""

from __future__ import annotations

import anthropic
import pytest

from .conftest import EVENTS, Build, MessagesServer

ASK = {"model": "m", "max_tokens": 16, "messages": [{"role": "user", "content": "Hi"}]}


def refusing(status: int, kind: str, message: str, **headers: str) -> MessagesServer:
    reply = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_upstream"}
    return MessagesServer(status=status, reply=reply, headers=headers)


@pytest.mark.parametrize(
    ("status", "kind", "message", "error_class", "told"),
    [
        (400, "invalid_request_error", "max_tokens: too low", anthropic.BadRequestError, "invalid_request_error"),
        (401, "authentication_error", "invalid x-api-key", anthropic.InternalServerError, "api_error"),
        (402, "billing_error", "no credit", anthropic.PaymentRequiredError, "billing_error"),
        (400, "invalid_request_error", "credit balance is too low", anthropic.PaymentRequiredError, "billing_error"),
        (404, "not_found_error", "model: claude", anthropic.NotFoundError, "not_found_error"),
        (413, "request_too_large", "too large", anthropic.ContentTooLargeError, "request_too_large"),
        (429, "rate_limit_error", "slow down", anthropic.RateLimitError, "rate_limit_error"),
        (500, "api_error", "oops", anthropic.InternalServerError, "api_error"),
        (503, "api_error", "down", anthropic.ServiceUnavailableError, "api_error"),
        (504, "timeout_error", "late", anthropic.GatewayTimeoutError, "timeout_error"),
        (529, "overloaded_error", "Overloaded", anthropic.OverloadedError, "overloaded_error"),
    ],
)  # fmt: skip
async def test_a_provider_s_error_keeps_its_class(
    build: Build, status: int, kind: str, message: str, error_class: type[anthropic.APIStatusError], told: str
) -> None:
    house = await build(refusing(status, kind, message))
    with pytest.raises(error_class) as caught:
        await house.client.messages.create(**ASK)
    error = caught.value
    assert (error.type, type(error)) == (told, error_class)
    assert error.request_id == house.exchanges[0]["request_id"] == error.body["request_id"]  # type: ignore[index]
    if status != 401:
        assert message in error.api_message  # type: ignore[operator]


async def test_a_conversation_that_is_too_long_is_said_in_claude_code_s_words(build: Build) -> None:
    said = {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}
    server = MessagesServer(status=400, reply={"error": {**said, "type": "invalid_request_error"}})
    house = await build(server, provider={"dialect": "openai", "protocols": ["chat"]})
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        await house.client.messages.create(**ASK)


async def test_the_package_waits_as_the_provider_says_and_tries_again(build: Build) -> None:
    server = refusing(429, "rate_limit_error", "slow down", **{"retry-after": "0"})
    house = await build(server)
    client = house.client.copy(max_retries=2)
    with pytest.raises(anthropic.RateLimitError) as caught:
        await client.messages.create(**ASK)
    assert len(house.exchanges) == 3
    assert caught.value.response.headers["retry-after"] == "0"


async def test_a_reset_in_anthropic_s_headers_is_a_time_to_wait(build: Build) -> None:
    server = refusing(
        429,
        "rate_limit_error",
        "slow down",
        **{"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2999-01-01T00:00:00Z"},
    )
    house = await build(server)
    with pytest.raises(anthropic.RateLimitError) as caught:
        await house.client.messages.create(**ASK)
    assert caught.value.response.headers["retry-after"] == "3600"


async def test_limits_of_a_key_are_told_in_anthropic_s_headers(build: Build) -> None:
    keys = [{"name": "a", "key": "sk-client", "rate": {"requests_per_minute": 1, "tokens_per_minute": 1000}}]
    house = await build(keys=keys)
    raw = await house.client.messages.with_raw_response.create(**ASK)
    assert raw.headers["anthropic-ratelimit-requests-limit"] == "1"
    assert raw.headers["anthropic-ratelimit-requests-remaining"] == "0"
    assert raw.headers["anthropic-ratelimit-tokens-reset"].endswith("Z")
    with pytest.raises(anthropic.RateLimitError):
        await house.client.messages.create(**ASK)


async def test_an_error_in_a_stream_is_one_event_and_nothing_follows(build: Build) -> None:
    broken = [*EVENTS[:3], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}]
    house = await build(MessagesServer(events=broken))
    raw = await house.client.messages.with_raw_response.create(**ASK, stream=True)
    text = (await raw.http_response.aread()).decode()
    *before, last, rest = text.split("\n\n")
    assert rest == "" and last.startswith("event: error\n")
    assert not [event for event in before if "message_stop" in event or "event: error" in event]
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        async with house.client.messages.stream(**ASK) as stream:
            await stream.get_final_message()


@pytest.mark.parametrize("cut", range(1, 7))
async def test_a_stream_that_is_cut_ends_in_one_error(build: Build, cut: int) -> None:
    house = await build(MessagesServer(events=EVENTS[:cut]))
    raw = await house.client.messages.with_raw_response.create(**ASK, stream=True)
    text = (await raw.http_response.aread()).decode()
    ends = [line for line in text.splitlines() if line in ("event: error", "event: message_stop")]
    assert len(ends) == 1


async def test_an_unknown_address_is_answered_in_anthropic_s_form(build: Build) -> None:
    house = await build()
    with pytest.raises(anthropic.NotFoundError) as caught:
        await house.client.post("/v1/messages/batches", cast_to=object, body={})
    assert caught.value.type == "not_found_error" and caught.value.request_id


async def test_a_model_that_nobody_configured(build: Build) -> None:
    house = await build()
    with pytest.raises(anthropic.NotFoundError, match="zzz") as caught:
        await house.client.messages.create(**{**ASK, "model": "zzz"})
    assert caught.value.type == "not_found_error"


async def test_overload_of_the_proxy_is_529(build: Build) -> None:
    house = await build(server={"limits": {"in_flight": 1, "memory": 1024 * 1024}})
    with pytest.raises(anthropic.OverloadedError) as caught:
        await house.client.messages.create(**ASK)
    assert caught.value.type == "overloaded_error"
