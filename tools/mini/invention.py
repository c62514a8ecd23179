"""Invented words, from a seed: a model must copy them, or decline them, and cannot remember them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from .corpus import Syllables

__all__ = ["Inventor", "Makers", "Source"]

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Inventor:
    """Makes up words, names and numbers with `chance`. `known` holds real words to use now and then."""

    def __init__(self, chance: random.Random, syllables: Syllables, known: Sequence[str] = ()) -> None:
        self._chance = chance
        self._syllables = syllables
        self._known = known

    def word(self) -> str:
        """One word in lower case: syllables, a real word, random letters, or letters and digits."""
        draw = self._chance.random()
        if draw < 0.25 and self._known:
            return self._chance.choice(self._known)
        if draw < 0.85:
            return self._sound()
        if draw < 0.95:
            return "".join(self._chance.choices(LETTERS, k=self._chance.randint(2, 8)))
        return self._chance.choice(LETTERS) + self._chance.choice(("", "-", "_")) + self.number()

    def name(self) -> str:
        """A name of a person, place or product: one or two words, mostly capitalized."""
        if self._chance.random() < 0.04:
            return "".join(self._chance.choices(self._syllables.han, k=self._chance.randint(2, 4)))
        words = [self.word() for _ in range(self._chance.choice((1, 1, 1, 2)))]
        draw = self._chance.random()
        if draw < 0.1:
            return " ".join(words)
        if draw < 0.15:
            return "".join(word.capitalize() for word in (*words, self._sound()))
        return " ".join(word.capitalize() for word in words)

    def phrase(self, most: int = 4) -> str:
        """Some words, such as one searches for or repeats."""
        words = [self.word() for _ in range(self._chance.randint(1, most))]
        at = self._chance.randrange(len(words))
        draw = self._chance.random()
        if draw < 0.2:
            words[at] = self.number()
        elif draw < 0.5:
            words[at] = self.name()
        return " ".join(words)

    def number(self) -> str:
        whole = str(self._chance.randint(0, 10 ** self._chance.randint(1, 5)))
        return f"{whole}.{self._chance.randint(0, 99)}" if self._chance.random() < 0.15 else whole

    def date(self) -> str:
        pick = self._chance.randint
        return f"{pick(1950, 2035)}-{pick(1, 12):02}-{pick(1, 28):02}"

    def time(self) -> str:
        return f"{self._chance.randint(0, 23)}:{self._chance.randint(0, 59):02}"

    def email(self) -> str:
        return f"{self.word()}@{self._sound()}.{self._chance.choice(('com', 'org', 'net', 'io', 'de'))}"

    def of(self, kind: str) -> str:
        """A text of a kind: name, word, phrase, number, date, time or email."""
        made: str = getattr(self, kind)()
        return made

    def _sound(self) -> str:
        pick, parts = self._chance.choice, self._syllables
        word = "".join(
            pick(parts.onsets) + pick(parts.vowels) + pick(parts.codas) for _ in range(self._chance.randint(1, 3))
        )
        word = word if self._chance.random() < 0.85 else word[1:] or word
        return word + pick(parts.endings) if self._chance.random() < 0.25 else word


Makers: TypeAlias = tuple[random.Random, Inventor, Inventor, Callable[[Callable[[], str]], str]]


class Source:
    """Base of the classes that draw with `chance`. `make_allowed` calls a maker until its text is not held out."""

    def __init__(
        self,
        chance: random.Random,
        inventor: Inventor,
        stranger: Inventor,
        make_allowed: Callable[[Callable[[], str]], str],
    ) -> None:
        self._chance = chance
        self._inventor = inventor
        self._stranger = stranger
        self._make_allowed = make_allowed
