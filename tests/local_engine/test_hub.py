"""Chat in the hub's forms: every chunk is valid, and every parameter means what the hub says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_rig import CPU, HI, Json, chunks, make_folder, reply, says, tool

from dragoman.adapters.faults import Fault
from dragoman.local_engine.engine import Engine
from dragoman.local_engine.service import EngineService, collect_reply
from dragoman.local_engine.model_folder.files import FolderError

FAMILIES = ["hermes", "qwen_thinking", "llama3", "mistral", "mistral_args", "pythonic"]
UNITS = {
    "type": "object",
    "properties": {"unit": {"enum": ["C", "F"]}, "on": {"type": "boolean"}},
    "required": ["unit"],
}
TOOLS = [tool("weather", UNITS), tool("clock")]
Hubs = Callable[[str], EngineService]


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Engine]]:
    loaded: dict[str, Engine] = {}

    def get(family: str) -> Engine:
        if family not in loaded:
            loaded[family] = Engine.load(make_folder(tmp_path_factory.mktemp(family), family), CPU)
        return loaded[family]

    yield get
    for engine in loaded.values():
        engine.close()


@pytest.fixture
async def hubs(engines: Callable[[str], Engine]) -> AsyncIterator[Hubs]:
    yield lambda family: EngineService(engines(family))


async def test_a_stream_begins_with_the_role_and_ends_with_usage(hubs: Hubs) -> None:
    found = await chunks(hubs("hermes"), max_tokens=8, seed=3, n=2, stream=True, stream_options={"include_usage": True})
    assert [chunk["choices"][0]["delta"] for chunk in found[:2]] == [{"role": "assistant", "content": ""}] * 2
    ends = [chunk["choices"][0] for chunk in found if chunk["choices"] and chunk["choices"][0]["finish_reason"]]
    assert sorted((end["index"], end["finish_reason"]) for end in ends) == [(0, "length"), (1, "length")]
    assert found[-1]["usage"]["completion_tokens"] == 16 and not found[-1]["choices"]
    assert len({(chunk["id"], chunk["model"], chunk["created"]) for chunk in found}) == 1
    assert not any("usage" in chunk for chunk in await chunks(hubs("hermes"), max_tokens=2, stream=True))


async def test_a_second_request_finds_its_prompt_kept(hubs: Hubs) -> None:
    messages = [{"role": "user", "content": "the same long beginning, word for word"}]
    first = await reply(hubs("hermes"), messages=messages, max_tokens=2)
    again = await reply(hubs("hermes"), messages=messages, max_tokens=2)
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > first["usage"]["prompt_tokens"] // 2


async def test_a_seed_gives_the_same_words_and_choices_differ(hubs: Hubs) -> None:
    asked: Json = {"seed": 7, "n": 2, "max_tokens": 12, "min_p": 0.01, "top_k": 50, "top_p": 0.9}
    one, two = [await reply(hubs("hermes"), **asked) for _ in range(2)]
    texts = [choice["message"]["content"] for choice in one["choices"]]
    assert texts == [choice["message"]["content"] for choice in two["choices"]] and texts[0] != texts[1]


async def test_log_probabilities_come_for_each_token(hubs: Hubs) -> None:
    found = await reply(hubs("hermes"), logprobs=True, top_logprobs=3, max_tokens=10, temperature=0)
    told = found["choices"][0]["logprobs"]["content"]
    assert len(told) == 10
    assert all(one["top_logprobs"][0]["logprob"] == one["logprob"] <= 0 for one in told)
    assert all(len(one["top_logprobs"]) == 3 for one in told)
    assert (
        b"".join(bytes(one["bytes"]) for one in told).decode(errors="replace")
        == found["choices"][0]["message"]["content"]
    )


async def test_bias_stop_and_its_string(hubs: Hubs) -> None:
    asked: Json = {"logit_bias": {"65": 100}, "max_tokens": 6, "temperature": 0}
    assert (await reply(hubs("hermes"), **asked))["choices"][0]["message"]["content"] == "AAAAAA"
    found = await reply(hubs("hermes"), **asked, stop=["AAA"])
    assert (found["choices"][0]["message"]["content"], found["choices"][0]["finish_reason"]) == ("", "stop")
    found = await reply(hubs("hermes"), **asked, stop="AAA", include_stop_str_in_output=True)
    assert found["choices"][0]["message"]["content"] == "AAA"
    found = await reply(hubs("hermes"), logit_bias={"65": 2}, frequency_penalty=2, max_tokens=6, stop_token_ids=[65])
    assert found["usage"]["completion_tokens"] <= 6


CALL = '<tool_call>\n{"name": "weather", "arguments": {"unit": "C"}}\n</tool_call>'


async def test_calls_stream_with_ids_of_their_own(hubs: Hubs) -> None:
    hub = says(hubs("hermes"), f"Let me see.\n{CALL}\n{CALL}", CALL)
    found = whole(await chunks(hub, tools=TOOLS, n=2))
    one, two = [choice["message"] for choice in found["choices"]]
    assert one["content"] == "Let me see." and two["content"] is None
    calls = [*one["tool_calls"], *two["tool_calls"]]
    assert len({call["id"] for call in calls}) == 3
    assert all(json.loads(call["function"]["arguments"]) == {"unit": "C"} for call in calls)
    assert [choice["finish_reason"] for choice in found["choices"]] == ["tool_calls", "tool_calls"]
    assert found["usage"]["prompt_tokens_details"]["cached_tokens"] == 2
    deltas = [c["choices"][0]["delta"] for c in await chunks(hub, tools=TOOLS, n=2) if c["choices"]]
    assert sum("tool_calls" in delta for delta in deltas) > 6, "arguments come piece by piece"


async def test_without_tools_a_call_is_text(hubs: Hubs) -> None:
    for asked in ({}, {"tools": TOOLS, "tool_choice": "none"}):
        found = await reply(says(hubs("hermes"), CALL), **asked)
        assert found["choices"][0]["message"]["content"] == CALL


async def test_functions_are_answered_in_their_old_form(hubs: Hubs) -> None:
    functions = [one["function"] | {"parameters": UNITS} for one in TOOLS]
    found = await reply(says(hubs("hermes"), CALL), functions=functions)
    assert found["choices"][0]["finish_reason"] == "function_call"
    assert found["choices"][0]["message"]["function_call"] == {"name": "weather", "arguments": '{"unit": "C"}'}


async def test_reasoning_is_told_apart_and_counted(hubs: Hubs) -> None:
    hub = says(hubs("qwen_thinking"), f"<think>\nhm, hm\n</think>\n\nYes. {CALL}")
    message = (found := await reply(hub, tools=TOOLS))["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("hm, hm", "Yes.")
    assert message["tool_calls"][0]["function"]["name"] == "weather"
    assert 4 <= found["usage"]["completion_tokens_details"]["reasoning_tokens"] <= 9
    hub = says(hubs("qwen_thinking"), "so be it</think>done")
    message = (await reply(hub, chat_template_kwargs={"always": True}))["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("so be it", "done")


@pytest.mark.parametrize("family", FAMILIES)
async def test_a_tool_that_is_required_is_called(hubs: Hubs, family: str) -> None:
    named: Json = {"type": "function", "function": {"name": "weather"}}
    allowed: Json = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [tool("weather")]}}
    switched = {"reasoning_effort": "none"} if family == "qwen_thinking" else {}
    for choice in (named, allowed, "required"):
        more: Json = {"tool_choice": choice, "parallel_tool_calls": choice != named, "max_tokens": 2000, **switched}
        found = await reply(hubs(family), tools=TOOLS, seed=5, **more)
        (made,) = found["choices"]
        assert made["finish_reason"] == "tool_calls" and not made["message"]["content"]
        for call in made["message"]["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            assert call["function"]["name"] == "weather" or (choice == "required" and arguments == {})
            assert choice == "required" or arguments["unit"] in ("C", "F")
            assert len(call["id"]) == 9 if family.startswith("mistral") else call["id"].startswith("call_")


REFUSED: list[tuple[Json, tuple[Any, ...]]] = [
    ({"temperature": 3}, ("temperature",)),
    ({"n": 200}, ("n",)),
    ({"n": 100}, ("n",)),
    ({"logit_bias": {"99999": 1}}, ("logit_bias",)),
    ({"logit_bias": {"word": 1}}, ("logit_bias", "word")),
    ({"logit_bias": {"5": 101}}, ("logit_bias", "5")),
    ({"modalities": ["audio"]}, ("modalities",)),
    ({"use_beam_search": True}, ("use_beam_search",)),
    ({"best_of": 3}, ("best_of",)),
    ({"unheard_of": 1}, ("unheard_of",)),
    ({"messages": [{"role": "user", "content": "x" * 5000}]}, ("messages",)),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]},
        ("messages", 0, "content", 0, "type"),
    ),
    ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, ("tools", 0, "type")),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "no"}}}, ("tool_choice",)),
    (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "thing"}}}},
        ("response_format", "json_schema", "schema"),
    ),
    (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "x", "strict": True, "schema": {"type": "array", "uniqueItems": True}},
            }
        },
        ("response_format", "json_schema", "schema"),
    ),
]


@pytest.mark.parametrize(("asked", "path"), REFUSED, ids=lambda value: str(value)[:40])
async def test_what_is_wrong_is_told_with_its_path(hubs: Hubs, asked: Json, path: tuple[Any, ...]) -> None:
    with pytest.raises(Fault) as refused:
        await reply(hubs("hermes"), **asked)
    assert refused.value.path == path and refused.value.owner == "client"


async def test_a_client_that_leaves_frees_the_engine(hubs: Hubs) -> None:
    hub = hubs("hermes")
    stream = hub.chat({"model": "m", "messages": HI, "ignore_eos": True})
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    assert (await reply(hub, max_tokens=1))["usage"]["completion_tokens"] == 1
    assert hub._engine is not None and hub._engine.statistics()["running"] == 0


async def test_folders_that_cannot_chat(hubs: Hubs, tmp_path: Path) -> None:
    plain = hubs("plain")
    assert plain.verbs == ("completions",) and plain.name == "plain"
    with pytest.raises(Fault, match="it has no chat template"):
        await reply(plain)
    with pytest.raises(Fault, match="embeddings need an encoder"):
        await plain.embeddings({"model": "m", "input": "x"})
    folder = make_folder(tmp_path, "hermes")
    for settings, said in (
        ({"tools": "x"}, "known are"),
        ({"reasoning": 3}, "reasoning is true"),
        ({"template": "no.jinja"}, "no file"),
    ):
        (folder / "dragoman.json").write_text(json.dumps(settings))
        engine = Engine.load(folder, CPU)
        with pytest.raises(FolderError, match=said):
            EngineService(engine)
        engine.close()
