"""The settings of reasoning, from the configuration to the provider and back."""

from __future__ import annotations

import json

import pytest

from dragoman.adapters import dialects
from dragoman.contract.json_types import JsonObject, JsonValue
from tests.proxy.running_proxy import StartProxy
from tests.proxy.scripted_upstream import StartUpstream, Wire

ASK = {"role": "user", "content": "x"}


def address(port: int, **settings: JsonValue) -> JsonObject:
    return {"dialect": "openai", "base_url": f"http://127.0.0.1:{port}/v1", **settings}


@pytest.mark.parametrize(
    ("replay", "sent"),
    [(None, {}), ("keep", {"reasoning_content": "so"}), ("rename", {"reasoning": "so"}), ("drop", {})],
)
async def test_a_target_s_replay_reaches_the_provider(
    proxy: StartProxy, upstream: StartUpstream, wire: Wire, replay: str | None, sent: JsonObject
) -> None:
    up = await upstream(wire.ok, "keep")
    target = {"provider": "p0", "model": "x"} | ({} if replay is None else {"reasoning_replay": replay})
    p = await proxy(up, speak=dialects, models={"m": {"targets": [target]}})
    said = {"role": "assistant", "content": "yes", "reasoning_content": "so"}
    answer = await p.ask(messages=[ASK, said, ASK])
    found = up.bodies[0]["messages"][1]
    assert {key: value for key, value in found.items() if key not in ("role", "content")} == sent
    assert ("reasoning_content" in answer.headers.get("x-dragoman-changes", "")) == (not sent)


@pytest.mark.parametrize(
    ("tags", "text", "thought", "said"),
    [
        (False, "<think>so</think>hello", None, "<think>so</think>hello"),
        (True, "<think>so</think>hello", "so", "hello"),
        ("implied", "so</think>hello", "so", "hello"),
    ],
)
async def test_a_provider_s_tags_are_read(
    proxy: StartProxy,
    upstream: StartUpstream,
    wire: Wire,
    tags: JsonValue,
    text: str,
    thought: str | None,
    said: str,
) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    up = await upstream(wire.http(json.dumps({**wire.reply, "choices": [choice]}).encode()), "keep")
    p = await proxy(address(up.port, reasoning_tags=tags), speak=dialects)
    message = (await p.ask()).json["choices"][0]["message"]
    assert (message.get("reasoning_content"), message["content"]) == (thought, said)
