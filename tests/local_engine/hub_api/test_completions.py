"""Text completions in hub form: prompts, echo, log probabilities and rejected parameters."""

from __future__ import annotations

import pytest
from service_rig import Services

from dragoman.adapters.call import JsonObject
from dragoman.adapters.faults import Fault
from dragoman.adapters.paths import Path
from dragoman.adapters.validation import load_validator
from dragoman.contract.json_types import JsonValue
from dragoman.local_engine.service import EngineService, collect_reply

A = {"logit_bias": {"65": 100}, "temperature": 0}


@pytest.fixture
async def service(services: Services) -> EngineService:
    return services("plain")


async def complete(service: EngineService, **request: JsonValue) -> JsonObject:
    events = [event async for event in service.completions({"model": "m", "prompt": "hi", **request})]
    for event in events:
        load_validator("hub/completions.event").check(event)
    found = collect_reply(events)
    load_validator("hub/completions.reply").check(found)
    return found


@pytest.mark.parametrize(
    ("prompt", "echo"),
    [("hi", ["hi"]), (["a", "b"], ["a", "b"]), ([104, 105], ["hi"]), ([[97], [98]], ["a", "b"]), (None, [""])],
)
async def test_a_prompt_is_text_or_tokens_or_a_list_of_them(
    service: EngineService, prompt: str | list[str] | list[int] | list[list[int]] | None, echo: list[str]
) -> None:
    found = await complete(service, prompt=prompt, echo=True, n=2, max_tokens=3, **A)
    assert [choice["text"] for choice in found["choices"]] == [text + "AAA" for text in echo for _ in range(2)]
    assert {choice["finish_reason"] for choice in found["choices"]} == {"length"}
    prompts = sum(max(1, len(text)) for text in echo)
    assert found["usage"]["prompt_tokens"] == prompts and found["usage"]["completion_tokens"] == 6 * len(echo)


async def test_log_probabilities_are_parallel_lists(service: EngineService) -> None:
    found = (await complete(service, logprobs=2, max_tokens=4, temperature=0))["choices"][0]["logprobs"]
    assert [len(found[key]) for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset")] == [4] * 4
    assert all(
        max(top.values()) == value for top, value in zip(found["top_logprobs"], found["token_logprobs"], strict=True)
    )
    assert (await complete(service, logprobs=0, max_tokens=1))["choices"][0]["logprobs"]["top_logprobs"] == [{}]


async def test_max_tokens_defaults_to_16_and_may_be_0(service: EngineService) -> None:
    assert (await complete(service, **A))["choices"][0]["text"] == "A" * 16
    assert (await complete(service, stop="AA", **A))["choices"][0] == {
        "index": 0, "text": "", "logprobs": None, "finish_reason": "stop",
    }  # fmt: skip
    empty = await complete(service, max_tokens=0, echo=True)
    assert (empty["choices"][0]["text"], empty["usage"]["total_tokens"]) == ("hi", 2)


@pytest.mark.parametrize(
    ("request_", "path"),
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
async def test_an_unsupported_request_is_rejected_with_its_path(
    service: EngineService, request_: JsonObject, path: Path
) -> None:
    with pytest.raises(Fault) as raised:
        await complete(service, **request_)
    assert raised.value.path == path
