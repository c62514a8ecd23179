"""The clock of the machine jumps. Stored responses stay."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dragoman.contract.json_types import JsonObject
from tests.proxy.scripted_upstream import Upstream, http
from tests.resilience.serving_process import ServingProcess, configure, listen, serve

MESSAGE = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
REPLY = {"id": "c", "object": "chat.completion", "created": 1, "model": "up", "choices": [MESSAGE]}
DAY = 86_400
PRELUDE = """
import time
from pathlib import Path
true_time, ahead = time.time, Path({file!r})
time.time = lambda: true_time() + float(ahead.read_text())
"""


class Clock:
    """The clock of a process, which shows a wrong time."""

    def __init__(self, file: Path) -> None:
        self.prelude = PRELUDE.format(file=str(file))
        self._file = file
        self.set_ahead(0)

    def set_ahead(self, seconds: float) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        new.rename(self._file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "ahead")


@pytest.fixture
async def config(tmp_path: Path) -> AsyncIterator[JsonObject]:
    async with listen(Upstream([http(json.dumps(REPLY).encode()), "keep"])) as port:
        yield configure(port, store={"kind": "sqlite", "path": str(tmp_path / "responses.db")})


async def store(proxy: ServingProcess) -> str:
    """The id of a new stored response."""
    async with proxy.session.post(f"{proxy.url}/v1/responses", json={"model": "m", "input": "hi"}) as response:
        assert response.status == 200, await response.text()
        response_id: str = (await response.json())["id"]
        return response_id


async def get_statuses(proxy: ServingProcess, ids: list[str]) -> list[int]:
    return [await proxy.get(f"/v1/responses/{each}") for each in ids]


@pytest.mark.parametrize("days", [40, -40])
async def test_a_clock_that_jumps_for_a_moment_deletes_nothing(
    tmp_path: Path, config: JsonObject, clock: Clock, days: int
) -> None:
    async with serve(tmp_path, config, prelude=clock.prelude) as proxy:
        ids = [await store(proxy) for _ in range(3)]
        clock.set_ahead(days * DAY)
        ids += [await store(proxy) for _ in range(3)]
        assert await get_statuses(proxy, ids) == [200] * 6
        clock.set_ahead(0)
        ids += [await store(proxy)]
        assert await get_statuses(proxy, ids) == [200] * 7
        proxy.send_signal(signal.SIGTERM)
        assert await proxy.wait() == 0
    events = [json.loads(line) for line in (tmp_path / "stderr.log").read_text().splitlines() if line.startswith("{")]
    reports = [event["message"] for event in events if event.get("reason") == "clock_changed"]
    assert len(reports) == 2
    assert f"960.0 hours {'ahead' if days > 0 else 'back'}" in reports[0]


async def test_a_wrong_clock_at_the_start_deletes_nothing(tmp_path: Path, config: JsonObject, clock: Clock) -> None:
    async with serve(tmp_path, config, prelude=clock.prelude) as proxy:
        ids = [await store(proxy) for _ in range(3)]
    for days in (40, -40, 0):
        clock.set_ahead(days * DAY)
        async with serve(tmp_path, config, prelude=clock.prelude) as proxy:
            ids.append(await store(proxy))
            assert await get_statuses(proxy, ids) == [200] * len(ids)


async def test_a_conversation_goes_on_while_the_clock_is_set_back(
    tmp_path: Path, config: JsonObject, clock: Clock
) -> None:
    async with serve(tmp_path, config, prelude=clock.prelude) as proxy:
        previous = await store(proxy)
        for hours in range(1, 4):
            clock.set_ahead(-hours * 3600)
            body = {"model": "m", "input": "go on", "previous_response_id": previous}
            async with proxy.session.post(f"{proxy.url}/v1/responses", json=body) as response:
                assert response.status == 200
                previous = (await response.json())["id"]
        async with proxy.session.get(f"{proxy.url}/v1/responses/{previous}/input_items") as response:
            items = await response.json()
        assert (response.status, len(items["data"]), items["has_more"]) == (200, 1, False)
