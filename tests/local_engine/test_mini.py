"""dragoman-mini as it is shipped: what the folder holds, what the model says through the engine, and its corpus."""

from __future__ import annotations

import json
import random
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jsonschema import Draft202012Validator

from dragoman.local_engine.engine import EngineOptions
from dragoman.local_engine.mini import FOLDER
from dragoman.local_engine.mini.corpus import load_corpus, normal
from dragoman.local_engine.mini.dialogue import Dialogue, Dialogues, call_text, render, tool_schema
from dragoman.local_engine.mini.evaluate import Asker, evaluate
from dragoman.local_engine.mini.plan import Plan
from dragoman.local_engine.mini.shapes import random_schema, schema_of
from dragoman.local_engine.mini.train import train
from dragoman.local_engine.mini.vocabulary import END, END_ID, SIZE, encode
from dragoman.local_engine.mini.written import AnyValue, joined, written
from dragoman.local_engine.model_folder.folder import open_folder
from dragoman.local_engine.model_folder.signature import DecoderSignature
from dragoman.local_engine.service import EngineService
from dragoman.local_engine.text.detokenizer import load_tokenizer

MOST_BYTES = 2_000_000
CORPUS = load_corpus()
TOKENIZER = load_tokenizer(FOLDER / "tokenizer.json")
WEATHER = [("get_weather", "city")]


@pytest.fixture(scope="module")
def ask() -> Iterator[Asker]:
    with Asker() as asker:
        yield asker


def user(*questions: str) -> list[Dialogue]:
    return [Dialogue([{"role": "user", "content": question}]) for question in questions]


async def asked(question: str, **more: Any) -> dict[str, Any]:
    """The choice of a reply to a greedy chat request of at most 200 tokens."""
    hub = await EngineService.load(FOLDER, EngineOptions(device="cpu", threads=1))
    try:
        request = {"model": hub.name, "messages": user(question)[0].messages, "temperature": 0, "max_tokens": 200}
        [choice] = hub.collect_reply([event async for event in hub.chat(request | more)])["choices"]
    finally:
        hub.close()
    return dict(choice)


def json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "asked", "schema": schema}}


def shipped() -> set[Path]:
    """The files of the folder that pyproject.toml puts into the wheel."""
    settings = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text("utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["dragoman.local_engine.mini"]
    return {file for pattern in ["*.py", *patterns] for file in FOLDER.glob(pattern)}


def test_the_wheel_holds_the_folder() -> None:
    here = {file for file in FOLDER.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    assert shipped() == here


def test_the_folder_is_small() -> None:
    assert sum(file.stat().st_size for file in shipped()) <= MOST_BYTES


def test_the_folder_opens() -> None:
    folder = open_folder(FOLDER)
    assert isinstance(folder.signature, DecoderSignature)
    assert (folder.signature.layout, folder.signature.vocab, folder.context) == ("slots", SIZE, 2048)
    assert folder.eos == {END_ID} == {TOKENIZER.token_to_id(END)}
    assert folder.template == (FOLDER / "chat_template.jinja").read_text("utf-8")


@given(st.text())
def test_any_text_has_tokens(text: str) -> None:
    ids = TOKENIZER.encode(text, add_special_tokens=False).ids
    assert TOKENIZER.decode(ids, skip_special_tokens=False) == text


@pytest.mark.parametrize("name", ["Hamburg", "Los Angeles", "Bogotá", "2024"])
def test_a_name_has_the_same_tokens_wherever_it_stands(name: str) -> None:
    alone = TOKENIZER.encode(name, add_special_tokens=False).ids
    for text in (f"Is it cold in {name} today?", call_text("get_weather", {"city": name}), f"Say: {name}"):
        ids = TOKENIZER.encode(text, add_special_tokens=False).ids
        assert alone in [ids[at : at + len(alone)] for at in range(len(ids))]


def test_signs_of_json_are_tokens_of_their_own() -> None:
    vocabulary = TOKENIZER.get_vocab()
    assert {token for token in vocabulary if set(token) & set('"{}[]')} == set('"{}[]')


VALUES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(VALUES, st.booleans())
def test_pieces_are_json(value: Any, own: bool) -> None:
    assert joined(written(value, own=own)) == json.dumps(value, ensure_ascii=False)


def test_what_a_grammar_decides_is_not_learnt() -> None:
    value = {"a": "x y", "b": 12, "c": [True], "d": AnyValue("z"), "e": AnyValue(3)}
    learnt = [text for text, own in written(value) if own]
    assert "".join(learnt) == ': x y": 12: true]: ": }'
    assert (", ", True) in written({"a": 1, "b": 2}, going_on=True)
    assert all(own for _, own in written({"a": "x", "b": {"c": ["y"]}}, own=True))


def test_random_schemas_are_schemas_of_several_fields() -> None:
    dice = random.Random(1)
    schemas = [random_schema(dice, CORPUS.objects.keys) for _ in range(100)]
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
    assert all(len(schema["properties"]) >= 2 for schema in schemas)
    kinds = {each.get("type", "enum") for schema in schemas for each in schema["properties"].values()}
    assert kinds == {"string", "integer", "number", "boolean", "array", "object", "enum"}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which dialects does dragoman speak?", "Four: openai, databricks, azure and mindie."),
        ("What does dragoman init do?", "It writes a commented dragoman.yaml to begin with."),
        (
            "What does the policy unsupported mean?",
            "For a known field that the target lacks: refuse (default) or drop.",
        ),
        ("Which licence does dragoman have?", "Apache-2.0."),
    ],
)
def test_it_knows_dragoman(ask: Asker, question: str, answer: str) -> None:
    assert ask(user(question)) == [answer]


