"""Conversations made of the corpus: drawn from a seed, in the words that people really type.

A conversation is a list of messages in OpenAI's form, with the signatures of its tools. `Dialogues.draw` makes one for
training: a few turns of facts, small talk, off-topic questions, things to repeat, objects and tool calls.
Questions are varied (`wording`); a variation that comes out as a held-out question is never used. What is to be copied,
and much of what is to be declined, is made up anew each time (`invention`).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .corpus import Corpus, Fact, normal
from .invention import Inventor
from .objects import Asked, ObjectSource
from .offers import Offer, OfferSource
from .wording import JSON_ASKED, Wording
from .written import Piece, joined, written

__all__ = ["Dialogue", "Dialogues", "Message", "call_text", "json_answer", "render", "tool_schema"]

Message: TypeAlias = dict[str, Any]

EXCHANGES = (1, 1, 1, 1, 2, 2, 2, 3, 5, 8)
NAMES = frozenset({"country", "city", "person", "software", "company", "event", "language"})
"""The lists of off-topic words whose words are names."""


@dataclass(slots=True)
class Dialogue:
    """Messages, and the tools that are offered as (name, parameters): "city", or "city, unit?".

    `pieces` are those messages of the model, by place, of which it learns only a part.
    """

    messages: list[Message] = field(default_factory=list)
    tools: list[tuple[str, str]] = field(default_factory=list)
    pieces: dict[int, list[Piece]] = field(default_factory=dict)


def tool_schema(name: str, listed: str) -> dict[str, Any]:
    """A tool of text parameters, required but for those with a question mark, as a chat request offers it."""
    names = listed.split(", ")
    properties = {each.removesuffix("?"): {"type": "string"} for each in names}
    required = [each for each in names if not each.endswith("?")]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A tool call in Hermes' form."""
    return joined(call_pieces(name, arguments))


def call_pieces(name: str, arguments: dict[str, Any]) -> list[Piece]:
    call = written({"name": name, "arguments": arguments}, own=True)
    return [("<tool_call>\n", True), *call, ("\n</tool_call>", True)]


def json_answer(answer: str) -> str:
    return json.dumps({"answer": answer}, ensure_ascii=False)


def render(dialogue: Dialogue) -> list[Piece]:
    """The text of a conversation as chat_template.jinja writes it, in pieces; True is what the model learns."""
    signatures = "\n".join(f"{name}({listed})" for name, listed in dialogue.tools)
    pieces = [(f"<|tools|>{signatures}<|end|>", False)] if dialogue.tools else []
    for place, message in enumerate(dialogue.messages):
        learnt = message["role"] == "assistant"
        pieces.append((f"<|{message['role']}|>", False))
        pieces += dialogue.pieces.get(place) or [(message["content"], learnt)]
        pieces.append(("<|end|>", learnt))
    return pieces


