"""The clothes of a question, as people really type: other words for the same, politeness, case, slips. From a seed."""

from __future__ import annotations

import random

from .corpus import Clothes

__all__ = ["JSON_ASKED", "Wording"]

JSON_ASKED = ("{} Answer in JSON.", "{} Reply as JSON.", "{} Give JSON.", "In JSON: {}", "Answer in JSON: {}")


class Wording:
    """Varies questions with the numbers of `chance`."""

    def __init__(self, chance: random.Random, clothes: Clothes) -> None:
        self._chance = chance
        self._clothes = clothes

    def varied(self, question: str) -> str:
        """The question otherwise worded, cased and mistyped; polite now and then."""
        varied = self._reworded(question)
        if question.isascii() and self._often(0.12):
            varied = self.polite(varied)
        return self._slipped(self.cased(varied))

    def cased(self, question: str) -> str:
        """Lower case or upper case perhaps, and perhaps without its last mark. Leaves `{place}` and the like alone."""
        draw = self._chance.random()
        if "{" in question:
            question = question[0].lower() + question[1:] if draw < 0.3 else question
        elif draw < 0.33:
            question = question.lower() if draw < 0.31 else question.upper()
        return question.rstrip("?？!.") if self._often(0.3) else question

    def polite(self, question: str) -> str:
        """With a word of greeting, please or thanks before or behind it."""
        if self._often(0.7):
            lower = self._often(0.5) and question[1:2].islower()
            return self._chance.choice(self._clothes.before) + (
                question[0].lower() + question[1:] if lower else question
            )
        return question.rstrip("?.") + self._chance.choice(self._clothes.after)

    def _often(self, share: float) -> bool:
        return self._chance.random() < share

    def _reworded(self, question: str) -> str:
        for old, others in self._clothes.synonyms:
            if old in question and self._often(0.3):
                question = question.replace(old, self._chance.choice(others), 1)
        words = question.split(" ")
        if len(words) > 3 and self._often(0.3):
            words = [word for word in words if word.lower() not in self._clothes.small or self._often(0.6)]
        if len(words) > 4 and self._often(0.08):
            del words[self._chance.randrange(len(words))]
        if len(words) > 2 and self._often(0.06):
            words.insert(self._chance.randrange(1, len(words)), self._chance.choice(self._clothes.fillers))
        if len(words) > 3 and self._often(0.05):
            words = self._turned(words)
        return " ".join(words)

    def _turned(self, words: list[str]) -> list[str]:
        """The last words first, as in: timeouts, how do I set them"""
        at = self._chance.randrange(2, len(words))
        return [*words[at:], *words[:at]]

    def _slipped(self, question: str) -> str:
        """Now and then two letters change places, or one is missing, doubled or another."""
        while len(question) >= 8 and self._often(0.12):
            at = self._chance.randrange(1, len(question) - 2)
            here, following = question[at], question[at + 1]
            slip = (following + here, following, here * 2 + following, self._chance.choice("aeiostnr") + following)
            question = question[:at] + self._chance.choice(slip) + question[at + 2 :]
        return question
