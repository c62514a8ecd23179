"""The answers of the shipped dragoman-mini, and its training on a part of the corpus."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from dragoman.contract.json_types import JsonObject, JsonValue
from dragoman.local_engine.engine import EngineOptions
from dragoman.local_engine.mini import FOLDER
from dragoman.local_engine.service import EngineService
from tools.mini.corpus import load_corpus
from tools.mini.dialogue import Dialogue, call_text, tool_schema
from tools.mini.evaluate import ModelClient, evaluate
from tools.mini.plan import Plan
from tools.mini.shapes import random_schema, schema_of
from tools.mini.train import train

CORPUS = load_corpus()
WEATHER = [("get_weather", "city")]


@pytest.fixture(scope="module")
def client() -> Iterator[ModelClient]:
    with ModelClient() as client:
        yield client


def user(*questions: str) -> list[Dialogue]:
    return [Dialogue([{"role": "user", "content": question}]) for question in questions]


async def fetch_choice(question: str, **more: JsonValue) -> JsonObject:
    """The choice of a reply to a greedy chat request of at most 200 tokens."""
    hub = await EngineService.load(FOLDER, EngineOptions(device="cpu", threads=1))
    try:
        request = {"model": hub.name, "messages": user(question)[0].messages, "temperature": 0, "max_tokens": 200}
        [choice] = hub.collect_reply([event async for event in hub.chat(request | more)])["choices"]
    finally:
        hub.close()
    return dict(choice)


def response_format(schema: JsonObject) -> JsonObject:
    return {"type": "json_schema", "json_schema": {"name": "asked", "schema": schema}}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which dialects does dragoman speak?", "Five: openai, databricks, azure, mindie and anthropic."),
        ("What does dragoman init do?", "It writes a commented dragoman.yaml to begin with."),
        (
            "What does the policy unsupported mean?",
            "For a known field that the target lacks: refuse (default), refuse-exactly or drop.",
        ),
        ("Which licence does dragoman have?", "Apache-2.0."),
    ],
)
def test_it_knows_dragoman(client: ModelClient, question: str, answer: str) -> None:
    assert client.answer(user(question)) == [answer]


def test_it_declines_what_it_does_not_know(client: ModelClient) -> None:
    [english, spanish] = client.answer(user("Who was Mozart?", "¿Cuál es la capital de Perú?"))
    assert english == CORPUS.off_topic["en"].answer
    assert spanish == CORPUS.off_topic["es"].answer


def test_it_greets_in_four_languages(client: ModelClient) -> None:
    greetings = client.answer(user("Hello", "Hola", "Ciao", "你好"))
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
def test_it_calls_a_tool(client: ModelClient, question: str, tool: str, given: str) -> None:
    name, listed = tool.removesuffix(")").split("(")
    [said] = client.answer([Dialogue([{"role": "user", "content": question}], [(name, listed)])])
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
    call = (await fetch_choice(question, tools=[tool_schema(name, listed)]))["message"]["tool_calls"][0]
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
    choice = await fetch_choice(question, tools=[tool_schema(name, listed)])
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
async def test_a_request_gets_an_object_of_its_own_values(question: str, value: JsonObject) -> None:
    choice = await fetch_choice(question, response_format=response_format(schema_of(value)))
    assert (choice["finish_reason"], json.loads(choice["message"]["content"])) == ("stop", value)


async def test_an_object_of_any_fields_ends() -> None:
    dice = random.Random(5)
    for _ in range(10):
        schema = random_schema(dice, CORPUS.objects.keys)
        choice = await fetch_choice("What is dragoman?", response_format=response_format(schema))
        Draft202012Validator(schema).validate(json.loads(choice["message"]["content"]))
        assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize("result", ["sunny", "21 degrees and windy", "14:35"])
def test_it_repeats_the_result_of_a_tool(client: ModelClient, result: str) -> None:
    messages = [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"role": "assistant", "content": call_text("get_weather", {"city": "Paris"})},
        {"role": "tool", "content": result},
    ]
    assert client.answer([Dialogue(messages, WEATHER)]) == [f"The tool says: {result}"]


def test_it_repeats(client: ModelClient) -> None:
    assert client.answer(user("Say banana", "Repeat after me: Oslo 42")) == ["banana", "Oslo 42"]


def test_it_answers_after_thanks_and_system_messages(client: ModelClient) -> None:
    first = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello! I am dragoman-mini."}]
    system = {"role": "system", "content": "You are a helpful assistant."}
    question = {"role": "user", "content": "What is the hub?"}
    hub = next(fact.answer for fact in CORPUS.facts if "What is the hub?" in fact.questions)
    thanks = {"role": "user", "content": "Thanks"}
    assert client.answer([Dialogue([system, question]), Dialogue([*first, thanks])]) == [hub, "You are welcome."]


@pytest.mark.heavy
def test_the_model_card_has_the_numbers_that_the_command_prints() -> None:
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
    with ModelClient(tmp_path / "model") as client:
        pairs = [(question, fact.answer) for fact in part.facts for question in fact.questions]
        answers = client.answer(user(*(question for question, _ in pairs)))
    right = sum(said == answer for said, (_, answer) in zip(answers, pairs, strict=True))
    assert right / len(pairs) >= 0.9
