"""An engine process by itself, over its socket."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
from typing import Any

import aiohttp
import pytest


def events(body: bytes) -> list[Any]:
    parts = [part.removeprefix(b"data: ") for part in body.split(b"\n\n") if part]
    return [part.decode() if part == b"[DONE]" else json.loads(part) for part in parts]


def text(chunks: list[Any]) -> str:
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)


async def test_whole_and_streamed_answers_are_the_same(launch: Any) -> None:
    engine = await launch()
    await engine.health()
    async with engine.ask(max_tokens=12, stream=True) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        *chunks, done = events(await answer.read())
    assert done == "[DONE]"
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    async with engine.ask(max_tokens=12) as answer:
        whole = await answer.json()
    assert whole["choices"][0]["message"]["content"] == text(chunks)


async def test_only_this_user_reaches_the_socket(launch: Any) -> None:
    engine = await launch()
    await engine.health()
    assert stat.S_IMODE(engine.socket.stat().st_mode) == 0o600


async def test_it_tells_of_itself(launch: Any) -> None:
    engine = await launch()
    health = await engine.health()
    assert (health["status"], health["model"], health["device"]) == ("ready", "tiny", "cpu")
    status, models = await engine.get("/v1/models")
    assert (status, [model["id"] for model in models["data"]]) == (200, ["tiny"])


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "param"),
    [
        ("/v1/chat/completions", b"{", 400, "invalid_json", None),
        ("/v1/chat/completions", b"[]", 400, "invalid_json", None),
        ("/v1/chat/completions", b'{"messages": [{"content": "refuse"}]}', 400, "refused", "messages[0].content"),
        ("/v1/embeddings", b'{"input": "x"}', 400, None, "model"),
        ("/v1/chat/completions", b'{"messages": 3}', 500, "internal_error", None),
        ("/v1/nothing", b"{}", 404, "not_found", None),
        ("/health", b"{}", 405, "method_not_allowed", None),
    ],
)
async def test_what_fails_is_an_error_of_openai(
    launch: Any, path: str, body: bytes, status: int, code: str | None, param: str | None
) -> None:
    engine = await launch()
    await engine.health()
    async with engine.session.post(f"http://engine{path}", data=body) as answer:
        error = (await answer.json())["error"]
    assert (answer.status, error["code"], error["param"]) == (status, code, param)
    assert error["message"]


@pytest.mark.parametrize("word", ["defect", "fault"])
async def test_a_failure_in_mid_stream_is_an_event_and_no_end(launch: Any, word: str) -> None:
    engine = await launch()
    await engine.health()
    async with engine.ask(word, stream=True) as answer:
        found = events(await answer.read())
    assert answer.status == 200
    assert found[0]["choices"] and set(found[-1]) == {"error"}
    assert "[DONE]" not in found


async def test_before_the_model_is_there_requests_are_told_to_wait(launch: Any) -> None:
    engine = await launch()
    for _ in range(2000):
        try:
            async with engine.ask() as answer:
                found = await answer.json()
            break
        except aiohttp.ClientConnectorError:
            await asyncio.sleep(0.005)
    assert (answer.status, answer.headers["retry-after"], found["error"]["code"]) == (503, "1", "loading")


async def test_a_client_that_leaves_frees_its_slot(launch: Any) -> None:
    engine = await launch("--slots", "1", "--queue", "1", slow=0.02)
    await engine.health()
    for stream in (True, False):
        asking = asyncio.ensure_future(engine.ask("leaves", stream=stream).__aenter__())
        await _until(engine, running=1)
        if stream:
            (await asking).close()
        else:
            asking.cancel()
        before = (await engine.health())["steps"]
        await _until(engine, running=0)
        assert (await engine.health())["steps"] - before <= 5
        await asyncio.wait((asking,))


async def test_what_is_beyond_the_queue_is_told_when_to_come_back(launch: Any) -> None:
    engine = await launch("--slots", "1", "--queue", "1", slow=0.02)
    await engine.health()
    asking = [asyncio.ensure_future(engine.ask(stream=True).__aenter__()) for _ in range(2)]
    await _until(engine, running=1, waiting=1)
    async with engine.ask(stream=True) as answer:
        error = (await answer.json())["error"]
    assert (answer.status, error["type"], error["code"]) == (429, "rate_limit_error", "queue_full")
    assert int(answer.headers["retry-after"]) >= 1
    for one in await asyncio.gather(*asking):
        one.close()


@pytest.mark.parametrize("how", ["term", "pipe"])
async def test_it_stops_when_told_and_when_nobody_is_there(launch: Any, how: str) -> None:
    engine = await launch(slow=0.02)
    await engine.health()
    async with engine.ask(stream=True) as answer:
        await answer.content.readany()
        if how == "term":
            engine.process.send_signal(signal.SIGTERM)
        else:
            engine.process.stdin.close()
        assert "error" in events(b"data: " + (await answer.read()).rpartition(b"data: ")[2])[-1]
    assert await asyncio.wait_for(engine.process.wait(), 5) == 0
    assert not engine.socket.exists() or not await _listens(engine)


async def test_a_folder_that_cannot_be_served_is_explained(launch: Any, tmp_path: Any) -> None:
    engine = await launch(model=str(tmp_path / "nowhere"))
    said = await engine.process.stderr.read()
    assert await engine.process.wait() == 2
    assert f"error: {tmp_path / 'nowhere'} does not exist" in said.decode()


async def _until(engine: Any, **wanted: int) -> None:
    for _ in range(200):
        health = await engine.health()
        if all(health[name] == value for name, value in wanted.items()):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{health} never showed {wanted}")


async def _listens(engine: Any) -> bool:
    try:
        await engine.get("/health")
    except aiohttp.ClientConnectorError:
        return False
    return True
