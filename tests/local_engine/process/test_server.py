"""The engine process over its socket: replies, errors, disconnecting clients, and stopping."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
from pathlib import Path

import aiohttp
import pytest
from process_rig import Launch

from dragoman.adapters.call import JsonObject


def parse_events(body: bytes) -> tuple[list[JsonObject], bool]:
    """Parse server-sent events; return those with JSON, and whether [DONE] is the last one."""
    parts = [part.removeprefix(b"data: ") for part in body.split(b"\n\n") if part]
    done = parts[-1:] == [b"[DONE]"]
    return [json.loads(part) for part in (parts[:-1] if done else parts)], done


def join_text(chunks: list[JsonObject]) -> str:
    return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)


async def test_a_ready_engine_describes_its_model_and_reply_and_stream_have_the_same_text(launch: Launch) -> None:
    """Health and the list of models describe the model; only the user can access the socket."""
    engine = await launch()
    health = await engine.wait_until_ready()
    assert (health["status"], health["model"], health["device"]) == ("ready", "tiny", "cpu")
    status, models = await engine.get("/v1/models")
    assert (status, [model["id"] for model in models["data"]]) == (200, ["tiny"])
    assert stat.S_IMODE(engine.socket.stat().st_mode) == 0o600
    async with engine.post_chat(max_tokens=12, stream=True) as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        chunks, done = parse_events(await response.read())
    assert done
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    async with engine.post_chat(max_tokens=12) as response:
        reply = await response.json()
    assert reply["choices"][0]["message"]["content"] == join_text(chunks)


ERRORS: list[tuple[str, bytes, int, str | None, str | None]] = [
    ("/v1/chat/completions", b"{", 400, "invalid_json", None),
    ("/v1/chat/completions", b"[]", 400, "invalid_json", None),
    ("/v1/chat/completions", b'{"messages": [{"content": "refuse"}]}', 400, "refused", "messages[0].content"),
    ("/v1/embeddings", b'{"input": "x"}', 400, None, "model"),
    ("/v1/chat/completions", b'{"messages": 3}', 500, "internal_error", None),
    ("/v1/nothing", b"{}", 404, "not_found", None),
    ("/health", b"{}", 405, "method_not_allowed", None),
]


async def test_errors_have_the_form_of_openai(launch: Launch) -> None:
    engine = await launch()
    await engine.wait_until_ready()
    for path, body, status, code, param in ERRORS:
        async with engine.session.post(f"http://engine{path}", data=body) as response:
            error = (await response.json())["error"]
        assert (response.status, error["code"], error["param"]) == (status, code, param), (path, body)
        assert error["message"], (path, body)


async def test_a_failure_during_a_stream_is_an_error_event_without_done(launch: Launch) -> None:
    engine = await launch()
    await engine.wait_until_ready()
    for word in ("defect", "fault"):
        async with engine.post_chat(word, stream=True) as response:
            events, done = parse_events(await response.read())
        assert response.status == 200
        assert events[0]["choices"] and set(events[-1]) == {"error"}, word
        assert not done


async def test_requests_are_rejected_while_the_model_loads(launch: Launch) -> None:
    engine = await launch()
    for _ in range(2000):
        try:
            async with engine.post_chat() as response:
                found = await response.json()
            break
        except aiohttp.ClientConnectorError:
            await asyncio.sleep(0.005)
    assert (response.status, response.headers["retry-after"], found["error"]["code"]) == (503, "1", "loading")


async def test_a_disconnecting_client_frees_its_slot(launch: Launch) -> None:
    engine = await launch("--slots", "1", "--queue", "1", slow=0.02)
    await engine.wait_until_ready()
    for stream in (True, False):
        pending = asyncio.ensure_future(engine.post_chat("leaves", stream=stream).__aenter__())
        await engine.wait_for(running=1)
        if stream:
            (await pending).close()
        else:
            pending.cancel()
        before = (await engine.wait_until_ready())["steps"]
        await engine.wait_for(running=0)
        assert (await engine.wait_until_ready())["steps"] - before <= 5
        await asyncio.wait((pending,))


async def test_a_full_queue_is_rejected_with_retry_after(launch: Launch) -> None:
    engine = await launch("--slots", "1", "--queue", "1", slow=0.02)
    await engine.wait_until_ready()
    pending = [asyncio.ensure_future(engine.post_chat(stream=True).__aenter__()) for _ in range(2)]
    await engine.wait_for(running=1, waiting=1)
    async with engine.post_chat(stream=True) as response:
        error = (await response.json())["error"]
    assert (response.status, error["type"], error["code"]) == (429, "rate_limit_error", "queue_full")
    assert int(response.headers["retry-after"]) >= 1
    for one in await asyncio.gather(*pending):
        one.close()


@pytest.mark.parametrize("signal_name", ["SIGTERM", "end of stdin"])
async def test_it_stops_on_sigterm_and_at_the_end_of_standard_input(launch: Launch, signal_name: str) -> None:
    engine = await launch(slow=0.02)
    await engine.wait_until_ready()
    async with engine.post_chat(stream=True) as response:
        await response.content.readany()
        if signal_name == "SIGTERM":
            engine.process.send_signal(signal.SIGTERM)
        else:
            assert engine.process.stdin is not None
            engine.process.stdin.close()
        events, _ = parse_events(b"data: " + (await response.read()).rpartition(b"data: ")[2])
        assert "error" in events[-1]
    assert await engine.process.wait() == 0
    assert not engine.socket.exists() or not await engine.is_listening()


async def test_an_invalid_folder_is_explained_on_standard_error(launch: Launch, tmp_path: Path) -> None:
    engine = await launch(model=str(tmp_path / "nowhere"))
    assert engine.process.stderr is not None
    error_text = await engine.process.stderr.read()
    assert await engine.process.wait() == 2
    assert f"error: {tmp_path / 'nowhere'} does not exist" in error_text.decode()
