"""Conversations generated from the corpus and a seed, in the words that people really type.

A conversation is a list of messages in OpenAI's form, with the signatures of its tools. `Dialogues.draw` makes one for
training: a few turns of facts, small talk, off-topic questions, things to repeat, objects and tool calls.
`wording` varies the questions; a variation that equals a held-out question is never used. `invention` makes up words to
copy, and many of the words to decline, each time.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .corpus import Corpus, Fact, normalize_question
from .invention import Inventor
from .json_pieces import Piece, join_pieces, write_pieces
from .objects import ObjectSource, ObjectTask
from .offers import Offer, OfferSource
from .wording import JSON_ASKED, Wording

__all__ = ["Dialogue", "Dialogues", "Message", "call_text", "json_answer", "render", "tool_schema"]

Message: TypeAlias = dict[str, Any]

EXCHANGES = (1, 1, 1, 1, 2, 2, 2, 3, 5, 8)
NAMES = frozenset({"country", "city", "person", "software", "company", "event", "language"})
"""The lists of off-topic words that hold names."""


@dataclass(slots=True)
class Dialogue:
    """Messages, and the tools they offer as (name, parameters): "city", or "city, unit?".

    `pieces` maps the index of a message of the model to its pieces, if the model learns only some of them.
    """

    messages: list[Message] = field(default_factory=list)
    tools: list[tuple[str, str]] = field(default_factory=list)
    pieces: dict[int, list[Piece]] = field(default_factory=dict)


def tool_schema(name: str, listed: str) -> dict[str, Any]:
    """A tool with text parameters, as a chat request offers it. Parameters with a question mark are optional."""
    names = listed.split(", ")
    properties = {each.removesuffix("?"): {"type": "string"} for each in names}
    required = [each for each in names if not each.endswith("?")]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def call_text(name: str, arguments: dict[str, Any]) -> str:
    """A tool call in Hermes' form."""
    return join_pieces(call_pieces(name, arguments))


def call_pieces(name: str, arguments: dict[str, Any]) -> list[Piece]:
    call = write_pieces({"name": name, "arguments": arguments}, own=True)
    return [("<tool_call>\n", True), *call, ("\n</tool_call>", True)]


def json_answer(answer: str) -> str:
    return json.dumps({"answer": answer}, ensure_ascii=False)


def render(dialogue: Dialogue) -> list[Piece]:
    """Write a conversation as chat_template.jinja does, in pieces (text, whether the model learns it)."""
    signatures = "\n".join(f"{name}({listed})" for name, listed in dialogue.tools)
    pieces = [(f"<|tools|>{signatures}<|end|>", False)] if dialogue.tools else []
    for place, message in enumerate(dialogue.messages):
        learned = message["role"] == "assistant"
        pieces.append((f"<|{message['role']}|>", False))
        pieces += dialogue.pieces.get(place) or [(message["content"], learned)]
        pieces.append(("<|end|>", learned))
    return pieces


