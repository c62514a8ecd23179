"""Guided decoding: with any schema, the output of a model with random weights is valid."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from jsonschema import Draft202012Validator
from service_rig import HI, Engines, Services, function_tool, script, send_chat

from dragoman.adapters.call import JsonObject
from dragoman.local_engine.engine import Engine
from dragoman.local_engine.guidance.grammar_masks import GrammarCompiler
from dragoman.local_engine.service import EngineService

SCHEMA_COUNT, CONCURRENCY = 200, 12


def random_schema(dice: random.Random, depth: int = 0) -> JsonObject:
    """A schema whose values have a bounded length, so that a random model ends."""
    leaves = [_text, _number, _word, _constant, _pattern]
    nested = [_object, _array, _either, _reference] if depth < 3 else []
    return dice.choice([*leaves, *nested * 2])(dice, depth)


def _text(dice: random.Random, depth: int) -> JsonObject:
    least = dice.randrange(3)
    return {"type": "string", "minLength": least, "maxLength": least + dice.randrange(6)}


def _number(dice: random.Random, depth: int) -> JsonObject:
    least = dice.randrange(-200, 200)
    if dice.random() < 0.3:
        return {"type": dice.choice(["boolean", "null"])}
    return {"type": "integer", "minimum": least, "maximum": least + dice.randrange(500)}


def _word(dice: random.Random, depth: int) -> JsonObject:
    return {"enum": dice.sample(["red", 'a "b"', 7, None, True, "ü\n", 2.5, "{}"], dice.randrange(1, 5))}


def _constant(dice: random.Random, depth: int) -> JsonObject:
    return {"const": dice.choice(["fixed", 0, False, None, ["a", 1], {"k": "v"}])}


def _pattern(dice: random.Random, depth: int) -> JsonObject:
    return {
        "type": "string",
        **dice.choice([{"pattern": "^[a-f]{2,4}$"}, {"pattern": r"^\d{3}-\d{2}$"}, {"format": "date"}]),
    }


def _object(dice: random.Random, depth: int) -> JsonObject:
    names = dice.sample(["a", "b_c", "naïve", "with space", 'q"uote', "x1"], dice.randrange(5))
    properties = {name: random_schema(dice, depth + 1) for name in names}
    required = [name for name in names if dice.random() < 0.7]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _array(dice: random.Random, depth: int) -> JsonObject:
    least = dice.randrange(3)
    return {
        "type": "array",
        "items": random_schema(dice, depth + 1),
        "minItems": least,
        "maxItems": least + dice.randrange(3),
    }


def _either(dice: random.Random, depth: int) -> JsonObject:
    return {"anyOf": [random_schema(dice, depth + 1) for _ in range(dice.randrange(1, 4))]}


def _reference(dice: random.Random, depth: int) -> JsonObject:
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


@pytest.fixture
def engine(engines: Engines) -> Engine:
    return engines("qwen_thinking")


@pytest.fixture
async def service(services: Services) -> EngineService:
    return services("qwen_thinking")


def with_schema(schema: JsonObject, *, strict: bool = True) -> JsonObject:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": strict}}
    return {"response_format": wanted, "reasoning_effort": "none", "max_tokens": 3000}


async def test_output_is_valid_for_200_random_schemas(service: EngineService) -> None:
    dice = random.Random(41)
    schemas = [random_schema(dice) for _ in range(SCHEMA_COUNT)]
    limit = asyncio.Semaphore(CONCURRENCY)

    async def check(seed: int, schema: JsonObject) -> None:
        async with limit:
            (choice,) = (await send_chat(service, **with_schema(schema), seed=seed))["choices"]
        assert choice["finish_reason"] == "stop", (schema, choice)
        Draft202012Validator(schema).validate(json.loads(choice["message"]["content"]))

    await asyncio.gather(*(check(seed, schema) for seed, schema in enumerate(schemas)))


async def test_json_object_gives_an_object(service: EngineService) -> None:
    closing = {"logit_bias": {str(ord("}")): 60, str(ord('"')): 20}}
    request: JsonObject = {"response_format": {"type": "json_object"}, "reasoning_effort": "none", "max_tokens": 500}
    found = (await send_chat(service, **request, **closing))["choices"][0]
    assert found["finish_reason"] == "stop" and isinstance(json.loads(found["message"]["content"]), dict)


async def test_unenforceable_keywords_are_ignored_unless_strict(service: EngineService) -> None:
    schema: JsonObject = {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "maxItems": 2}
    found = (await send_chat(service, **with_schema(schema, strict=False)))["choices"][0]
    assert set(json.loads(found["message"]["content"])) <= {1, 2}


@pytest.mark.parametrize(("variables", "reasoning"), [({"always": True}, ""), ({}, "<think>"), ({}, None)])
async def test_the_grammar_starts_after_the_reasoning(
    service: EngineService, variables: JsonObject, reasoning: str | None
) -> None:
    """The prompt opens the reasoning, the model opens it, or there is none."""
    assert service._planner is not None
    request = with_schema({"enum": ["yes", "no"]}) | {"reasoning_effort": None, "chat_template_kwargs": variables}
    plan = service._planner.plan({"model": "m", "messages": HI, **request})
    assert plan.reasoning_opened == (reasoning == "") and plan.generation.mask is not None
    mask = plan.generation.mask()
    for token in b"" if reasoning is None else f"{reasoning}hm {{}} yes</think>\n".encode():
        assert mask.accept(token) is False
    words = memoryview(bytearray(4 * 9)).cast("i")
    assert mask.fill(words)
    allowed = {chr(bit) for bit in range(272) if words.tobytes()[bit // 8] >> bit % 8 & 1}
    assert '"' in allowed and allowed <= {'"', " ", "\n", "<"} and ("<" in allowed) == (reasoning is None)
    assert [mask.accept(token) for token in b'"no"'] == [False, False, False, True]


def test_a_triggered_grammar_starts_at_its_marker(engine: Engine) -> None:
    compiler = GrammarCompiler(engine.tokenizer, engine.limits.vocab, engine.folder.eos)
    mask = compiler.compile_with_trigger('start: "\\n" ("yes" | "no") "</call>"', "<call>", None, ())()
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


async def test_without_parallel_calls_the_first_call_ends_the_text(service: EngineService) -> None:
    assert service._planner is not None
    for parallel in (True, False):
        request: JsonObject = {"tools": [function_tool("clock")], "parallel_tool_calls": parallel}
        plan = service._planner.plan({"model": "m", "messages": HI, **request})
        assert plan.generation.mask is not None
        mask = plan.generation.mask()
        ends = [mask.accept(token) for token in b'<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>']
        assert not any(ends[:-1]) and ends[-1] is not parallel


async def test_an_optional_tool_call_is_guided_after_its_marker(engine: Engine) -> None:
    """Once the marker is written, the rest is a valid call of a tool of the request."""
    service = EngineService(engine)
    assert service._planner is not None
    plan = service._planner.plan({"model": "m", "messages": HI, "tools": [function_tool("clock")], "seed": 1})
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
    found = await send_chat(script(service, "<tool_call>" + written.decode()), tools=[function_tool("clock")])
    (call,) = found["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "clock", "arguments": "{}"}


def test_a_special_token_is_written_by_its_id(engine: Engine) -> None:
    compiler = GrammarCompiler(engine.tokenizer, engine.limits.vocab, engine.folder.eos)
    assert compiler.write_marker("<|user|>") == "<[257]>" and compiler.write_marker("<call>") == '"<call>"'
