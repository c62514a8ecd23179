"""The corpus of dragoman-mini, and the conversations and schemas generated from it."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jsonschema import Draft202012Validator

from dragoman.contract.json_types import JsonValue
from dragoman.local_engine.mini import FOLDER
from dragoman.local_engine.text.detokenizer import load_tokenizer
from tools.mini.corpus import load_corpus, normalize_question
from tools.mini.dialogue import Dialogue, Dialogues, call_text, render, tool_schema
from tools.mini.json_pieces import AnyValue, join_pieces, write_pieces
from tools.mini.shapes import random_schema
from tools.mini.vocabulary import encode

CORPUS = load_corpus()
TOKENIZER = load_tokenizer(FOLDER / "tokenizer.json")


def user(*questions: str) -> list[Dialogue]:
    return [Dialogue([{"role": "user", "content": question}]) for question in questions]


@pytest.mark.parametrize("name", ["Hamburg", "Los Angeles", "Bogotá", "2024"])
def test_a_name_has_the_same_tokens_everywhere(name: str) -> None:
    alone = TOKENIZER.encode(name, add_special_tokens=False).ids
    for text in (f"Is it cold in {name} today?", call_text("get_weather", {"city": name}), f"Say: {name}"):
        ids = TOKENIZER.encode(text, add_special_tokens=False).ids
        assert alone in [ids[at : at + len(alone)] for at in range(len(ids))]


VALUES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(VALUES, st.booleans())
def test_pieces_are_json(value: JsonValue, own: bool) -> None:
    assert join_pieces(write_pieces(value, own=own)) == json.dumps(value, ensure_ascii=False)


def test_the_model_does_not_learn_what_a_grammar_decides() -> None:
    value = {"a": "x y", "b": 12, "c": [True], "d": AnyValue("z"), "e": AnyValue(3)}
    learnt = [text for text, own in write_pieces(value) if own]
    assert "".join(learnt) == ': x y": 12: true]: ": }'
    assert (", ", True) in write_pieces({"a": 1, "b": 2}, continues=True)
    assert all(own for _, own in write_pieces({"a": "x", "b": {"c": ["y"]}}, own=True))


def test_random_schemas_are_schemas_of_several_fields() -> None:
    dice = random.Random(1)
    schemas = [random_schema(dice, CORPUS.objects.keys) for _ in range(100)]
    for schema in schemas:
        Draft202012Validator.check_schema(schema)
    assert all(len(schema["properties"]) >= 2 for schema in schemas)
    kinds = {each.get("type", "enum") for schema in schemas for each in schema["properties"].values()}
    assert kinds == {"string", "integer", "number", "boolean", "array", "object", "enum"}


def test_the_template_writes_the_text_of_training() -> None:
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


def test_a_question_has_one_answer_and_one_place() -> None:
    answers = {
        (normalize_question(question), fact.answer)
        for fact in CORPUS.pairs
        for question in (*fact.questions, *fact.held_out)
    }
    repeated = {question for question, count in Counter(question for question, _ in answers).items() if count > 1}
    assert not repeated
    trained = {normalize_question(question) for fact in CORPUS.pairs for question in fact.questions}
    assert not trained & CORPUS.list_held_out()
    assert all(fact.held_out and len(fact.questions) >= 4 for fact in CORPUS.pairs)


def test_held_out_questions_are_never_drawn() -> None:
    source = Dialogues(CORPUS, 2)
    drawn = {
        normalize_question(message["content"])
        for _ in range(5000)
        for message in source.draw().messages
        if message["role"] == "user"
    }
    assert len(drawn) > 5000
    assert not drawn & CORPUS.list_held_out()
    words = {normalize_question(place) for place in CORPUS.held_out_places}
    words |= {normalize_question(tool.name) for tool in CORPUS.invented.held_out} | {
        tool[0] for tool in CORPUS.held_out_several
    }
    assert not {question for question in drawn if any(f" {word} " in f" {question} " for word in words)}
    assert not set(CORPUS.repeat) & set(CORPUS.held_out_repeat)
    assert not set(CORPUS.invented.questions) & set(CORPUS.invented.held_out_questions)
    assert not set(CORPUS.objects.prefixes) & set(CORPUS.objects.held_out_prefixes)
    assert not {each.text for each in CORPUS.objects.statements} & {
        each.text for each in CORPUS.objects.held_out_statements
    }
    for kind in CORPUS.several:
        assert not set(kind.questions) & set(kind.held_out)


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


def test_the_model_learns_its_own_messages() -> None:
    ids, said = encode(TOKENIZER, Dialogue([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]))
    learnt = [token for token, own in zip(ids, said, strict=True) if own]
    assert TOKENIZER.decode(learnt, skip_special_tokens=False) == "Ho<|end|>"
