"""A reload keeps an engine whose settings stay, and starts another one before it ends one whose settings change."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.proxy.config.checked_config import CheckedConfig
from dragoman.proxy.config.models import Config
from dragoman.proxy.upstreams.supervision.supervisor import Supervisor

from .conftest import Local, Serve


async def reload(local: Local, **changes: JsonValue) -> bool:
    """Read the running configuration again, with other settings of the provider or of the file."""
    running = asdict(local.running.config)
    provider = {**running["providers"]["gpu"], **changes.pop("provider", {})}
    config = Config.from_values({**running, "providers": {"gpu": provider}, **changes})
    local.running.reloader._source = lambda: CheckedConfig(config, ())
    return await local.running.reloader.reload("a test")


def lives(engine: Supervisor) -> bool:
    assert engine.pid is not None
    try:
        os.kill(engine.pid, 0)
    except ProcessLookupError:
        return False
    return True


def find_lines(local: Local, event: str) -> list[JsonObject]:
    found = [json.loads(line) for line in local.log.getvalue().splitlines()]
    return [line for line in found if line["event"] == event]


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": {"unsupported": "drop"}},
        {"provider": {"rate": {"requests_per_minute": 50}}},
        {"timeouts": {"connect": 4.0}},
        {"provider": {"pool": {"idle": 3.0}}},
    ],
    ids=["policy", "rate", "timeouts", "pool"],
)
async def test_an_engine_whose_settings_stay_goes_on(local: Serve, changes: dict[str, JsonValue]) -> None:
    p = await local(slow=0.01)
    engine = p.engine
    async with p.ask(stream=True, max_tokens=20) as answer:
        await answer.content.readany()
        assert await reload(p, **changes)
        assert (await answer.read()).endswith(b"data: [DONE]\n\n")
    async with p.ask(max_tokens=4) as answer:
        assert answer.status == 200
    assert (p.engine is engine, p.engine.restarts, lives(engine)) == (True, 0, True)


async def test_another_engine_is_ready_before_the_old_one_ends(local: Serve) -> None:
    p = await local(slow=0.02)
    old = p.engine
    async with p.ask(stream=True, max_tokens=60) as answer:
        await answer.content.readany()
        assert await reload(p, provider={"slots": 3})
        assert p.engine is not old
        assert (lives(old), lives(p.engine)) == (True, True)
        assert (await answer.read()).endswith(b"data: [DONE]\n\n")
    for _ in range(500):
        if not lives(old) and not old.folder.exists():
            break
        await asyncio.sleep(0.01)
    assert (lives(old), old.folder.exists(), p.engine.folder.exists()) == (False, False, True)
    (ready,) = find_lines(p, "engine_ready")
    assert (ready["provider"], ready["pid"]) == ("gpu", p.engine.pid)
    async with p.ask(max_tokens=4) as answer:
        assert answer.status == 200


async def test_an_engine_that_cannot_start_changes_nothing_and_leaves_nothing(
    local: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = await local()
    engine, place = p.engine, tmp_path / "folders"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    assert not await reload(p, provider={"model_dir": str(tmp_path)})
    (line,) = find_lines(p, "reload_failed")
    assert line["problems"][0].startswith("the engine gpu cannot start: ")
    assert (p.engine is engine, lives(engine), list(place.iterdir())) == (True, True, [])
    async with p.ask(max_tokens=4) as answer:
        assert answer.status == 200
