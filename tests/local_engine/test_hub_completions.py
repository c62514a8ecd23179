"""Text completions in the hub's forms."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hub_rig import CPU, Json, make_folder

from dragoman.adapters.faults import Fault
from dragoman.adapters.validation import load_validator
from dragoman.local_engine.engine import Engine
from dragoman.local_engine.hub import HubEngine, whole

A = {"logit_bias": {"65": 100}, "temperature": 0}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine.load(make_folder(tmp_path_factory.mktemp("plain"), "plain"), CPU)
    yield engine
    engine.close()


@pytest.fixture
async def hub(engine: Engine) -> AsyncIterator[HubEngine]:
    yield HubEngine(engine)


async def complete(hub: HubEngine, **request: Any) -> Json:
    events = [event async for event in hub.completions({"model": "m", "prompt": "hi", **request})]
    for event in events:
        load_validator("hub/completions.event").check(event)
    found = whole(events)
    load_validator("hub/completions.reply").check(found)
    return found


@pytest.mark.parametrize(
    ("prompt", "echo"),
    [("hi", ["hi"]), (["a", "b"], ["a", "b"]), ([104, 105], ["hi"]), ([[97], [98]], ["a", "b"]), (None, [""])],
)
async def test_each_form_of_a_prompt(hub: HubEngine, prompt: Any, echo: list[str]) -> None:
    found = await complete(hub, prompt=prompt, echo=True, n=2, max_tokens=3, **A)
    assert [choice["text"] for choice in found["choices"]] == [text + "AAA" for text in echo for _ in range(2)]
    assert {choice["finish_reason"] for choice in found["choices"]} == {"length"}
    prompts = sum(max(1, len(text)) for text in echo)
    assert found["usage"]["prompt_tokens"] == prompts and found["usage"]["completion_tokens"] == 6 * len(echo)


async def test_log_probabilities_stand_side_by_side(hub: HubEngine) -> None:
    found = (await complete(hub, logprobs=2, max_tokens=4, temperature=0))["choices"][0]["logprobs"]
    assert [len(found[key]) for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset")] == [4] * 4
    assert all(
        max(top.values()) == value for top, value in zip(found["top_logprobs"], found["token_logprobs"], strict=True)
    )
    assert (await complete(hub, logprobs=0, max_tokens=1))["choices"][0]["logprobs"]["top_logprobs"] == [{}]


async def test_stops_and_sixteen_tokens_where_nothing_is_said(hub: HubEngine) -> None:
    assert (await complete(hub, **A))["choices"][0]["text"] == "A" * 16
    assert (await complete(hub, stop="AA", **A))["choices"][0] == {
        "index": 0, "text": "", "logprobs": None, "finish_reason": "stop",
    }  # fmt: skip
    nothing = await complete(hub, max_tokens=0, echo=True)
    assert (nothing["choices"][0]["text"], nothing["usage"]["total_tokens"]) == ("hi", 2)


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"suffix": "end"}, ("suffix",)),
        ({"best_of": 4}, ("best_of",)),
        ({"echo": True, "logprobs": 1}, ("logprobs",)),
        ({"prompt": ["a", "x" * 5000]}, ("prompt", 1)),
        ({"prompt": [[5], [9999]]}, ("prompt", 1)),
        ({"prompt": ["a"] * 65}, ("prompt",)),
        ({"n": 100}, ("n",)),
    ],
)
async def test_what_is_refused(hub: HubEngine, asked: Json, path: tuple[Any, ...]) -> None:
    with pytest.raises(Fault) as refused:
        await complete(hub, **asked)
    assert refused.value.path == path
