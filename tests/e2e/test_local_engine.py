"""Clients of every dialect, and of Responses, over the local engine with a tiny model of random weights. The model
talks nonsense, so what counts is the form: schemas, counts, ends, grammars, errors."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
import pytest_asyncio
from onnx import TensorProto, helper, numpy_helper
from openai import APIError, AsyncOpenAI

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.local_engine.export.byte_tokenizer import byte_tokenizer
from dragoman.local_engine.export.decoder_graph import ExportOptions
from dragoman.local_engine.export.exporter import export_random_model
from dragoman.local_engine.export.spec import ModelSpec
from dragoman.proxy.config.models import Config
from dragoman.proxy.server.lifecycle import RunningProxy, start
from dragoman.proxy.upstreams.supervision.supervisor import Supervisor
from tests.dialects import DIALECTS

from .client import MakeClient
from .house import BuildHouse, House

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
    export_random_model(TINY, folder, ExportOptions("fp32", "gqa", 512), 12)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture(scope="session")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that takes some milliseconds for a token, and never ends by itself."""
    folder = tmp_path_factory.mktemp("slow")
    export_random_model(
        ModelSpec("llama", 512, 4, 8, 2, 64, 1536, 272, 512), folder, ExportOptions("fp32", "gqa", 512), 12
    )
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """Vectors are rows of a table."""
    info = helper.make_tensor_value_info
    ids, mask = (info(name, TensorProto.INT64, ["b", "s"]) for name in ("input_ids", "attention_mask"))
    table = numpy_helper.from_array(np.random.RandomState(2).standard_normal((272, 8)).astype(np.float32), "table")
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    graph = helper.make_graph(nodes, "g", [ids, mask], [info("last_hidden_state", 1, ["b", "s", 8])], [table])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "tokenizer.json").write_text(json.dumps(byte_tokenizer(TINY)), "utf-8")
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 30}', "utf-8")
    return tmp_path


@pytest_asyncio.fixture
async def engine_house(tiny: Path) -> AsyncIterator[BuildHouse]:
    """engine_house(**settings of the provider) is a proxy whose model `tiny` is on the local engine."""
    running = []

    async def get(**settings: object) -> House:
        retries = settings.pop("retries", {})
        provider = {"engine": "local", "model_dir": str(tiny), "device": "cpu", "threads": 1, **settings}
        parts = {
            "retries": retries,
            "server": {"port": 0, "drain": {"delay": 0.001, "timeout": 0.1}},
            "providers": {"gpu": provider},
            "models": {"tiny": {"targets": [{"provider": "gpu"}]}},
            "store": {"kind": "memory"},
        }
        log = io.BytesIO()
        running.append(await start(Config.from_values(parts), log_stream=log))
        return House(running[-1], {}, log)

    yield get
    for one in running:
        await one.stop()


async def test_all_client_dialects(engine_house: BuildHouse, client_of: MakeClient, subtests: pytest.Subtests) -> None:
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