def test_it_declines_what_it_does_not_know(ask: Asker) -> None:
    [english, spanish] = ask(user("Who was Mozart?", "¿Cuál es la capital de Perú?"))
    assert english == CORPUS.off_topic["en"].answer
    assert spanish == CORPUS.off_topic["es"].answer


def test_it_greets_in_four_languages(ask: Asker) -> None:
    greetings = ask(user("Hello", "Hola", "Ciao", "你好"))
    assert [greeting.split(" ")[0] for greeting in greetings] == ["Hello!", "¡Hola!", "Ciao!", "你好！我是"]
    assert all("dragoman-mini" in greeting for greeting in greetings)


@pytest.mark.parametrize(
    ("question", "tool", "given"),
    [
        ("What is the weather in Paris?", "get_weather(city)", "Paris"),
        ("What's the weather like in Stockholm today?", "get_current_weather(location, unit?)", "Stockholm"),
        ("What time is it in Los Angeles?", "get_time(city)", "Los Angeles"),
        ("Please search the docs for budget", "search_docs(query)", "budget"),
    ],
)
def test_it_calls_a_tool(ask: Asker, question: str, tool: str, given: str) -> None:
    name, listed = tool.removesuffix(")").split("(")
    [said] = ask([Dialogue([{"role": "user", "content": question}], [(name, listed)])])
    call = said.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
    assert json.loads(call) == {"name": name, "arguments": {listed.split(", ")[0]: given}}


@pytest.mark.parametrize(
    ("question", "tool", "given"),
    [
        ("What is the stock price of Zembla?", "get_stock_price(symbol)", "Zembla"),
        ("Call find_customer for Osaka", "find_customer(customer_id)", "Osaka"),
        ("What is the weather in Ulm?", "get_current_weather(location, unit?)", "Ulm"),
    ],
)
async def test_a_request_calls_a_tool_that_was_never_trained(question: str, tool: str, given: str) -> None:
    name, listed = tool.removesuffix(")").split("(")
    call = (await asked(question, tools=[tool_schema(name, listed)]))["message"]["tool_calls"][0]
    assert call["function"]["name"] == name
    assert json.loads(call["function"]["arguments"]) == {listed.split(", ")[0]: given}


