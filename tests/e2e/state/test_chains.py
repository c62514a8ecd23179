"""Conversations that go on by `previous_response_id`, with the official OpenAI client."""

from __future__ import annotations

import json

import openai
import pytest
from openai import AsyncOpenAI

from dragoman.contract.json_types import JsonObject, JsonValue
from tests.dialects import called

from .conftest import Build, Place

CHAT = called("chat")
KINDS = (*CHAT, "native")
WEATHER: JsonObject = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": False,
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", CHAT)
async def test_a_conversation_with_a_tool_over_chat(
    place: Place, client: AsyncOpenAI, kind: str, streamed: bool
) -> None:
    first = await place.ask(client, streamed, model=kind, input="hello", instructions="speak like a pirate")
    second = await place.ask(
        client, streamed, model=kind, input="fake:tools weather?", tools=[WEATHER], previous_response_id=first.id
    )
    assert second.previous_response_id == first.id
    [call] = [item for item in second.output if item.type == "function_call"]
    result: JsonObject = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    third = await place.ask(
        client, streamed, model=kind, input=[result], tools=[WEATHER], previous_response_id=second.id
    )
    assert "sunny" in third.output_text
    fourth = await place.ask(client, streamed, model=kind, input="thanks", previous_response_id=third.id)
    assert fourth.output_text
    said = place.spoken(kind)
    assert [role for role, _ in said] == [
        *("user", "assistant"),
        *("user", "assistant", "tool"),
        *("assistant", "user"),
    ]
    assert said[0][1] == "hello"
    assert said[1][1] == first.output_text
    assert said[4] == ("tool", "sunny")
    assert said[5][1] == third.output_text
    assert "pirate" not in str(said)
    names = [item.type async for item in client.responses.input_items.list(third.id, order="asc")]
    assert names == ["function_call_output"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_provider_that_keeps_its_responses_is_told_its_own_id(
    place: Place, client: AsyncOpenAI, streamed: bool
) -> None:
    first = await place.ask(client, streamed, model="native", input="fake:tools one", tools=[WEATHER])
    [call] = [item for item in first.output if item.type == "function_call"]
    result: JsonObject = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    second = await place.ask(client, streamed, model="native", input=[result], previous_response_id=first.id)
    third = await place.ask(client, streamed, model="native", input="two", previous_response_id=second.id)
    assert third.output_text == "You have said 2 things"
    assert [body.get("previous_response_id") for body in place.native.asked] == [None, "resp_1", "resp_2"]
    assert place.native.asked[-1]["input"] == "two"
    assert "store" not in place.native.asked[0]
    assert third.previous_response_id == second.id
    assert (await client.responses.retrieve(third.id)).previous_response_id == second.id


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("says", [None, False])
async def test_a_provider_that_has_forgotten_gets_the_whole_conversation(
    place: Place, client: AsyncOpenAI, streamed: bool, says: bool | None
) -> None:
    """As does one that never said that it keeps anything."""
    place.native.says = says
    first = await place.ask(client, streamed, model="native", input="fake:tools one", tools=[WEATHER])
    place.native.kept.clear()
    [call] = [item for item in first.output if item.type == "function_call"]
    result: JsonObject = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    second = await place.ask(client, streamed, model="native", input=[result], previous_response_id=first.id)
    assert "sunny" in second.output_text
    assert len(place.native.asked) == (3 if says is None else 2)
    whole = place.native.asked[-1]
    assert "previous_response_id" not in whole
    assert [item["type"] for item in whole["input"]] == [
        "message", "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
    assert whole["input"][1]["encrypted_content"] == "sealed"
    assert not [item for item in whole["input"] if "id" in item]


async def test_a_provider_of_a_dialect_that_keeps_nothing_gets_the_whole_conversation(
    place: Place, client: AsyncOpenAI
) -> None:
    """Whatever its replies say of `store`."""
    place.native.says = True
    first = await client.responses.create(model="lakehouse", input="one")
    second = await client.responses.create(model="lakehouse", input="two", previous_response_id=first.id)
    assert second.output_text == "You have said 2 things"
    assert place.native.asked[-1].keys().isdisjoint({"previous_response_id", "store"})


@pytest.mark.parametrize(("one", "other"), [("native", "mindie"), ("databricks", "native"), ("databricks", "azure")])
async def test_a_conversation_moves_from_one_provider_to_another(
    place: Place, client: AsyncOpenAI, one: str, other: str
) -> None:
    first = await client.responses.create(model=one, input="fake:reasoning hello")
    moved = await client.responses.with_raw_response.create(
        model=other, input="and now?", previous_response_id=first.id
    )
    assert moved.parse().output_text
    if other == "native":
        assert place.native.asked[-1]["input"][0]["content"] == "fake:reasoning hello"
        assert "encrypted_content" not in str(place.native.asked[-1])
        assert "another provider encrypted" in moved.headers["x-dragoman-changes"]
    else:
        assert [role for role, _ in place.spoken(other)] == ["user", "assistant", "user"]
    back = await client.responses.create(model=one, input="back", previous_response_id=moved.parse().id)
    assert back.output_text


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_provider_may_fail_before_it_says_that_it_has_forgotten(
    place: Place, client: AsyncOpenAI, streamed: bool
) -> None:
    first = await place.ask(client, streamed, model="native", input="one")
    place.native.kept.clear()
    place.native.hang_ups = 1
    second = await place.ask(client, streamed, model="native", input="two", previous_response_id=first.id)
    assert second.output_text == "You have said 2 things"
    assert len(place.native.asked) == 4


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_conversation_survives_a_fallback(place: Place, client: AsyncOpenAI, streamed: bool) -> None:
    first = await place.ask(client, streamed, model="both", input="one")
    place.native.down = True
    second = await place.ask(client, streamed, model="both", input="two", previous_response_id=first.id)
    assert place.spoken("mindie") == [("user", "one"), ("assistant", first.output_text), ("user", "two")]
    place.native.down = False
    third = await place.ask(client, streamed, model="both", input="three", previous_response_id=second.id)
    assert third.output_text == "You have said 3 things"
    assert "previous_response_id" not in place.native.asked[-1]
    await place.ask(client, streamed, model="both", input="four", previous_response_id=third.id)
    assert place.native.asked[-1]["previous_response_id"] == "resp_3"


@pytest.mark.parametrize("kind", CHAT)
async def test_a_reply_that_came_whole_is_kept_as_a_stream(place: Place, client: AsyncOpenAI, kind: str) -> None:
    made = await place.ask(client, True, model=kind, input="fake:json-for-stream x")
    assert (await client.responses.retrieve(made.id)).output_text == made.output_text


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", CHAT)
async def test_references_to_items_are_followed(place: Place, client: AsyncOpenAI, kind: str, streamed: bool) -> None:
    """As the client of the AI SDK writes them, where it knows that responses are kept."""
    first = await place.ask(client, streamed, model=kind, input="fake:tools weather?", tools=[WEATHER])
    [call] = [item for item in first.output if item.type == "function_call"]
    said: list[JsonObject] = [
        {"role": "user", "content": "fake:tools weather?"},
        {"type": "item_reference", "id": call.id},
        {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"},
    ]
    second = await place.ask(client, streamed, model=kind, input=said, tools=[WEATHER])
    assert "sunny" in second.output_text
    assert [role for role, _ in place.spoken(kind)] == ["user", "assistant", "tool"]
    kept = [item.type async for item in client.responses.input_items.list(second.id, order="asc")]
    assert kept == ["message", "function_call", "function_call_output"]
    third: list[JsonObject] = [{"id": second.output[-1].id}, {"role": "user", "content": "and now?"}]
    await place.ask(client, streamed, model=kind, input=third)
    assert place.spoken(kind)[0] == ("assistant", second.output_text)


async def test_a_provider_that_keeps_items_is_told_their_ids(place: Place, client: AsyncOpenAI) -> None:
    first = await client.responses.create(model="native", input="fake:tools hello", tools=[WEATHER])
    reasoning, call = first.output
    result: JsonObject = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
    said: list[JsonValue] = [*({"type": "item_reference", "id": item.id} for item in (reasoning, call)), result]
    await client.responses.create(model="native", input=said)
    assert place.native.asked[-1]["input"] == said
    await client.responses.create(model="openai", input=said)
    assert [role for role, _ in place.spoken("openai")] == ["assistant", "tool"]
    assert "sealed" not in json.dumps(place.fakes["openai"].requests[-1].body)


async def test_a_reference_to_nothing_is_refused_with_its_path(place_of: Build) -> None:
    place = await place_of(keys=[{"name": "a", "key": "key-a"}, {"name": "b", "key": "key-b"}])
    async with place.client("key-a") as mine, place.client("key-b") as theirs:
        made = await mine.responses.create(model="openai", input="hello")
        said: list[JsonObject] = [{"role": "user", "content": "x"}, {"type": "item_reference", "id": made.output[0].id}]
        assert (await mine.responses.create(model="openai", input=said)).output_text
        await mine.responses.delete(made.id)
        for client in (mine, theirs):
            with pytest.raises(openai.BadRequestError) as caught:
                await client.responses.create(model="openai", input=said)
            assert caught.value.param == "input[1]"


async def test_reasoning_goes_on_to_the_next_turn(place: Place, client: AsyncOpenAI) -> None:
    first = await client.responses.create(model="openai", input="fake:reasoning hello")
    [thoughts] = [item for item in first.output if item.type == "reasoning"]
    assert thoughts.content
    await client.responses.create(model="openai", input="more", previous_response_id=first.id)
    said = place.fakes["openai"].requests[-1].body["messages"][1]
    assert said["reasoning_content"] == thoughts.content[0].text


async def test_what_a_provider_sealed_goes_back_to_it(place: Place, client: AsyncOpenAI) -> None:
    first = await client.responses.create(model="databricks", input="fake:reasoning hello")
    await client.responses.create(model="databricks", input="more", previous_response_id=first.id)
    assert "signature" in json.dumps(place.fakes["databricks"].requests[-1].body)


async def test_a_continuation_need_not_be_kept(client: AsyncOpenAI) -> None:
    first = await client.responses.create(model="openai", input="hello")
    second = await client.responses.create(model="openai", input="more", previous_response_id=first.id, store=False)
    assert (second.store, second.previous_response_id) == (False, first.id)


async def test_the_id_of_a_provider_is_no_id_here(place: Place, client: AsyncOpenAI) -> None:
    await client.responses.create(model="native", input="hello")
    assert list(place.native.kept) == ["resp_1"]
    with pytest.raises(openai.NotFoundError) as caught:
        await client.responses.create(model="native", input="x", previous_response_id="resp_1")
    assert caught.value.code == "previous_response_not_found"
    assert len(place.native.asked) == 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("behaviour", "status"), [("length", "incomplete"), ("content-filter", "incomplete")])
async def test_what_is_incomplete_is_kept(
    place: Place, client: AsyncOpenAI, streamed: bool, behaviour: str, status: str
) -> None:
    made = await place.ask(client, streamed, model="openai", input=f"fake:{behaviour} x")
    again = await client.responses.retrieve(made.id)
    assert (again.status, again.incomplete_details) == (status, made.incomplete_details)
    assert (await client.responses.create(model="openai", input="go on", previous_response_id=made.id)).output_text


@pytest.mark.parametrize("kind", ["openai", "native"])
async def test_what_failed_after_it_had_begun_is_kept(place: Place, client: AsyncOpenAI, kind: str) -> None:
    place.native.breaks = True
    found = []
    with pytest.raises(openai.APIError):
        async for event in await client.responses.create(model=kind, input="fake:cut x", stream=True):
            found.append(event)
    response_id = found[0].response.id  # type: ignore[union-attr]
    again = await client.responses.retrieve(response_id)
    assert again.status == "failed"
    assert again.error is not None
    assert again.output


@pytest.mark.parametrize("kind", ["openai", "native"])
async def test_calls_and_results_have_to_match(place: Place, client: AsyncOpenAI, kind: str) -> None:
    first = await client.responses.create(model=kind, input="fake:tools weather?", tools=[WEATHER])
    stray: list[JsonObject] = [
        {"role": "user", "content": "x"},
        {"type": "function_call_output", "call_id": "c9", "output": "y"},
    ]
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.create(model=kind, input=stray, previous_response_id=first.id)
    assert caught.value.param == "input[1].call_id"
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.create(model=kind, input="never mind", previous_response_id=first.id)
    assert caught.value.param == "input"
    assert "has no output" in caught.value.message
    assert len(place.native.asked if kind == "native" else place.fakes[kind].requests) == 1


async def test_a_fault_in_new_input_has_the_clients_path(client: AsyncOpenAI) -> None:
    first = await client.responses.create(model="azure", input="hello")
    parts: list[JsonObject] = [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]
    with pytest.raises(openai.BadRequestError) as alone:
        await client.responses.create(model="azure", input=parts)
    with pytest.raises(openai.BadRequestError) as behind:
        await client.responses.create(model="azure", input=parts, previous_response_id=first.id)
    assert behind.value.param == alone.value.param
    assert str(alone.value.param).startswith("input[0]")


async def test_long_conversations_have_an_end(place_of: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.proxy.conversations.owner_store.MAX_TURNS", 3)
    place = await place_of(store={"kind": "memory", "max_chain": 7000, "max_response": 5000})
    async with place.client() as client:
        made = await client.responses.create(model="openai", input="hello")
        for number in range(2):
            made = await client.responses.create(model="openai", input=str(number), previous_response_id=made.id)
        large = await client.responses.create(model="openai", input="x" * 3000)
        large = await client.responses.create(model="openai", input="y" * 3000, previous_response_id=large.id)
        third = await client.responses.create(model="openai", input="more", previous_response_id=made.id)
        for each in (third, large):
            with pytest.raises(openai.BadRequestError) as caught:
                await client.responses.create(model="openai", input="end", previous_response_id=each.id)
            assert (caught.value.param, caught.value.code) == ("previous_response_id", "chain_too_long")
        with pytest.raises(openai.InternalServerError, match="max_response") as failed:
            await client.responses.create(model="openai", input="z" * 5000)
        assert failed.value.code == "store_failed"
        assert (await client.responses.create(model="openai", input="z" * 5000, store=False)).output_text


async def test_what_was_sealed_and_referred_to_goes_to_no_other_provider(place: Place, client: AsyncOpenAI) -> None:
    first = await client.responses.create(model="native", input="fake:tools hello", tools=[WEATHER])
    reasoning, call = first.output
    result: JsonObject = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}  # type: ignore[union-attr]
    said: list[JsonValue] = [*({"type": "item_reference", "id": item.id} for item in (reasoning, call)), result]
    second = await client.responses.create(model="native", input=said)
    moved = await client.responses.with_raw_response.create(
        model="databricks", input="three", previous_response_id=second.id
    )
    assert "sealed" not in json.dumps(place.fakes["databricks"].requests[-1].body)
    assert "another provider encrypted" in moved.headers["x-dragoman-changes"]
    at_once = await client.responses.with_raw_response.create(model="databricks", input=said)
    assert "sealed" not in json.dumps(place.fakes["databricks"].requests[-1].body)
    assert "another provider encrypted" in at_once.headers["x-dragoman-changes"]
