"""Guided decoding: whatever the schema, what a model of random weights writes is valid."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hub_rig import CPU, HI, Json, make_folder, reply, says, tool
from jsonschema import Draft202012Validator

from dragoman.local_engine.engine import Engine
from dragoman.local_engine.guidance.grammar_masks import GrammarCompiler
from dragoman.local_engine.service import EngineService

SCHEMAS, AT_ONCE = 200, 12


def random_schema(dice: random.Random, depth: int = 0) -> Json:
    """A schema whose values are of bounded length, so that a model that rolls dice comes to an end."""
    leaves = [_text, _number, _word, _constant, _pattern]
    nested = [_object, _array, _either, _reference] if depth < 3 else []
    return dice.choice([*leaves, *nested * 2])(dice, depth)


def _text(dice: random.Random, depth: int) -> Json:
    least = dice.randrange(3)
    return {"type": "string", "minLength": least, "maxLength": least + dice.randrange(6)}


def _number(dice: random.Random, depth: int) -> Json:
    least = dice.randrange(-200, 200)
    if dice.random() < 0.3:
        return {"type": dice.choice(["boolean", "null"])}
    return {"type": "integer", "minimum": least, "maximum": least + dice.randrange(500)}


def _word(dice: random.Random, depth: int) -> Json:
    return {"enum": dice.sample(["red", 'a "b"', 7, None, True, "ü\n", 2.5, "{}"], dice.randrange(1, 5))}


def _constant(dice: random.Random, depth: int) -> Json:
    return {"const": dice.choice(["fixed", 0, False, None, ["a", 1], {"k": "v"}])}


def _pattern(dice: random.Random, depth: int) -> Json:
    return {
        "type": "string",
        **dice.choice([{"pattern": "^[a-f]{2,4}$"}, {"pattern": r"^\d{3}-\d{2}$"}, {"format": "date"}]),
    }


def _object(dice: random.Random, depth: int) -> Json:
    names = dice.sample(["a", "b_c", "naïve", "with space", 'q"uote', "x1"], dice.randrange(5))
    properties = {name: random_schema(dice, depth + 1) for name in names}
    required = [name for name in names if dice.random() < 0.7]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _array(dice: random.Random, depth: int) -> Json:
    least = dice.randrange(3)
    return {
        "type": "array",
        "items": random_schema(dice, depth + 1),
        "minItems": least,
        "maxItems": least + dice.randrange(3),
    }


def _either(dice: random.Random, depth: int) -> Json:
    return {"anyOf": [random_schema(dice, depth + 1) for _ in range(dice.randrange(1, 4))]}


def _reference(dice: random.Random, depth: int) -> Json:
    if depth:
        return _object(dice, depth)
    shared = {
        "type": "object",
        "properties": {"v": random_schema(dice, 2)},
        "required": ["v"],
        "additionalProperties": False,
    }
    pair = {"first": {"$ref": "#/$defs/shared"}, "second": {"$ref": "#/$defs/shared"}}
    return {"type": "object", "properties": pair, "additionalProperties": False, "$defs": {"shared": shared}}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Any:
    engine = Engine.load(make_folder(tmp_path_factory.mktemp("guided"), "qwen_thinking"), CPU)
    yield engine
    engine.close()


@pytest.fixture
async def hub(engine: Engine) -> AsyncIterator[EngineService]:
    yield EngineService(engine)


def shaped(schema: Json, *, strict: bool = True) -> Json:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": strict}}
    return {"response_format": wanted, "reasoning_effort": "none", "max_tokens": 3000}


async def test_random_schemas_are_obeyed(hub: EngineService) -> None:
    dice = random.Random(41)
    schemas = [random_schema(dice) for _ in range(SCHEMAS)]
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int, schema: Json) -> None:
        async with turns:
            (choice,) = (await reply(hub, **shaped(schema), seed=seed))["choices"]
        assert choice["finish_reason"] == "stop", (schema, choice)
        Draft202012Validator(schema).validate(json.loads(choice["message"]["content"]))

    await asyncio.gather(*(one(seed, schema) for seed, schema in enumerate(schemas)))


async def test_objects_of_any_kind_and_compact(hub: EngineService) -> None:
    closing = {"logit_bias": {str(ord("}")): 60, str(ord('"')): 20}}
    asked: Json = {"response_format": {"type": "json_object"}, "reasoning_effort": "none", "max_tokens": 500}
    found = (await reply(hub, **asked, **closing))["choices"][0]
    assert found["finish_reason"] == "stop" and isinstance(json.loads(found["message"]["content"]), dict)


async def test_keywords_that_cannot_be_enforced_are_let_go_unless_strict(hub: EngineService) -> None:
    schema: Json = {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "maxItems": 2}
    found = (await reply(hub, **shaped(schema, strict=False)))["choices"][0]
    assert set(json.loads(found["message"]["content"])) <= {1, 2}


@pytest.mark.parametrize(("switch", "said"), [({"always": True}, ""), ({}, "<think>"), ({}, None)])
async def test_a_grammar_follows_the_reasoning(hub: EngineService, switch: Json, said: str | None) -> None:
    """Where the prompt has opened the reasoning, where the model opens it, and where it does not think."""
    assert hub._planner is not None
    asked = shaped({"enum": ["yes", "no"]}) | {"reasoning_effort": None, "chat_template_kwargs": switch}
    plan = hub._planner.plan({"model": "m", "messages": HI, **asked})
    assert plan.opened == (said == "") and plan.generation.mask is not None
    mask = plan.generation.mask()
    for token in b"" if said is None else f"{said}hm {{}} yes</think>\n".encode():
        assert mask.accept(token) is False
    words = memoryview(bytearray(4 * 9)).cast("i")
    assert mask.fill(words)
    allowed = {chr(bit) for bit in range(272) if words.tobytes()[bit // 8] >> bit % 8 & 1}
    assert '"' in allowed and allowed <= {'"', " ", "\n", "<"} and ("<" in allowed) == (said is None)
    assert [mask.accept(token) for token in b'"no"'] == [False, False, False, True]


def test_a_lazy_guide_wakes_at_the_marker(engine: Engine) -> None:
    guides = GrammarCompiler(engine.tokenizer, engine.limits.vocab, engine.folder.eos)
    mask = guides.lazy('start: "\\n" ("yes" | "no") "</call>"', "<call>", None, ())()
    words = memoryview(bytearray(4 * 9)).cast("i")

    def write(text: str) -> None:
        for token in text.encode():
            assert mask.accept(token) is False

    write("free <call <cal")
    assert mask.fill(words) is False
    write(" and <call>")
    assert mask.fill(words) is True and words.tobytes() == (1 << ord("\n")).to_bytes(36, "little")
    write("\nno</call>")
    assert mask.fill(words) is False
    write(" free again <call>\nyes")
    with pytest.raises(ValueError, match="satisfy"):
        mask.accept(ord("x"))


async def test_one_call_is_all_where_calls_are_not_parallel(hub: EngineService) -> None:
    assert hub._planner is not None
    for parallel in (True, False):
        asked: Json = {"tools": [tool("clock")], "parallel_tool_calls": parallel}
        plan = hub._planner.plan({"model": "m", "messages": HI, **asked})
        assert plan.generation.mask is not None
        mask = plan.generation.mask()
        ends = [mask.accept(token) for token in b'<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>']
        assert not any(ends[:-1]) and ends[-1] is not parallel


async def test_free_choice_of_tools_is_guided_after_the_marker(engine: Engine) -> None:
    """A bias that writes the marker is enough: the rest is a valid call of a tool of the request."""
    hub = EngineService(engine)
    assert hub._planner is not None
    plan = hub._planner.plan({"model": "m", "messages": HI, "tools": [tool("clock")], "seed": 1})
    assert plan.generation.mask is not None
    mask = plan.generation.mask()
    for token in b"Well: <tool_call>":
        mask.accept(token)
    words = memoryview(bytearray(4 * 9)).cast("i")
    written = b""
    while mask.fill(words):
        allowed = [bit for bit in range(272) if words.tobytes()[bit // 8] >> bit % 8 & 1]
        written += bytes(allowed[-1:])
        mask.accept(allowed[-1])
        words = memoryview(bytearray(4 * 9)).cast("i")
    found = await reply(says(hub, "<tool_call>" + written.decode()), tools=[tool("clock")])
    (call,) = found["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "clock", "arguments": "{}"}


def test_special_tokens_are_marked_by_their_number(engine: Engine, tmp_path: Path) -> None:
    guides = GrammarCompiler(engine.tokenizer, engine.limits.vocab, engine.folder.eos)
    assert guides.mark("<|user|>") == "<[257]>" and guides.mark("<call>") == '"<call>"'
