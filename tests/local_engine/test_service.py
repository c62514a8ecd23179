"""The service of a model folder: what it adds to a request before the request is planned."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from service_rig import CPU, HI, export_family

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.engine import Engine
from dragoman.local_engine.service import EngineService, collect_reply


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A tiny random model, which repeats itself only if it is greedy."""
    folder = export_family(tmp_path_factory.mktemp("models") / "greedy", "hermes")
    (folder / "generation_config.json").write_text(json.dumps({"do_sample": False}), "utf-8")
    engine = Engine.load(folder, CPU)
    yield engine
    engine.close()


async def count_texts(service: EngineService, **parameters: float | None) -> int:
    """Ask for four choices; return how many differ."""
    request: JsonObject = {"model": "m", "messages": HI, "n": 4, "max_tokens": 12, "seed": 5, **parameters}
    reply = collect_reply([chunk async for chunk in service.chat(request)])
    return len({choice["message"]["content"] for choice in reply["choices"]})


async def test_a_chat_request_without_temperature_gets_the_models(engine: Engine) -> None:
    service = EngineService(engine)
    assert await count_texts(service) == await count_texts(service, temperature=None) == 1
    assert await count_texts(service, temperature=1) == 4


async def test_a_completions_request_without_temperature_gets_the_models(engine: Engine) -> None:
    request: JsonObject = {"model": "m", "prompt": "hi", "n": 4, "max_tokens": 12, "seed": 5}
    for more, texts in (({}, 1), ({"temperature": 1}, 4)):
        reply = collect_reply([chunk async for chunk in EngineService(engine).completions(request | more)])
        assert len({choice["text"] for choice in reply["choices"]}) == texts