class Dialogues:
    """A seeded source of conversations."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        self._corpus = corpus
        self._random = random.Random(seed)
        self._wording = Wording(self._random, corpus.clothes)
        self._inventor = Inventor(self._random, corpus.syllables, corpus.common_words())
        self._stranger = Inventor(self._random, corpus.syllables)
        makers = (self._random, self._inventor, self._stranger, self._copied)
        self._objects = ObjectSource(corpus.objects, makers)
        self._offers = OfferSource(corpus, makers)
        self._held_out = corpus.held_out()
        self._held_out_places = {word for place in corpus.held_out_places for word in normal(place).split()}
        self._talk = [(question, fact.answer) for fact in corpus.small_talk for question in fact.asked]
        self._queue: list[Fact] = []

    def draw(self) -> Dialogue:
        """One to eight exchanges, perhaps behind a system message, perhaps with tools."""
        chance = self._random
        dialogue = Dialogue()
        if chance.random() < 0.15:
            self._say(dialogue, "system", chance.choice(self._corpus.systems))
        offers = self._offers.draw() if chance.random() < 0.3 else []
        dialogue.tools = [(offer.name, offer.listed) for offer in offers]
        for _ in range(chance.choice(EXCHANGES)):
            self._exchange(dialogue, offers)
        return dialogue

    def off_topic(self, language: str) -> str:
        """An off-topic question: a pattern with words in it."""
        pattern = self._random.choice(self._corpus.off_topic[language].patterns)
        return re.sub(r"\{(\w+)\}", self._word, pattern)

    def _exchange(self, dialogue: Dialogue, offers: list[Offer]) -> None:
        draw = self._random.random()
        if offers and draw < 0.7:
            return self._tool(dialogue, offers)
        if draw < 0.06:
            return self._repeat(dialogue)
        if draw < 0.18:
            return self._object(dialogue)
        question, answer = self._plain()
        if self._random.random() < 0.08:
            question, answer = self._random.choice(JSON_ASKED).format(question), json_answer(answer)
        self._say(dialogue, "user", question)
        self._say(dialogue, "assistant", answer)

    def _plain(self) -> tuple[str, str]:
        question, answer = self._asked(self._random.random())
        return self._varied(question), answer

    def _asked(self, draw: float) -> tuple[str, str]:
        if draw < 0.2:
            language = self._random.choice((*["en"] * 9, "es", "it", "zh"))
            return self.off_topic(language), self._corpus.off_topic[language].answer
        if draw < 0.3:
            return self._random.choice(self._talk)
        return self._fact()

    def _fact(self) -> tuple[str, str]:
        """Facts come in shuffled rounds, so that none is left behind."""
        if not self._queue:
            self._queue = self._random.sample(self._corpus.facts, len(self._corpus.facts))
        fact = self._queue.pop()
        return self._random.choice(fact.asked), fact.answer

    def _repeat(self, dialogue: Dialogue) -> None:
        text = self._copied(self._inventor.phrase)
        text = json.dumps(text, ensure_ascii=False) if self._random.random() < 0.1 else text
        asked = self._wording.cased(self._random.choice(self._corpus.repeat))
        self._say(dialogue, "user", asked.replace("{text}", text))
        self._say(dialogue, "assistant", text)

    def _object(self, dialogue: Dialogue) -> None:
        """An answer in JSON under a schema that the model does not see."""
        draw = self._random.random()
        if draw < 0.4:
            asked = self._objects.listed()
        elif draw < 0.6:
            asked = self._objects.told()
        else:
            question, answer = self._plain()
            question = self._random.choice(JSON_ASKED).format(question) if draw < 0.7 else question
            asked = Asked(question, self._objects.around(answer))
        self._say(dialogue, "user", asked.question)
        going_on = self._random.random() < 0.1
        self._say_pieces(dialogue, list(written(asked.value, own=asked.own, going_on=going_on)))

    def _tool(self, dialogue: Dialogue, offers: list[Offer]) -> None:
        offer = self._random.choice(offers)
        question, arguments = self._offers.ask(offer)
        self._say(dialogue, "user", question)
        self._say_pieces(dialogue, call_pieces(offer.name, arguments))
        if self._random.random() < 0.5:
            result = self._copied(self._result)
            self._say(dialogue, "tool", result)
            self._say(dialogue, "assistant", self._corpus.told + result)

    def _copied(self, make: Callable[[], str]) -> str:
        """What `make` makes, but for words that are held out."""
        while self._held_out_places & set(normal(text := make()).split()):
            pass
        return text

    def _result(self) -> str:
        chance = self._random
        parts = chance.sample(self._corpus.results, chance.randint(0, 2))
        number = f"{chance.randint(-9, 39)} C", f"{chance.randint(0, 23)}:{chance.randint(10, 59)}"
        while not parts or chance.random() < 0.4:
            parts.append(chance.choice((*number, self._inventor.number(), self._inventor.phrase())))
        chance.shuffle(parts)
        if chance.random() < 0.25:
            return json.dumps(
                {self._inventor.word(): int(part) if part.isdigit() else part for part in parts}, ensure_ascii=False
            )
        return chance.choice((", ", " ", " and ")).join(parts)

    def _word(self, match: re.Match[str]) -> str:
        """Of a list, or made up: what nobody has heard of is declined too."""
        if match[1] == "number":
            return str(self._random.randint(1, 2000))
        if not match[1].endswith("zh") and self._random.random() < 0.25:
            return self._stranger.name() if match[1] in NAMES else self._stranger.word()
        return self._random.choice(self._corpus.words[match[1]])

    def _varied(self, question: str) -> str:
        """The question in other clothes; as it is where that would be a held-out one, or by chance."""
        if self._random.random() < 0.3:
            return question
        varied = self._wording.varied(question)
        return question if normal(varied) in self._held_out or not normal(varied) else varied

    def _say_pieces(self, dialogue: Dialogue, pieces: list[Piece]) -> None:
        dialogue.pieces[len(dialogue.messages)] = pieces
        self._say(dialogue, "assistant", joined(pieces))

    @staticmethod
    def _say(dialogue: Dialogue, role: str, content: str) -> None:
        dialogue.messages.append({"role": role, "content": content})
