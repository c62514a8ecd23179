"""Conversations made of the corpus: drawn from a seed, in the words that people really type.

A conversation is a list of messages in OpenAI's form, with the signatures of its tools. `Dialogues.draw` makes one for
training: a few turns of facts, small talk, off-topic questions, things to repeat, JSON answers and tool calls.
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

from .corpus import Corpus, Fact, ToolKind, normal
from .invention import Inventor
from .wording import JSON_ASKED, Wording

__all__ = ["Dialogue", "Dialogues", "Message", "call_text", "json_answer", "render", "tool_schema"]

Message: TypeAlias = dict[str, Any]

EXCHANGES = (1, 1, 1, 1, 2, 2, 2, 3, 5, 8)
NAMES = frozenset({"country", "city", "person", "software", "company", "event", "language"})
"""The lists of off-topic words whose words are names."""


@dataclass(slots=True)
class Dialogue:
    """Messages, and the tools that are offered as (name, parameters): "city", or "city, unit"."""

    messages: list[Message] = field(default_factory=list)
    tools: list[tuple[str, str]] = field(default_factory=list)


def tool_schema(name: str, listed: str) -> dict[str, Any]:
    """A tool of text parameters, the first one required, as a chat request offers it."""
    names = listed.split(", ")
    parameters = {"type": "object", "properties": {each: {"type": "string"} for each in names}, "required": names[:1]}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def call_text(name: str, arguments: dict[str, str]) -> str:
    """A tool call in Hermes' form."""
    call = {"name": name, "arguments": arguments}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


def json_answer(answer: str) -> str:
    return json.dumps({"answer": answer}, ensure_ascii=False)


def render(dialogue: Dialogue) -> list[tuple[str, bool]]:
    """The text of a conversation as chat_template.jinja writes it, in pieces; True marks what the model says."""
    signatures = "\n".join(f"{name}({listed})" for name, listed in dialogue.tools)
    pieces = [(f"<|tools|>{signatures}<|end|>", False)] if dialogue.tools else []
    for message in dialogue.messages:
        pieces.append((f"<|{message['role']}|>", False))
        pieces.append((message["content"] + "<|end|>", message["role"] == "assistant"))
    return pieces


class Dialogues:
    """A seeded source of conversations."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        self._corpus = corpus
        self._random = random.Random(seed)
        self._wording = Wording(self._random, corpus.clothes)
        self._inventor = Inventor(self._random, corpus.syllables, corpus.common_words())
        self._stranger = Inventor(self._random, corpus.syllables)
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
        kinds = self._kinds() if chance.random() < 0.3 else []
        dialogue.tools = [self._signature(kind) for kind in kinds]
        for _ in range(chance.choice(EXCHANGES)):
            self._exchange(dialogue, kinds)
        return dialogue

    def off_topic(self, language: str) -> str:
        """An off-topic question: a pattern with words in it."""
        pattern = self._random.choice(self._corpus.off_topic[language].patterns)
        return re.sub(r"\{(\w+)\}", self._word, pattern)

    def _exchange(self, dialogue: Dialogue, kinds: list[ToolKind]) -> None:
        draw = self._random.random()
        if kinds and draw < 0.7:
            return self._tool(dialogue, kinds)
        if draw < 0.08:
            return self._repeat(dialogue)
        question, answer = self._asked(draw)
        question = self._varied(question)
        if self._random.random() < 0.08:
            question, answer = self._random.choice(JSON_ASKED).format(question), json_answer(answer)
        self._say(dialogue, "user", question)
        self._say(dialogue, "assistant", answer)

    def _asked(self, draw: float) -> tuple[str, str]:
        if draw < 0.28:
            language = self._random.choice((*["en"] * 9, "es", "it", "zh"))
            return self.off_topic(language), self._corpus.off_topic[language].answer
        if draw < 0.38:
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
        asked = self._wording.cased(self._random.choice(self._corpus.repeat))
        self._say(dialogue, "user", asked.replace("{text}", text))
        self._say(dialogue, "assistant", text)

    def _kinds(self) -> list[ToolKind]:
        """One to three tools, known or made up, in any order."""
        kinds = self._random.sample(self._corpus.tools, self._random.randint(0, 3))
        while not kinds or (len(kinds) < 3 and self._random.random() < 0.4):
            kinds.append(self._invented_kind())
        self._random.shuffle(kinds)
        return kinds

    def _invented_kind(self) -> ToolKind:
        invented, chance = self._corpus.invented, self._random
        words = [
            chance.choice(invented.nouns) if chance.random() < 0.7 else self._stranger.word()
            for _ in range(chance.randint(1, 2))
        ]
        name = "_".join((chance.choice(invented.verbs), *words))
        parameter = chance.choice(invented.parameters)
        asked = (text.replace("{name}", name).replace("{words}", " ".join(words)) for text in invented.asked)
        return ToolKind((name,), (parameter,), tuple(asked), ())

    def _signature(self, kind: ToolKind) -> tuple[str, str]:
        """The tool's name and its parameters; now and then others stand behind the one that is to be given."""
        chance = self._random
        first = chance.choice(kind.parameters)
        others = chance.sample(self._corpus.other_parameters, chance.choice((0, 0, 1, 2)))
        return chance.choice(kind.names), ", ".join((first, *others))

    def _tool(self, dialogue: Dialogue, kinds: list[ToolKind]) -> None:
        chance = self._random
        at = chance.randrange(len(kinds))
        place = self._place()
        name, listed = dialogue.tools[at]
        asked = self._wording.cased(chance.choice(kinds[at].asked))
        if chance.random() < 0.15:
            asked = self._wording.polite(asked)
        self._say(dialogue, "user", asked.replace("{place}", place))
        self._say(dialogue, "assistant", call_text(name, {listed.split(", ")[0]: place}))
        if chance.random() < 0.5:
            result = self._copied(self._result)
            self._say(dialogue, "tool", result)
            self._say(dialogue, "assistant", self._corpus.told + result)

    def _place(self) -> str:
        """A known place, or a made-up one: so that copying is learnt, not a list."""
        if self._random.random() < 0.25:
            return self._random.choice(self._corpus.places)
        return self._copied(self._inventor.name if self._random.random() < 0.7 else self._inventor.phrase)

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
        if chance.random() < 0.15:
            return json.dumps({self._inventor.word(): part for part in parts}, ensure_ascii=False)
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

    @staticmethod
    def _say(dialogue: Dialogue, role: str, content: str) -> None:
        dialogue.messages.append({"role": role, "content": content})
