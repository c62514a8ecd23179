"""Anthropic's package over a fake provider of every dialect, in every protocol that a conversation can have."""

from __future__ import annotations

import pytest
from anthropic.types import TextBlock, ToolUseBlock

from dragoman.adapters import dialects
from dragoman.contract.fakes import FakeProvider

from .conftest import Build, House

CONVERSATIONS = ("messages", "chat", "responses")
PROVIDERS = [(name, protocol) for name in dialects for protocol in CONVERSATIONS if protocol in dialects[name].called]
TOOL = {"name": "weather", "description": "d", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}  # fmt: skip  # noqa: E501
over_every_provider = pytest.mark.parametrize(("dialect", "protocol"), PROVIDERS)


async def start(build: Build, fake: FakeProvider, protocol: str, **config: object) -> House:
    address = {"address": "anthropic"} if (fake.dialect, protocol) == ("azure", "messages") else {}
    provider = {"dialect": fake.dialect, "base_url": fake.base_url, "protocols": [protocol], **address}
    return await build(provider=provider, **config)


def ask(text: str) -> dict[str, object]:
    return {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": text}]}


@over_every_provider
async def test_a_message_and_a_stream(build: Build, dialect: str, protocol: str) -> None:
    async with FakeProvider(dialect) as fake:
        house = await start(build, fake, protocol)
        message = await house.client.messages.create(**ask("fake:text hello"))
        assert isinstance(message.content[0], TextBlock) and message.content[0].text
        assert message.stop_reason == "end_turn" and message.usage.output_tokens > 0
        async with house.client.messages.stream(**ask("fake:text hello")) as stream:
            final = await stream.get_final_message()
        assert (final.content[0].text, final.stop_reason) == (message.content[0].text, "end_turn")  # type: ignore[union-attr]
        assert len(fake.requests) == 2


@over_every_provider
async def test_a_tool_is_called(build: Build, dialect: str, protocol: str) -> None:
    async with FakeProvider(dialect) as fake:
        house = await start(build, fake, protocol, policy={"unsupported": "drop"})
        message = await house.client.messages.create(**ask("fake:call"), tools=[TOOL])
        if dialect == "mindie":  # its reference has no tools
            return
        (call,) = [block for block in message.content if isinstance(block, ToolUseBlock)]
        assert (call.name, message.stop_reason) == ("weather", "tool_use")
        assert isinstance(call.input, dict)


@pytest.mark.parametrize("protocol", ["messages", "chat"])
async def test_a_silent_stream_gets_pings(build: Build, protocol: str) -> None:
    async with FakeProvider("openai" if protocol == "chat" else "anthropic") as fake:
        house = await start(build, fake, protocol, server={"keep_alive": 0.1})
        asked = ask("fake:pause(delay=0.4) hello")
        raw = await house.client.messages.with_raw_response.create(**asked, stream=True)
        parts = (await raw.http_response.aread()).decode().split("\n\n")
        assert 'event: ping\ndata: {"type": "ping"}' in parts
        assert parts[0].startswith("event: message_start") and parts[-2].startswith("event: message_stop")
        async with house.client.messages.stream(**asked) as stream:
            assert (await stream.get_final_message()).stop_reason == "end_turn"


async def test_a_limit_is_filled_in_for_a_chat_client(build: Build) -> None:
    async with FakeProvider("anthropic") as fake:
        house = await start(build, fake, "messages")
        body = {"model": "m", "messages": [{"role": "user", "content": "fake:text hi"}]}
        reply = await house.client.post("/v1/chat/completions", cast_to=object, body=body)
        assert reply["choices"][0]["finish_reason"] == "stop"  # type: ignore[index]
        assert fake.requests[0].body["max_tokens"] > 0
        assert "max_tokens" in str(house.exchanges[0]["changes"])


async def test_a_session_of_claude_code_stays_at_one_target(build: Build) -> None:
    async with FakeProvider("anthropic") as one, FakeProvider("anthropic") as other:
        providers = {
            name: {"dialect": "anthropic", "base_url": fake.base_url} for name, fake in (("a", one), ("b", other))
        }
        targets = [{"provider": name, "model": "claude"} for name in providers]
        house = await build(providers=providers, models={"m": {"targets": targets, "balance": "sticky"}})
        for number in range(8):
            for _ in range(2):
                await house.client.messages.create(**ask("hi"), metadata={"user_id": f"session {number}"})
        sessions = [{request.body["metadata"]["user_id"] for request in fake.requests} for fake in (one, other)]
        assert not sessions[0] & sessions[1]
        assert all(sessions)
