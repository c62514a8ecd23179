"""Completions of the fakes: openai's and databricks' own forms, and the behaviours that both share with chat."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from dragoman.adapters.sse import Event, Framer
from dragoman.contract.fakes import FakeProvider
from dragoman.contract.fakes.answers import SENTENCE
from dragoman.schemas import load
from tests.dialects import called, served

VARIANTS = [(dialect, profile) for dialect in served("completions") for profile in ("documented", "actual")]
PATHS = {
    "openai": ["/completions"],
    "databricks": ["/serving-endpoints/llama/invocations", "/serving-endpoints/completions"],
}


async def ask(session: Any, fake: FakeProvider, way: int = 0, **body: Any) -> tuple[int, Any]:
    """Status, and the body or the events."""
    whole = {"prompt": "hello", "stream": False, **body}
    if fake.dialect == "openai":
        whole = {"model": "llama", **whole}
    async with session.post(fake.base_url + PATHS[fake.dialect][way], json=whole) as response:
        raw = await response.read()
        if response.content_type != "text/event-stream":
            return response.status, await response.json()
    framer = Framer()
    items = [*framer.feed(raw), *framer.close()]
    return response.status, [item.data for item in items if isinstance(item, Event)]


@pytest.mark.parametrize(("dialect", "profile"), VARIANTS)
async def test_whole_and_streamed_fit_the_schema_and_one_another(dialect: str, profile: str, session: Any) -> None:
    async with FakeProvider(dialect, profile=profile) as fake:
        status, whole = await ask(session, fake)
        _, events = await ask(session, fake, stream=True)
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
async def test_indexes_count_choices_or_prompts(dialect: str, indexes: list[int], session: Any) -> None:
    async with FakeProvider(dialect) as fake:
        _, whole = await ask(session, fake, prompt=["a", "b"], n=2, echo=True)
    assert [choice["index"] for choice in whole["choices"]] == indexes
    assert [choice["text"] for choice in whole["choices"]] == ["a" + SENTENCE] * 2 + ["b" + SENTENCE] * 2


async def test_log_probabilities_and_tokens(session: Any) -> None:
    async with FakeProvider("openai") as fake:
        _, whole = await ask(session, fake, prompt=[[1, 2], [3]], logprobs=3)
    told = whole["choices"][1]["logprobs"]
    assert "".join(told["tokens"]) == SENTENCE
    assert {len(one) for one in told["top_logprobs"]} == {3}
    assert len(told["text_offset"]) == len(told["token_logprobs"]) == len(told["tokens"])


@pytest.mark.parametrize("way", [0, 1])
async def test_every_address_of_databricks(way: int, session: Any) -> None:
    async with FakeProvider("databricks") as fake:
        status, whole = await ask(session, fake, way, suffix="!")
        assert (status, whole["choices"][0]["text"]) == (200, SENTENCE + "!")
        status, refused = await ask(session, fake, way, logprobs=1)
        assert (status, refused["error_code"]) == (400, "BAD_REQUEST")
        status, refused = await ask(session, fake, way, top_p=0)
        assert (status, refused["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


async def test_a_prompt_at_the_address_of_chat_is_no_completion(session: Any) -> None:
    async with FakeProvider("openai") as fake:
        answer = await session.post(f"{fake.base_url}/chat/completions", json={"model": "m", "prompt": "x"})
        assert answer.status == 400


@pytest.mark.parametrize("dialect", called("completions"))
async def test_the_prompt_chooses_a_behaviour(dialect: str, session: Any) -> None:
    async with FakeProvider(dialect) as fake:
        status, _ = await ask(session, fake, prompt=["x", "fake:rate-limit"])
        assert status == 429
        _, events = await ask(session, fake, prompt="fake:no-done", stream=True)
        assert b"[DONE]" not in events
        _, whole = await ask(session, fake, prompt="fake:huge-event(size=0.01)")
        assert set(whole["choices"][0]["text"]) == {"x"}
