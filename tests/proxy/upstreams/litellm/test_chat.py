"""Chat and Responses clients over a provider that speaks Anthropic's Messages."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest

from dragoman.contract.json_types import JsonObject

from .conftest import KEY, Messages, Proxy, StartProxy, Step, event, failed, message, started, stopped, text, tool

ASKED: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TOOL: JsonObject = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
WHOLE = message({"type": "text", "text": "hello"})
OVERLOADED = event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


def client_of(proxy: Proxy) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=proxy.url, api_key="none", max_retries=0)


async def test_reply(proxy: StartProxy, fake: Messages) -> None:
    fake.says(WHOLE)
    async with client_of(await proxy()) as client:
        reply = await client.chat.completions.create(**ASKED, max_tokens=5, extra_body={"top_k": 4})
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("hello", "stop")
    assert reply.usage is not None and (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (3, 7)
    [(path, headers, body)] = fake.requests
    assert (path, headers["x-api-key"]) == ("/v1/messages", KEY)
    assert (body["model"], body["max_tokens"], body["top_k"]) == ("claude", 5, 4)


async def test_stream_with_usage(proxy: StartProxy, fake: Messages) -> None:
    fake.says(started() + text("hel", "lo"), stopped())
    async with client_of(await proxy()) as client:
        stream = await client.chat.completions.create(**ASKED, stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "hello"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    usage = chunks[-1].usage
    assert not chunks[-1].choices and usage is not None and usage.completion_tokens == 7


async def test_unasked_usage_is_kept_back(proxy: StartProxy, fake: Messages) -> None:
    fake.says(started() + text("hel", "lo"), stopped())
    async with client_of(await proxy()) as client:
        chunks = [chunk async for chunk in await client.chat.completions.create(**ASKED, stream=True)]
    assert [len(chunk.choices) for chunk in chunks] == [1] * len(chunks)
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_tool_calls(proxy: StartProxy, fake: Messages) -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
    fake.says(message(block, reason="tool_use"))
    async with client_of(await proxy()) as client:
        reply = await client.chat.completions.create(**ASKED, tools=[TOOL])
    [call] = reply.choices[0].message.tool_calls or []
    assert (call.id, json.loads(call.function.arguments)) == ("toolu_1", {"city": "Oslo"})  # type: ignore[union-attr]
    assert reply.choices[0].finish_reason == "tool_calls"
    assert fake.requests[0][2]["tools"][0]["name"] == "weather"


async def test_streamed_tool_calls(proxy: StartProxy, fake: Messages) -> None:
    fake.says(started(), tool('{"city":', ' "Oslo"}'), stopped("tool_use"))
    async with client_of(await proxy()) as client:
        chunks = [chunk async for chunk in await client.chat.completions.create(**ASKED, tools=[TOOL], stream=True)]
    deltas = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or []]
    assert (deltas[0].id, deltas[0].function and deltas[0].function.name) == ("toolu_1", "weather")
    assert "".join(call.function.arguments or "" for call in deltas if call.function) == '{"city": "Oslo"}'


async def test_responses_client(proxy: StartProxy, fake: Messages) -> None:
    made = await proxy()
    async with client_of(made) as client:
        fake.says(WHOLE)
        assert (await client.responses.create(model="m", input="hi")).output_text == "hello"
        fake.says(started() + text("hel", "lo"), stopped())
        events = [one async for one in await client.responses.create(model="m", input="hi", stream=True)]
    assert [one.sequence_number for one in events] == list(range(len(events)))
    last = events[-1]
    assert last.type == "response.completed" and last.response.output_text == "hello"
    assert last.response.usage is not None and last.response.usage.output_tokens == 7


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("status", "kind", "answered"),
    [
        (400, "invalid_request_error", 400),
        (401, "authentication_error", 502),
        (413, "request_too_large", 413),
        (429, "rate_limit_error", 429),
        (500, "api_error", 500),
        (529, "overloaded_error", 503),
    ],
)
async def test_errors_keep_their_status(
    proxy: StartProxy, fake: Messages, status: int, kind: str, answered: int, stream: bool
) -> None:
    fake.says(failed(kind, "the provider's words"), status=status, retry_after="7")
    made = await proxy()
    async with client_of(made) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(**ASKED, stream=stream)
    assert caught.value.status_code == answered
    assert caught.value.response.headers["retry-after"] == "7"
    assert ("the provider's words" in caught.value.message) is (status != 401)
    assert len(fake.requests) == 1, "litellm tried again by itself"
    assert (await made.exchange())["upstream_status"] == status


async def test_error_in_mid_stream(proxy: StartProxy, fake: Messages) -> None:
    fake.says(started() + text("hel"), OVERLOADED)
    async with client_of(await proxy()) as client:
        with pytest.raises(openai.APIError, match="Overloaded"):
            [chunk async for chunk in await client.chat.completions.create(**ASKED, stream=True)]


async def test_error_before_the_first_token_has_a_status(proxy: StartProxy, fake: Messages) -> None:
    fake.says(OVERLOADED)
    async with client_of(await proxy()) as client:
        with pytest.raises(openai.APIStatusError, match="Overloaded"):
            await client.chat.completions.create(**ASKED, stream=True)


@pytest.mark.parametrize("end", [(0.05, "cut"), ()], ids=["reset", "clean"])
async def test_a_stream_cut_short_is_told(proxy: StartProxy, fake: Messages, end: tuple[Step, ...]) -> None:
    """Where the bytes end cleanly, litellm makes up a finish reason."""
    fake.says(started() + text("hel"), *end)
    made = await proxy()
    async with client_of(made) as client:
        with pytest.raises(openai.APIError):
            [chunk async for chunk in await client.chat.completions.create(**ASKED, stream=True)]
    assert (await made.exchange())["fault"] == "upstream_truncated"


async def test_what_broke_is_told_without_texts_of_the_provider(proxy: StartProxy, fake: Messages) -> None:
    fake.says(WHOLE[:20], "cut")
    made = await proxy()
    async with client_of(made) as client:
        with pytest.raises(openai.APIStatusError):
            await client.chat.completions.create(**ASKED)
    line = await made.exchange()
    assert line["fault"] == "upstream_disconnected"
    assert "msg_1" not in json.dumps(line)


async def test_redirects_are_not_followed(proxy: StartProxy, fake: Messages) -> None:
    fake.says(b"{}", status=307, location=f"{fake.url}/elsewhere")
    made = await proxy()
    async with client_of(made) as client:
        with pytest.raises(openai.APIStatusError, match="redirects"):
            await client.chat.completions.create(**ASKED)
    assert [path for path, _, _ in fake.requests] == ["/v1/messages"]


async def test_a_client_that_leaves_ends_the_stream(proxy: StartProxy, fake: Messages) -> None:
    fake.says(started() + text("hel"), "hang")
    async with client_of(await proxy()) as client:
        stream = await client.chat.completions.create(**ASKED, stream=True)
        await anext(aiter(stream))
        await stream.close()
        await asyncio.wait_for(fake.left.wait(), 5)


async def test_a_client_that_leaves_ends_the_call(proxy: StartProxy, fake: Messages) -> None:
    fake.says("hang")
    async with client_of(await proxy()) as client:
        with pytest.raises(openai.APITimeoutError):
            await client.chat.completions.create(**ASKED, timeout=0.5)
        await asyncio.wait_for(fake.left.wait(), 5)


@pytest.mark.parametrize(
    ("waits", "script", "fault"),
    [
        ({"first_token": 0.3}, ["hang"], "upstream_timeout"),
        ({"inter_token": 0.3}, [started() + text("hel"), "hang"], "upstream_idle_timeout"),
        ({"total": 1.5, "first_token": 1.4, "inter_token": 1.4}, [started(), text("a"), 0.3] * 10, "upstream_timeout"),
    ],
    ids=["first", "inter", "total"],
)
async def test_timeouts(
    proxy: StartProxy, fake: Messages, waits: dict[str, float], script: list[Step], fault: str
) -> None:
    fake.says(*script)
    made = await proxy(provider={"timeouts": waits})
    async with client_of(made) as client:
        with pytest.raises(openai.APIError):
            [chunk async for chunk in await client.chat.completions.create(**ASKED, stream=True)]
    assert (await made.exchange())["fault"] == fault
    await asyncio.wait_for(fake.left.wait(), 5)


async def test_the_next_target_takes_over(proxy: StartProxy, fake: Messages) -> None:
    fake.says(failed("overloaded_error", "no"), status=529)
    models = {"m": {"targets": [{"provider": "any", "model": "claude"}] * 2}}
    made = await proxy(models=models, retries={"attempts": 2})
    async with client_of(made) as client:
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(**ASKED)
    assert len(fake.requests) == 2


async def test_what_the_vendor_lacks_is_refused_by_name(proxy: StartProxy, fake: Messages) -> None:
    async with client_of(await proxy()) as client:
        with pytest.raises(openai.BadRequestError, match="logprobs") as caught:
            await client.chat.completions.create(**ASKED, logprobs=True)
    assert caught.value.code == "unsupported_parameter" and not fake.requests
