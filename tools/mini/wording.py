"""Variations of a question, as people really type: synonyms, politeness, case, typos. From a seed."""

from __future__ import annotations

import random

from .corpus import Variations

__all__ = ["JSON_ASKED", "Wording"]

JSON_ASKED = ("{} Answer in JSON.", "{} Reply as JSON.", "{} Give JSON.", "In JSON: {}", "Answer in JSON: {}")


class Wording:
    """Varies questions with `chance`."""

    def __init__(self, chance: random.Random, variations: Variations) -> None:
        self._chance = chance
        self._variations = variations

    def vary(self, question: str) -> str:
        """Reword the question, change its case, add typos and, now and then, politeness."""
        varied = self._reword(question)
        if question.isascii() and self._happens(0.12):
            varied = self.add_politeness(varied)
        return self._add_typos(self.change_case(varied))

    def change_case(self, question: str) -> str:
        """Perhaps change to lower or upper case, perhaps drop the last mark. Keeps `{place}` and the like."""
        draw = self._chance.random()
        if "{" in question:
            question = question[0].lower() + question[1:] if draw < 0.3 else question
        elif draw < 0.33:
            question = question.lower() if draw < 0.31 else question.upper()
        return question.rstrip("?？!.") if self._happens(0.3) else question

    def add_politeness(self, question: str) -> str:
        """Add a word of greeting, please or thanks before or after the question."""
        if self._happens(0.7):
            lower = self._happens(0.5) and question[1:2].islower()
            return self._chance.choice(self._variations.before) + (
                question[0].lower() + question[1:] if lower else question
            )
        return question.rstrip("?.") + self._chance.choice(self._variations.after)

    def _happens(self, share: float) -> bool:
        return self._chance.random() < share

    def _reword(self, question: str) -> str:
        for old, others in self._variations.synonyms:
            if old in question and self._happens(0.3):
                question = question.replace(old, self._chance.choice(others), 1)
        words = question.split(" ")
        if len(words) > 3 and self._happens(0.3):
            words = [word for word in words if word.lower() not in self._variations.small or self._happens(0.6)]
        if len(words) > 4 and self._happens(0.08):
            del words[self._chance.randrange(len(words))]
        if len(words) > 2 and self._happens(0.06):
            words.insert(self._chance.randrange(1, len(words)), self._chance.choice(self._variations.fillers))
        if len(words) > 3 and self._happens(0.05):
            words = self._move_end_to_front(words)
        return " ".join(words)

    def _move_end_to_front(self, words: list[str]) -> list[str]:
        """Put the last words first, as in: timeouts, how do I set them"""
        at = self._chance.randrange(2, len(words))
        return [*words[at:], *words[:at]]

    def _add_typos(self, question: str) -> str:
        """Now and then swap two letters, or drop, double or replace one."""
        while len(question) >= 8 and self._happens(0.12):
            at = self._chance.randrange(1, len(question) - 2)
            here, following = question[at], question[at + 1]
            slip = (following + here, following, here * 2 + following, self._chance.choice("aeiostnr") + following)
            question = question[:at] + self._chance.choice(slip) + question[at + 2 :]
        return question
