"""The policy `replies: report`: replies go through untouched, and the log says how often they broke their schema."""

from __future__ import annotations

import io
import json

import aiohttp
import pytest

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonObject
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import start


@pytest.mark.parametrize("stream", [False, True])
async def test_violations_are_counted_and_nothing_is_repaired(stream: bool) -> None:
    log = io.BytesIO()
    async with FakeProvider("mindie", profile="documented") as fake:
        provider = {"dialect": "mindie", "base_url": fake.base_url, "profile": "documented"}
        config = Config.from_values(
            {
                "server": {"port": 0, "drain": {"delay": 0.001}},
                "providers": {"p": provider | {"policy": {"replies": "report"}}},
                "models": {"m": {"targets": [{"provider": "p"}]}},
            }
        )
        running = await start(config, log_stream=log)
        fake.script("wrong-object")
        body: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": stream}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{running.url}/v1/chat/completions", json=body) as response,
        ):
            assert response.status == 200
            raw = await response.read()
        await running.stop()
    assert b"eos_token" in raw, "the finish reason is the provider's own"
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["violations"] > 0 for line in lines if line["event"] == "exchange"] == [True]
