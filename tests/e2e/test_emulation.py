"""What a provider lacks, asked for with OpenAI's SDK: the answer is that of a provider that has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pydantic
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from dragoman.contract.fakes.answers import SENTENCE
from dragoman.contract.json_types import JsonObject

from .house import BuildHouse, House

LACKING = ("openai", "databricks", "azure", "mindie")
LACKS = ["n", "stop", "parallel_tool_calls"]
TOOLS: list[JsonObject] = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("get_weather", "get_time")
]


@pytest_asyncio.fixture
async def house(build: BuildHouse) -> House:
    """Models that have nothing of LACKS, whatever their dialects have."""
    models = {f"bare-{name}": {"targets": [{"provider": name, "model": "m", "lacks": LACKS}]} for name in LACKING}
    return await build(protocols=["chat", "completions"], more_models=models)


@pytest_asyncio.fixture
async def sdk(house: House) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        yield client


def user(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def collect(stream: Any) -> tuple[dict[int, str], dict[int, str], list[Any]]:
    """The texts and finish reasons of a stream's choices, and its usages."""
    texts: dict[int, str] = {}
    finishes: dict[int, str] = {}
    usages, ids = [], set()
    async for chunk in stream:
        ids.add(chunk.id)
        usages += [chunk.usage] if chunk.usage else []
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            if choice.finish_reason:
                assert choice.index not in finishes
                finishes[choice.index] = choice.finish_reason
    assert len(ids) == 1
    return texts, finishes, usages


@pytest.mark.parametrize("provider", LACKING)
async def test_three_choices(house: House, sdk: AsyncOpenAI, provider: str) -> None:
    one = await sdk.chat.completions.create(model=f"bare-{provider}", messages=user("x"))
    raw = await sdk.chat.completions.with_raw_response.create(model=f"bare-{provider}", messages=user("x"), n=3)
    reply = raw.parse()
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert {choice.message.content for choice in reply.choices} == {SENTENCE}
    assert raw.headers["x-dragoman-changes"].startswith('emulated;path="n"')
    assert len(house.fakes[provider].requests) == 1 + 3
    assert reply.usage is not None and one.usage is not None
    assert reply.usage.total_tokens == 3 * one.usage.total_tokens