class Dialogues:
    """A seeded source of conversations."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        self._corpus = corpus
        self._random = random.Random(seed)
        self._wording = Wording(self._random, corpus.variations)
        self._inventor = Inventor(self._random, corpus.syllables, corpus.common_words())
        self._stranger = Inventor(self._random, corpus.syllables)
        makers = (self._random, self._inventor, self._stranger, self._make_allowed)
        self._objects = ObjectSource(corpus.objects, makers)
        self._offers = OfferSource(corpus, makers)
        self._held_out = corpus.list_held_out()
        self._held_out_places = {word for place in corpus.held_out_places for word in normalize_question(place).split()}
        self._talk = [(question, fact.answer) for fact in corpus.small_talk for question in fact.questions]
        self._queue: list[Fact] = []

    def draw(self) -> Dialogue:
        """Make one conversation of one to eight exchanges, perhaps with a system message, perhaps with tools."""
        chance = self._random
        dialogue = Dialogue()
        if chance.random() < 0.15:
            self._say(dialogue, "system", chance.choice(self._corpus.systems))
        offers = self._offers.draw() if chance.random() < 0.3 else []
        dialogue.tools = [(offer.name, offer.parameter_list) for offer in offers]
        for _ in range(chance.choice(EXCHANGES)):
            self._exchange(dialogue, offers)
        return dialogue

    def draw_off_topic(self, language: str) -> str:
        """Make an off-topic question: a pattern filled with words."""
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
        question, answer = self._draw_pair()
        if self._random.random() < 0.08:
            question, answer = self._random.choice(JSON_ASKED).format(question), json_answer(answer)
        self._say(dialogue, "user", question)
        self._say(dialogue, "assistant", answer)

    def _draw_pair(self) -> tuple[str, str]:
        question, answer = self._draw_question(self._random.random())
        return self._vary(question), answer

    def _draw_question(self, draw: float) -> tuple[str, str]:
        if draw < 0.2:
            language = self._random.choice((*["en"] * 9, "es", "it", "zh"))
            return self.draw_off_topic(language), self._corpus.off_topic[language].answer
        if draw < 0.3:
            return self._random.choice(self._talk)
        return self._fact()

    def _fact(self) -> tuple[str, str]:
        """Take the next fact of a shuffled round, so that every fact comes up equally often."""
        if not self._queue:
            self._queue = self._random.sample(self._corpus.facts, len(self._corpus.facts))
        fact = self._queue.pop()
        return self._random.choice(fact.questions), fact.answer

    def _repeat(self, dialogue: Dialogue) -> None:
        text = self._make_allowed(self._inventor.phrase)
        text = json.dumps(text, ensure_ascii=False) if self._random.random() < 0.1 else text
        request = self._wording.change_case(self._random.choice(self._corpus.repeat))
        self._say(dialogue, "user", request.replace("{text}", text))
        self._say(dialogue, "assistant", text)

    def _object(self, dialogue: Dialogue) -> None:
        """Add a question with an answer in JSON under a schema that the model does not see."""
        draw = self._random.random()
        if draw < 0.4:
            task = self._objects.draw_listing()
        elif draw < 0.6:
            task = self._objects.draw_statement()
        else:
            question, answer = self._draw_pair()
            question = self._random.choice(JSON_ASKED).format(question) if draw < 0.7 else question
            task = ObjectTask(question, self._objects.wrap_answer(answer))
        self._say(dialogue, "user", task.question)
        continues = self._random.random() < 0.1
        self._say_pieces(dialogue, list(write_pieces(task.value, own=task.own, continues=continues)))

    def _tool(self, dialogue: Dialogue, offers: list[Offer]) -> None:
        offer = self._random.choice(offers)
        question, arguments = self._offers.ask(offer)
        self._say(dialogue, "user", question)
        self._say_pieces(dialogue, call_pieces(offer.name, arguments))
        if self._random.random() < 0.5:
            result = self._make_allowed(self._result)
            self._say(dialogue, "tool", result)
            self._say(dialogue, "assistant", self._corpus.result_prefix + result)

    def _make_allowed(self, make: Callable[[], str]) -> str:
        """Call `make` until its text holds no held-out word."""
        while self._held_out_places & set(normalize_question(text := make()).split()):
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
        """Take a word of a list or invent one: the model declines unknown words too."""
        if match[1] == "number":
            return str(self._random.randint(1, 2000))
        if not match[1].endswith("zh") and self._random.random() < 0.25:
            return self._stranger.name() if match[1] in NAMES else self._stranger.word()
        return self._random.choice(self._corpus.words[match[1]])

    def _vary(self, question: str) -> str:
        """Vary the question, unless the variation is a held-out question; sometimes leave it as it is."""
        if self._random.random() < 0.3:
            return question
        varied = self._wording.vary(question)
        return question if normalize_question(varied) in self._held_out or not normalize_question(varied) else varied

    def _say_pieces(self, dialogue: Dialogue, pieces: list[Piece]) -> None:
        dialogue.pieces[len(dialogue.messages)] = pieces
        self._say(dialogue, "assistant", join_pieces(pieces))

    @staticmethod
    def _say(dialogue: Dialogue, role: str, content: str) -> None:
        dialogue.messages.append({"role": role, "content": content})
