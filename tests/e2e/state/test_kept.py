"""Responses that are kept: found again, deleted, and by whom, with the official OpenAI client."""

from __future__ import annotations

import openai
import pytest
from openai import AsyncOpenAI

from dragoman.contract.json_types import JsonValue
from tests.dialects import called

from .conftest import Build, Place

CHAT = called("chat")
KINDS = (*CHAT, "native")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_response_is_found_again_and_deleted(
    place: Place, client: AsyncOpenAI, kind: str, streamed: bool
) -> None:
    made = await place.ask(client, streamed, model=kind, input="hello", instructions="be brief", metadata={"a": "b"})
    assert made.store is True
    assert made.id.startswith("resp_")
    assert len(made.id) == 49
    again = await client.responses.retrieve(made.id, include=["message.output_text.logprobs"])
    assert again.to_dict() == made.to_dict() | {"output": again.to_dict()["output"]}
    assert again.output_text == made.output_text
    [item] = [item async for item in client.responses.input_items.list(made.id)]
    assert (item.type, item.content[0].text) == ("message", "hello")  # type: ignore[union-attr]
    await client.responses.delete(made.id)
    for gone in (
        client.responses.retrieve(made.id),
        client.responses.delete(made.id),
        client.responses.input_items.list(made.id),
        client.responses.cancel(made.id),
    ):
        with pytest.raises(openai.NotFoundError):
            await gone
    with pytest.raises(openai.NotFoundError) as caught:
        await client.responses.create(model=kind, input="x", previous_response_id=made.id)
    assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_not_to_be_kept_is_not(place: Place, client: AsyncOpenAI, kind: str) -> None:
    for streamed in (False, True):
        made = await place.ask(client, streamed, model=kind, input="hello", store=False)
        assert made.store is False
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(made.id)
        with pytest.raises(openai.NotFoundError) as caught:
            await client.responses.create(model=kind, input="x", previous_response_id=made.id)
        assert caught.value.code == "previous_response_not_found"
    if kind == "native":
        assert [body["store"] for body in place.native.asked] == [False, False]
        assert place.native.kept == {}


KEYS = [{"name": "a", "key": "key-a"}, {"name": "b", "key": "key-b"}]


async def test_a_response_belongs_to_its_key(place_of: Build) -> None:
    place = await place_of(keys=KEYS)
    async with place.client("key-a") as mine, place.client("key-b") as theirs:
        made = await mine.responses.create(model="openai", input="hello")
        for attempt in (
            theirs.responses.retrieve(made.id),
            theirs.responses.delete(made.id),
            theirs.responses.input_items.list(made.id),
        ):
            with pytest.raises(openai.NotFoundError):
                await attempt
        with pytest.raises(openai.NotFoundError) as caught:
            await theirs.responses.create(model="openai", input="x", previous_response_id=made.id)
        assert caught.value.code == "previous_response_not_found"
        assert (await mine.responses.retrieve(made.id)).id == made.id
    for path in ("", "/input_items"):
        status, body = await place.raw("GET", f"/v1/responses/{made.id}{path}", key="wrong")
        assert (status, body["error"]["code"]) == (401, "invalid_api_key")


async def test_a_restart_loses_nothing(place_of: Build) -> None:
    place = await place_of()
    async with place.client() as client:
        made = await client.responses.create(model="openai", input="hello")
    await place.running.stop()
    place = await place_of()
    async with place.client() as client:
        assert (await client.responses.retrieve(made.id)).output_text == made.output_text
        second = await client.responses.create(model="mindie", input="more", previous_response_id=made.id)
    assert second.output_text
    assert place.spoken("mindie")[0] == ("user", "hello")


async def test_two_proxies_share_one_file(place_of: Build) -> None:
    one, other = await place_of(), await place_of()
    async with one.client() as here, other.client() as there:
        made = await here.responses.create(model="openai", input="hello")
        assert (await there.responses.create(model="openai", input="more", previous_response_id=made.id)).output_text
        await there.responses.delete(made.id)
        with pytest.raises(openai.NotFoundError):
            await here.responses.retrieve(made.id)


async def test_memory_is_enough(place_of: Build) -> None:
    place = await place_of(store={"kind": "memory"})
    async with place.client() as client:
        made = await client.responses.create(model="openai", input="hello")
        assert (await client.responses.create(model="openai", input="more", previous_response_id=made.id)).store


async def test_what_is_kept_is_in_hub_form_whatever_the_policy(place_of: Build) -> None:
    place = await place_of(policy={"replies": "off"})
    async with place.client() as client:
        for store in (True, False):
            made = await client.responses.create(model="native", input="hello", store=store)
            assert ("tools" in made.to_dict()) is store


@pytest.mark.parametrize("kind", ["openai", "native"])
async def test_a_proxy_that_keeps_nothing_says_so(place_of: Build, kind: str) -> None:
    place = await place_of(store={"kind": "none"})
    async with place.client() as client:
        for streamed in (False, True):
            made = await place.ask(client, streamed, model=kind, input="hello", store=True)
            assert made.store is False
            for attempt in (
                client.responses.retrieve(made.id),
                client.responses.create(model=kind, input="x", previous_response_id=made.id),
            ):
                with pytest.raises(openai.NotFoundError, match="this proxy stores no responses"):
                    await attempt


@pytest.mark.parametrize(
    ("more", "param"),
    [({"background": True}, "background"), ({"conversation": "conv_1"}, "conversation")],
)
@pytest.mark.parametrize("kind", ["openai", "native"])
async def test_what_needs_other_state_is_refused(
    place: Place, client: AsyncOpenAI, kind: str, more: JsonValue, param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await client.responses.create(model=kind, input="x", **more)
    assert (caught.value.param, caught.value.code) == (param, "unsupported_parameter")
    assert place.native.asked == place.fakes["openai"].requests == []


@pytest.mark.parametrize("prefix", ["", "/openai"])
async def test_addresses_and_words(place: Place, client: AsyncOpenAI, prefix: str) -> None:
    made = await client.responses.create(model="openai", input=[{"role": "user", "content": str(n)} for n in range(30)])
    base = f"{prefix}/v1/responses/{made.id}"
    assert (await place.raw("GET", base))[1]["id"] == made.id
    status, page = await place.raw("GET", f"{base}/input_items?limit=2&order=asc")
    assert (status, page["has_more"], len(page["data"])) == (200, True, 2)
    status, page = await place.raw("GET", f"{base}/input_items?order=asc&limit=100&after={page['last_id']}")
    assert [item["content"][0]["text"] for item in page["data"]] == [str(n) for n in range(2, 30)]
    for method, path, expected, param in (
        ("GET", "?stream=true", 400, "stream"),
        ("GET", "?include[]=nothing", 400, "include[0]"),
        ("GET", "/input_items?limit=0", 400, "limit"),
        ("GET", "/input_items?order=up", 400, "order"),
        ("GET", "/input_items?after=nobody", 400, "after"),
        ("GET", "/input_items?include=nothing", 400, "include[0]"),
        ("POST", "/cancel", 400, "response_id"),
        ("GET", "/nothing", 404, None),
        ("POST", "", 405, None),
        ("GET", "/cancel", 405, None),
    ):
        status, body = await place.raw(method, base + path)
        assert (status, body["error"]["param"]) == (expected, param), (method, path, body)
        assert body["error"]["message"]
    status, body = await place.raw("DELETE", base)
    assert (status, body) == (200, {"id": made.id, "object": "response", "deleted": True})