async def test_the_openai_client(engine_house: BuildHouse, subtests: pytest.Subtests) -> None:
    house = await engine_house()
    said: list[JsonObject] = [{"role": "user", "content": "hello"}]
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
            form: JsonObject = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}
            reply = await client.chat.completions.create(model="tiny", messages=said, response_format=form, seed=3)
            found = json.loads(reply.choices[0].message.content or "")
            assert found.keys() == {"n", "ok"} and reply.choices[0].finish_reason == "stop"
        with subtests.test("usage of a stream"):
            stream = await client.chat.completions.create(
                model="tiny",
                messages=said,
                max_tokens=5,
                temperature=0,
                stream=True,
                stream_options={"include_usage": True},
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


async def test_completions_of_the_openai_client(engine_house: BuildHouse) -> None:
    house = await engine_house(protocols=["chat", "completions"])
    asked: JsonObject = {"model": "tiny", "prompt": ["a", "b"], "max_tokens": 6, "seed": 5, "logprobs": 2}
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        whole = await client.completions.create(**asked)
        assert [(choice.index, choice.finish_reason) for choice in whole.choices] == [(0, "length"), (1, "length")]
        assert whole.usage is not None and (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (2, 12)
        texts = ["", ""]
        async for chunk in await client.completions.create(**asked, stream=True):
            for choice in chunk.choices:
                texts[choice.index] += choice.text
        assert texts == [choice.text for choice in whole.choices]


async def test_embeddings_of_the_openai_client(engine_house: BuildHouse, encoder: Path) -> None:
    house = await engine_house(model_dir=str(encoder), protocols=["embeddings"])
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as client:
        reply = await client.embeddings.create(model="tiny", input=["one", "a longer text"])
        assert [len(one.embedding) for one in reply.data] == [8, 8]
        assert reply.usage.total_tokens == len("one") + len("a longer text")
        floats = await client.embeddings.create(model="tiny", input="one", encoding_format="float")
        assert floats.data[0].embedding == pytest.approx(reply.data[0].embedding)


async def test_kill_9_under_load(
    engine_house: BuildHouse, client_of: MakeClient, slow: Path, subtests: pytest.Subtests
) -> None:
    """Streams of every dialect end with an error event of theirs; the engine comes back by itself."""
    house = await engine_house(model_dir=str(slow))
    engine = house.proxy.upstreams[0].engine
    before = engine.pid
    clients = {dialect: client_of(house, dialect) for dialect in DIALECTS}
    asked = [client.ask("tiny", "hello", max_tokens=400, stream=True) for client in clients.values()]
    streams = [asyncio.ensure_future(one) for one in asked]
    async with AsyncOpenAI(base_url=house.base_url, api_key="any", max_retries=0) as sdk:
        events: Any = await sdk.responses.create(model="tiny", input="hello", max_output_tokens=400, stream=True)
        await begin_streams(house.proxy, 5)
        os.kill(before, signal.SIGKILL)
        kinds = []
        with pytest.raises(APIError, match="the reply was cut short"):
            async for event in events:
                kinds.append(event.type)
        assert "response.output_text.delta" in kinds and "response.completed" not in kinds
        said: list[JsonObject] = [{"role": "user", "content": "hello"}]
        after = await sdk.chat.completions.create(model="tiny", messages=said, max_tokens=4)
        assert after.usage is not None and after.usage.completion_tokens == 4
    for (dialect, client), answer in zip(clients.items(), await asyncio.gather(*streams), strict=True):
        with subtests.test(dialect=dialect):
            assert client.check_broken(answer)
    assert engine.pid != before and engine.restarts == 1


async def statistics(socket: Path) -> JsonValue:
    connector = aiohttp.UnixConnector(str(socket))
    async with aiohttp.ClientSession(connector=connector) as session, session.get("http://engine/health") as answer:
        return await answer.json()


async def begin_streams(proxy: RunningProxy, count: int) -> None:
    """Return once the clients have the heads of so many streams."""
    for _ in range(6000):
        begun = [getattr(one, "_downstream", None) for one in proxy._gateway.running]
        if sum(one is not None and one.response is not None for one in begun) == count:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"there were never {count} streams")


async def running(engine: Supervisor, count: int) -> None:
    """Return once the engine serves that many."""
    for _ in range(2000):
        if (await statistics(engine.socket))["running"] == count:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"the engine never served {count}")


async def test_the_engine_refuses_in_the_clients_words(
    engine_house: BuildHouse, client_of: MakeClient, slow: Path, subtests: pytest.Subtests
) -> None:
    house = await engine_house(model_dir=str(slow), slots=1, queue=0, context=512, retries={"attempts": 1})
    engine = house.proxy.upstreams[0].engine
    for dialect in DIALECTS:
        client = client_of(house, dialect)
        with subtests.test("too long", dialect=dialect):
            client.check_error(await client.ask("tiny", "x" * 600), "invalid_request", "has 618 tokens")
        with subtests.test("queue full", dialect=dialect):
            longest = asyncio.ensure_future(client.ask("tiny", "hello", max_tokens=400))
            await running(engine, 1)
            answer = await client.ask("tiny", "hello", max_tokens=4)
            client.check_error(answer, "rate_limit")
            assert int(answer.headers["retry-after"]) >= 1
            longest.cancel()
            await running(engine, 0)


async def test_a_client_that_leaves_frees_the_slot(engine_house: BuildHouse, client_of: MakeClient) -> None:
    house = await engine_house(slots=1, queue=0)
    client = client_of(house, "openai")
    body = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "stream": True}
    for _ in range(5):
        async with client.session.post(f"{house.base_url}/chat/completions", json=body) as answer:
            assert answer.status == 200
            await answer.content.readany()
        await running(house.proxy.upstreams[0].engine, 0)
