"""What the page says of exchanges: the list, the four panes, and how much is kept."""

from __future__ import annotations

import asyncio
import gzip
import json

import aiohttp
import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.server.lifecycle import RunningProxy
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

from .page_client import PageClient

HELLO = [{"role": "user", "content": "hello"}]


async def ask(
    session: aiohttp.ClientSession, rig: RunningProxy, path: str = "/v1/chat/completions", **body: JsonValue
) -> tuple[int, bytes]:
    request = {"model": "to-databricks", "messages": HELLO, **body}
    request = {name: value for name, value in request.items() if value is not None}
    async with session.post(rig.url + path, json=request) as answer:
        return answer.status, await answer.read()


async def test_the_list_has_the_latest_exchange_first(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    await ask(session, rig, user="somebody")
    await ask(session, rig, model="unknown")
    second, first = await page.list_ended(2)
    assert (first["seq"], first["outcome"], first["target"]) == (1, "ok", "databricks/fake-model")
    assert (first["status"], first["attempts"], first["stream"]) == (200, 1, False)
    assert first["changes"]["loss"] == 1
    assert [(one["action"], one["before"]) for one in first["losses"]] == [("dropped", "user")]
    assert first["tokens_in"] > 0 < first["tokens_out"]
    assert 0 < first["duration_ms"] < 60_000
    assert (second["outcome"], second["status"], second["fault"]) == ("fault", 404, "model_not_found")
    assert [one["seq"] for one in (await page.read("exchanges?before=2"))["exchanges"]] == [1]
    assert [one["seq"] for one in (await page.read("exchanges?limit=1"))["exchanges"]] == [2]


async def test_exchanges_with_one_id_are_told_apart(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    """A service mesh gives all calls for one request of its own client the same id."""
    session.headers["x-request-id"] = "of-the-mesh"
    for model in ("to-databricks", "to-openai"):
        await ask(session, rig, model=model)
    second, first = await page.list_ended(2)
    assert first["id"] == second["id"] == "of-the-mesh"
    assert (await page.read(f"exchanges/{first['ref']}"))["model"] == "to-databricks"
    assert (await page.read(f"exchanges/{second['ref']}"))["model"] == "to-openai"
    assert (await page.read("exchanges/of-the-mesh"))["model"] == "to-openai"


async def test_the_four_panes(page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession) -> None:
    _, reply = await ask(session, rig, user="somebody")
    found = await page.read_latest()
    sent, got = found["client"]["request"], found["client"]["reply"]
    assert sent["line"] == "POST /v1/chat/completions HTTP/1.1"
    assert json.loads(sent["body"])["user"] == "somebody"
    assert (got["line"], got["form"], got["body"]) == ("HTTP/1.1 200", "json", reply.decode())
    assert dict(got["headers"])["x-request-id"] == found["id"]
    assert found["address"] == "127.0.0.1"
    (call,) = found["tries"]
    assert call["request"]["line"] == "POST /serving-endpoints/fake-model/invocations HTTP/1.1"
    assert "user" not in json.loads(call["request"]["body"])
    assert json.loads(call["reply"]["body"])["choices"]
    assert [call["outcome"], call["try"], call["call"]] == ["ok", 1, 0]
    (loss,) = [one for one in found["changes"] if one["weight"] == "loss"]
    assert (loss["side"], loss["action"], loss["before"], loss["after"]) == ("request", "dropped", ["user"], None)


async def test_a_stream_is_a_timeline_of_events(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    _, reply = await ask(session, rig, stream=True)
    found = await page.read_latest()
    for message in (found["client"]["reply"], found["tries"][0]["reply"]):
        times = [event["at_ms"] for event in message["events"]]
        assert times == sorted(times)
        assert (message["form"], message["body"]) == ("events", None)
        assert message["events"][-1]["text"] == "data: [DONE]\n\n"
    assert "".join(event["text"] for event in found["client"]["reply"]["events"]) == reply.decode()


async def test_each_try_has_its_call(page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession) -> None:
    await ask(session, rig, model="any", messages=[{"role": "user", "content": "fake:rate-limit"}])
    found = await page.read_latest()
    assert found["attempts"] == len(found["tries"]) > 1
    assert {call["outcome"] for call in found["tries"]} == {"fault"}
    assert [call["try"] for call in found["tries"]] == [*range(1, len(found["tries"]) + 1)]
    assert len({call["target"] for call in found["tries"]}) > 1


async def test_a_request_that_needs_several_calls_has_them_all(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    await ask(session, rig, "/v1/embeddings", messages=None, input=["a"] * 300)
    found = await page.read_latest()
    assert [(call["try"], call["call"]) for call in found["tries"]] == [(1, 0), (1, 1)]


@pytest.mark.parametrize("rig", ["heads"], indirect=True)
async def test_heads_keep_no_body(page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession) -> None:
    await ask(session, rig)
    found = await page.read_latest()
    for message in (*found["client"].values(), found["tries"][0]["request"], found["tries"][0]["reply"]):
        assert message["line"] and message["headers"]
        assert (message["body"], message["kept"], message["events"]) == (None, 0, [])
        assert message["bytes"] > 0
        assert "server.inspect" in message["why_not"]


@pytest.mark.parametrize("rig", ["off"], indirect=True)
async def test_off_keeps_the_list_and_the_changes(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    await ask(session, rig, user="somebody")
    found = await page.read_latest()
    assert (found["client"], found["tries"]) == (None, [])
    assert [one["before"] for one in found["changes"] if one["weight"] == "loss"] == [["user"]]


async def test_a_compressed_reply_is_shown_as_text(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, session: aiohttp.ClientSession
) -> None:
    packed = gzip.compress(json.dumps(wire.reply).encode())
    p = await proxy(
        await upstream(wire.http(packed, "Content-Encoding: gzip")), speak=dialects, server={"inspect": "bodies"}
    )
    assert (await p.ask()).status == 200
    found = await PageClient(session, p.running.url).read_latest()
    assert json.loads(found["tries"][0]["reply"]["body"]) == wire.reply


async def test_large_bodies_are_cut(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    p = await proxy(await upstream(wire.ok), speak=dialects, server={"inspect": "bodies", "inspect_bytes": 1024 * 1024})
    assert (await p.ask(user="x" * 500_000)).status == 200
    found = await PageClient(p.session, p.running.url).read_latest()
    request: JsonObject = found["client"]["request"]
    assert request["bytes"] > 500_000
    assert request["kept"] == 64 * 1024
    assert "64" in request["why_not"] or "65536" in request["why_not"]
    assert len(request["body"]) <= request["kept"]


async def test_the_oldest_exchanges_go_first(proxy: StartProxy, upstream: StartUpstream, wire: Wire) -> None:
    limit = 300_000
    p = await proxy(await upstream(wire.ok), speak=dialects, server={"inspect": "bodies", "inspect_bytes": limit})
    for _ in range(40):
        assert (await p.ask(user="x" * 10_000)).status == 200
    found = await PageClient(p.session, p.running.url).read("exchanges")
    assert found["buffer"]["bytes"] <= found["buffer"]["limit"] == limit
    assert found["buffer"]["dropped"] + found["buffer"]["exchanges"] == 40
    assert [one["seq"] for one in found["exchanges"]] == [*range(40, 40 - found["buffer"]["exchanges"], -1)]


async def test_events_follow_an_exchange_from_its_beginning_to_its_end(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    async with session.get(f"{rig.url}/page/api/events") as feed:
        slow = asyncio.create_task(ask(session, rig, stream=True, messages=[{"role": "user", "content": "fake:slow"}]))
        seen: list[str] = []
        async for line in feed.content:
            if line.startswith(b"data: ") and b'"outcome"' in line:
                seen.append(json.loads(line[6:])["outcome"])
            if seen[-1:] == ["ok"]:
                break
        await slow
    assert seen[0] == "running"
    assert (await page.list_ended())[0]["outcome"] == "ok"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_whose_client_left_was_cancelled(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession, stream: bool
) -> None:
    """Before the reply began, and in the middle of it."""
    stall = [{"role": "user", "content": "fake:stall"}]
    asked = asyncio.create_task(ask(session, rig, stream=stream, messages=stall))
    tries: list[JsonObject] = []
    while not tries or (stream and not tries[0]["reply"]["bytes"]):
        for one in (await page.read("exchanges"))["exchanges"]:
            tries = (await page.read(f"exchanges/{one['ref']}"))["tries"]
    assert tries[0]["outcome"] == "running"
    asked.cancel()
    (ended,) = await page.list_ended()
    (call,) = (await page.read(f"exchanges/{ended['ref']}"))["tries"]
    assert (ended["outcome"], call["outcome"]) == ("client_left", "cancelled")


async def test_who_looks_at_a_running_exchange_does_not_change_what_is_counted(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    slow = asyncio.create_task(ask(session, rig, stream=True, messages=[{"role": "user", "content": "fake:slow"}]))
    running = []
    while not running:
        running = [one for one in (await page.read("exchanges"))["exchanges"] if one["outcome"] == "running"]
    assert running[0]["tokens_out"] is None
    await slow
    (ended,) = await page.list_ended()
    assert ended["tokens_in"] > 0 < ended["tokens_out"]


async def test_long_names_of_models_are_cut(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    assert (await ask(session, rig, model="x" * 1_000_000))[0] == 404
    (ended,) = await page.list_ended()
    assert ended["model"] == "x" * 256


async def test_a_feed_does_not_keep_the_proxy_from_stopping(rig: RunningProxy, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{rig.url}/page/api/events") as feed:
        await feed.content.readline()
        async with asyncio.timeout(5):
            await rig.stop()


async def test_changes_name_the_policy_and_the_source_of_the_rule(
    page: PageClient, rig: RunningProxy, session: aiohttp.ClientSession
) -> None:
    await ask(session, rig, seed=3, user="somebody")
    changes = {tuple(one["before"] or ()): one for one in (await page.read_latest())["changes"]}
    seed, user = changes["seed",], changes["user",]
    assert (seed["policy"], user["policy"]) == ("unsupported", None)
    assert seed["source"] == "databricks/chat.request (actual): it has no seed"
    assert "reference" in changes["model",]["source"]