@pytest.mark.parametrize(
    ("question", "tool", "given"),
    [
        ("Book a flight from Oslo to Rome", "book_flight(origin, destination)", ["Oslo", "Rome"]),
        ("Convert 20 dollars to pounds", "convert(amount, from, to)", ["20", "dollars", "pounds"]),
        ("What is the weather in Paris in celsius?", "get_weather(city, unit)", ["Paris", "celsius"]),
    ],
)
async def test_a_request_calls_a_tool_of_several_parameters(question: str, tool: str, given: list[str]) -> None:
    name, listed = tool.removesuffix(")").split("(")
    choice = await asked(question, tools=[tool_schema(name, listed)])
    [call] = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert json.loads(call["function"]["arguments"]) == dict(zip(listed.split(", "), given, strict=True))


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("Extract: name: Osaka, age: 42", {"name": "Osaka", "age": 42}),
        ("Ada is 36 years old and lives in Turin", {"name": "Ada", "age": 36, "city": "Turin"}),
    ],
)
async def test_a_request_gets_an_object_of_what_it_said(question: str, value: dict[str, Any]) -> None:
    choice = await asked(question, response_format=json_schema(schema_of(value)))
    assert (choice["finish_reason"], json.loads(choice["message"]["content"])) == ("stop", value)


async def test_an_object_of_any_fields_ends() -> None:
    dice = random.Random(5)
    for _ in range(10):
        schema = random_schema(dice, CORPUS.objects.keys)
        choice = await asked("What is dragoman?", response_format=json_schema(schema))
        Draft202012Validator(schema).validate(json.loads(choice["message"]["content"]))
        assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize("result", ["sunny", "21 degrees and windy", "14:35"])
def test_it_tells_what_the_tool_said(ask: Asker, result: str) -> None:
    messages = [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": call_text("get_weather", {"city": "Paris"})},
        {"role": "tool", "content": result},
    ]
    assert ask([Dialogue(messages, WEATHER)]) == [f"The tool says: {result}"]


def test_it_repeats(ask: Asker) -> None:
    assert ask(user("Say banana", "Repeat after me: Oslo 42")) == ["banana", "Oslo 42"]


def test_it_goes_on_after_thanks_and_system_messages(ask: Asker) -> None:
    first = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello! I am dragoman-mini."}]
    system = {"role": "system", "content": "You are a helpful assistant."}
    question = {"role": "user", "content": "What is the hub?"}
    hub = next(fact.answer for fact in CORPUS.facts if "What is the hub?" in fact.asked)
    thanks = {"role": "user", "content": "Thanks"}
    assert ask([Dialogue([system, question]), Dialogue([*first, thanks])]) == [hub, "You are welcome."]


def test_the_template_writes_what_was_trained() -> None:
    environment = ImmutableSandboxedEnvironment()
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    template = environment.from_string((FOLDER / "chat_template.jinja").read_text("utf-8"))
    source = Dialogues(CORPUS, 1)
    for dialogue in (source.draw() for _ in range(100)):
        tools = [tool_schema(*tool) for tool in dialogue.tools]
        text = "".join(piece for piece, _ in render(dialogue))
        assert template.render(messages=dialogue.messages, tools=tools) == text
    asked = template.render(messages=user("Hi")[0].messages, add_generation_prompt=True)
    assert asked == "<|user|>Hi<|end|><|assistant|>"


def test_the_template_marks_what_may_be_left_out() -> None:
    template = ImmutableSandboxedEnvironment().from_string((FOLDER / "chat_template.jinja").read_text("utf-8"))
    several = tool_schema("convert", "amount, to, unit?")
    bare = {"type": "function", "function": {"name": "now", "description": ""}}
    assert template.render(messages=[], tools=[several, bare]) == "<|tools|>convert(amount, to, unit?)\nnow()<|end|>"


def test_the_template_writes_calls_and_parts() -> None:
    template = ImmutableSandboxedEnvironment().from_string((FOLDER / "chat_template.jinja").read_text("utf-8"))
    function = {"name": "get_weather", "arguments": {"city": "Paris"}}
    for arguments in ({"city": "Paris"}, '{"city": "Paris"}'):
        calls = [{"id": "1", "type": "function", "function": function | {"arguments": arguments}}]
        messages = [
            {"role": "user", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]},
            {"role": "assistant", "content": None, "tool_calls": calls},
        ]
        call = call_text("get_weather", {"city": "Paris"})
        assert template.render(messages=messages) == f"<|user|>AB<|end|><|assistant|>{call}<|end|>"


