"""Conversations made of the corpus: drawn from a seed, in the words that people really type.

A conversation is a list of messages in OpenAI's form, with the signatures of its tools. `Dialogues.draw` makes one for
training: a few turns of facts, small talk, off-topic questions, JSON answers and tool calls. Questions are varied
(case, punctuation, politeness, synonyms, slips); a variation that comes out as a held-out question is never used.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .corpus import Corpus, ToolKind, normal

__all__ = ["Dialogue", "Dialogues", "Message", "call_text", "json_answer", "render", "tool_schema"]

Message: TypeAlias = dict[str, Any]

JSON_ASKED = ("{} Answer in JSON.", "{} Reply as JSON.", "{} Give JSON.", "In JSON: {}", "Answer in JSON: {}")
POLITE = (
    "Please: {}",
    "Hey, {}",
    "Tell me: {}",
    "I want to know: {}",
    "Question: {}",
    "{} Please.",
    "Hi, {}",
    "Can you tell me: {}",
)
SYNONYMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("How do I ", ("How can I ", "How to ", "How would I ", "How could I ", "How should I ", "What is the way to ")),
    ("How does ", ("In which way does ", "How exactly does ")),
    ("What is ", ("What's ", "What exactly is ", "Can you explain ", "Describe ", "Tell me about ")),
    ("What does ", ("Do you know what ", "What exactly does ")),
    ("What happens ", ("What does dragoman do ", "What will happen ")),
    ("What if ", ("What happens if ",)),
    ("Which ", ("What ",)),
    ("Can I ", ("Is it possible to ", "May I ", "Could I ", "Am I able to ")),
    ("Explain ", ("Describe ", "Please explain ", "What is meant by ")),
    ("Define ", ("What is meant by ", "Give a definition of ")),
    ("Where is ", ("Where's ", "Where do I find ", "Where can I find ")),
    ("Where are ", ("Where do I find ", "Where can I find ")),
    ("List ", ("Show ", "Give me ", "What are ")),
    (" the proxy", (" dragoman", " the server")),
    (" dragoman ", (" the proxy ", " it ")),
    ("configuration", ("config",)),
    ("mean?", ("stand for?",)),
    ("start", ("run", "launch")),
    ("supported", ("possible", "available")),
)
ONSETS = (
    "b",
    "br",
    "c",
    "ch",
    "d",
    "f",
    "g",
    "gr",
    "h",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "st",
    "t",
    "v",
    "w",
    "z",
    "",
)
CODAS = ("", "", "", "n", "l", "r", "s", "m", "rd", "ng")
SMALL = {"the", "a", "an", "is", "do", "does", "i", "of", "my", "are", "it", "to", "in", "for"}


@dataclass(slots=True)
class Dialogue:
    """Messages, and the tools that are offered as (name, parameter)."""

    messages: list[Message] = field(default_factory=list)
    tools: list[tuple[str, str]] = field(default_factory=list)


def tool_schema(name: str, parameter: str) -> dict[str, Any]:
    """A tool of one text parameter as a chat request offers it."""
    parameters = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def call_text(name: str, arguments: dict[str, str]) -> str:
    """A tool call in Hermes' form."""
    call = {"name": name, "arguments": arguments}
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


def json_answer(answer: str) -> str:
    return json.dumps({"answer": answer}, ensure_ascii=False)


