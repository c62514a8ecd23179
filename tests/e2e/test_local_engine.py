"""Clients of every dialect, and of Responses, over the local engine with a tiny model of random weights. The model
talks nonsense, so what counts is the form: schemas, counts, ends, grammars, errors."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from dragoman.local_engine.export.decoder import Options
from dragoman.local_engine.export.spec import ModelSpec
from dragoman.local_engine.export.write import export_random
from dragoman.proxy.config.models import Config
from dragoman.proxy.serve import start

DIALECTS = ("openai", "databricks", "azure", "mindie")
TINY = ModelSpec("llama", 64, 2, 4, 2, 16, 96, 272, 512, eos=(256,))
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant: "
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}, "ok": {"type": "boolean"}},
    "required": ["n", "ok"],
    "additionalProperties": False,
}
FINISH = {"mindie": {"stop": "eos_token"}}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    export_random(TINY, folder, Options("fp32", "gqa", 512), 12)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest_asyncio.fixture
async def engine_house(tiny: Path, house_type: Any) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """engine_house(**settings of the provider) is a proxy whose model `tiny` is on the local engine."""
    running = []

    async def get(**settings: Any) -> Any:
        provider = {"engine": "local", "model_dir": str(tiny), "device": "cpu", "threads": 1, **settings}
        parts = {
            "server": {"port": 0, "drain": {"delay": 0.001, "timeout": 0.1}},
            "providers": {"gpu": provider},
            "models": {"tiny": {"targets": [{"provider": "gpu"}]}},
            "store": {"kind": "memory"},
        }
        log = io.BytesIO()
        running.append(await start(Config.model_validate(parts), log_stream=log))
        return house_type(running[-1], {}, log)

    yield get
    for one in running:
        await one.stop()


async def test_all_client_dialects(engine_house: Any, client_of: Any, subtests: pytest.Subtests) -> None:
    house = await engine_house()
    for dialect in DIALECTS:
        client = client_of(house, dialect)
        with subtests.test(dialect=dialect):
            whole = await client.ask("tiny", "hello", max_tokens=12, seed=7, stream=False)
            assert whole.status == 200, whole.raw
            client.check(whole.json, "reply")
            (choice,) = whole.json["choices"]
            assert choice["finish_reason"] == "length"
            usage = whole.json["usage"]
            assert usage["completion_tokens"] == 12
            assert usage["total_tokens"] == usage["prompt_tokens"] + 12
            streamed = await client.ask("tiny", "hello", max_tokens=12, seed=7, stream=True)
            chunks = [chunk for chunk in client.check_events(streamed) if chunk["choices"]]
            text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
            assert text == choice["message"]["content"]
            assert chunks[-1]["choices"][0]["finish_reason"] == "length"


async def test_the_openai_client(engine_house: Any, subtests: pytest.Subtests) -> None:
    house = await engine_house()
    said: Any = [{"role": "user", "content": "hello"}]
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        with subtests.test("models"):
            assert [model.id async for model in client.models.list()] == ["tiny"]
        with subtests.test("extensions and log probabilities"):
            reply = await client.chat.completions.create(
                model="tiny",
                messages=said,
                max_completion_tokens=3,
                seed=1,
                n=2,
                logprobs=True,
                top_logprobs=2,
                extra_body={"top_k": 5, "min_p": 0.01},
            )
            assert [len(choice.logprobs.content) for choice in reply.choices if choice.logprobs] == [3, 3]
        with subtests.test("schema"):
            form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}
            reply = await client.chat.completions.create(model="tiny", messages=said, response_format=form, seed=3)
            found = json.loads(reply.choices[0].message.content or "")
            assert found.keys() == {"n", "ok"} and reply.choices[0].finish_reason == "stop"
        with subtests.test("usage of a stream"):
            stream = await client.chat.completions.create(
                model="tiny", messages=said, max_tokens=5, stream=True, stream_options={"include_usage": True}
            )
            *_, last = [chunk async for chunk in stream]
            assert last.usage is not None and last.usage.completion_tokens == 5
        with subtests.test("responses"):
            response = await client.responses.create(model="tiny", input="hello", max_output_tokens=20, temperature=0)
            assert response.status == "incomplete" and response.incomplete_details
            assert response.usage is not None and response.usage.output_tokens == 20
        with subtests.test("a stream of responses"):
            asked = {"model": "tiny", "input": "hello", "max_output_tokens": 20, "temperature": 0}
            events: Any = await client.responses.create(**asked, stream=True)
            kinds = [event.type async for event in events]
            assert kinds[0] == "response.created" and kinds[-1] == "response.incomplete"
            assert "response.output_text.delta" in kinds


async def test_the_engine_refuses_in_the_clients_words(
    engine_house: Any, client_of: Any, subtests: pytest.Subtests
) -> None:
    house = await engine_house(slots=1, queue=0, context=512)
    for dialect in DIALECTS:
        client = client_of(house, dialect)
        with subtests.test("too long", dialect=dialect):
            client.check_error(await client.ask("tiny", "x" * 600), "invalid_request", "has 618 tokens")
        with subtests.test("queue full", dialect=dialect):
            asked = [client.ask("tiny", f"{i}" * 200, max_tokens=250, seed=7) for i in range(4)]
            answers = await asyncio.gather(*asked)
            assert 200 in [answer.status for answer in answers]
            refused = [answer for answer in answers if answer.status != 200]
            assert refused
            for answer in refused:
                client.check_error(answer, "rate_limit")
                assert int(answer.headers["retry-after"]) >= 1


async def test_a_client_that_leaves_frees_the_slot(engine_house: Any, client_of: Any) -> None:
    house = await engine_house(slots=1, queue=0)
    client = client_of(house, "openai")
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "stream": True}
    for _ in range(5):
        async with client.session.post(f"{house.base_url}/chat/completions", json=body) as answer:
            assert answer.status == 200
            await answer.content.readany()
        await asyncio.sleep(0.05)