def test_a_question_has_one_answer_and_one_place() -> None:
    answers = {(normal(question), fact.answer) for fact in CORPUS.pairs for question in (*fact.asked, *fact.held_out)}
    repeated = {question for question, count in Counter(question for question, _ in answers).items() if count > 1}
    assert not repeated
    trained = {normal(question) for fact in CORPUS.pairs for question in fact.asked}
    assert not trained & CORPUS.held_out()
    assert all(fact.held_out and len(fact.asked) >= 4 for fact in CORPUS.pairs)


def test_held_out_questions_are_never_drawn() -> None:
    source = Dialogues(CORPUS, 2)
    drawn = {
        normal(message["content"])
        for _ in range(5000)
        for message in source.draw().messages
        if message["role"] == "user"
    }
    assert len(drawn) > 5000
    assert not drawn & CORPUS.held_out()
    words = {normal(place) for place in CORPUS.held_out_places}
    words |= {normal(tool.name) for tool in CORPUS.invented.held_out} | {tool[0] for tool in CORPUS.held_out_several}
    assert not {question for question in drawn if any(f" {word} " in f" {question} " for word in words)}
    assert not set(CORPUS.repeat) & set(CORPUS.held_out_repeat)
    assert not set(CORPUS.invented.asked) & set(CORPUS.invented.held_out_asked)
    assert not set(CORPUS.objects.asked) & set(CORPUS.objects.held_out_asked)
    assert not {told.text for told in CORPUS.objects.told} & {told.text for told in CORPUS.objects.held_out_told}
    for kind in CORPUS.several:
        assert not set(kind.asked) & set(kind.held_out)


def test_held_out_keys_are_never_drawn() -> None:
    source = Dialogues(CORPUS, 4)
    keys = {
        json.loads(text)
        for dialogue in (source.draw() for _ in range(5000))
        for pieces in dialogue.pieces.values()
        for text, own in pieces
        if not own and text.startswith('"') and len(text) > 1 and text.endswith('"')
    }
    assert len(keys) > 500
    assert not keys & set(CORPUS.objects.held_out_keys)


def test_a_seed_draws_the_same_conversations() -> None:
    first, second, other = (Dialogues(CORPUS, seed) for seed in (3, 3, 4))
    drawn = [first.draw() for _ in range(20)]
    assert drawn == [second.draw() for _ in range(20)] != [other.draw() for _ in range(20)]


def test_what_the_model_says_is_what_is_learnt() -> None:
    ids, said = encode(TOKENIZER, Dialogue([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]))
    learnt = [token for token, own in zip(ids, said, strict=True) if own]
    assert TOKENIZER.decode(learnt, skip_special_tokens=False) == "Ho<|end|>"


@pytest.mark.heavy
def test_the_model_card_tells_what_the_command_prints() -> None:
    card = (FOLDER / "README.md").read_text("utf-8")
    scores = evaluate()
    for score in scores:
        assert f"| {score.kind} | {score.right} | {score.asked} | {score.share:.1%} |" in card
    assert next(score for score in scores if score.kind == "trained questions").share >= 0.98


@pytest.mark.heavy
def test_training_a_part_of_the_corpus(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs torch")
    part = replace(CORPUS, facts=CORPUS.facts[:12], small_talk=CORPUS.small_talk[12:16])
    train(tmp_path / "model", Plan(steps=400), part)
    with Asker(tmp_path / "model") as ask:
        pairs = [(question, fact.answer) for fact in part.facts for question in fact.asked]
        answers = ask(user(*(question for question, _ in pairs)))
    right = sum(said == answer for said, (_, answer) in zip(answers, pairs, strict=True))
    assert right / len(pairs) >= 0.9