def render(dialogue: Dialogue) -> list[tuple[str, bool]]:
    """The text of a conversation as chat_template.jinja writes it, in pieces; True marks what the model says."""
    signatures = "\n".join(f"{name}({parameter})" for name, parameter in dialogue.tools)
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
        self._held_out = corpus.held_out()
        self._facts = [(question, fact.answer) for fact in corpus.facts for question in fact.asked]
        self._talk = [(question, fact.answer) for fact in corpus.small_talk for question in fact.asked]
        self._queue: list[tuple[str, str]] = []

    def draw(self) -> Dialogue:
        """One to three exchanges, perhaps behind a system message, perhaps with tools."""
        chance = self._random
        dialogue = Dialogue()
        if chance.random() < 0.15:
            self._say(dialogue, "system", chance.choice(self._corpus.systems))
        kinds = chance.sample(self._corpus.tools, chance.randint(1, 3)) if chance.random() < 0.3 else []
        dialogue.tools = [(chance.choice(kind.names), chance.choice(kind.parameters)) for kind in kinds]
        for _ in range(chance.choice((1, 1, 2, 3))):
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
        if draw < 0.15:
            language = self._random.choice((*["en"] * 7, "es", "it", "zh"))
            question, answer = self.off_topic(language), self._corpus.off_topic[language].answer
        elif draw < 0.27:
            question, answer = self._random.choice(self._talk)
        else:
            question, answer = self._fact()
        question = self._varied(question)
        if self._random.random() < 0.08:
            question, answer = self._random.choice(JSON_ASKED).format(question), json_answer(answer)
        self._say(dialogue, "user", question)
        self._say(dialogue, "assistant", answer)

    def _fact(self) -> tuple[str, str]:
        """Facts come in shuffled rounds, so that none is left behind."""
        if not self._queue:
            self._queue = self._random.sample(self._facts, len(self._facts))
        return self._queue.pop()

    def _tool(self, dialogue: Dialogue, kinds: list[ToolKind]) -> None:
        chance = self._random
        at = chance.randrange(len(kinds))
        place = self._place()
        name, parameter = dialogue.tools[at]
        self._say(dialogue, "user", self._cased(chance.choice(kinds[at].asked)).replace("{place}", place))
        self._say(dialogue, "assistant", call_text(name, {parameter: place}))
        if chance.random() < 0.5:
            result = self._result()
            self._say(dialogue, "tool", result)
            self._say(dialogue, "assistant", self._corpus.told + result)

    def _place(self) -> str:
        """A known place, or a made-up one: so that copying is learnt, not a list."""
        chance = self._random
        if chance.random() < 0.35:
            return chance.choice(self._corpus.places)
        word = self._made_up()
        return word.capitalize() if chance.random() < 0.8 else word

    def _made_up(self) -> str:
        chance = self._random
        parts = (
            chance.choice(ONSETS) + chance.choice("aeiou") + chance.choice(CODAS) for _ in range(chance.randint(2, 3))
        )
        return "".join(parts)

    def _result(self) -> str:
        chance = self._random
        parts = chance.sample(self._corpus.results, chance.randint(1, 2))
        number = f"{chance.randint(-9, 39)} C", f"{chance.randint(0, 23)}:{chance.randint(10, 59)}", self._made_up()
        if chance.random() < 0.7:
            parts.append(chance.choice(number))
        chance.shuffle(parts)
        return chance.choice((", ", " ", " and ")).join(parts)

    def _word(self, match: re.Match[str]) -> str:
        if match[1] == "number":
            return str(self._random.randint(1, 2000))
        return self._random.choice(self._corpus.words[match[1]])

    def _varied(self, question: str) -> str:
        """The question in other clothes; as it is where that would be a held-out one, or by chance."""
        if self._random.random() < 0.3:
            return question
        varied = self._slipped(self._cased(self._reworded(question)))
        if self._random.random() < 0.08:
            varied = self._random.choice(POLITE).format(varied)
        return question if normal(varied) in self._held_out or not normal(varied) else varied

    def _reworded(self, question: str) -> str:
        for old, others in SYNONYMS:
            if old in question and self._random.random() < 0.35:
                question = question.replace(old, self._random.choice(others), 1)
        words = question.split(" ")
        if len(words) > 3 and self._random.random() < 0.3:
            words = [word for word in words if word.lower() not in SMALL or self._random.random() < 0.6]
        return " ".join(words)

    def _cased(self, question: str) -> str:
        chance = self._random.random()
        if chance < 0.25:
            question = question.lower() if "{" not in question else question[0].lower() + question[1:]
        if self._random.random() < 0.2:
            question = question.rstrip("?？!.")
        return question

    def _slipped(self, question: str) -> str:
        """Now and then two letters change places or one is missing."""
        if len(question) < 8 or self._random.random() > 0.12:
            return question
        at = self._random.randrange(1, len(question) - 2)
        swapped = question[at + 1] + question[at] if self._random.random() < 0.5 else question[at + 1]
        return question[:at] + swapped + question[at + 2 :]

    @staticmethod
    def _say(dialogue: Dialogue, role: str, content: str) -> None:
        dialogue.messages.append({"role": role, "content": content})
