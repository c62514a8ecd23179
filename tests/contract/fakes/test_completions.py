"""The completions of the fakes: the forms of openai and databricks, and the behaviours that they share with chat."""

from __future__ import annotations

import json

import aiohttp
import jsonschema_rs
import pytest

from dragoman.adapters.sse import Event, Framer
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.fakes.answers import SENTENCE
from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.schemas import load
from tests.dialects import called, served

VARIANTS = [(dialect, profile) for dialect in served("completions") for profile in ("documented", "actual")]
PATHS = {
    "openai": ["/completions"],
    "databricks": ["/serving-endpoints/llama/invocations", "/serving-endpoints/completions"],
}


async def complete(
    session: aiohttp.ClientSession, fake: FakeProvider, path: int = 0, **fields: JsonValue
) -> tuple[int, JsonValue]:
    """Send a prompt. Return the status, and the body or the data of the events."""
    body: JsonObject = {"prompt": "hello", "stream": False, **fields}
    if fake.dialect == "openai":
        body = {"model": "llama", **body}
    async with session.post(fake.base_url + PATHS[fake.dialect][path], json=body) as response:
        raw = await response.read()
        if response.content_type != "text/event-stream":
            return response.status, await response.json()
    framer = Framer()
    items = [*framer.feed(raw), *framer.close()]
    return response.status, [item.data for item in items if isinstance(item, Event)]


@pytest.mark.parametrize(("dialect", "profile"), VARIANTS)
async def test_whole_and_streamed_completions_are_equal_and_valid(
    dialect: str, profile: str, session: aiohttp.ClientSession
) -> None:
    async with FakeProvider(dialect, profile=profile) as fake:
        status, whole = await complete(session, fake)
        _, events = await complete(session, fake, stream=True)
    assert status == 200
    assert jsonschema_rs.is_valid(load(f"{dialect}/completions.reply", profile), whole)
    assert events.pop() == b"[DONE]"
    chunks = [json.loads(event) for event in events]
    rules = jsonschema_rs.Draft202012Validator(load(f"{dialect}/completions.event", profile))
    assert all(rules.is_valid(chunk) for chunk in chunks)
    text = "".join(choice["text"] for chunk in chunks for choice in chunk["choices"])
    assert whole["choices"][0]["text"] == text == SENTENCE
    assert ("model" in whole) == (dialect == "openai")
    assert bool(chunks[-1].get("usage")) == ((dialect, profile) == ("databricks", "actual"))


@pytest.mark.parametrize(("dialect", "indexes"), [("openai", [0, 1, 2, 3]), ("databricks", [0, 0, 1, 1])])
async def test_index_counts_choices_or_prompts(
    dialect: str, indexes: list[int], session: aiohttp.ClientSession
) -> None:
    async with FakeProvider(dialect) as fake:
        _, whole = await complete(session, fake, prompt=["a", "b"], n=2, echo=True)
    assert [choice["index"] for choice in whole["choices"]] == indexes
    assert [choice["text"] for choice in whole["choices"]] == ["a" + SENTENCE] * 2 + ["b" + SENTENCE] * 2


async def test_logprobs_cover_every_token(session: aiohttp.ClientSession) -> None:
    async with FakeProvider("openai") as fake:
        _, whole = await complete(session, fake, prompt=[[1, 2], [3]], logprobs=3)
    logprobs = whole["choices"][1]["logprobs"]
    assert "".join(logprobs["tokens"]) == SENTENCE
    assert {len(one) for one in logprobs["top_logprobs"]} == {3}
    assert len(logprobs["text_offset"]) == len(logprobs["token_logprobs"]) == len(logprobs["tokens"])


@pytest.mark.parametrize("path", [0, 1])
async def test_databricks_serves_both_paths(path: int, session: aiohttp.ClientSession) -> None:
    async with FakeProvider("databricks") as fake:
        status, whole = await complete(session, fake, path, suffix="!")
        assert (status, whole["choices"][0]["text"]) == (200, SENTENCE + "!")
        status, refused = await complete(session, fake, path, logprobs=1)
        assert (status, refused["error_code"]) == (400, "BAD_REQUEST")
        status, refused = await complete(session, fake, path, top_p=0)
        assert (status, refused["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


async def test_openai_refuses_a_prompt_on_the_path_of_chat(session: aiohttp.ClientSession) -> None:
    async with FakeProvider("openai") as fake:
        answer = await session.post(f"{fake.base_url}/chat/completions", json={"model": "m", "prompt": "x"})
        assert answer.status == 400


@pytest.mark.parametrize("dialect", called("completions"))
async def test_prompt_selects_a_behaviour(dialect: str, session: aiohttp.ClientSession) -> None:
    async with FakeProvider(dialect) as fake:
        status, _ = await complete(session, fake, prompt=["x", "fake:rate-limit"])
        assert status == 429
        _, events = await complete(session, fake, prompt="fake:no-done", stream=True)
        assert b"[DONE]" not in events
        _, whole = await complete(session, fake, prompt="fake:huge-event(size=0.01)")
        assert set(whole["choices"][0]["text"]) == {"x"}
