"""The questions of the evaluation: conversations that end with a question, with the right answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .corpus import Corpus, Fact
from .dialogue import Dialogue, call_text, json_answer
from .objects import write_mention
from .shapes import random_schema, schema_of
from .wording import JSON_ASKED

__all__ = ["Probe", "plain_probes", "request_probes"]

UNKNOWN_TOOLS = "tool calls, unknown tools"
OBJECTS = "objects under random schemas, valid and ended"
EVERY = 10
"""Probes that combine facts with something else use every tenth fact."""
SCHEMAS, SEED = 200, 17


@dataclass(frozen=True, slots=True)
class Probe:
    """A conversation and its right answers; with none, any valid object of `schema`, or any valid call, is right."""

    kind: str
    dialogue: Dialogue
    right: frozenset[str]
    schema: dict[str, Any] | None = None


def plain_probes(corpus: Corpus) -> Iterator[Probe]:
    """Probes that ask the model directly, without a constraint on its tokens."""
    for fact in corpus.pairs:
        for question in fact.questions:
            yield _single("trained questions", question, fact.answer)
    for kind, facts in (("facts", corpus.facts), ("small talk", corpus.small_talk)):
        for fact in facts:
            for question in fact.held_out:
                yield _single(f"held-out paraphrases, {kind}", question, fact.answer)
    for newcomer in corpus.newcomers:
        yield Probe("a newcomer's questions, fitting answers", Dialogue([_user(newcomer.question)]), newcomer.answers)
    declined = frozenset(topic.answer for topic in corpus.off_topic.values())
    for topic in corpus.off_topic.values():
        for question in topic.held_out:
            yield Probe("off-topic questions declined", Dialogue([_user(question)]), declined)
    yield from _with_facts(corpus)
    yield from _tools(corpus)


def _with_facts(corpus: Corpus) -> Iterator[Probe]:
    """Trained questions with a system message, with tools, after other exchanges, and with a request for JSON."""
    thanked = next(fact.answer for fact in corpus.small_talk if "Thanks" in fact.questions)
    for at, fact in enumerate(corpus.facts[::EVERY]):
        question, others = fact.questions[0], corpus.held_out_systems
        system = {"role": "system", "content": others[at % len(others)]}
        yield _probe("with an unknown system message", fact, [system, _user(question)])
        tools = [(kind.names[0], kind.parameters[0]) for kind in corpus.tools]
        yield _probe("with tools that do not fit", fact, [_user(question)], tools)
        before = corpus.facts[at]
        talk = [_user(before.questions[0]), _assistant(before.answer), _user(question)]
        yield _probe("as a second question", fact, talk)
        earlier = corpus.facts[at : at + 7]
        long = [message for other in earlier for message in (_user(other.questions[0]), _assistant(other.answer))]
        yield _probe("as an eighth question", fact, [*long, _user(question)])
        yield Probe("thanks after an answer", Dialogue([*talk[:2], _user("Thanks")]), frozenset({thanked}))
        asked = JSON_ASKED[at % len(JSON_ASKED)].format(question)
        yield Probe("answers in JSON", Dialogue([_user(asked)]), frozenset({json_answer(fact.answer)}))


def _tools(corpus: Corpus) -> Iterator[Probe]:
    """Calls with unknown arguments, in known and unknown words, and repeated results of tools."""
    for at, kind in enumerate(corpus.tools):
        offered = [(each.names[0], each.parameters[0]) for each in corpus.tools]
        for name, questions in (("known words", kind.questions[:2]), ("unknown words", kind.held_out)):
            for question in questions:
                for place in corpus.held_out_places:
                    messages = [_user(question.replace("{place}", place))]
                    call = call_text(offered[at][0], {offered[at][1]: place})
                    yield Probe(f"tool calls, {name}", Dialogue(messages, offered), frozenset({call}))
        for result in corpus.held_out_results:
            place = corpus.held_out_places[0]
            call = call_text(offered[at][0], {offered[at][1]: place})
            messages = [
                _user(kind.questions[0].replace("{place}", place)),
                _assistant(call),
                {"role": "tool", "content": result},
            ]
            yield Probe(
                "tool results repeated", Dialogue(messages, offered), frozenset({corpus.result_prefix + result})
            )
    yield from _unknown_tools(corpus)
    for question in corpus.held_out_repeat:
        for text in (*corpus.held_out_places, *corpus.held_out_results):
            asked = Dialogue([_user(question.replace("{text}", text))])
            yield Probe("words repeated", asked, frozenset({text}))


def _unknown_tools(corpus: Corpus) -> Iterator[Probe]:
    invented = corpus.invented
    for tool in invented.held_out:
        offered = [(corpus.tools[0].names[0], corpus.tools[0].parameters[0]), (tool.name, tool.parameter)]
        for question in (*invented.questions[:1], *invented.held_out_questions):
            for given in corpus.held_out_places:
                asked = question.replace("{name}", tool.name).replace("{words}", tool.words).replace("{place}", given)
                call = call_text(tool.name, {tool.parameter: given})
                yield Probe(UNKNOWN_TOOLS, Dialogue([_user(asked)], offered), frozenset({call}))


def _single(kind: str, question: str, answer: str) -> Probe:
    return Probe(kind, Dialogue([_user(question)]), frozenset({answer}))


def _probe(kind: str, fact: Fact, messages: list[dict[str, str]], tools: list[tuple[str, str]] | None = None) -> Probe:
    return Probe(kind, Dialogue(list(messages), tools or []), frozenset({fact.answer}))


def _user(content: str) -> dict[str, str]:
    return {"role": "user", "content": content}


def _assistant(content: str) -> dict[str, str]:
    return {"role": "assistant", "content": content}


def request_probes(corpus: Corpus) -> Iterator[Probe]:
    """Probes that send chat requests, so that the schemas of tools or of the answer constrain the tokens."""
    for probe in _unknown_tools(corpus):
        yield Probe(f"{UNKNOWN_TOOLS}, as requests", probe.dialogue, probe.right)
    several = [*_several_known(corpus), *_several_unknown(corpus)]
    yield from several
    for probe in several:
        yield Probe("tool calls of the two rows above, valid and ended", probe.dialogue, frozenset())
    yield from _random_objects(corpus)
    yield from _objects_in_words(corpus)


def _several_known(corpus: Corpus) -> Iterator[Probe]:
    """Known tools with two or three required parameters, in untrained words, offered with another tool."""
    dice = random.Random(SEED)
    for kind in corpus.several:
        keys = [names[0] for names in kind.parameters]
        for question in (kind.questions[0], *kind.held_out):
            for _ in range(5):
                values = [_held_out_value(corpus, each, dice) for each in kind.kinds]
                offered = [(kind.names[0], ", ".join(keys)), (corpus.tools[2].names[0], corpus.tools[2].parameters[0])]
                call = call_text(kind.names[0], dict(zip(keys, values, strict=True)))
                yield _call_probe(
                    "tool calls, two or three parameters, as requests", question.format(*values), offered, call
                )


def _several_unknown(corpus: Corpus) -> Iterator[Probe]:
    dice = random.Random(SEED)
    for name, *keys in corpus.held_out_several:
        offered = [(corpus.tools[0].names[0], corpus.tools[0].parameters[0]), (name, ", ".join(keys))]
        for question in corpus.held_out_several_questions:
            for _ in range(5):
                values = [_held_out_value(corpus, "name", dice) for _ in keys]
                asked = question.replace("{name}", name)
                for place, key in enumerate(keys):
                    asked = asked.replace(f"{{key{place}}}", key.replace("_", " "))
                call = call_text(name, dict(zip(keys, values, strict=True)))
                kind = "tool calls, two unknown parameters, as requests"
                yield _call_probe(kind, asked.format(*values), offered, call)


def _call_probe(kind: str, question: str, offered: list[tuple[str, str]], call: str) -> Probe:
    return Probe(kind, Dialogue([_user(question)], offered), frozenset({call}))


def _random_objects(corpus: Corpus) -> Iterator[Probe]:
    """Random schemas for facts, off-topic questions and sentences with data."""
    dice = random.Random(SEED)
    facts = [question for fact in corpus.facts for question in fact.held_out]
    others = [question for topic in corpus.off_topic.values() for question in topic.held_out]
    statements = [statement.text.format("Osaka", 17, "Hamburg") for statement in corpus.objects.held_out_statements]
    keys = (*corpus.objects.keys, *corpus.objects.held_out_keys)
    for _ in range(SCHEMAS):
        question = dice.choice(dice.choice((facts, facts, others, statements)))
        yield Probe(OBJECTS, Dialogue([_user(question)]), frozenset(), random_schema(dice, keys))


def _objects_in_words(corpus: Corpus) -> Iterator[Probe]:
    """Objects of values that the question names key by key, or in a sentence."""
    dice, objects = random.Random(SEED), corpus.objects
    for prefix in objects.held_out_prefixes:
        for style in dict.fromkeys(objects.mentions):
            for _ in range(3):
                keys = dice.sample(objects.held_out_keys, 2) + dice.sample(objects.keys, 1)
                value = {key: _held_out_value(corpus, dice.choice(("name", "integer")), dice) for key in keys}
                listed = ", ".join(write_mention(style, key, str(given)) for key, given in value.items())
                yield _object("objects, fields listed in the question", prefix + listed, value)
    for statement in objects.held_out_statements:
        for _ in range(10):
            values = [_held_out_value(corpus, kind, dice) for _, kind in statement.fields]
            value = {keys[0]: given for (keys, _), given in zip(statement.fields, values, strict=True)}
            yield _object("objects, fields in a sentence", statement.text.format(*values), value)


def _object(kind: str, question: str, value: dict[str, Any]) -> Probe:
    right = frozenset({json.dumps(value, ensure_ascii=False)})
    return Probe(kind, Dialogue([_user(question)]), right, schema_of(value))


def _held_out_value(corpus: Corpus, kind: str, dice: random.Random) -> Any:
    if kind == "integer":
        return dice.randint(2, 2000)
    made = {
        "number": str(dice.randint(2, 2000)),
        "date": f"20{dice.randint(10, 40)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}",
        "time": f"{dice.randint(0, 23)}:{dice.randint(10, 59)}",
        "email": f"{dice.choice(corpus.held_out_places).split()[0].lower()}@dragoman.org",
        "phrase": dice.choice(("the second bridge", "lunch", "cloudy and cold", "good morning")),
        "word": dice.choice(("lamps", "CHF", "celsius", "tickets", "EUR")),
    }
    return made.get(kind) or dice.choice(corpus.held_out_places)
