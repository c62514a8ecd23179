"""Requests of the page: an exchange that is sent again in another way, and the playground."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from dragoman.contract.json_types import JsonObject
from dragoman.proxy.server.lifecycle import RunningProxy
from dragoman.proxy.server.page.exports import NO_BODY
from tests.proxy.page_rig import run_page_rig

from .page_client import PageClient

HELLO = [{"role": "user", "content": "hello"}]


async def ask(session: aiohttp.ClientSession, rig: RunningProxy, **more: object) -> None:
    headers = more.pop("headers", None)
    body = {"model": "to-databricks", "messages": HELLO, "seed": 3, **more}
    async with session.post(f"{rig.url}/v1/chat/completions", json=body, headers=headers) as answer:
        await answer.read()


async def replay(page: PageClient, **asked: object) -> JsonObject:
    """The exchange that repeats the latest one, when it has ended."""
    first = (await page.list_ended())[0]
    status, text = await page.post(f"exchanges/{first['id']}/replay", asked)
    assert status == 200, text
    made = json.loads(text)["id"]
    for _ in range(200):
        found: JsonObject = await page.read(f"exchanges/{made}") if await is_known(page, made) else {}
        if found.get("outcome", "running") != "running":
            assert found["replayed_from"] == first["ref"]
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("the replay has not ended")


async def is_known(page: PageClient, request_id: str) -> bool:
    return (await page.get(f"/page/api/exchanges/{request_id}"))[0] == 200


async def test_the_same_request_again(page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession) -> None:
    await ask(session, rig, stream=True)
    first = await page.read_latest()
    again = await replay(page)
    assert (again["outcome"], again["target"]) == ("ok", first["target"])
    assert again["client"]["request"]["body"] == first["client"]["request"]["body"]
    assert again["tries"][0]["request"]["body"] == first["tries"][0]["request"]["body"]
    texts = [[event["text"] for event in one["client"]["reply"]["events"]][-1] for one in (first, again)]
    assert texts == ["data: [DONE]\n\n"] * 2
    assert first["changes"] == again["changes"]


async def test_another_policy(page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession) -> None:
    await ask(session, rig)
    assert (await page.read_latest())["outcome"] == "ok"
    again = await replay(page, policy={"unsupported": "refuse"})
    assert (again["outcome"], again["fault"]) == ("fault", "unsupported_parameter")
    assert "seed" in again["message"]
    again = await replay(page, policy={"preset": "lenient", "emulate_completions": "true"})
    assert again["outcome"] == "ok"
    assert (await page.read_latest())["id"] == again["id"]


@pytest.mark.parametrize("target", ["openai/fake-model", "openai/another-name", "mindie/fake-model"])
async def test_another_target(page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, target: str) -> None:
    await ask(session, rig)
    again = await replay(page, target=target)
    assert (again["target"], again["outcome"]) == (target, "ok")
    assert [call["target"] for call in again["tries"]] == [target]


async def test_another_model(page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession) -> None:
    await ask(session, rig)
    again = await replay(page, model="to-openai")
    assert (again["model"], again["target"]) == ("to-openai", "openai/fake-model")
    assert json.loads(again["tries"][0]["request"]["body"])["seed"] == 3


async def test_another_profile(page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession) -> None:
    await ask(session, rig, usage_context={"team": "a"})
    first, again = await page.read_latest(), await replay(page, profile="documented")
    assert "usage_context" in first["tries"][0]["request"]["body"]
    assert "usage_context" not in again["tries"][0]["request"]["body"]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"target": "nobody/x"}, "there is no such target"),
        ({"target": "openai/"}, "there is no such target"),
        (
            {"policy": {"unsupported": "maybe"}},
            "the policy is not valid: unsupported cannot be maybe; it is one of: ",
        ),
        (
            {"policy": {"unsupporte": "drop"}},
            "unsupporte cannot be drop; policies are: preset, ",
        ),
        ({"policy": ["drop"]}, "policy must be an object"),
        ({"model": 3}, "model must be a text"),
        ([], "the body must be a JSON object"),
    ],
)
async def test_what_cannot_be_done_is_explained(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, asked: object, text: str
) -> None:
    await ask(session, rig)
    (first,) = await page.list_ended()
    status, answer = await page.post(f"exchanges/{first['id']}/replay", asked)
    assert status == 400
    assert text in json.loads(answer)["error"]
    assert len(await page.list_ended()) == 1


@pytest.mark.parametrize("rig", ["heads"], indirect=True)
async def test_without_bodies_nothing_can_be_sent_again(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    await ask(session, rig)
    (first,) = await page.list_ended()
    status, answer = await page.post(f"exchanges/{first['id']}/replay", {})
    assert (status, "server.inspect" in answer) == (400, True)


async def test_a_request_that_was_refused_before_its_body_was_read_cannot_be_sent_again(
    session: aiohttp.ClientSession,
) -> None:
    async with run_page_rig(keys=[{"name": "a", "key": "a-client-key"}], server={"admin_port": 0}) as rig:
        assert rig.admin is not None
        page = PageClient(session, rig.admin.url)
        await ask(session, rig, headers={"Authorization": "Bearer another-key"})
        (first,) = await page.list_ended()
        replayed = await page.post(f"exchanges/{first['id']}/replay", {})
        exported = await page.get(f"/page/api/exchanges/{first['id']}/export?as=curl")
    for status, answer in (replayed, exported):
        assert (status, json.loads(answer)["error"]) == (400, NO_BODY)


async def test_a_replay_is_made_in_the_name_of_the_same_key(session: aiohttp.ClientSession) -> None:
    keys = [{"name": "a", "key": "a-client-key"}, {"name": "b", "key": "b-client-key", "models": ["to-openai"]}]
    async with run_page_rig(keys=keys, server={"admin_port": 0}) as rig:
        assert rig.admin is not None
        page = PageClient(session, rig.admin.url)
        await ask(session, rig, headers={"Authorization": "Bearer a-client-key"})
        assert (await replay(page))["key"] == "a"
        await ask(session, rig, model="to-openai", headers={"Authorization": "Bearer b-client-key"})
        again = await replay(page, model="to-databricks")
        assert (again["key"], again["fault"]) == ("b", "model_not_found")


@pytest.mark.parametrize("is_stream", [False, True])
async def test_the_playground_gets_what_a_client_gets(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, is_stream: bool
) -> None:
    body = {"model": "to-databricks", "messages": HELLO, "stream": is_stream}
    async with session.post(f"{rig.url}/v1/chat/completions", json=body) as answer:
        expected = await answer.text()
    status, text = await page.post("send", {"path": "/v1/chat/completions", "headers": {}, "body": body})
    assert status == 200
    assert text.count("\n") == expected.count("\n")
    assert text[:20] == expected[:20]
    found = await page.read_latest()
    assert (found["outcome"], found["replayed_from"], found["path"]) == ("ok", None, "/v1/chat/completions")


async def test_the_playground_shows_faults_as_clients_see_them(page: PageClient) -> None:
    status, text = await page.post("send", {"path": "/mindie/v1/chat/completions", "body": {"model": "unknown"}})
    assert 400 <= status <= 499
    assert "error" in json.loads(text)
    for bad in ({"path": "v1"}, {"path": "/v1/x y"}, {"path": "/v1", "headers": {"a\nb": "c"}}, {"path": 3}):
        assert (await page.post("send", bad))[0] == 400
