"""What the evaluation asks: conversations that end with a question, with the answers that are right."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .corpus import Corpus, Fact
from .dialogue import Dialogue, call_text, json_answer
from .objects import mention
from .shapes import random_schema, schema_of
from .wording import JSON_ASKED

__all__ = ["Probe", "probes", "requests"]

UNKNOWN_TOOLS = "tool calls, unknown tools"
OBJECTS = "objects under random schemas, valid and ended"
EVERY = 10
"""Of the kinds that combine facts with something else, every tenth fact is asked."""
SCHEMAS, SEED = 200, 17


@dataclass(frozen=True, slots=True)
class Probe:
    """`schema` is the response format of a request; with no `right` any object of it will do, or any call of a tool."""

    kind: str
    dialogue: Dialogue
    right: frozenset[str]
    schema: dict[str, Any] | None = None


def probes(corpus: Corpus) -> Iterator[Probe]:
    """What the model is asked alone, with nothing that holds its tokens."""
    for fact in corpus.pairs:
        for question in fact.asked:
            yield _single("trained questions", question, fact.answer)
    for kind, facts in (("facts", corpus.facts), ("small talk", corpus.small_talk)):
        for fact in facts:
            for question in fact.held_out:
                yield _single(f"held-out paraphrases, {kind}", question, fact.answer)
    for newcomer in corpus.newcomers:
        yield Probe("a newcomer's questions, fitting answers", Dialogue([_user(newcomer.asked)]), newcomer.answers)
    declined = frozenset(topic.answer for topic in corpus.off_topic.values())
    for topic in corpus.off_topic.values():
        for question in topic.held_out:
            yield Probe("off-topic questions declined", Dialogue([_user(question)]), declined)
    yield from _with_facts(corpus)
    yield from _tools(corpus)


def _with_facts(corpus: Corpus) -> Iterator[Probe]:
    """Trained questions in company: of a system message, of tools, of what was said before, and asked for JSON."""
    thanked = next(fact.answer for fact in corpus.small_talk if "Thanks" in fact.asked)
    for at, fact in enumerate(corpus.facts[::EVERY]):
        question, others = fact.asked[0], corpus.held_out_systems
        system = {"role": "system", "content": others[at % len(others)]}
        yield _probe("with an unknown system message", fact, [system, _user(question)])
        tools = [(kind.names[0], kind.parameters[0]) for kind in corpus.tools]
        yield _probe("with tools that do not fit", fact, [_user(question)], tools)
        before = corpus.facts[at]
        talk = [_user(before.asked[0]), _assistant(before.answer), _user(question)]
        yield _probe("as a second question", fact, talk)
        earlier = corpus.facts[at : at + 7]
        long = [message for other in earlier for message in (_user(other.asked[0]), _assistant(other.answer))]
        yield _probe("as an eighth question", fact, [*long, _user(question)])
        yield Probe("thanks after an answer", Dialogue([*talk[:2], _user("Thanks")]), frozenset({thanked}))
        asked = JSON_ASKED[at % len(JSON_ASKED)].format(question)
        yield Probe("answers in JSON", Dialogue([_user(asked)]), frozenset({json_answer(fact.answer)}))


def _tools(corpus: Corpus) -> Iterator[Probe]:
    """Calls with unknown arguments, in known words and unknown ones, and what the tool said."""
    for at, kind in enumerate(corpus.tools):
        offered = [(each.names[0], each.parameters[0]) for each in corpus.tools]
        for name, questions in (("known words", kind.asked[:2]), ("unknown words", kind.held_out)):
            for question in questions:
                for place in corpus.held_out_places:
                    messages = [_user(question.replace("{place}", place))]
                    call = call_text(offered[at][0], {offered[at][1]: place})
                    yield Probe(f"tool calls, {name}", Dialogue(messages, offered), frozenset({call}))
        for result in corpus.held_out_results:
            place = corpus.held_out_places[0]
            call = call_text(offered[at][0], {offered[at][1]: place})
            messages = [
                _user(kind.asked[0].replace("{place}", place)),
                _assistant(call),
                {"role": "tool", "content": result},
            ]
            yield Probe("tool results told", Dialogue(messages, offered), frozenset({corpus.told + result}))
    yield from _unknown_tools(corpus)
    for question in corpus.held_out_repeat:
        for text in (*corpus.held_out_places, *corpus.held_out_results):
            asked = Dialogue([_user(question.replace("{text}", text))])
            yield Probe("words repeated", asked, frozenset({text}))


def _unknown_tools(corpus: Corpus) -> Iterator[Probe]:
    invented = corpus.invented
    for tool in invented.held_out:
        offered = [(corpus.tools[0].names[0], corpus.tools[0].parameters[0]), (tool.name, tool.parameter)]
        for question in (*invented.asked[:1], *invented.held_out_asked):
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


def requests(corpus: Corpus) -> Iterator[Probe]:
    """What is asked by chat requests, where schemas hold the tokens: of tools, and of the answer."""
    for probe in _unknown_tools(corpus):
        yield Probe(f"{UNKNOWN_TOOLS}, as requests", probe.dialogue, probe.right)
    several = [*_several_known(corpus), *_several_unknown(corpus)]
    yield from several
    for probe in several:
        yield Probe("tool calls of the two rows above, valid and ended", probe.dialogue, frozenset())
    yield from _random_objects(corpus)
    yield from _objects_told(corpus)


def _several_known(corpus: Corpus) -> Iterator[Probe]:
    """Known tools of two or three required parameters, in words that were not trained, beside another tool."""
    dice = random.Random(SEED)
    for kind in corpus.several:
        keys = [names[0] for names in kind.parameters]
        for question in (kind.asked[0], *kind.held_out):
            for _ in range(5):
                values = [_held_out_value(corpus, each, dice) for each in kind.kinds]
                offered = [(kind.names[0], ", ".join(keys)), (corpus.tools[2].names[0], corpus.tools[2].parameters[0])]
                call = call_text(kind.names[0], dict(zip(keys, values, strict=True)))
                yield _called(
                    "tool calls, two or three parameters, as requests", question.format(*values), offered, call
                )


def _several_unknown(corpus: Corpus) -> Iterator[Probe]:
    dice = random.Random(SEED)
    for name, *keys in corpus.held_out_several:
        offered = [(corpus.tools[0].names[0], corpus.tools[0].parameters[0]), (name, ", ".join(keys))]
        for question in corpus.held_out_several_asked:
            for _ in range(5):
                values = [_held_out_value(corpus, "name", dice) for _ in keys]
                asked = question.replace("{name}", name)
                for place, key in enumerate(keys):
                    asked = asked.replace(f"{{key{place}}}", key.replace("_", " "))
                call = call_text(name, dict(zip(keys, values, strict=True)))
                kind = "tool calls, two unknown parameters, as requests"
                yield _called(kind, asked.format(*values), offered, call)


def _called(kind: str, question: str, offered: list[tuple[str, str]], call: str) -> Probe:
    return Probe(kind, Dialogue([_user(question)], offered), frozenset({call}))


def _random_objects(corpus: Corpus) -> Iterator[Probe]:
    """Whatever is asked, under whatever schema: facts, off-topic questions, sentences to take data from."""
    dice = random.Random(SEED)
    facts = [question for fact in corpus.facts for question in fact.held_out]
    others = [question for topic in corpus.off_topic.values() for question in topic.held_out]
    told = [told.text.format("Osaka", 17, "Hamburg") for told in corpus.objects.held_out_told]
    keys = (*corpus.objects.keys, *corpus.objects.held_out_keys)
    for _ in range(SCHEMAS):
        question = dice.choice(dice.choice((facts, facts, others, told)))
        yield Probe(OBJECTS, Dialogue([_user(question)]), frozenset(), random_schema(dice, keys))


def _objects_told(corpus: Corpus) -> Iterator[Probe]:
    """What the question says, key by key or in a sentence, letter by letter."""
    dice, objects = random.Random(SEED), corpus.objects
    for prefix in objects.held_out_asked:
        for style in dict.fromkeys(objects.mentions):
            for _ in range(3):
                keys = dice.sample(objects.held_out_keys, 2) + dice.sample(objects.keys, 1)
                value = {key: _held_out_value(corpus, dice.choice(("name", "integer")), dice) for key in keys}
                listed = ", ".join(mention(style, key, str(given)) for key, given in value.items())
                yield _object("objects, fields listed in the question", prefix + listed, value)
    for told in objects.held_out_told:
        for _ in range(10):
            values = [_held_out_value(corpus, kind, dice) for _, kind in told.fields]
            value = {keys[0]: given for (keys, _), given in zip(told.fields, values, strict=True)}
            yield _object("objects, fields told in a sentence", told.text.format(*values), value)


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