@pytest.mark.parametrize("provider", LACKING)
async def test_a_stream_of_three_choices(sdk: AsyncOpenAI, provider: str) -> None:
    ask: JsonObject = {
        "model": f"bare-{provider}",
        "messages": user("x"),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    _, _, single = await collect(await sdk.chat.completions.create(**ask))
    texts, finishes, usages = await collect(await sdk.chat.completions.create(**ask, n=3))
    assert texts == dict.fromkeys(range(3), SENTENCE)
    assert finishes == dict.fromkeys(range(3), "stop")
    assert len(usages) == len(single) == 1
    assert [usage.total_tokens for usage in usages] == [3 * usage.total_tokens for usage in single]


@pytest.mark.parametrize("provider", LACKING)
@pytest.mark.parametrize("behaviour", ["cut", "cut-clean", "malformed-event", "error-event"])
async def test_a_stream_of_choices_that_breaks_raises(sdk: AsyncOpenAI, provider: str, behaviour: str) -> None:
    stream = await sdk.chat.completions.create(
        model=f"bare-{provider}", messages=user(f"fake:{behaviour} x"), n=2, stream=True
    )
    with pytest.raises(openai.APIError):
        await collect(stream)


@pytest.mark.parametrize("provider", LACKING)
async def test_a_text_ends_before_a_stop_string(sdk: AsyncOpenAI, provider: str) -> None:
    stop = SENTENCE[10:16]
    model, ask = f"bare-{provider}", {"messages": user("x"), "stop": [stop, "never"], "n": 2}
    reply = await sdk.chat.completions.create(model=model, **ask)
    assert {(choice.message.content, choice.finish_reason) for choice in reply.choices} == {(SENTENCE[:10], "stop")}
    texts, finishes, usages = await collect(
        await sdk.chat.completions.create(model=model, **ask, stream=True, stream_options={"include_usage": True})
    )
    assert texts == dict.fromkeys(range(2), SENTENCE[:10])
    assert finishes == dict.fromkeys(range(2), "stop")
    assert len(usages) == 1


async def test_completions_have_choices_and_stop_strings_too(sdk: AsyncOpenAI) -> None:
    stop = SENTENCE[10:16]
    for provider in ("openai", "databricks"):
        ask: JsonObject = {"model": f"bare-{provider}", "prompt": ["a", "b"], "n": 2, "stop": stop, "max_tokens": 50}
        reply = await sdk.completions.create(**ask)
        assert [(choice.index, choice.text) for choice in reply.choices] == [(i, SENTENCE[:10]) for i in range(4)]
        texts: dict[int, str] = {}
        async for chunk in await sdk.completions.create(**ask, stream=True):
            for choice in chunk.choices:
                texts[choice.index] = texts.get(choice.index, "") + choice.text
        assert texts == dict.fromkeys(range(4), SENTENCE[:10])


@pytest.mark.parametrize("provider", LACKING)
async def test_one_call_at_most(house: House, sdk: AsyncOpenAI, provider: str) -> None:
    """As LangChain's `bind_tools(parallel_tool_calls=False)` asks for it."""
    ask: JsonObject = {"messages": user("fake:parallel-tools x"), "tools": TOOLS, "parallel_tool_calls": False}
    raw = await sdk.chat.completions.with_raw_response.create(model=f"bare-{provider}", **ask)
    (choice,) = raw.parse().choices
    assert choice.finish_reason == "tool_calls"
    assert [call.function.name for call in choice.message.tool_calls or []] == ["get_weather"]
    changes = raw.headers["x-dragoman-changes"]
    assert 'emulated;path="parallel_tool_calls"' in changes
    assert 'dropped;path="choices[0].message.tool_calls[1]"' in changes
    assert "parallel_tool_calls" not in house.fakes[provider].requests[-1].body
    indexes = [
        call.index
        async for chunk in await sdk.chat.completions.create(model=f"bare-{provider}", **ask, stream=True)
        for one in chunk.choices
        for call in one.delta.tool_calls or []
    ]
    assert set(indexes) == {0}


@pytest.mark.parametrize("provider", LACKING)
@pytest.mark.parametrize("stream", [False, True])
async def test_one_call_at_most_in_a_response(sdk: AsyncOpenAI, provider: str, stream: bool) -> None:
    tools: list[Any] = [{"type": "function", **tool["function"], "strict": False} for tool in TOOLS]
    answer: Any = await sdk.responses.create(
        model=f"bare-{provider}",
        input="fake:parallel-tools x",
        tools=tools,
        parallel_tool_calls=False,
        stream=stream,
    )
    if stream:
        events = [event async for event in answer]
        added = [event.item for event in events if event.type == "response.output_item.added"]
        assert [item.type for item in added].count("function_call") == 1
        assert [event.sequence_number for event in events] == [*range(len(events))]
        answer = events[-1].response
    assert [item.name for item in answer.output if item.type == "function_call"] == ["get_weather"]
    assert answer.parallel_tool_calls is False


async def test_what_the_dialects_lack_needs_no_configuration(build: BuildHouse) -> None:
    house = await build()
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        for provider in LACKING:
            reply = await sdk.chat.completions.create(model=provider, messages=user("x"), n=2)
            assert len(reply.choices) == 2
            await sdk.chat.completions.create(
                model=provider,
                messages=user("x"),
                tools=TOOLS,
                parallel_tool_calls=False,  # type: ignore[arg-type]
            )


async def test_it_can_be_switched_off(build: BuildHouse) -> None:
    models: JsonObject = {"bare": {"targets": [{"provider": "openai", "lacks": LACKS, "emulate": {"n": False}}]}}
    house = await build(more_models=models)
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        with pytest.raises(openai.BadRequestError) as caught:
            await sdk.chat.completions.create(model="bare", messages=user("x"), n=2)
        assert caught.value.param == "n"
        assert (await sdk.chat.completions.create(model="bare", messages=user("x"), stop="zzz")).choices


async def test_chat_over_a_provider_of_responses(build: BuildHouse) -> None:
    house = await build(protocols=["responses"])
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        for provider in ("openai", "databricks"):
            ask: JsonObject = {"model": provider, "messages": user("x"), "n": 2, "stop": SENTENCE[10:16]}
            reply = await sdk.chat.completions.create(**ask)
            assert [choice.message.content for choice in reply.choices] == [SENTENCE[:10]] * 2
            texts, finishes, _ = await collect(await sdk.chat.completions.create(**ask, stream=True))
            assert (texts, finishes) == (dict.fromkeys(range(2), SENTENCE[:10]), dict.fromkeys(range(2), "stop"))
            assert len(house.fakes[provider].requests) == 4


async def test_a_kept_response_has_one_call(build: BuildHouse) -> None:
    models: JsonObject = {"bare": {"targets": [{"provider": "openai", "lacks": LACKS}]}}
    house = await build(protocols=["responses"], more_models=models, store={"kind": "memory"})
    tools: list[Any] = [{"type": "function", **tool["function"], "strict": False} for tool in TOOLS]
    ask: JsonObject = {"input": "fake:parallel-tools x", "tools": tools, "parallel_tool_calls": False}
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        for stream in (False, True):
            answer: Any = await sdk.responses.create(model="bare", **ask, stream=stream)
            if stream:
                answer = [event async for event in answer][-1].response
            kept = await sdk.responses.retrieve(answer.id)
            for response in (answer, kept):
                assert [item.type for item in response.output].count("function_call") == 1
            assert "parallel_tool_calls" not in house.fakes["openai"].requests[-1].body


class City(pydantic.BaseModel):
    name: str
    people: int


OPTED: JsonObject = {"lacks": ["response_format"], "emulate": {"response_format": "tool"}}


@pytest.mark.parametrize("provider", LACKING)
async def test_a_format_by_a_tool(build: BuildHouse, provider: str) -> None:
    """As `parse` of the SDK asks for it, whole and streamed."""
    house = await build(more_models={"bare": {"targets": [{"provider": provider, **OPTED}]}})
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        whole = await sdk.chat.completions.parse(model="bare", messages=user("x"), response_format=City)
        assert isinstance(whole.choices[0].message.parsed, City)
        assert (whole.choices[0].finish_reason, whole.choices[0].message.tool_calls) == ("stop", None)
        async with sdk.chat.completions.stream(model="bare", messages=user("x"), response_format=City) as stream:
            kinds = {event.type async for event in stream}
            streamed = await stream.get_final_completion()
        assert "content.delta" in kinds and not any(kind.startswith("tool_calls") for kind in kinds)
        assert streamed.choices[0].message.parsed == whole.choices[0].message.parsed
        response = await sdk.responses.parse(model="bare", input="x", text_format=City)
        assert response.output_parsed == whole.choices[0].message.parsed
    assert all("response_format" not in request.body for request in house.fakes[provider].requests)


@pytest.mark.parametrize("provider", LACKING)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_format_by_an_instruction(build: BuildHouse, provider: str, stream: bool) -> None:
    """A text of the fake is no JSON, and neither is its second one."""
    target: JsonObject = {"provider": provider, "lacks": ["response_format"]}
    models: JsonObject = {
        "bare": {"targets": [{**target, "emulate": {"response_format": "instruct"}}]},
        "strict": {
            "targets": [{**target, "emulate": {"response_format": "instruct"}, "policy": {"replies": "strict"}}]
        },
    }
    house = await build(more_models=models)
    wanted: Any = {"type": "json_object"}
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        valid = user('fake:text(say={"a":1})')
        answer: Any = await sdk.chat.completions.create(
            model="bare", messages=valid, response_format=wanted, stream=stream
        )
        text = (await collect(answer))[0][0] if stream else answer.choices[0].message.content
        assert text == '{"a":1}'
        assert len(house.fakes[provider].requests) == 1
        raw: Any = await sdk.chat.completions.with_raw_response.create(
            model="bare", messages=user("x"), response_format=wanted, stream=stream
        )
        assert len(house.fakes[provider].requests) == 3
        assert 'dropped;path="response_format"' in raw.headers["x-dragoman-changes"]
        with pytest.raises(openai.InternalServerError) as caught:
            await sdk.chat.completions.create(model="strict", messages=user("x"), response_format=wanted, stream=stream)
        assert caught.value.code == "upstream_invalid_format"


@pytest.mark.parametrize("provider", LACKING)
@pytest.mark.parametrize("holds", [False, True])
async def test_tools_by_an_instruction(build: BuildHouse, provider: str, holds: bool) -> None:
    emulate: JsonObject = {"tools": "instruct", "hold_streams": holds}
    target: JsonObject = {"provider": provider, "lacks": ["tools", "tool_choice"], "emulate": emulate}
    house = await build(more_models={"bare": {"targets": [target]}})
    written = '<tool_call>{"name":"get_weather","arguments":{"city":"Oslo"}}</tool_call>'
    messages: Any = user(f"fake:text(say={written})")
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        ask: JsonObject = {"model": "bare", "tools": TOOLS}
        (choice,) = (await sdk.chat.completions.create(messages=messages, **ask)).choices
        (call,) = choice.message.tool_calls or []
        assert (choice.finish_reason, call.function.name) == ("tool_calls", "get_weather")
        assert call.function.arguments == '{"city":"Oslo"}'
        async with sdk.chat.completions.stream(messages=messages, **ask) as stream:
            (streamed,) = (await stream.get_final_completion()).choices
        assert streamed.finish_reason == "tool_calls"
        assert [one.function.arguments for one in streamed.message.tool_calls or []] == ['{"city":"Oslo"}']
        result: Any = {"role": "tool", "tool_call_id": call.id, "content": "sun"}
        turns = [*messages, choice.message.to_dict(), result, *user("x")]
        assert (await sdk.chat.completions.create(messages=turns, **ask)).choices[0].message.content == SENTENCE
        answer: Any = await sdk.responses.create(
            model="bare",
            input=f"fake:text(say={written})",
            tools=[{"type": "function", **TOOLS[0]["function"], "strict": False}],
        )
        assert [item.name for item in answer.output] == ["get_weather"]
    sent = house.fakes[provider].requests
    assert len(sent) == 4 and all("tools" not in request.body for request in sent)
    assert "tool_response" in str(sent[2].body["messages"])


async def test_three_choices_in_a_format(build: BuildHouse) -> None:
    """Each choice is a call of its own, and each of them is asked for once more."""
    emulate: JsonObject = {"response_format": "instruct"}
    target: JsonObject = {"provider": "mindie", "lacks": ["n", "response_format"], "emulate": emulate}
    house = await build(more_models={"bare": {"targets": [target]}})
    wanted: Any = {"type": "json_object"}
    ask: JsonObject = {"model": "bare", "messages": user("x"), "n": 3, "response_format": wanted}
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        reply = await sdk.chat.completions.create(**ask)
        texts, finishes, _ = await collect(await sdk.chat.completions.create(**ask, stream=True))
    assert [choice.message.content for choice in reply.choices] == [SENTENCE] * 3
    assert (texts, finishes) == (dict.fromkeys(range(3), SENTENCE), dict.fromkeys(range(3), "stop"))
    assert len(house.fakes["mindie"].requests) == 12
    assert reply.usage is not None and reply.usage.total_tokens > 0
